//! Field ownership: `metadata.managedFields` and server-side apply.
//!
//! ```text
//! object + types -> sets of fields -> compare, merge -> who owns what -> managedFields
//! ```

mod entries;
mod ownership;
mod set;
mod types;
mod walk;

pub(super) use entries::without_times;
pub(super) use ownership::{ApplyError, ConvertError, Manager, Ownership};
pub(super) use set::FieldSet;
pub(super) use types::Type;

//! Data to text, pure: every function here takes a value and returns a string.
//!
//! A plan is one value with three views, and none of them computes anything about the cluster:
//!
//! ```text
//! Plan -+-> plan_text       a terminal of a given width, with or without colour
//!       +-> plan_markdown   a pull-request comment, under its byte limit
//!       '-> plan_json       every change and finding, for programs; read_plan brings it back
//! ```
//!
//! `words` holds what the views say alike, `fold` puts like things under one heading, `wrap` keeps
//! lines within a width. Whatever came from a cluster passes through [`escape`] on its way out.

mod diff;
mod draft;
mod ending;
mod errors;
pub mod escape;
mod fold;
mod gfm;
pub mod graph;
mod json;
mod markdown;
mod plan;
mod problems;
mod progress;
mod rehearsal;
mod roles;
mod snapshot;
pub mod styles;
mod words;
mod wrap;

pub use draft::draft_text;
pub use ending::{ending_text, left_at_once};
pub use errors::error_text;
pub use json::{SavedPlanError, json_text, plan_json, plan_schema, read_plan};
pub use markdown::{MARKDOWN_LIMIT, plan_markdown};
pub use plan::{plan_overview, plan_text};
pub use problems::{no_problems_text, problems_text};
pub use progress::RunLines;
pub use rehearsal::{RehearsalPage, report_text};
pub use roles::roles_text;
pub use snapshot::snapshot_text;
pub use styles::{Role, Styles, View};

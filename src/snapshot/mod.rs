//! A cluster in one file: what a runbook's steps look at, with no secret in it.
//!
//! In: a [`Reader`](crate::cluster::Reader) and a runbook. Out: a file of JSON lines that a person can read, a rehearsal
//! can be played on and an offline plan made from. Written and read line by line, so its size
//! costs no memory.
//!
//! ```text
//! {"snapshot": …}   first: schema, when, of which cluster, for which runbook
//! {"served": …}     a group version and its resources        {"silent": …}  one that did not answer
//! {"crd": …}        a CRD: of the upgrade whole, any other without its schemas
//! {"record": …}     an object of the upgrade's kinds at each served version
//! {"object": …}     another object that a step looks at       {"metadata": …} its metadata alone
//! {"taken": …}      a read that was answered: it holds exactly what stands here
//! {"denied": …}     a read that was refused, in the server's words
//! {"access": …}     what the user may do                      {"requests": …} who still writes `from`
//! {"end": …}        last: how many lines came before; without it the file is not whole
//! ```

mod format;
mod load;
mod offline;
mod pairs;
mod reads;
mod redact;
mod take;

pub use format::{Access, Denied, FormatError, Header, Line, Lines, Record, Requests, RunbookIdentity, Served, Taken};
pub use load::{built_in, load};
pub use offline::Offline;
pub use reads::{Read, Reads};
pub use redact::{Keep, Redactor};
pub use take::{Summary, TakeError, take};

/// What this version writes and reads. Another number is another layout.
pub const SCHEMA: &str = "sbx.snapshot/1";

//! The only place that names kube: a [`Reader`] for plan, a [`Writer`] that only apply gets.
//!
//! In: a kubeconfig context, or any `kube::Client`. Out: objects as lossless JSON, or a
//! [`ClusterError`] with the server's own words. A [`Reader`] cannot write: what it sends is GET,
//! dry runs and access reviews. Knows no runbook and no plan.

#![expect(clippy::disallowed_types, reason = "this is the one place that the ban sends everybody to")]

mod connect;
mod error;
mod pages;
mod read;
mod transport;
mod words;
mod write;

pub use connect::{connect, current_context};
pub use error::{Cause, ClusterError, Fault, Status};
pub use pages::{Content, Pages};
pub use read::{Access, Discovered, Reader, ServerFacts, full_name};
pub use write::Writer;

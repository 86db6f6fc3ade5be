//! `sbx`: plan and apply the removal of a Kubernetes API version.

pub mod embedded;
pub mod graph;
pub mod object;
pub mod runbook;
pub mod suggest;

//! `sbx`: plan and apply the removal of a Kubernetes API version.

pub mod object;

//! `sbx`: plan and apply the removal of a Kubernetes API version.

pub mod clock;
pub mod cluster;
pub mod object;
pub mod plan;
pub mod render;
pub mod runbook;

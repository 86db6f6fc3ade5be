//! `sbx`: plan and apply the removal of a Kubernetes API version.

pub mod apply;
pub mod backup;
pub mod clock;
pub mod cluster;
pub mod crd;
pub mod fields;
pub mod files;
pub mod graph;
pub mod image;
pub mod object;
pub mod plan;
pub mod runbook;
pub mod steps;

//! `sbx`: plan and apply the removal of a Kubernetes API version.

pub mod backup;
pub mod clock;
pub mod cluster;
pub mod crd;
pub mod fields;
pub mod files;
pub mod object;
pub mod plan;
pub mod steps;

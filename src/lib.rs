//! `sbx`: plan and apply the removal of a Kubernetes API version.

pub mod apply;
pub mod backup;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod commands;
pub mod crd;
pub mod diff;
pub mod error;
pub mod exit_code;
pub mod fields;
pub mod files;
pub mod graph;
pub mod image;
pub mod object;
pub mod plan;
pub mod render;
pub mod runbook;
pub mod steps;
pub mod suggest;
pub mod terminal;

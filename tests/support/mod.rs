//! What the tests stand on: a real control plane, and requests to it as its clients send them.

#![allow(dead_code, unused_imports, reason = "a test binary uses the part that it needs")]

pub mod api;
pub mod control_plane;

/// Anything that went wrong; a test prints it and fails.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// The result of test support.
pub type Result<T> = std::result::Result<T, Error>;

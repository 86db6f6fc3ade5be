//! What the tests stand on: a real control plane, and requests to it as its clients send them.

#![allow(dead_code, unused_imports, reason = "a test binary uses the part that it needs")]

pub mod api;
pub mod control_plane;
pub mod fixture;
pub mod proxy;
pub mod sbx;
pub mod webhook;

/// Anything that went wrong; a test prints it and fails.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// The result of test support.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Asks until it is so; after 30 seconds it is an error that names what was waited for.
pub async fn eventually(what: &str, mut so: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
    while !so().await? {
        if tokio::time::Instant::now() > deadline {
            return Err(format!("not within 30 s: {what}").into());
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    Ok(())
}

//! The control plane itself: what the other tests take for granted.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::json;

use crate::scenario;
use crate::support::Result;
use crate::support::control_plane::{AuditEvent, ControlPlane, Release};

/// The tests of this file.
pub fn scenarios(release: &Release) -> Vec<Trial> {
    vec![
        scenario(release, "control_plane::audit_log_tells_users_and_dry_runs_apart", audit),
        scenario(release, "control_plane::nothing_is_left_when_the_tests_are_killed", killed),
    ]
}

async fn audit(release: Release) -> Result<()> {
    let plane = ControlPlane::start(&release).await?;
    let (admin, reader) = (plane.api("admin").await?, plane.api("reader").await?);
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}});
    let path = "/api/v1/namespaces/default/configmaps";
    admin.create(&format!("{path}?dryRun=All"), "test", &object).await?;
    assert!(plane.audit("admin").await?.iter().all(|event| !event.writes()), "a dry run is no write");
    admin.create(path, "test", &object).await?;
    let refused = reader.get(path).await.expect_err("`reader` has no rights yet");
    assert_eq!(refused.code, 403, "{refused}");

    let written: Vec<_> = plane.audit("admin").await?.into_iter().filter(AuditEvent::writes).collect();
    assert_eq!(written.len(), 1, "{written:?}");
    assert_eq!((written[0].verb.as_str(), written[0].resource.as_str()), ("create", "configmaps"));
    assert_eq!(plane.audit("reader").await?[0].code, 403);
    let version = admin.get("/version").await?;
    assert_eq!(version["gitVersion"], release.version.as_str());
    Ok(())
}

/// The strongest case: a process that has no chance to clean up.
async fn killed(release: Release) -> Result<()> {
    let mut serving = Command::new(std::env::current_exe()?)
        .args(["--serve", &release.name, "bare"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut first = String::new();
    let mut output = BufReader::new(serving.stdout.take().ok_or("no output")?);
    output.read_line(&mut first)?;
    let (address, folder) = first
        .trim()
        .split_once(" at https://")
        .and_then(|(_, rest)| rest.split_once(", its files in "))
        .ok_or_else(|| format!("said `{first}`"))?;
    assert!(TcpStream::connect(address).is_ok() && Path::new(folder).exists());
    serving.kill()?;
    serving.wait()?;
    let deadline = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(address).is_ok() || Path::new(folder).exists() {
        assert!(Instant::now() < deadline, "{address} or {folder} is still there");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

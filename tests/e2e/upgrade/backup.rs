//! The backup that comes before everything, and secrets that no output shows.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use libtest_mimic::Trial;
use serde_json::Value;

use super::{MERGE_NOW, lines, ship_clients, start_apply, writes};
use crate::fixture_scenario;
use crate::support::Result;
use crate::support::control_plane::Release;
use crate::support::fixture::{CANARY, Fixture, KINDS, Truth};
use crate::support::sbx::{Sbx, shipped};

/// The tests of this file.
pub fn scenarios(release: &Release, truth: Truth) -> Vec<Trial> {
    vec![
        fixture_scenario(release, truth, "upgrade::backup_holds_everything_and_is_not_believed_when_altered", files),
        fixture_scenario(release, truth, "upgrade::no_output_shows_a_secret", canary),
    ]
}

async fn files(fixture: Fixture) -> Result<()> {
    ship_clients(&fixture).await?;
    let sbx = Sbx::new(&fixture.plane, "admin")?;
    sbx.run(&["apply", &shipped(), "--yes", "--to", "backup"]).await?.ended(0)?;
    let backups = sbx.folder().join("backups");
    let folder = only(&backups)?;
    for file in walk(&folder)? {
        assert_eq!(mode(&file)?, 0o600, "{}", file.display());
    }
    assert_eq!(mode(&folder)?, 0o700);
    assert_eq!(fs::read_to_string(folder.join(".gitignore"))?.trim(), "*");

    let text = |name: &str| fs::read_to_string(folder.join(name)).map_err(|error| format!("{name}: {error}"));
    for kind in KINDS {
        let records = fixture.plane.raw_records(&kind.crd()).await?;
        for version in ["v1alpha1", "v1beta1"] {
            let text = text(&format!("{}.{version}.json", kind.crd()))?;
            for record in &records {
                let uid = record.json()["metadata"]["uid"].clone();
                assert!(text.contains(uid.as_str().unwrap_or("no uid")), "{} at {version}", record.key);
            }
            assert!(text.contains(&kind.api_version(version)));
        }
        assert!(text("crds.json")?.contains(&kind.crd()));
    }
    assert!(text("crds.json")?.contains("f:caBundle"), "with their managedFields");
    for child in ["data-keep-1", "keep-1-token", "agent-network-policy"] {
        assert!(text("children.json")?.contains(child), "{child}");
    }
    for deleted in ["agent-sandbox-webhook-certs", "orphan-1", "orphan-2", "orphan-3"] {
        assert!(text("deletes.json")?.contains(deleted), "{deleted}");
    }

    // Whatever file it is: altered by one byte, or gone.
    let before = lines(&writes(&fixture).await?);
    let data: Vec<_> =
        walk(&folder)?.into_iter().filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    assert!(data.len() >= 2 * KINDS.len() + 3, "{data:?}");
    for file in data.iter().filter(|path| !path.ends_with("manifest.json")).step_by(3) {
        let whole = fs::read(file)?;
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let mut altered = whole.clone();
        altered[whole.len() / 2] ^= 1;
        fs::write(file, &altered)?;
        sbx.run(&["plan", &shipped()]).await?.ended(1)?.says(name)?;
        start_apply(&sbx, &shipped())?.end().await?.ended(1)?.says(name)?;
        fs::remove_file(file)?;
        start_apply(&sbx, &shipped())?.end().await?.ended(1)?.says(name)?;
        fs::write(file, &whole)?;
    }
    assert_eq!(lines(&writes(&fixture).await?), before, "nothing was touched");

    // As it was, it is good enough; what was born since is added to it.
    fixture.old_client_writes().await?;
    let late = serde_json::json!({
        "apiVersion": KINDS[2].api_version("v1beta1"), "kind": "Sandbox", "metadata": {"name": "late"},
        "spec": {"podTemplate": {"spec": {"containers": [{"name": "agent", "image": "example.dev/agent:1"}]}}},
    });
    let late = fixture.plane.api("controller").await?.create(&KINDS[2].list("v1beta1", "ai"), "late", &late).await?;
    fixture.backdate_objects(std::time::Duration::from_secs(3600)).await?;
    sbx.run(&["apply", &shipped(), "--yes"]).await?.ended(5)?;
    assert_eq!(only(&backups)?, folder, "reused");
    let uid = late["metadata"]["uid"].as_str().unwrap_or("no uid");
    let holding =
        walk(&folder)?.iter().filter(|file| fs::read_to_string(file).is_ok_and(|text| text.contains(uid))).count();
    assert!(holding >= 3, "at both versions, and in the manifest");
    Ok(())
}

async fn canary(fixture: Fixture) -> Result<()> {
    ship_clients(&fixture).await?;
    let sbx = Sbx::new(&fixture.plane, "admin")?;
    let mut said = Vec::new();
    for format in ["text", "markdown", "json"] {
        let ran = sbx.run(&["plan", &shipped(), "--format", format, "--out", "plan.json"]).await?.ended(0)?;
        said.extend([ran.out, ran.err]);
    }
    said.push(fs::read_to_string(sbx.folder().join("plan.json"))?);
    let mut run = start_apply(&sbx, &shipped())?;
    run.says(MERGE_NOW).await?;
    assert_eq!(fixture.play_argo_cd_merge().await?, []);
    let ran = run.end().await?.ended(0)?;
    said.extend([ran.out, ran.err]);
    for file in walk(&sbx.folder().join("runs"))? {
        assert_eq!(mode(&file)?, 0o600, "{}", file.display());
        said.push(fs::read_to_string(file)?);
    }
    assert!(said.len() >= 10, "two streams of four runs, a saved plan, a journal");
    for text in said {
        assert!(!text.contains(CANARY), "{text}");
    }
    let holds = |file: &PathBuf| fs::read_to_string(file).is_ok_and(|text| text.contains(CANARY));
    assert!(walk(&sbx.folder().join("backups"))?.iter().any(holds), "the backup alone has it");
    let journal = fs::read_to_string(only(&sbx.folder().join("runs"))?)?;
    for line in journal.lines() {
        let event: Value = serde_json::from_str(line)?;
        assert!(event["event"].is_string() && event["at"].is_string(), "{line}");
    }
    assert!(journal.contains("merge@admin@pitower") && journal.contains("\"user\":\"admin\""), "{journal}");
    Ok(())
}

fn mode(path: &Path) -> Result<u32> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o777)
}

/// What a folder holds alone, hidden files aside.
fn only(folder: &Path) -> Result<PathBuf> {
    let mut entries: Vec<_> =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<_>>()?;
    entries.retain(|path| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')));
    match entries.as_slice() {
        [one] => Ok(one.clone()),
        other => Err(format!("{} holds {other:?}", folder.display()).into()),
    }
}

/// Every file below a folder.
pub fn walk(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { files.extend(walk(&path)?) } else { files.push(path) }
    }
    files.sort();
    Ok(files)
}

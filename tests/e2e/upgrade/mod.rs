//! The upgrade by `sbx`: the built program with the shipped runbook, on the cluster before the upgrade.

mod backup;
mod busy;
mod end_state;
mod gates;
mod in_process;
mod interrupted;
mod lock;
mod plan;
mod races;
mod rehearsed;
mod settle;
mod taken_up;
mod waiting;
mod webhook;
mod whole;

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::support::Result;
use crate::support::api::Resource;
use crate::support::control_plane::{AuditEvent, Release};
use crate::support::fixture::{FLICKERD, Fixture, GARRISON, Truth};
use crate::support::sbx::{Ran, Running, Sbx, shipped};

/// The phrase of the point of no return.
const PHRASE: &str = "merge@admin@pitower";
/// What apply says when somebody should merge.
const MERGE_NOW: &str = "merge it now";

/// Where the lock is.
const LEASES: Resource = Resource::new("coordination.k8s.io", "leases", "Lease");

/// The tests of this folder.
pub fn scenarios(release: &Release, truth: Truth) -> Vec<Trial> {
    let mut trials = whole::scenarios(release, truth);
    trials.extend(rehearsed::scenarios(release, truth));
    if truth == Truth::Small {
        trials.extend(plan::scenarios(release, truth));
        trials.extend(gates::scenarios(release, truth));
        trials.extend(interrupted::scenarios(release, truth));
        trials.extend(taken_up::scenarios(release, truth));
        trials.extend(races::scenarios(release, truth));
    }
    // What does not depend on the release is tried on the middle one.
    if truth == Truth::Small && release.name == "v1.36" {
        trials.extend(lock::scenarios(release, truth));
        trials.extend(backup::scenarios(release, truth));
        trials.extend(settle::scenarios(release, truth));
        trials.extend(webhook::scenarios(release, truth));
        trials.extend(waiting::scenarios(release, truth));
        trials.extend(busy::scenarios(release, truth));
    }
    trials
}

/// Both clients ship the release that writes `v1beta1`.
async fn ship_clients(fixture: &Fixture) -> Result<()> {
    fixture.ship(&FLICKERD).await?;
    fixture.ship(&GARRISON).await
}

/// `sbx apply` of a runbook with every approval given beforehand.
fn start_apply(sbx: &Sbx, runbook: &str) -> Result<Running> {
    sbx.start(&["apply", runbook, "--yes", "--approve", PHRASE])
}

/// Applies the shipped runbook to the end, and plays Argo CD when told to merge.
async fn upgrade(fixture: &Fixture, sbx: &Sbx) -> Result<Ran> {
    let mut run = start_apply(sbx, &shipped())?;
    run.says(MERGE_NOW).await?;
    assert_eq!(fixture.play_argo_cd_merge().await?, []);
    run.end().await?.ended(0)
}

/// The plan of a runbook as JSON.
async fn plan_json(sbx: &Sbx, runbook: &str) -> Result<Value> {
    let ran = sbx.run(&["plan", runbook, "--format", "json"]).await?;
    Ok(serde_json::from_str(&ran.out).map_err(|error| format!("{error}\n{}\n{}", ran.out, ran.err))?)
}

/// A step of a plan.
fn step<'a>(plan: &'a Value, id: &str) -> Result<&'a Value> {
    let steps = plan["steps"].as_array().into_iter().flatten();
    steps.into_iter().find(|step| step["id"] == id).ok_or_else(|| format!("the plan has no step {id}").into())
}

/// What was found of one grade about a step, as text.
fn findings<'a>(step: &'a Value, grade: &str) -> Vec<&'a str> {
    let findings = step["findings"].as_array().into_iter().flatten();
    findings.filter(|finding| finding["grade"] == grade).filter_map(|finding| finding["text"].as_str()).collect()
}

/// The shipped runbook with parts of its text replaced, beside the outputs of `sbx`.
fn edited(sbx: &Sbx, name: &str, edits: &[(&str, &str)]) -> Result<String> {
    let mut text = std::fs::read_to_string(shipped())?;
    for (from, to) in edits {
        if !text.contains(from) {
            return Err(format!("the shipped runbook has no `{from}`").into());
        }
        text = text.replace(from, to);
    }
    let path = sbx.folder().join(name);
    std::fs::write(&path, text)?;
    Ok(path.display().to_string())
}

/// The requests of the person who runs `sbx` that changed something.
async fn writes(fixture: &Fixture) -> Result<Vec<AuditEvent>> {
    Ok(fixture.plane.audit("admin").await?.into_iter().filter(AuditEvent::writes).collect())
}

/// One line a request: `patch sandboxes garrison/keep-1`.
fn lines(events: &[AuditEvent]) -> BTreeSet<String> {
    let line = |event: &AuditEvent| {
        let resource = [&event.resource, &event.subresource].map(String::as_str).join("/");
        format!("{} {} {}/{}", event.verb, resource.trim_end_matches('/'), event.namespace, event.name)
    };
    events.iter().map(line).collect()
}

/// Name of the Lease that is the lock, in namespace `default`.
async fn lock(fixture: &Fixture) -> Result<String> {
    let leases = fixture.plane.api("cluster").await?.items(&LEASES.list("v1", "default")).await?;
    let names = leases.iter().filter_map(|lease| lease["metadata"]["name"].as_str());
    Ok(names.filter(|name| name.starts_with("sbx-")).collect::<Vec<_>>().join(" "))
}

/// Makes the lock that a killed run left behind stale: its last heartbeat was two minutes ago.
async fn expire_lock(fixture: &Fixture) -> Result<()> {
    let ago = Timestamp::now() - Duration::from_secs(120);
    let path = LEASES.object("v1", "default", &lock(fixture).await?);
    let patch = json!({"spec": {"renewTime": format!("{ago:.6}")}});
    fixture.plane.api("cluster").await?.merge(&path, "time", &patch).await?;
    Ok(())
}

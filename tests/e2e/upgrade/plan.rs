//! What `plan` says of the cluster before the upgrade, and that it writes nothing.

use libtest_mimic::Trial;

use super::{edited, findings, lines, plan_json, ship_clients, step, writes};
use crate::fixture_scenario;
use crate::support::Result;
use crate::support::control_plane::{AuditEvent, Release};
use crate::support::fixture::{Fixture, KINDS, Truth};
use crate::support::sbx::{Sbx, shipped};

/// The tests of this file.
pub fn scenarios(release: &Release, truth: Truth) -> Vec<Trial> {
    vec![
        fixture_scenario(release, truth, "upgrade::plan_writes_nothing_and_names_the_refusal", untouched),
        fixture_scenario(release, truth, "upgrade::plan_of_a_reader_is_not_checked_and_nothing_worse", reader),
    ]
}

const REFUSAL: &str = "spec.conversion.strategy: Required value, spec.conversion.webhookClientConfig: Forbidden: \
                       should not be set when strategy is not set to Webhook";

async fn untouched(fixture: Fixture) -> Result<()> {
    let sbx = Sbx::new(&fixture.plane, "admin")?;
    ship_clients(&fixture).await?;
    let runbook = shipped();
    sbx.run(&["plan", &runbook]).await?.ended(0)?.says(REFUSAL)?.says("(resolved by 7 release)")?;
    let plan = plan_json(&sbx, &runbook).await?;
    let merge = step(&plan, "merge")?;
    let refused: Vec<_> =
        merge["findings"].as_array().into_iter().flatten().filter(|finding| finding["grade"] == "blocker").collect();
    assert_eq!(refused.len(), KINDS.len(), "{refused:#?}");
    for finding in refused {
        assert_eq!((&finding["resolved_by"], &finding["blocks"]), (&"release".into(), &false.into()));
        assert!(finding["text"].as_str().unwrap_or_default().contains(REFUSAL), "{finding}");
    }

    let without = [("[[step]]\nid = \"release\"\nneeds = [\"migrate\"]\n[step.release]", "#"), (", \"release\"]", "]")];
    let without = edited(&sbx, "without-release.toml", &without)?;
    sbx.run(&["plan", &without]).await?.ended(1)?.says(REFUSAL)?;
    sbx.run(&["apply", &without, "--yes", "--approve", super::PHRASE]).await?.ended(1)?.says("Nothing was written")?;
    assert_eq!(lines(&writes(&fixture).await?), [].into());
    let dry_runs = fixture.plane.audit("admin").await?.iter().filter(|event| event.dry_run()).count();
    assert!(dry_runs > 0, "the audit log shows what was tried");
    Ok(())
}

async fn reader(fixture: Fixture) -> Result<()> {
    let sbx = Sbx::new(&fixture.plane, "reader")?;
    ship_clients(&fixture).await?;
    let plan = plan_json(&sbx, &shipped()).await?;
    let merge = step(&plan, "merge")?;
    let unchecked = findings(merge, "not_checked");
    assert!(unchecked.iter().any(|text| text.contains("whether the target CRD is accepted")), "{merge:#}");
    assert_eq!(findings(merge, "blocker"), [""; 0]);
    sbx.run(&["plan", &shipped()]).await?.ended(0)?.says("not checked")?;
    let written = fixture.plane.audit("reader").await?.into_iter().filter(AuditEvent::writes).collect::<Vec<_>>();
    assert_eq!(lines(&written), [].into());
    Ok(())
}

//! An API server that is busy, loses answers, times out and forgets: the upgrade comes to the same end.

use std::future::ready;

use http::Method;
use libtest_mimic::Trial;
use serde_json::json;

use super::end_state::Before;
use super::races::assert_preconditions;
use super::{ship_clients, upgrade};
use crate::fixture_scenario;
use crate::support::Result;
use crate::support::control_plane::Release;
use crate::support::fixture::{Fixture, POOLS, Truth};
use crate::support::proxy::{Asked, Fate, Proxy, Rule};
use crate::support::sbx::Sbx;

/// The tests of this file.
pub fn scenarios(release: &Release, truth: Truth) -> Vec<Trial> {
    vec![fixture_scenario(release, truth, "upgrade::busy_server_and_lost_answers_change_nothing", busy)]
}

/// More of one kind than a page of the size that the server still answers.
const MORE: usize = 140;

async fn busy(fixture: Fixture) -> Result<()> {
    ship_clients(&fixture).await?;
    let api = fixture.plane.api("controller").await?;
    for number in 0..MORE {
        let pool = json!({
            "apiVersion": POOLS.api_version("v1alpha1"), "kind": "SandboxWarmPool", "metadata": {"name": format!("more-{number}")},
            "spec": {"replicas": 1, "sandboxTemplateRef": {"name": "agent"}},
        });
        api.create(&POOLS.list("v1alpha1", "ai"), "agent-sandbox-controller", &pool).await?;
    }
    fixture.backdate_objects(std::time::Duration::from_secs(60 * 60)).await?;
    let before = Before::look(&fixture).await?;
    let proxy = Proxy::start(&fixture.plane, trouble()).await?;
    let sbx = Sbx::through(&proxy.kubeconfig)?;
    upgrade(&fixture, &sbx).await?;
    // Nothing is lost, and every record was written exactly once although answers were lost.
    before.assert_upgraded(&fixture).await?;
    assert_preconditions(&proxy)
}

/// What each request runs into, by how many of its sort came before it.
fn trouble() -> Rule {
    let (mut pages, mut patches, mut deletes) = (0, 0, 0);
    let answered = |code, reason, retry_after| Fate::Answered { code, reason, retry_after };
    let mut fate = move |asked: &Asked| {
        let limit = asked.parameter("limit").and_then(|limit| limit.parse::<u32>().ok()).unwrap_or_default();
        let of_kinds = asked.uri.path().contains("agents.x-k8s.io/") && asked.writes();
        if limit > 100 {
            return answered(504, "Timeout", None);
        }
        if asked.parameter("continue").is_some() {
            pages += 1;
            if pages % 4 == 1 {
                return answered(410, "Expired", None);
            }
        }
        if of_kinds && asked.method == Method::PATCH {
            patches += 1;
            return match patches {
                5 | 10 | 15 | 200 => answered(429, "TooManyRequests", Some(1)),
                20..=24 => answered(503, "ServiceUnavailable", None),
                30 | 210 => answered(500, "InternalError", None),
                31 | 211 => answered(504, "Timeout", None),
                number if number % 7 == 0 && number < 60 => Fate::AnswerLost,
                _ => Fate::Passes,
            };
        }
        if of_kinds && asked.method == Method::DELETE {
            deletes += 1;
            if deletes == 2 {
                return Fate::AnswerLost;
            }
        }
        Fate::Passes
    };
    Box::new(move |asked| Box::pin(ready(Ok(fate(asked)))))
}

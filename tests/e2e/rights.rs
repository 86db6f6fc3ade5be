//! What a user may not do is found before anything is written, and `sbx rbac` prints what is enough (C37).

use std::collections::BTreeSet;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::fixture_scenario;
use crate::support::Result;
use crate::support::api::Api;
use crate::support::control_plane::Release;
use crate::support::fixture::{FLICKERD, Fixture, GARRISON, Truth};
use crate::support::sbx::{Sbx, shipped};

/// A user without any right of their own.
const USER: &str = "nobody";
const PHRASE: &str = "merge@admin@pitower";

/// The tests of this file.
pub fn scenarios(release: &Release, truth: Truth) -> Vec<Trial> {
    // RBAC is the same on every release.
    if truth != Truth::Small || release.name != "v1.36" {
        return Vec::new();
    }
    vec![
        fixture_scenario(release, truth, "rights::the_printed_roles_are_enough", enough),
        fixture_scenario(release, truth, "rights::what_is_missing_is_named", missing),
    ]
}

/// The roles that `sbx rbac` prints for a command.
async fn printed(sbx: &Sbx, command: &str) -> Result<Vec<Value>> {
    let ran = sbx.run(&["rbac", &shipped(), "--for", command]).await?.ended(0)?;
    let path = sbx.folder().join("roles.yaml");
    std::fs::write(&path, &ran.out)?;
    Ok(sbx::files::read_objects(&path)?.into_iter().map(|role| role.0).collect())
}

/// Makes roles and binds them to the user.
async fn bind(api: &Api, roles: &[Value]) -> Result<()> {
    for role in roles {
        let (kind, name) = (role["kind"].as_str().ok_or("a kind")?, &role["metadata"]["name"]);
        let root = match role["metadata"]["namespace"].as_str() {
            Some(namespace) => format!("{RBAC}/namespaces/{namespace}"),
            None => RBAC.to_owned(),
        };
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"),
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
        });
        let plural = format!("{}s", kind.to_lowercase());
        api.create(&format!("{root}/{plural}"), "admin", role).await?;
        api.create(&format!("{root}/{}bindings", kind.to_lowercase()), "admin", &binding).await?;
    }
    Ok(())
}

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Takes the user's bindings and roles away again.
async fn unbind(api: &Api, roles: &[Value]) -> Result<()> {
    for role in roles {
        let (kind, name) = (role["kind"].as_str().ok_or("a kind")?.to_lowercase(), &role["metadata"]["name"]);
        let name = name.as_str().ok_or("a name")?;
        let root = match role["metadata"]["namespace"].as_str() {
            Some(namespace) => format!("{RBAC}/namespaces/{namespace}"),
            None => RBAC.to_owned(),
        };
        api.delete(&format!("{root}/{kind}bindings/{name}")).await?;
        api.delete(&format!("{root}/{kind}s/{name}")).await?;
    }
    Ok(())
}

/// Waits until the API server's authorizer has taken in what was bound last.
async fn settled(sbx: &Sbx, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
    let mut last = Value::Null;
    for _ in 0..20 {
        let ran = sbx.run(&["plan", &shipped(), "--format", "json"]).await?;
        last = serde_json::from_str(&ran.out).map_err(|error| format!("{error}: {ran:?}"))?;
        if wanted(&last) {
            return Ok(last);
        }
    }
    let found = found(&last, &["blocker", "not_checked"]);
    Err(format!("the plan stays {:#?}\n{found:#?}", summaries(&last)).into())
}

/// What a plan found of these grades, of the plan and of its steps.
fn found(plan: &Value, grades: &[&str]) -> BTreeSet<String> {
    let steps = plan["steps"].as_array().into_iter().flatten().filter_map(|step| step["findings"].as_array());
    let all = steps.chain(plan["diagnostics"].as_array()).flatten();
    let wanted = all.filter(|finding| finding["grade"].as_str().is_some_and(|grade| grades.contains(&grade)));
    wanted.filter_map(|finding| Some(finding["text"].as_str()?.to_owned())).collect()
}

fn summaries(plan: &Value) -> Vec<(String, String)> {
    let steps = plan["steps"].as_array().into_iter().flatten();
    steps.map(|step| (step["id"].to_string(), step["summary"].to_string())).collect()
}

async fn enough(fixture: Fixture) -> Result<()> {
    let (admin, user) = (Sbx::new(&fixture.plane, "admin")?, Sbx::new(&fixture.plane, USER)?);
    let api = fixture.plane.api("cluster").await?;
    fixture.ship(&FLICKERD).await?;
    fixture.ship(&GARRISON).await?;
    let by_admin = settled(&admin, |_| true).await?;
    let trials = ["a dry run of the rewrite of", "whether the target CRD is accepted", "whether a sync of the current"];

    let roles = printed(&user, "plan").await?;
    let verbs: BTreeSet<&str> = roles
        .iter()
        .flat_map(|role| role["rules"].as_array().into_iter().flatten())
        .flat_map(|rule| rule["verbs"].as_array().into_iter().flatten().filter_map(Value::as_str))
        .collect();
    assert_eq!(verbs, ["get", "list"].into(), "a plan writes nothing");
    bind(&api, &roles).await?;
    let may_not = |text: &String| text.starts_with("the user may not");
    let plan = settled(&user, |plan| !found(plan, &["blocker"]).iter().any(may_not)).await?;
    assert_eq!(summaries(&plan), summaries(&by_admin));
    let unchecked = found(&plan, &["not_checked"]);
    let known = found(&by_admin, &["not_checked"]);
    let more: Vec<&String> =
        unchecked.difference(&known).filter(|text| !text.starts_with("the user may not ")).collect();
    assert!(more.iter().all(|text| trials.iter().any(|trial| text.contains(trial))), "{more:#?}");
    unbind(&api, &roles).await?;

    let mut roles = printed(&user, "apply").await?;
    bind(&api, &roles).await?;
    let plan =
        settled(&user, |plan| !found(plan, &["not_checked"]).iter().any(|text| text.contains("may not"))).await?;
    assert_eq!(summaries(&plan), summaries(&by_admin));
    assert_eq!(found(&plan, &["blocker", "warning"]), found(&by_admin, &["blocker", "warning"]));
    let more: Vec<String> = found(&plan, &["not_checked"]).difference(&known).cloned().collect();
    assert_eq!(more, [""; 0], "nothing that an admin's plan has looked at");

    // One rule less: a blocker that names exactly it, and nothing is written.
    let whole = roles.clone();
    unbind(&api, &whole).await?;
    for role in &mut roles {
        let rules = role["rules"].as_array_mut().ok_or("rules")?;
        rules.retain(|rule| rule["resources"] != json!(["customresourcedefinitions/status"]));
    }
    bind(&api, &roles).await?;
    let plan = settled(&user, |plan| found(plan, &["blocker"]).iter().any(|text| text.contains("/status"))).await?;
    let blockers: Vec<String> =
        found(&plan, &["blocker"]).into_iter().filter(|text| text.starts_with("the user may not")).collect();
    let names = "sandboxclaims.extensions.agents.x-k8s.io, sandboxes.agents.x-k8s.io, \
                 sandboxtemplates.extensions.agents.x-k8s.io, sandboxwarmpools.extensions.agents.x-k8s.io";
    assert_eq!(
        blockers,
        [format!("the user may not patch customresourcedefinitions/status ({names}); migrate needs it")]
    );
    let refused = user.run(&["apply", &shipped(), "--yes", "--approve", PHRASE]).await?.ended(1)?;
    refused.says("sbx rbac")?.says("Nothing was written")?;
    let written =
        fixture.plane.audit(USER).await?.into_iter().filter(crate::support::control_plane::AuditEvent::writes);
    assert_eq!(written.count(), 0);
    unbind(&api, &roles).await?;

    // The whole upgrade.
    bind(&api, &whole).await?;
    settled(&user, |plan| !found(plan, &["blocker"]).iter().any(|text| text.starts_with("the user may not"))).await?;
    let mut run = user.start(&["apply", &shipped(), "--yes", "--approve", PHRASE])?;
    run.says("merge it now").await?;
    assert_eq!(fixture.play_argo_cd_merge().await?, []);
    run.end().await?.ended(0)?.says("Apply complete")?;
    assert!(fixture.plane.audit(USER).await?.iter().all(|event| event.code != 403 || !event.writes()));
    user.run(&["plan", &shipped()]).await?.ended(0)?.says("No changes")?;
    Ok(())
}

/// One user with less than the whole, and what the plan must say of it.
struct Lacking {
    what: &'static str,
    /// Leaves of each rule what this user has.
    keep: fn(&mut Value) -> bool,
    /// In the text of a finding of this grade.
    says: (&'static str, &'static str),
}

fn resource(rule: &Value, name: &str) -> bool {
    rule["resources"].as_array().is_some_and(|all| all.iter().any(|resource| resource == name))
}

async fn missing(fixture: Fixture) -> Result<()> {
    let user = Sbx::new(&fixture.plane, USER)?;
    let api = fixture.plane.api("cluster").await?;
    let whole = printed(&user, "apply").await?;
    let table = [
        Lacking {
            what: "touch-only",
            keep: |rule| {
                !resource(rule, "customresourcedefinitions") && !resource(rule, "customresourcedefinitions/status")
            },
            says: ("blocker", "the user may not get, patch customresourcedefinitions ("),
        },
        Lacking {
            what: "full minus Secrets",
            keep: |rule| {
                if resource(rule, "secrets") {
                    let all = rule["resources"].as_array_mut().map(std::mem::take).unwrap_or_default();
                    rule["resources"] = all.into_iter().filter(|name| name != "secrets").collect();
                }
                if resource(rule, "*") {
                    rule["apiGroups"] = json!(["agents.x-k8s.io", "extensions.agents.x-k8s.io", "apps"]);
                }
                rule["resources"] != json!([])
            },
            says: (
                "blocker",
                "the user may not delete, get secrets (agent-sandbox-webhook-certs) in namespace agent-sandbox-system",
            ),
        },
        Lacking {
            what: "CRD rights for other names",
            keep: |rule| {
                if resource(rule, "customresourcedefinitions") && !rule["resourceNames"].is_null() {
                    rule["resourceNames"] = json!(["sandboxes.agents.x-k8s.io"]);
                }
                true
            },
            says: (
                "blocker",
                "the user may not get, patch customresourcedefinitions (sandboxclaims.extensions.agents.x-k8s.io, \
                    sandboxtemplates.extensions.agents.x-k8s.io, sandboxwarmpools.extensions.agents.x-k8s.io)",
            ),
        },
        Lacking {
            what: "no list of records",
            keep: |rule| !resource(rule, "*"),
            says: ("blocker", "sandboxes cannot be listed"),
        },
    ];
    for Lacking { what, keep, says: (grade, text) } in table {
        let mut roles = whole.clone();
        for role in &mut roles {
            let rules = role["rules"].as_array_mut().ok_or("rules")?;
            rules.retain_mut(keep);
        }
        roles.retain(|role| role["rules"] != json!([]));
        bind(&api, &roles).await?;
        let plan = settled(&user, |plan| found(plan, &[grade]).iter().any(|found| found.contains(text))).await;
        let plan = plan.map_err(|error| format!("{what}: {error}"))?;
        user.run(&["apply", &shipped(), "--yes"]).await?.ended(1)?.says("sbx rbac")?;
        assert!(found(&plan, &["blocker"]).len() < 25, "{what}: one by one: {:#?}", found(&plan, &["blocker"]));
        unbind(&api, &roles).await?;
    }

    // Rights in one namespace only: never an empty list.
    let mut roles = whole.clone();
    for role in &mut roles {
        role["kind"] = "Role".into();
        role["metadata"]["namespace"] = "ai".into();
        role["metadata"]["name"] = format!("only-{}", role["metadata"]["name"].as_str().unwrap_or_default()).into();
        role["rules"].as_array_mut().ok_or("rules")?.retain(|rule| rule["nonResourceURLs"].is_null());
    }
    bind(&api, &roles[..1]).await?;
    let plan = settled(&user, |plan| found(plan, &["blocker"]).len() > 4).await?;
    assert!(found(&plan, &["blocker"]).iter().any(|text| text.contains("cannot be read")), "{plan:#}");
    assert!(summaries(&plan).iter().all(|(_, summary)| !summary.contains("0 objects")), "{:?}", summaries(&plan));
    let settled: Vec<&Value> =
        plan["steps"].as_array().into_iter().flatten().filter(|step| step["state"] == "done").collect();
    assert!(settled.is_empty(), "{settled:#?}");
    unbind(&api, &roles[..1]).await?;

    // A reader: not checked in a plan, refused by apply before anything is written.
    let reader = Sbx::new(&fixture.plane, "reader")?;
    reader.run(&["plan", &shipped()]).await?.ended(0)?.says("not checked: the user may not")?;
    let refused = reader.run(&["apply", &shipped(), "--yes"]).await?.ended(1)?;
    refused.says("Apply refuses")?.says("the user may not patch customresourcedefinitions/status")?.says("sbx rbac")?;
    Ok(())
}

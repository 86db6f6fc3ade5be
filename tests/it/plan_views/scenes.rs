//! The plans whose views are kept as golden files, by the name of their folder.

use sbx::plan::{Change, Finding, Operation, Plan, State};

use super::sample::{Sample, change, crd, gate, id, object, plan, step};

const FOUR: [(&str, &str, &str, usize); 4] = [
    ("extensions.agents.x-k8s.io", "SandboxWarmPool", "sandboxwarmpools", 2),
    ("extensions.agents.x-k8s.io", "SandboxTemplate", "sandboxtemplates", 3),
    ("agents.x-k8s.io", "Sandbox", "sandboxes", 24),
    ("extensions.agents.x-k8s.io", "SandboxClaim", "sandboxclaims", 12),
];

pub(crate) fn all() -> Vec<(&'static str, Plan)> {
    vec![
        ("untouched", untouched()),
        ("settled", settled()),
        ("blocked", blocked()),
        ("denied", denied()),
        ("partial", partial()),
        ("hostile", hostile()),
        ("long-values", long_values()),
    ]
}

/// The upgrade before its first write: the plan of the design page.
pub(crate) fn untouched() -> Plan {
    plan(vec![
        gate("flickerd", State::Met, "generator v0.15.2 >= 0.15.0, rolled out"),
        gate("garrison", State::Met, "keep v0.57.0 >= 0.57.0, rolled out"),
        gate("writers", State::Met, "last v1alpha1 write 2026-11-28T10:14Z (garrison-keep)").needs(&[1, 2]).found(
            Finding::not_checked("clients that delete what they create leave no trace in managedFields")
                .hint("the API server's request metric would tell: allow this user to read /metrics"),
        ),
        step("backup", "backup", State::ToDo, "41 objects of 4 kinds -> backups/agent-sandbox-<run>").needs(&[3]),
        step("migrate", "migrate", State::ToDo, "rewrite 41 objects, relabel 12, prune 4 CRDs")
            .needs(&[4])
            .restored_by(4)
            .details(&["sandboxes 24   sandboxclaims 12   sandboxtemplates 3   sandboxwarmpools 2"])
            .changes(rewrites())
            .changes(prunes())
            .found(Finding::warning("names pool \"gpu-a\", which does not exist").about(object(
                "extensions.agents.x-k8s.io",
                "SandboxClaim",
                "team-a",
                "job-7",
            )))
            .found(Finding::warning("names pool \"gpu-a\", which does not exist").about(object(
                "extensions.agents.x-k8s.io",
                "SandboxClaim",
                "team-a",
                "job-9",
            ))),
        step("owners", "owners", State::After(vec![5]), "relabel ownerReferences of 9 objects (7 Pod, 2 Service)")
            .needs(&[5])
            .restored_by(4)
            .changes(children()),
        step(
            "release",
            "release",
            State::After(vec![5]),
            "caBundle of 4 CRDs: owned by agent-sandbox-controller -> nobody",
        )
        .needs(&[5])
        .restored_by(4)
        .changes(FOUR.map(|(group, _, plural, _)| {
            let path = "metadata.managedFields[agent-sandbox-controller].f:spec.f:conversion";
            change(Operation::Update, crd(&format!("{plural}.{group}")), &[(path, Some("f:caBundle"), None)])
        })),
        step("merge", "merge", State::After(vec![6, 7]), "Argo CD argocd/pitower-ai-agent-sandbox")
            .needs(&[6, 7])
            .no_way_back("merge@admin@pitower")
            .details(&[
                "pull request https://github.com/swibrow/home-ops/pull/1",
                "Argo CD syncs by itself (automated, prune on): the merge is the apply",
            ])
            .found(
                Finding::blocker(
                    "the deployer's apply would be refused: spec.conversion.strategy: Required value, \
                     spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to \
                     Webhook",
                )
                .about(crd("sandboxes.agents.x-k8s.io"))
                .resolved_by(Some(&id("release"))),
            ),
        gate("controller", State::After(vec![8]), "agent-sandbox-controller v0.5.6, wants >= 1.0.0").needs(&[8]),
        gate("webhook-pruned", State::After(vec![8]), "3 objects that Argo CD prunes").needs(&[8]),
        step(
            "webhook-certs",
            "delete",
            State::After(vec![9, 10]),
            "delete Secret agent-sandbox-system/agent-sandbox-webhook-certs",
        )
        .needs(&[9, 10])
        .restored_by(4)
        .changes([change(
            Operation::Delete,
            object("", "Secret", "agent-sandbox-system", "agent-sandbox-webhook-certs"),
            &[],
        )]),
        step("orphaned-claims", "delete", State::After(vec![9]), "delete 3 SandboxClaims in ai")
            .needs(&[9])
            .restored_by(4)
            .changes(["lost-1", "lost-2", "lost-3"].map(|name| {
                change(Operation::Delete, object("extensions.agents.x-k8s.io", "SandboxClaim", "ai", name), &[])
            })),
    ])
}

fn rewrites() -> Vec<Change> {
    let mut changes = Vec::new();
    for (group, kind, plural, count) in FOUR {
        for index in 1..=count {
            let stamp =
                ("metadata.annotations[agents.x-k8s.io/storage-migrated-at]", None, Some("<time of the write>"));
            let (from, to) = (format!("{group}/v1alpha1"), format!("{group}/v1beta1"));
            let relabel = ("metadata.managedFields[argocd-controller].apiVersion", Some(&*from), Some(&*to));
            let fields = if index <= 3 { vec![stamp, relabel] } else { vec![stamp] };
            let name = format!("{}-{index}", plural.trim_end_matches('s'));
            changes.push(change(Operation::Update, object(group, kind, "team-a", &name), &fields));
        }
    }
    changes
}

fn prunes() -> Vec<Change> {
    let path = ("status.storedVersions", Some(r#"["v1alpha1","v1beta1"]"#), Some(r#"["v1beta1"]"#));
    FOUR.map(|(group, _, plural, _)| change(Operation::Update, crd(&format!("{plural}.{group}")), &[path])).to_vec()
}

fn children() -> Vec<Change> {
    let child = |kind: &str, index: usize| {
        let path = format!("metadata.ownerReferences[Sandbox/sandboxe-{index}].apiVersion");
        change(
            Operation::Update,
            object("", kind, "team-a", &format!("sandboxe-{index}")),
            &[(&path, Some("agents.x-k8s.io/v1alpha1"), Some("agents.x-k8s.io/v1beta1"))],
        )
    };
    (1..=7).map(|index| child("Pod", index)).chain((1..=2).map(|index| child("Service", index))).collect()
}

/// After a finished run.
fn settled() -> Plan {
    plan(vec![
        gate("flickerd", State::NotNeeded, "generator is scaled to 0"),
        step("backup", "backup", State::NotNeeded, "backups/agent-sandbox-20261201 covers 41 objects").needs(&[1]),
        step("migrate", "migrate", State::Done, "4 CRDs declare only v1beta1, 41 objects read").needs(&[2]),
        step("merge", "merge", State::Done, "4 CRDs serve v1beta1 only").needs(&[3]).approved_by("merge@admin@pitower"),
        gate("controller", State::Met, "agent-sandbox-controller v1.0.0, rolled out").needs(&[4]),
    ])
}

/// Clients still old, no right to list a kind, no `release` step.
fn blocked() -> Plan {
    let refused = |name: &str| {
        Finding::blocker("the deployer's apply would be refused:\nspec.conversion.strategy: Required value")
            .about(crd(name))
            .hint("add a release step before merge")
    };
    let mut plan = plan(vec![
        gate("flickerd", State::Waiting, "generator v0.14.0, wants >= 0.15.0"),
        gate("garrison", State::Waiting, "keep v0.57.0 >= 0.57.0, rolling out: 1 of 2 replicas updated"),
        step("backup", "backup", State::After(vec![1, 2]), "41 objects of 4 kinds -> backups/agent-sandbox-<run>")
            .needs(&[1, 2]),
        step("migrate", "migrate", State::After(vec![3]), "rewrite 41 objects, relabel 12, prune 4 CRDs")
            .needs(&[3])
            .restored_by(3)
            .found(
                Finding::not_checked("LIST was refused: sandboxclaims is forbidden: User \"viewer\" cannot list")
                    .about(crd("sandboxclaims.extensions.agents.x-k8s.io"))
                    .hint("sbx rbac runbooks/v1.0.0.toml"),
            ),
        step("merge", "merge", State::After(vec![4]), "Argo CD argocd/pitower-ai-agent-sandbox")
            .needs(&[4])
            .no_way_back("merge@admin@pitower")
            .found(Finding::note("the Application was last synced at 4be9ee0"))
            .found(refused("sandboxes.agents.x-k8s.io"))
            .found(refused("sandboxclaims.extensions.agents.x-k8s.io")),
    ]);
    plan.findings
        .push(Finding::not_checked("SelfSubjectAccessReview for leases in default could not be asked: timeout"));
    plan.findings.push(Finding::blocker("the API server answers at v1.28, older than what sbx knows"));
    plan.cluster.uid = None;
    plan.cluster.user = None;
    plan
}

/// A user who may do next to nothing: more blockers than a screen has lines.
fn denied() -> Plan {
    let refused = |name: &str| {
        format!(
            "{name} cannot be read: customresourcedefinitions.apiextensions.k8s.io \"{name}\" is forbidden: User \
             \"viewer\" cannot get resource \"customresourcedefinitions\" in API group \"apiextensions.k8s.io\" at the \
             cluster scope"
        )
    };
    let names = FOUR.map(|(group, _, plural, _)| format!("{plural}.{group}"));
    let all: Vec<String> = names.iter().map(|name| refused(name)).collect();
    let denied = |mut sample: Sample| {
        for verb in ["get", "list", "patch"] {
            for name in &names {
                sample = sample.found(Finding::blocker(format!("the user may not {verb} {name}")).hint("grant it"));
            }
        }
        sample
    };
    plan(vec![
        gate("writers", State::Waiting, &format!("not known: {}", all.join("; "))),
        denied(step("backup", "backup", State::After(vec![1]), "0 objects of 0 kinds").needs(&[1])),
        denied(step("migrate", "migrate", State::After(vec![2]), "4 CRDs cannot be migrated as they are").needs(&[2]))
            .found(Finding::blocker(all[0].clone()))
            .restored_by(2),
    ])
}

/// `--to migrate`.
fn partial() -> Plan {
    plan(vec![
        gate("flickerd", State::Met, "generator v0.15.2 >= 0.15.0, rolled out"),
        step("backup", "backup", State::Done, "backups/agent-sandbox-20261201 covers 41 objects").needs(&[1]),
        step("migrate", "migrate", State::ToDo, "prove 41 objects").needs(&[2]).restored_by(2),
        step("merge", "merge", State::NotSelected, "Argo CD argocd/pitower-ai-agent-sandbox")
            .needs(&[3])
            .no_way_back("merge@admin@pitower")
            .found(Finding::blocker("not this time")),
        step(
            "webhook-certs",
            "delete",
            State::NotSelected,
            "delete Secret agent-sandbox-system/agent-sandbox-webhook-certs",
        )
        .needs(&[4])
        .restored_by(2),
    ])
}

/// Text that would like to be more than text, wherever a plan has text.
pub(crate) fn hostile() -> Plan {
    let bad =
        "a\u{1b}[2J\u{1b}]0;x\u{7} \r\u{9b}1m\u{7f}\u{202e}b @all #1 <b>&amp; ```` `x` | [l](https://e.test) --> *i*";
    let thing = || object(bad, bad, bad, bad);
    let mut plan = plan(vec![
        step(bad, "migrate", State::ToDo, bad)
            .details(&[bad, "second\nline"])
            .changes([
                change(
                    Operation::Update,
                    thing(),
                    &[(bad, Some(bad), Some("two\nlines\u{1b}")), ("list", Some(r#"["\u001b[1m"]"#), None)],
                ),
                change(Operation::Create, thing(), &[]),
                change(Operation::Delete, thing(), &[]),
            ])
            .found(Finding::blocker(bad).about(thing()).hint(bad))
            .found(Finding::warning(bad).resolved_by(Some(&id(bad)))),
        step("merge", "merge", State::After(vec![1]), bad).no_way_back(bad),
        gate("wait", State::Waiting, ""),
    ]);
    plan.runbook.path = format!("run books/{bad}.toml").into();
    for text in [&mut plan.runbook.title, &mut plan.runbook.sha256, &mut plan.runbook.from, &mut plan.runbook.to] {
        text.push_str(bad);
    }
    plan.cluster.context.push_str(bad);
    plan.cluster.server_version.push_str(bad);
    plan.cluster.uid = Some(bad.into());
    plan.cluster.user = Some(bad.into());
    plan.findings.push(Finding::note(bad).about(thing()).hint(bad));
    plan.facts.push((bad.into(), bad.into()));
    plan
}

/// Values that do not fit a line, and more fields than a screen.
fn long_values() -> Plan {
    let before = (1..=30).map(|line| format!("line {line}\n")).collect::<Vec<_>>().concat();
    let after = before.replace("line 15\n", "line fifteen\nand one more\n");
    let config =
        object("", "ConfigMap", "team-a", "a-name-that-is-longer-than-the-column-it-has-to-fit-into-0123456789");
    let many = (1..=15).map(|index| {
        change(
            Operation::Update,
            object("", "Pod", "team-a", &format!("p{index}")),
            &[("spec.nodeName", None, Some(&*format!("node-{index}")))],
        )
    });
    plan(vec![
        step(
            "manifests",
            "manifests",
            State::ToDo,
            "apply argocd/this-is-one-very-long-word-without-any-place-to-break-it-in-a-narrow-column and more",
        )
        .changes([change(Operation::Create, config.clone(), &[("data", None, Some(r#"{"a":"1","b":"2"}"#))])])
        .changes([change(
            Operation::Update,
            config,
            &[("data.text", Some(&*before), Some(&*after)), ("data.blob", Some(&"x".repeat(500)), Some(""))],
        )])
        .changes(many),
    ])
}

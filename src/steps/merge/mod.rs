//! The point of no return: somebody merges, the deployer applies the target CRDs, and `from` is gone.
//!
//! It merges nothing itself. Before the approval and while it waits it looks whether the merge
//! would work: every list pruned, no managedFields entry that names `from`, every target accepted
//! in a dry run. Done is: no CRD of the upgrade declares `from`.

mod application;
mod deletion;
mod guard;
mod watch;

pub use application::{Application, applications};
pub use guard::ready;
pub use watch::run;

use super::{
    Decision, Look, UndoBy, World,
    access::{access, on_crds, on_kinds},
    release::RESYNC,
    trial::Target,
};
use crate::{
    cluster::Access,
    object::ObjectRef,
    plan::Finding,
    runbook::{Merge, Runbook},
};

/// What was seen of the deployer and of each CRD's target.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The Application, where the runbook names one.
    pub application: SeenApplication,
    /// What the server says of each CRD's target.
    pub targets: Vec<(ObjectRef, Target)>,
}

/// The Application, or why it was not seen.
#[derive(Clone, Debug)]
pub enum SeenApplication {
    /// The runbook names none.
    NotAsked,
    /// It is there.
    Found(Box<Application>),
    /// There is none of that name.
    Missing(String),
    /// It could not be looked at, in the server's words.
    Unreadable(String),
}

/// Looks at the Application; the targets were dry-run for the whole look.
pub async fn observe(task: &Merge, look: &Look<'_>) -> Seen {
    let targets = look.targets.iter().map(|(crd, target)| (crd.clone(), target.clone())).collect();
    Seen { application: look_at_application(task, look.reader).await, targets }
}

async fn look_at_application(task: &Merge, reader: &crate::cluster::Reader) -> SeenApplication {
    let Some((namespace, name)) = &task.application else { return SeenApplication::NotAsked };
    match reader.get(&applications(), Some(namespace), name).await {
        Ok(Some(object)) => SeenApplication::Found(Box::new(Application::of(&object))),
        Ok(None) => SeenApplication::Missing(format!("{namespace}/{name}")),
        Err(error) => SeenApplication::Unreadable(error.to_string()),
    }
}

/// Settled when no CRD declares `from`.
pub fn decide(task: &Merge, seen: &Seen, world: &World<'_>) -> Decision {
    let from = &world.runbook.upgrade.from;
    let crds: Vec<_> = world.situation.survey.installed().collect();
    let left = crds.iter().filter(|crd| crd.declares(from)).count();
    if left == 0 && crds.len() == world.runbook.upgrade.crds.len() {
        return Decision::settled(format!("no CRD declares {from}"));
    }
    let deployer = match &seen.application {
        SeenApplication::Found(application) => format!("Argo CD {}", application.name),
        SeenApplication::Missing(name) => format!("Argo CD {name} (not found)"),
        SeenApplication::Unreadable(_) => "Argo CD (not readable)".into(),
        SeenApplication::NotAsked => world.runbook.upgrade.deployer.clone().unwrap_or_else(|| "the deployer".into()),
    };
    let unread = world.situation.survey.crds.iter().filter(|surveyed| surveyed.crd.is_err()).count();
    let crds = match (left, unread) {
        (_, 0) => format!("{left} CRDs"),
        (0, _) => format!("{unread} CRDs that cannot be read"),
        _ => format!("{left} CRDs, and {unread} that cannot be read"),
    };
    let mut decision = Decision::pending(format!("{deployer} drops {from} from {crds}")).undo(UndoBy::NoWayBack);
    if let Some(pull_request) = &task.pull_request {
        decision.details.push(format!("pull request: {pull_request}"));
    }
    match &seen.application {
        SeenApplication::Found(application) => {
            decision.details.push(application.will_do());
            decision.findings.extend(application.finding());
        }
        SeenApplication::Missing(name) => decision.findings.push(
            Finding::blocker(format!("there is no Argo CD Application {name}"))
                .hint("leave `application` out where Argo CD does not deploy the CRDs"),
        ),
        SeenApplication::Unreadable(words) => {
            decision.findings.push(Finding::not_checked(format!("the Argo CD Application: {words}")));
        }
        SeenApplication::NotAsked => {}
    }
    let application = match &seen.application {
        SeenApplication::Found(application) => Some(&**application),
        _ => None,
    };
    let open = world.situation.survey.installed().filter(|crd| crd.declares(from));
    decision.findings.extend(deletion::findings(open, application));
    decision.with(seen.targets.iter().filter_map(|(crd, target)| finding(crd, target, world)))
}

fn finding(crd: &ObjectRef, target: &Target, world: &World<'_>) -> Option<Finding> {
    let from = &world.runbook.upgrade.from;
    let finding = match target {
        Target::Accepted | Target::Applied => return None,
        Target::Unpruned => {
            Finding::blocker(format!("{from} must leave status.storedVersions before the target CRD can be applied"))
                .resolved_by(world.first_of_kind("migrate"))
        }
        Target::Conversion(words) => Finding::blocker(format!("the deployer's apply would be refused: {words}"))
            .hint("a `release` step takes it out of the way")
            .resolved_by(world.first_of_kind("release")),
        Target::ConversionStays => {
            Finding::blocker("the deployer's apply would be accepted, but the conversion webhook would outlive it")
                .hint(format!("a `release` step takes it out of the way; where it is done, {RESYNC}"))
                .resolved_by(world.first_of_kind("release"))
        }
        Target::Refused(words) => Finding::blocker(format!("the deployer's apply would be refused: {words}")),
        Target::Underivable(words) => Finding::not_checked(format!("whether the target CRD is accepted: {words}"))
            .hint("name the files that will be applied: `target-crds` in `[upgrade]`"),
        Target::NotChecked(words) => Finding::not_checked(format!("whether the target CRD is accepted: {words}")),
    };
    Some(finding.about(crd.clone()))
}

/// Reads the CRDs, their records and the Application; asks by dry run.
pub fn rights(task: &Merge, runbook: &Runbook) -> Vec<Access> {
    let mut rights = on_crds(runbook, "get", "");
    rights.extend(on_crds(runbook, "patch", ""));
    rights.extend(on_kinds(runbook, "list"));
    if let Some((namespace, name)) = &task.application {
        rights.push(access("get", "argoproj.io", "applications", Some(namespace), Some(name)));
    }
    rights
}

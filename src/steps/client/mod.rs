//! Gate: a workload runs the wanted image, everywhere.
//!
//! Judged per container, not per workload: open when the image is in the range (or its digest is
//! one of those accepted), the rollout is over, and no variable says otherwise. A workload scaled to 0
//! is judged by its template, with a warning: nothing runs, and what comes back is what it says.

mod observe;
mod rollout;

pub use observe::{Container, Given, Pod, Reading, Role, Running, Workload, observe};
pub use rollout::{Rollout, Stage};
use semver::VersionReq;

use super::{Decision, World, access::access, well_known::known};
use crate::{
    cluster::Access,
    image::{Image, Judged},
    plan::Finding,
    runbook::{Client, NamedObject, Step},
};

/// The workload, and its pods where they are judged too.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The workload; none when there is none; or why it could not be looked at.
    pub workload: Reading<Option<Workload>>,
    /// Its pods that run or will; none when nobody asked.
    pub pods: Option<Reading<Vec<Pod>>>,
}

/// Open when every judged container is at a wanted image and rolled out.
///
/// What would block is left to the point of no return where that comes first: it changes the workload.
pub fn decide(step: &Step, task: &Client, seen: &Seen, world: &World<'_>) -> Decision {
    let mut decision = judge(task, seen);
    let merge = world.point_of_no_return_before(&step.id);
    for finding in decision.findings.iter_mut().filter(|finding| finding.blocks()) {
        finding.resolved_by = merge.cloned();
    }
    decision
}

fn judge(task: &Client, seen: &Seen) -> Decision {
    let name = format!("{} {}/{}", task.kind, task.namespace, task.name);
    let workload = match &seen.workload {
        Err(words) => {
            let finding = Finding::not_checked(format!("{name} could not be looked at: {words}"));
            return Decision::pending(format!("{name} could not be looked at")).with([finding]);
        }
        Ok(None) => {
            let finding = Finding::blocker(format!("{name} does not exist"))
                .hint("correct the name, or take the step out if this client is gone for good");
            return Decision::pending(format!("{name} not found")).with([finding]);
        }
        Ok(Some(workload)) => workload,
    };
    let Some(judged) = judged_containers(task, workload) else {
        let known: Vec<String> = workload.containers.iter().map(Container::title).collect();
        let text = format!("{name} has no container {}", task.container.as_deref().unwrap_or_default());
        let finding = Finding::blocker(text.clone()).hint(format!("it has {}", known.join(", ")));
        return Decision::pending(text).with([finding]);
    };
    let mut verdict = Verdict::default();
    verdict.images(task, &judged);
    verdict.rollout(workload);
    verdict.environment(task, &judged);
    if let Some(pods) = &seen.pods {
        verdict.pods(task, pods, &judged, workload);
    }
    verdict.details(task, &judged, workload);
    let Verdict { closed, parts, details, findings } = verdict;
    let decision = if closed { Decision::pending(parts.join(", ")) } else { Decision::settled(parts.join(", ")) };
    Decision { details, ..decision.with(findings) }
}

/// The containers that count: the one named, else every container that is neither init nor sidecar.
/// None: there is no container of that name.
fn judged_containers<'a>(task: &Client, workload: &'a Workload) -> Option<Vec<&'a Container>> {
    let containers = workload.containers.iter();
    match &task.container {
        Some(name) => containers.clone().find(|container| container.name == *name).map(|container| vec![container]),
        None => Some(containers.filter(|container| container.role == Role::Main).collect()),
    }
}

/// What adds up to the gate's word.
#[derive(Default)]
struct Verdict {
    closed: bool,
    parts: Vec<String>,
    details: Vec<String>,
    findings: Vec<Finding>,
}

impl Verdict {
    fn close(&mut self, why: String) {
        self.closed = true;
        self.parts.push(why);
    }

    fn images(&mut self, task: &Client, judged: &[&Container]) {
        let wanted = spaced(&task.image);
        for container in judged {
            let image = Image::parse(&container.image);
            let title = container.title();
            match image.judge(&task.image, &task.digests) {
                Judged::InRange => self.parts.push(format!("{title} {image} {wanted}")),
                Judged::KnownDigest => self.parts.push(format!("{title} {image} by its digest")),
                Judged::OutOfRange => self.close(format!("{title} {image}, wants {wanted}")),
                Judged::NotComparable => {
                    self.close(format!("{title} {image}, wants {wanted}"));
                    let text = format!("{title} runs {}, which cannot be compared with {wanted}", container.image);
                    self.findings.push(
                        Finding::blocker(text).hint("deploy it by a version tag, or list its digest in `digests`"),
                    );
                }
            }
        }
    }

    fn rollout(&mut self, workload: &Workload) {
        let rollout = &workload.rollout;
        match rollout.stage() {
            Stage::Done => self.parts.push("rolled out".into()),
            Stage::ScaledToZero => {
                self.parts.push("scaled to 0".into());
                let text = "scaled to 0: nothing runs now, and what comes back runs what its template says";
                self.findings.push(Finding::warning(text).about(workload.object.clone()));
            }
            Stage::Paused => {
                self.close("paused".into());
                let text = "its rollout is paused: what runs may not be what its template says";
                self.findings.push(Finding::warning(text).about(workload.object.clone()).hint("resume the rollout"));
            }
            Stage::Rolling(what) => {
                self.close(format!("rolling out: {what}"));
                if let Some(words) = &rollout.stuck {
                    let text = format!("its rollout makes no progress: {words}");
                    self.findings.push(Finding::warning(text).about(workload.object.clone()));
                }
            }
        }
    }

    fn environment(&mut self, task: &Client, judged: &[&Container]) {
        for container in judged {
            for ((name, wanted), given) in task.env.iter().zip(&container.env) {
                let title = container.title();
                match given {
                    Given::Unset | Given::AsWanted => {}
                    Given::Other => self.close(format!("{name} is not {wanted}")),
                    Given::Reference => {
                        self.close(format!("{name} not checked"));
                        let text =
                            format!("{name} of {title} comes from a reference; whether it is {wanted} is unknown");
                        let hint = "set it as a plain value, or take it out of `env`";
                        self.findings.push(Finding::not_checked(text).hint(hint));
                    }
                    Given::PerhapsFromSource => {
                        let text = format!("{title} takes variables from a whole source (envFrom); {name} may be one");
                        self.findings.push(Finding::not_checked(text));
                    }
                }
            }
        }
    }

    fn pods(&mut self, task: &Client, pods: &Reading<Vec<Pod>>, judged: &[&Container], workload: &Workload) {
        let pods = match pods {
            Ok(pods) => pods,
            Err(words) => {
                self.close("pods not checked".into());
                self.findings.push(Finding::not_checked(format!("its pods could not be looked at: {words}")));
                return;
            }
        };
        if pods.is_empty() && workload.rollout.wanted > 0 {
            self.close("no pod of it runs".into());
        }
        let mut others = 0;
        for pod in pods {
            let runs = pod.containers.iter().filter(|running| judged.iter().any(|one| one.name == running.name));
            let wrong: Vec<&Running> = runs.filter(|running| !running.is_wanted(&task.image, &task.digests)).collect();
            others += usize::from(!wrong.is_empty());
            for running in wrong {
                let image = Image::parse(&running.image);
                let ending = if pod.deleting { ", terminating" } else { "" };
                self.details.push(format!("Pod {} runs {} {image}{ending}", pod.name, running.name));
            }
        }
        if others > 0 {
            self.close(format!("{others} of {} pods run another image", pods.len()));
        } else if !pods.is_empty() {
            self.parts.push(format!("{} pods checked", pods.len()));
        }
    }

    /// Which containers counted, wherever that is not plain.
    fn details(&mut self, task: &Client, judged: &[&Container], workload: &Workload) {
        if task.container.is_none() && judged.len() > 1 {
            let names: Vec<&str> = judged.iter().map(|container| container.name.as_str()).collect();
            self.details.push(format!("no container is named, so all are judged: {}", names.join(", ")));
        }
        let others =
            workload.containers.iter().filter(|one| !judged.iter().any(|container| container.name == one.name));
        let others: Vec<String> =
            others.map(|container| format!("{} ({})", container.title(), Image::parse(&container.image))).collect();
        if !others.is_empty() {
            self.details.push(format!("not judged: {}", others.join(", ")));
        }
    }
}

/// A range as it is read: `>= 0.15.0`.
fn spaced(wanted: &VersionReq) -> String {
    let spaced = |part: String| {
        let version = part.trim_start_matches(['<', '>', '=', '^', '~']);
        let operator = &part[..part.len() - version.len()];
        if operator.starts_with(['<', '>']) { format!("{operator} {version}") } else { part }
    };
    let parts: Vec<String> = wanted.comparators.iter().map(|comparator| spaced(comparator.to_string())).collect();
    if parts.is_empty() { wanted.to_string() } else { parts.join(", ") }
}

/// Reads the workload by name, and lists pods where they are judged too.
pub fn rights(task: &Client) -> Vec<Access> {
    let named = NamedObject { kind: task.kind.clone(), group: None, name: task.name.clone() };
    let workload = known(&named)
        .map(|resource| access("get", &resource.group, &resource.plural, Some(&task.namespace), Some(&task.name)));
    let pods = task.pods.then(|| access("list", "", "pods", Some(&task.namespace), None));
    workload.into_iter().chain(pods).collect()
}

#[cfg(test)]
mod tests;

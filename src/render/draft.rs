//! A drafted runbook as TOML: what was found as steps, what is only likely as comments.

use std::fmt::Write;

use super::escape::visible;
use crate::{
    draft::{Deployer, Draft, Origin, Webhook, Workload, Writer},
    image::Image,
};

/// Managers of people and of Kubernetes itself: no workload of theirs is ever shipped.
const NO_CLIENTS: [&str; 5] = ["kubectl", "kube-controller-manager", "kube-apiserver", "k9s", "sbx"];

/// Ids of the steps that every draft has: a client of such a name gets another.
const FIXED: [&str; 6] = ["writers", "backup", "migrate", "owners", "release", "merge"];

/// The text of a drafted runbook.
pub fn draft_text(draft: &Draft) -> String {
    let mut page = Page { draft, text: String::new(), ids: FIXED.map(ToOwned::to_owned).to_vec() };
    page.head();
    page.upgrade();
    let clients = page.clients();
    page.proof(&clients);
    page.merge();
    page.afterwards();
    page.text
}

struct Page<'a> {
    draft: &'a Draft,
    text: String,
    /// Ids given so far.
    ids: Vec<String>,
}

impl Page<'_> {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// A comment; what comes from the cluster stays on its line.
    fn comment(&mut self, text: &str) {
        self.line(&format!("# {}", visible(text)));
    }

    /// A key, its value, and why.
    fn key(&mut self, name: &str, value: &str, why: &str) {
        let why = if why.is_empty() { String::new() } else { format!("   # {}", visible(why)) };
        self.line(&format!("{name} = {value}{why}"));
    }

    fn step(&mut self, id: &str, needs: &[&str], kind: &str) {
        self.line("");
        self.line("[[step]]");
        self.key("id", &quoted(id), "");
        if !needs.is_empty() {
            self.key("needs", &list(needs), "");
        }
        self.line(&format!("[step.{kind}]"));
    }

    /// An id that no other step has.
    fn id(&mut self, wanted: &str) -> String {
        let wanted: String = wanted
            .chars()
            .map(|char| if char.is_ascii_lowercase() || char.is_ascii_digit() { char } else { '-' })
            .collect();
        let mut id = wanted.clone();
        let mut number = 2;
        while self.ids.contains(&id) {
            id = format!("{wanted}-{number}");
            number += 1;
        }
        self.ids.push(id.clone());
        id
    }

    fn head(&mut self) {
        let Draft { from, to, context, .. } = self.draft;
        let group = group(self.draft);
        self.comment(&format!("Drafted by `sbx init` from what context {context} showed. {from} goes, {to} stays."));
        self.comment("Read every line before the first `sbx apply`: ranges of images are guesses, marked as such.");
        for words in &self.draft.unread {
            self.comment(&format!("Not looked at: {words}"));
        }
        self.key("title", &quoted(&format!("{group}: drop {from}")), "");
        self.line("");
        self.line("[cluster]");
        self.key("context", &quoted(context), "");
        match &self.draft.cluster_uid {
            Some(uid) => self.key("uid", &quoted(uid), "of namespace kube-system: another cluster is refused"),
            None => self.comment("uid = \"...\"   # of namespace kube-system, which this user may not read"),
        }
    }

    fn upgrade(&mut self) {
        let Draft { from, to, crds, deployer, .. } = self.draft;
        self.line("");
        self.line("[upgrade]");
        self.key("from", &quoted(from), "");
        self.key("to", &quoted(to), "");
        self.comment("In the order in which they are migrated: put first what others refer to.");
        self.line("crds = [");
        for crd in crds {
            let records =
                crd.records.map_or_else(|| "records cannot be listed".into(), |count| format!("{count} records"));
            let stored = crd.stored_versions.join(", ");
            self.line(&format!(
                "  {},   # {}",
                quoted(&crd.name),
                visible(&format!("{records}; storedVersions {stored}"))
            ));
        }
        self.line("]");
        let others: Vec<&str> = crds
            .iter()
            .flat_map(|crd| &crd.stored_versions)
            .filter(|version| *version != from && *version != to)
            .map(String::as_str)
            .collect();
        if !others.is_empty() {
            self.comment(&format!(
                "Also listed: {}. Each needs a runbook of its own, after this one.",
                others.join(", ")
            ));
        }
        match deployer {
            Some(deployer) => self.key("deployer", &quoted(&deployer.manager), &whence(deployer)),
            None => self.key("deployer", "\"kubectl\"", "a guess: no manager's name stands in the CRDs"),
        }
        self.comment("target-crds = \"crds\"   # the CRDs that will be applied; left out: derived from the live ones");
    }

    /// Steps for clients that must be shipped first; their ids.
    fn clients(&mut self) -> Vec<String> {
        let mut ids = Vec::new();
        for writer in &self.draft.writers {
            if writer.workloads.is_empty() {
                self.line("");
                for line in without_workload(writer, self.draft) {
                    self.comment(&line);
                }
            }
            for workload in &writer.workloads {
                let why = format!("{} writes at {}: {}", writer.manager, self.draft.from, what(writer));
                ids.push(self.client(&[], workload, &why, "the first release that writes"));
            }
        }
        ids
    }

    fn client(&mut self, needs: &[&str], workload: &Workload, why: &str, release: &str) -> String {
        let id = self.id(&workload.object.name);
        self.step(&id, needs, "client");
        self.comment(why);
        self.key("workload", &quoted(&format!("{}/{}", workload.object.kind, workload.object.name)), "");
        self.key("namespace", &quoted(workload.object.namespace.as_deref().unwrap_or_default()), "");
        if let Some(container) = &workload.container {
            self.key("container", &quoted(container), "a guess: it has several");
        }
        let image = Image::parse(&workload.image);
        let (range, why) = if let Some(version) = image.version() {
            (format!(">{version}"), format!("{image} runs now; set it to {release} {}", self.draft.to))
        } else {
            (">=0.0.0".into(), format!("{image} runs now, which no range can be compared with; see `digests`"))
        };
        self.key("image", &quoted(&range), &why);
        id
    }

    /// Everything up to the point of no return.
    fn proof(&mut self, clients: &[String]) {
        let Draft { from, state_annotations, .. } = self.draft;
        let clients: Vec<&str> = clients.iter().map(String::as_str).collect();
        self.step("writers", &clients, "writers");
        self.key("quiet-for", "\"30m\"", &format!("nobody has written {from} for this long"));
        self.step("backup", &["writers"], "backup");
        let folder = group(self.draft).replace('.', "-");
        self.key("to", &quoted(&format!("backups/{folder}-{{run}}")), "");
        self.step("migrate", &["backup"], "migrate");
        self.comment("stamp = \"...\"   # an annotation that is set to the time of the rewrite");
        self.key("managed-fields", "\"relabel\"", "or \"drop\", \"keep\"");
        self.key("settle", "\"60s\"", "since the last change of a CRD's spec; more with several API servers");
        if !state_annotations.is_empty() {
            let names: Vec<&str> = state_annotations.iter().map(String::as_str).collect();
            self.comment(&format!(
                "The conversion leaves whole old objects in annotations ({}); see the end.",
                names.join(", ")
            ));
        }
        self.step("owners", &["migrate"], "owners");
        self.comment("Children whose ownerReferences name the version that goes.");
        if self.releases() {
            self.step("release", &["migrate"], "release");
            self.comment("Field ownership that would make the deployer's apply of the target CRDs fail.");
        }
    }

    /// Whether there is an apply of the deployer that could be refused.
    fn releases(&self) -> bool {
        self.draft.deployer.as_ref().is_some_and(|deployer| deployer.applies)
    }

    fn merge(&mut self) {
        let needs = if self.releases() { &["owners", "release"][..] } else { &["owners"] };
        self.step("merge", needs, "merge");
        self.comment(&format!("The point of no return: the CRDs without {} are applied.", self.draft.from));
        self.comment("pull-request = \"https://...\"");
        match self.draft.deployer.as_ref().map(|deployer| &deployer.origin) {
            Some(Origin::Application(name)) => self.key("application", &quoted(name), ""),
            Some(Origin::SomeApplication(near)) if near.is_empty() => {
                self.comment("application = \"argocd/...\"   # none bears a mark of these CRDs");
            }
            Some(Origin::SomeApplication(near)) => {
                for name in near {
                    let why = "a guess: it deploys to the webhook's namespace";
                    self.comment(&format!("application = {}   # {why}", quoted(name)));
                }
            }
            _ => self.comment("Without an Argo CD Application the CRDs alone say when it is through."),
        }
        self.key("timeout", "\"30m\"", "");
    }

    fn afterwards(&mut self) {
        for webhook in &self.draft.webhooks {
            for workload in &webhook.workloads {
                let why = format!("It answers the conversion webhook {}.", named(webhook));
                self.client(&["merge"], workload, &why, "the release that serves only");
            }
            if webhook.workloads.is_empty() {
                self.line("");
                self.comment(&format!("No workload was found that answers the conversion webhook {}.", named(webhook)));
            }
            if webhook.deployed {
                let id = self.id("webhook-gone");
                self.step(&id, &["merge"], "gone");
                self.comment("The deployer removes it with the version.");
                self.key("objects", &list(&[&format!("Service/{}", webhook.service.name)]), "");
                self.key("namespace", &quoted(&webhook.service.namespace), "");
            } else {
                self.line("");
                self.comment(&format!(
                    "Nobody known removes Service {}, nor a Secret beside it with the webhook's certificates:",
                    named(webhook)
                ));
                self.comment("");
                self.comment("[[step]]");
                self.comment("id = \"webhook\"");
                self.comment("needs = [\"merge\"]");
                self.comment("[step.delete]");
                self.comment(&format!("objects = {}", list(&[&format!("Service/{}", webhook.service.name)])));
                self.comment(&format!("namespace = {}", quoted(&webhook.service.namespace)));
            }
        }
        if !self.draft.state_annotations.is_empty() {
            self.line("");
            self.comment("To take the old objects out of the annotations, secrets included, once nobody reads them:");
            self.comment("");
            self.comment("[[step]]");
            self.comment("id = \"old-copies\"");
            self.comment("needs = [\"merge\"]");
            self.comment("[step.strip]");
            let names: Vec<&str> = self.draft.state_annotations.iter().map(String::as_str).collect();
            self.comment(&format!("annotations = {}", list(&names)));
        }
    }
}

fn named(webhook: &Webhook) -> String {
    format!("{}/{}", webhook.service.namespace, webhook.service.name)
}

fn group(draft: &Draft) -> String {
    let names: Vec<&str> = draft.crds.iter().map(|crd| crd.name.as_str()).collect();
    common_group(&names)
}

/// What is common to the groups of these CRDs: `agents.x-k8s.io`; of groups that have nothing in
/// common, the first.
fn common_group(crds: &[&str]) -> String {
    let groups: Vec<Vec<&str>> =
        crds.iter().filter_map(|crd| crd.split_once('.')).map(|(_, group)| group.rsplit('.').collect()).collect();
    let Some(first) = groups.first() else { return "CRDs".into() };
    let alike = |group: &Vec<&str>| group.iter().zip(first).take_while(|(one, other)| one == other).count();
    let common = groups.iter().map(alike).min().unwrap_or_default();
    let kept = if common < 2 { first.len() } else { common };
    first[..kept].iter().rev().copied().collect::<Vec<_>>().join(".")
}

fn whence(deployer: &Deployer) -> String {
    match &deployer.origin {
        Origin::Application(name) => format!("Argo CD, by Application {name}"),
        Origin::SomeApplication(_) => "Argo CD; which Application it is, the CRDs do not say".into(),
        Origin::Flux(name) => format!("Flux, by {name}"),
        Origin::Release(name) => format!("Helm release {name}"),
        Origin::Unknown if deployer.applies => "it server-side-applies the CRDs".into(),
        Origin::Unknown => "it wrote the CRDs last, but not by server-side apply: no dry run can be made for it".into(),
    }
}

/// `4 Sandbox, 2 SandboxClaim, last 2026-…`
fn what(writer: &Writer) -> String {
    let kinds: Vec<String> = writer.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let last = writer.last.map_or_else(|| "at an unknown time".into(), |last| format!("last {last:.0}"));
    format!("{}, {last}", kinds.join(", "))
}

fn without_workload(writer: &Writer, draft: &Draft) -> Vec<String> {
    let Writer { manager, .. } = writer;
    let mut lines = vec![format!("{manager} has written at {}: {}.", draft.from, what(writer))];
    let behind = draft.webhooks.iter().flat_map(|webhook| &webhook.workloads).any(|one| one.object.name == *manager);
    lines.push(if behind {
        "It answers the conversion too, so its release comes with the merge: see below.".into()
    } else if writer.applies || draft.deployer.as_ref().is_some_and(|deployer| deployer.manager == *manager) {
        format!("It applies manifests: change theirs to {} before the merge.", draft.to)
    } else if NO_CLIENTS.iter().any(|known| manager.starts_with(known)) {
        format!("That is nobody's release: write at {} from now on.", draft.to)
    } else {
        "No workload has its name. Where it is one that must be shipped first, add a `client` step for it.".into()
    });
    lines
}

fn list(items: &[&str]) -> String {
    let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
    format!("[{}]", items.join(", "))
}

/// A TOML string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            // Writing to a string cannot fail.
            char if char.is_control() => drop(write!(quoted, "\\u{:04X}", u32::from(char))),
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests;

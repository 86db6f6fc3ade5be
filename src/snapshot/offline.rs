//! Planning from a snapshot: its cluster as its user saw it, at the time it was taken, and no other.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use super::{
    Access, FormatError, Header, Lines, Served,
    format::Refusal,
    load::{fill, rule},
    reads::{Read, Reads},
};
use crate::{
    clock::{Clock, Hands},
    cluster::{self, Discovered, Reader},
    crd::crd_resource,
    embedded::{Interception, RequestRecord, Rule, Server},
    object::Resource,
    runbook::Runbook,
};

/// What a snapshot says of how its reads were answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Recorded {
    /// Reads that were answered, by path; true: with whole objects.
    pub(super) taken: BTreeMap<String, bool>,
    /// Reads that were refused, by path; true: only the whole objects were.
    pub(super) denied: BTreeMap<String, (bool, Refusal)>,
    /// Access reviews.
    pub(super) asked: Vec<Access>,
    /// What the server served.
    pub(super) served: Vec<Served>,
    /// Group versions that did not answer, with the server's words.
    pub(super) silent: BTreeMap<String, String>,
}

/// A snapshot to plan from.
pub struct Offline {
    /// When it was taken, of which cluster.
    pub header: Header,
    server: Server,
    recorded: Recorded,
}

impl Offline {
    /// Loads a file.
    ///
    /// # Errors
    /// The file is no snapshot, or is damaged; the line is named.
    pub fn open(path: &Path) -> Result<Self, FormatError> {
        let (header, server, mut recorded) = fill(path, Lines::open(path)?, None)?;
        if header.cluster_uid.is_none() {
            let message = "the snapshot does not say which cluster it is of".into();
            let refusal = Refusal { code: 403, reason: "Forbidden".into(), message };
            recorded.denied.insert("/api/v1/namespaces/kube-system".into(), (false, refusal));
        }
        Ok(Self { header, server, recorded })
    }

    /// What a runbook's steps look at and the snapshot does not hold: it was taken for another one.
    ///
    /// What is not in the file must not pass for something that is not there.
    pub fn lacks(&self, runbook: &Runbook) -> Vec<String> {
        let (upgrade, header) = (&runbook.upgrade, &self.header);
        if (&upgrade.from, &upgrade.to) != (&header.from, &header.to) {
            let text = format!("it is about {} to {}, not {} to {}", header.from, header.to, upgrade.from, upgrade.to);
            return vec![text];
        }
        let reads = Reads::of(runbook, &self.discovered(), &self.others());
        let crds = upgrade.crds.iter().map(|name| crd_resource().path(None, Some(name)));
        let named = reads.reads.iter().chain(&reads.within).map(|read| (read.path(), read.whole));
        let children = reads.children.iter().map(|resource| (list(resource).path(), false));
        let metrics = reads.metrics.then(|| ("/metrics".to_owned(), true));
        let wanted = crds.map(|path| (path, true)).chain(named).chain(children).chain(metrics);
        let mut lacking: Vec<String> =
            wanted.filter(|(path, whole)| !self.holds(path, *whole)).map(|(path, _)| path).collect();
        let asked: BTreeSet<cluster::Access> = self.recorded.asked.iter().map(Access::question).collect();
        lacking.extend(reads.rights.difference(&asked).map(|access| format!("whether the user may {access}")));
        lacking
    }

    fn holds(&self, path: &str, whole: bool) -> bool {
        self.recorded.denied.contains_key(path) || self.recorded.taken.get(path).is_some_and(|taken| *taken || !whole)
    }

    fn discovered(&self) -> Discovered {
        let preferred = self.recorded.served.iter().filter(|served| served.preferred);
        Discovered {
            resources: preferred.flat_map(Served::resources).collect(),
            unreachable: self.recorded.silent.clone().into_iter().collect(),
        }
    }

    fn others(&self) -> Vec<Resource> {
        self.recorded.served.iter().filter(|served| !served.preferred).flat_map(Served::resources).collect()
    }

    /// The cluster as it was. Must be called within a tokio runtime.
    pub fn reader(&self) -> Reader {
        let hands = Hands::at(self.header.taken_at);
        let now = hands.clone();
        self.server.set_clock(Arc::new(move || now.now()));
        let user = self.header.user.clone().unwrap_or_default();
        let (recorded, asker) = (self.recorded.clone(), user.clone());
        // Nobody asked about any other right, so it must not count as granted.
        let allowed = self.recorded.asked.iter().filter(|access| access.allowed == Some(true)).map(rule);
        let reading = Rule::new(&["get", "list"], "*", &["*"]);
        let paths = Rule::new(&["get"], "", &["/metrics"]);
        self.server.grant(&user, allowed.chain([reading, paths]).collect());
        self.server.intercept(Some(Arc::new(
            move |request: &RequestRecord| {
                if request.user == asker { answer(&recorded, request) } else { None }
            },
        )));
        let nothing_happens = Box::new(|| Box::pin(std::future::ready(())) as _);
        // What was refused stays so: nothing is gained by asking again.
        Reader::new(self.server.client_as(&user), Clock::played(hands, nothing_happens))
            .patient(std::time::Duration::ZERO)
    }
}

fn list(resource: &Resource) -> Read {
    Read { resource: resource.clone(), namespace: None, name: None, whole: false }
}

/// The recorded answer to a request that was refused when the snapshot was taken.
fn answer(recorded: &Recorded, request: &RequestRecord) -> Option<Interception> {
    let said = |code, reason, message: &str| Interception {
        code,
        reason,
        message: message.into(),
        retry_after: None,
        after: false,
    };
    if request.path.ends_with("/selfsubjectaccessreviews") {
        // Reviews are refused as a whole, not one by one.
        let refusal = recorded.asked.iter().find_map(|access| access.refusal.as_ref())?;
        return Some(said(refusal.code, reason(&refusal.reason), &refusal.message));
    }
    if request.path.ends_with("/selfsubjectreviews") && request.user.is_empty() {
        return Some(said(403, "Forbidden", "the snapshot does not say who took it"));
    }
    if !matches!(request.verb.as_str(), "get" | "list") {
        return None;
    }
    if let Some(words) = request.path.strip_prefix("/apis/").and_then(|version| recorded.silent.get(version)) {
        return Some(said(503, "", words));
    }
    let (whole, refusal) = recorded.denied.get(&request.path)?;
    let meant = !whole || !request.metadata_only;
    meant.then(|| said(refusal.code, reason(&refusal.reason), &refusal.message))
}

/// A reason of the API; any other says nothing.
fn reason(text: &str) -> &'static str {
    const REASONS: [&str; 18] = [
        "AlreadyExists",
        "BadRequest",
        "Conflict",
        "Expired",
        "Forbidden",
        "Gone",
        "InternalError",
        "Invalid",
        "MethodNotAllowed",
        "NotAcceptable",
        "NotFound",
        "Redacted",
        "ServerTimeout",
        "ServiceUnavailable",
        "StorageReadError",
        "Timeout",
        "TooManyRequests",
        "Unauthorized",
    ];
    REASONS.iter().find(|known| **known == text).copied().unwrap_or_default()
}

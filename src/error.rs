//! Every error a command can end with, what to do about it, and its exit code.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    cluster::{ClusterError, Fault},
    exit_code::ExitCode,
    rehearse::RehearseError,
    runbook::RunbookError,
    snapshot::{FormatError, TakeError},
    suggest,
};

/// What a command can end with.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The runbook.
    #[error(transparent)]
    Runbook(#[from] RunbookError),
    /// Which runbook is meant.
    #[error("{0}")]
    NoRunbook(String),
    /// The cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// Another cluster than the runbook's.
    #[error("the runbook is for {wanted}, and {found} answers; nothing was asked of it")]
    OtherCluster {
        /// What the runbook says.
        wanted: String,
        /// What answers.
        found: String,
    },
    /// `--to` or `--fail` names no step.
    #[error("the runbook has no step `{name}`")]
    NoStep {
        /// What was asked for.
        name: String,
        /// The nearest one.
        near: Option<String>,
        /// Those that it has.
        known: Vec<String>,
    },
    /// `--fail` names a step that cannot go wrong, or the rehearsal itself went wrong.
    #[error(transparent)]
    Rehearse(#[from] RehearseError),
    /// `--interactive` without a terminal.
    #[error("rehearse --interactive: nobody can be asked, for stdin and stderr are not both terminals; nothing ran")]
    NobodyToAsk,
    /// `--approve` names nothing that asks for it.
    #[error("--approve {phrase} approves nothing of this runbook; nothing was asked of the cluster")]
    NoApproval {
        /// What was given.
        phrase: String,
        /// The phrases that the runbook's steps ask for.
        valid: Vec<String>,
    },
    /// A CRD that no runbook can be drafted for.
    #[error("no runbook can be drafted for CRD {name}: {why}")]
    NoUpgrade {
        /// The CRD that was named.
        name: String,
        /// Why not.
        why: String,
        /// The name that may have been meant.
        near: Option<String>,
    },
    /// Several upgrades, each as the version that goes, the one that stays, and its CRDs.
    #[error("a runbook is about one upgrade, and there are {}: name one by its CRDs", .0.len())]
    SeveralUpgrades(Vec<(String, String, Vec<String>)>),
    /// A snapshot that cannot be used.
    #[error(transparent)]
    Snapshot(#[from] FormatError),
    /// A snapshot that was taken for another runbook.
    #[error("{} does not hold what {} looks at: {}", path.display(), runbook.display(), few(lacking))]
    SnapshotLacks {
        /// The snapshot.
        path: PathBuf,
        /// The runbook.
        runbook: PathBuf,
        /// What it lacks.
        lacking: Vec<String>,
    },
    /// A cluster of which no snapshot can be taken.
    #[error(transparent)]
    NothingRead(TakeError),
    /// A flag that names a cluster, for a command that asks none.
    #[error("{0} means nothing here: this command asks no cluster")]
    NoClusterAsked(&'static str),
    /// A local file.
    #[error("{attempt}: {source}")]
    Local {
        /// What was attempted.
        attempt: String,
        /// Why not.
        source: io::Error,
    },
}

/// The first few, and how many more.
fn few(texts: &[String]) -> String {
    const NAMED: usize = 5;
    let named = texts.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match texts.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// What may have been meant by a path that cannot be read.
fn near_path(path: &Path) -> Option<String> {
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    if path.is_dir() {
        let inside = names(path);
        return Some(format!("it is a folder, and a file is wanted; it holds {}", few(&inside)));
    }
    if path.exists() {
        return None;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Some(format!("there is no folder {}", folder.display()));
    }
    let inside = names(folder);
    let near = suggest::nearest(&path.file_name()?.to_string_lossy(), inside.iter().map(String::as_str))?.to_owned();
    let near = path.parent().map_or_else(|| PathBuf::from(&near), |folder| folder.join(&near));
    Some(format!("did you mean `{}`?", near.display()))
}

/// What to do about a server that was not reached, by the words of the layer that failed.
fn unreachable(words: &str) -> &'static str {
    let table: [(&[&str], &str); 6] = [
        (
            &["dns error"],
            "the name of the server is not known here: is the VPN up, is the kubeconfig's `server` right?",
        ),
        (&["tunnel error", "proxy"], "the proxy of the kubeconfig's `proxy-url` or of HTTPS_PROXY does not lead there"),
        (&["Connection refused"], "nothing listens there: is the API server up, and the tunnel to it?"),
        (
            &["not valid for name", "NotValidForName"],
            "the server's certificate is for other names; the kubeconfig's `tls-server-name` says which",
        ),
        (&["Expired"], "the server's certificate has expired, or the clock here is wrong"),
        (
            &["UnknownIssuer", "CaUsedAsEndEntity", "BadSignature"],
            "the server's certificate is none that the kubeconfig's `certificate-authority` signed: is another server \
             answering?",
        ),
    ];
    let found = table.iter().find(|(marks, _)| marks.iter().any(|mark| words.contains(mark)));
    found.map_or("is the cluster reachable? `kubectl version` asks the same server", |(_, hint)| hint)
}

impl Error {
    /// What to do next, one line each.
    pub fn hints(&self) -> Vec<String> {
        let one = |text: &str| vec![text.to_owned()];
        match self {
            Self::Snapshot(error) => {
                let again = "sbx snapshot RUNBOOK -o FILE takes one";
                let missing = (!error.path.is_file()).then(|| again.to_owned());
                error.hint.iter().cloned().chain(near_path(&error.path)).chain(missing).collect()
            }
            Self::Runbook(RunbookError::Unreadable { path, .. }) => {
                near_path(path).into_iter().chain(["`sbx init` drafts one from the live cluster".to_owned()]).collect()
            }
            Self::NothingRead(_) => one("`sbx rbac RUNBOOK --for plan` prints the role that suffices"),
            Self::NoClusterAsked(_) => one("leave it out; plan, apply, snapshot and init ask a cluster"),
            Self::NoStep { near, known, .. } => {
                let near = near.iter().map(|near| format!("did you mean `{near}`?"));
                near.chain([format!("the steps are {}", known.join(", "))]).collect()
            }
            Self::Rehearse(RehearseError::CannotFail { can, .. }) if can.is_empty() => {
                one("nothing is left to do on this cluster, so no step can go wrong")
            }
            Self::Rehearse(RehearseError::CannotFail { can, .. }) => {
                let can: Vec<&str> = can.iter().map(|id| id.0.as_str()).collect();
                vec![format!("those that can go wrong: {}", can.join(", "))]
            }
            Self::NobodyToAsk => one("leave --interactive out: then the rehearsal answers, and says what"),
            Self::NoApproval { valid, .. } if valid.is_empty() => one("no step of this runbook asks for a phrase"),
            Self::NoApproval { valid, .. } => vec![format!("it asks for: {}", valid.join(", "))],
            Self::NoUpgrade { near, .. } => near.iter().map(|near| format!("did you mean `{near}`?")).collect(),
            Self::SeveralUpgrades(choices) => choices
                .iter()
                .map(|(from, to, crds)| {
                    let named: Vec<String> = crds.iter().map(|crd| format!("--crd {crd}")).collect();
                    format!("{from} to {to}: sbx init {}", named.join(" "))
                })
                .collect(),
            Self::SnapshotLacks { path, runbook, .. } => {
                one(&format!("take it again: sbx snapshot {} -o {}", runbook.display(), path.display()))
            }
            Self::OtherCluster { .. } => one("name the runbook's context, or change the runbook"),
            Self::Cluster(error) | Self::Rehearse(RehearseError::Cluster(error)) => match &error.fault {
                Fault::Transport(words) => one(unreachable(words)),
                Fault::Timeout(_) => one("is the cluster reachable? `kubectl version` asks the same server"),
                Fault::Config(words) if words.contains("; the exec plugin is") => {
                    one("install the plugin that the kubeconfig names, or sign in another way")
                }
                Fault::Config(_) => {
                    one("--kubeconfig FILE or KUBECONFIG names the file, else ~/.kube/config is read; \
                     `kubectl config get-contexts` shows what kubectl finds")
                }
                Fault::Status(status) if status.code == 401 => one("the credentials are not accepted; log in again"),
                Fault::Status(status) if status.code == 403 => one("ask for the right that the server names"),
                _ => Vec::new(),
            },
            Self::Runbook(_) | Self::NoRunbook(_) | Self::Local { .. } => Vec::new(),
        }
    }

    /// How the program ends.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::OtherCluster { .. } | Self::SnapshotLacks { .. } => ExitCode::Stale,
            Self::NobodyToAsk => ExitCode::NeedsApproval,
            Self::NoClusterAsked(_)
            | Self::Rehearse(RehearseError::CannotFail { .. })
            | Self::NoStep { .. }
            | Self::NoApproval { .. }
            | Self::NoRunbook(_)
            | Self::SeveralUpgrades(_) => ExitCode::Usage,
            Self::Rehearse(RehearseError::Cluster(_))
            | Self::Runbook(_)
            | Self::Cluster(_)
            | Self::NoUpgrade { .. }
            | Self::NothingRead(_)
            | Self::Snapshot(_)
            | Self::Local { .. } => ExitCode::Error,
        }
    }
}

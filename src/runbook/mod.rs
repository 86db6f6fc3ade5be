//! Text to model: what the author declared, checked and ready to order.
//!
//! In: the text of a runbook. Out: a [`Runbook`], or every problem with it at once. Knows no
//! cluster and no order; [`crate::graph`] orders the steps.

mod document;
mod error;
mod load;
mod resolve;
mod spanned;
mod syntax;

use std::{fmt, path::PathBuf, time::Duration};

pub use document::{KINDS, schema};
pub use error::{Problem, RunbookError};
pub use load::{Declared, load, load_with};
use semver::VersionReq;

/// A checked runbook: every name in it resolves, every value has its type.
#[derive(Clone, Debug)]
pub struct Runbook {
    /// Path as given. Paths written in a runbook start from its folder; here they are joined with it.
    pub path: PathBuf,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
    /// One line that says what it does.
    pub title: String,
    /// The cluster it is written for.
    pub cluster: Cluster,
    /// What the steps are about.
    pub upgrade: Upgrade,
    /// Steps in file order.
    pub steps: Vec<Step>,
}

/// Which cluster a runbook is for; another one that answers is refused.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// kubeconfig context.
    pub context: String,
    /// uid of namespace `kube-system`, stronger than a name.
    pub uid: Option<String>,
    /// Namespace of the Lease that keeps a second apply out.
    pub lock_namespace: String,
}

/// The version that goes, the one that stays, and the kinds concerned.
#[derive(Clone, Debug)]
pub struct Upgrade {
    /// Version that goes.
    pub from: String,
    /// Version that stays.
    pub to: String,
    /// CRD names, `plural.group`, in the order in which they are migrated.
    pub crds: Vec<String>,
    /// Field manager of whoever applies the CRDs.
    pub deployer: Option<String>,
    /// File or folder with the CRDs that will be applied, seen from the working directory; none: derived
    /// from the live ones.
    pub target_crds: Option<PathBuf>,
    /// Names in one kind that must exist in another: checked before and reported by name.
    pub references: Vec<Reference>,
}

/// A field at `to` that holds the name of another object in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// CRD whose objects hold the name.
    pub from: String,
    /// JSON pointer of the field: `/spec/warmPoolRef/name`.
    pub field: String,
    /// CRD of the object named.
    pub to: String,
}

/// A step's id: `[a-z0-9-]+`, unique in its runbook.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(pub String);

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One step: what it does and which steps come first.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its id.
    pub id: StepId,
    /// Ids of the steps that must be settled before.
    pub needs: Vec<StepId>,
    /// What it does.
    pub task: Task,
}

impl Step {
    /// What a person types to approve it, where it asks for that: `merge@admin@pitower`.
    pub fn phrase(&self, context: &str) -> String {
        format!("{}@{context}", self.id)
    }

    /// Whether it asks for its own phrase: no other approval covers it.
    pub fn asks_for_its_phrase(&self) -> bool {
        self.task.is_point_of_no_return() || matches!(self.task, Task::Confirm(_))
    }
}

/// What a step does. One variant a kind, one file in `steps/` each.
#[derive(Clone, Debug)]
pub enum Task {
    /// Gate: a workload is rolled out at a wanted image.
    Client(Client),
    /// Gate: nobody has written `from` for a while.
    Writers(Writers),
    /// Files that cover every live object, verified.
    Backup(Backup),
    /// Rewrite, prove, prune.
    Migrate(Migrate),
    /// Children whose ownerReferences name `from`.
    Owners(Owners),
    /// Field ownership that would make the deployer's apply fail.
    Release(Release),
    /// The point of no return: the deployer applies the target CRDs.
    Merge(Merge),
    /// Gate: objects that somebody else removes are gone.
    Gone(Gone),
    /// Delete named or matching objects.
    Delete(Delete),
    /// Gate: a person says yes.
    Confirm(Confirm),
    /// Remove named annotations.
    Strip(Strip),
    /// Server-side apply of files.
    Manifests(Manifests),
}

impl Task {
    /// The kind's name, as it stands in a runbook.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Client(_) => "client",
            Self::Writers(_) => "writers",
            Self::Backup(_) => "backup",
            Self::Migrate(_) => "migrate",
            Self::Owners(_) => "owners",
            Self::Release(_) => "release",
            Self::Merge(_) => "merge",
            Self::Gone(_) => "gone",
            Self::Delete(_) => "delete",
            Self::Confirm(_) => "confirm",
            Self::Strip(_) => "strip",
            Self::Manifests(_) => "manifests",
        }
    }

    /// Whether there is no way back from it: it asks for its own typed phrase.
    pub fn is_point_of_no_return(&self) -> bool {
        match self {
            Self::Merge(_) => true,
            Self::Manifests(task) => task.holds_upgraded_crd,
            _ => false,
        }
    }

    /// Whether it only looks: a gate changes nothing and is `met` rather than `done`.
    pub fn is_gate(&self) -> bool {
        matches!(self, Self::Client(_) | Self::Writers(_) | Self::Gone(_) | Self::Confirm(_))
    }
}

/// Gate: a workload is rolled out at the wanted image.
#[derive(Clone, Debug)]
pub struct Client {
    /// `Deployment`, `StatefulSet` or `DaemonSet`.
    pub kind: String,
    /// Name of the workload.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// Container to judge; none: the only one, or every one whose repository matches.
    pub container: Option<String>,
    /// Wanted range of the image's tag.
    pub image: VersionReq,
    /// Digests (`sha256:…`) that are accepted where a tag says nothing.
    pub digests: Vec<String>,
    /// What an environment variable must be where it is set at all.
    pub env: Vec<(String, String)>,
    /// Judge the running pods' images too.
    pub pods: bool,
    /// How long apply waits for it when it comes after a change.
    pub timeout: Duration,
}

/// Gate: nobody has written `from` for a while.
#[derive(Clone, Debug)]
pub struct Writers {
    /// Quiet for how long.
    pub quiet_for: Duration,
}

/// Where a backup goes.
#[derive(Clone, Debug)]
pub struct Backup {
    /// Folder; `{run}` becomes the run's id. Relative to the working directory.
    pub to: String,
}

/// Rewrite, prove, prune.
#[derive(Clone, Debug)]
pub struct Migrate {
    /// Annotation set to the time of the rewrite; none: records are rewritten without a trace.
    pub stamp: Option<String>,
    /// What happens to managedFields entries that name `from`.
    pub managed_fields: ManagedFields,
    /// Wait since the last change of the CRD's spec.
    pub settle: Duration,
}

/// What happens to managedFields entries that name `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagedFields {
    /// They name `to` afterwards; every owner keeps its fields.
    Relabel,
    /// They are removed; their owners lose the fields.
    Drop,
    /// They stay, and break server-side apply after the drop.
    Keep,
}

/// Children whose ownerReferences name `from`.
#[derive(Clone, Debug)]
pub struct Owners {
    /// Kinds to look at, as `Kind` or `Kind.group`; empty: every kind this user may list.
    pub kinds: Vec<String>,
}

/// Field ownership that would make the deployer's apply of the target CRDs fail.
#[derive(Clone, Debug)]
pub struct Release {}

/// The point of no return.
#[derive(Clone, Debug)]
pub struct Merge {
    /// Shown to whoever approves.
    pub pull_request: Option<String>,
    /// Argo CD Application as namespace and name; none: the CRDs alone decide.
    pub application: Option<(String, String)>,
    /// Commit Argo CD must have synced.
    pub revision: Option<String>,
    /// How long to watch before stopping.
    pub timeout: Duration,
}

/// Gate: objects that somebody else removes are gone.
#[derive(Clone, Debug)]
pub struct Gone {
    /// The objects.
    pub objects: Vec<NamedObject>,
    /// Their namespace; none for cluster-scoped ones.
    pub namespace: Option<String>,
    /// How long apply waits for it when it comes after a change.
    pub timeout: Duration,
}

/// `Kind/name` or `Kind.group/name`, as written in a runbook.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedObject {
    /// Kind.
    pub kind: String,
    /// API group; none: the kind's well-known one (see [`crate::steps::well_known`]), or asked from discovery.
    pub group: Option<String>,
    /// Name.
    pub name: String,
}

/// What to delete.
#[derive(Clone, Debug)]
pub struct Delete {
    /// Named objects, or those of a resource that match.
    pub target: DeleteTarget,
    /// Namespace; none for cluster-scoped objects.
    pub namespace: Option<String>,
}

/// Named objects, or those of a resource that match a condition.
#[derive(Clone, Debug)]
pub enum DeleteTarget {
    /// Exactly these; absent is fine.
    Objects(Vec<NamedObject>),
    /// Those whose status carries the condition, as matched when the backup was taken.
    Matching {
        /// `plural.group`.
        resource: String,
        /// Condition type.
        condition_type: String,
        /// Condition status, if it matters.
        status: Option<String>,
        /// Condition reason, if it matters.
        reason: Option<String>,
        /// More than this is a blocker, not a bigger delete.
        at_most: usize,
    },
}

/// A person says yes.
#[derive(Clone, Debug)]
pub struct Confirm {
    /// The question.
    pub question: String,
}

/// Remove named annotations.
#[derive(Clone, Debug)]
pub struct Strip {
    /// Annotation names; a trailing `*` stands for any ending.
    pub annotations: Vec<String>,
}

/// Server-side apply of files, for those whose deployments nothing else applies.
#[derive(Clone, Debug)]
pub struct Manifests {
    /// Files or folders, seen from the working directory.
    pub files: Vec<PathBuf>,
    /// Take fields over from other managers.
    pub force: bool,
    /// Whether a file holds a CRD of `[upgrade]`: then it is a point of no return, like `merge`.
    pub holds_upgraded_crd: bool,
}

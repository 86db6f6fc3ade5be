//! A runbook as it is written: the mirror of its TOML, with places and without meaning.
//!
//! One table a step, the kind as a sub-table, so that a typo is found where it stands. No flatten,
//! no untagged and no tagged enums: each of them loses places. The doc comments are what an editor
//! shows, by way of the JSON Schema made from these types.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, generate::SchemaSettings, transform::RecursiveTransform};
use serde::Deserialize;
use serde_json::Value;

use super::spanned::{Field, Table};

/// Text of the JSON Schema of a runbook, as `schemas/runbook.json` holds it.
pub fn schema() -> String {
    let settings = SchemaSettings::draft07().with_transform(RecursiveTransform(without_null));
    let mut schema = settings.into_generator().into_root_schema_for::<Document>();
    schema.insert("title".into(), "sbx runbook".into());
    // A Value prints with its keys in order, so the same types give the same bytes.
    format!("{:#}\n", schema.to_value())
}

/// A key that may be left out is an `Option` here; TOML knows no null.
fn without_null(schema: &mut Schema) {
    let null = Value::from("null");
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| *name != null);
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".into(), only);
        }
    }
    let is_null = |schema: &Value| schema.get("type") == Some(&null);
    if let Some(Value::Array(mut choices)) = schema.remove("anyOf") {
        choices.retain(|choice| !is_null(choice));
        let key = if choices.len() == 1 { "allOf" } else { "anyOf" };
        schema.insert(key.into(), choices.into());
    }
}

type Text = Option<Field<String>>;
type Texts = Option<Field<Vec<Field<String>>>>;
type Tables<T> = Option<Field<Vec<Field<Table<T>>>>>;

/// The steps that take an API version out of a cluster, and what each of them needs.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub(super) struct Document {
    /// One line that says what the runbook does.
    #[schemars(required)]
    pub(super) title: Text,
    /// The cluster it is written for.
    #[schemars(required)]
    pub(super) cluster: Option<Field<Table<Cluster>>>,
    /// The version that goes, the one that stays, and the kinds concerned.
    #[schemars(required)]
    pub(super) upgrade: Option<Field<Table<Upgrade>>>,
    /// Steps. They run in the order of their needs; ties go by their order here.
    #[schemars(required, length(min = 1))]
    pub(super) step: Tables<Step>,
}

impl Document {
    /// Whether none of its keys is there.
    pub(super) fn is_empty(&self) -> bool {
        self.title.is_none() && self.cluster.is_none() && self.upgrade.is_none() && self.step.is_none()
    }
}

/// The cluster a runbook is written for; another one that answers is refused.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub(super) struct Cluster {
    /// kubeconfig context.
    #[schemars(required)]
    pub(super) context: Text,
    /// uid of namespace kube-system, stronger than a name.
    pub(super) uid: Text,
    /// Namespace of the Lease that keeps a second apply out. Default: `default`.
    pub(super) lock_namespace: Text,
}

/// What the steps are about.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub(super) struct Upgrade {
    /// Version that goes.
    #[schemars(required)]
    pub(super) from: Text,
    /// Version that stays.
    #[schemars(required)]
    pub(super) to: Text,
    /// CRDs as `plural.group`, in the order in which they are migrated.
    #[schemars(required, length(min = 1))]
    pub(super) crds: Texts,
    /// Field manager of whoever applies the CRDs. Needed by `release` and `merge`.
    pub(super) deployer: Text,
    /// File or folder with the CRDs that will be applied, relative to the runbook. Default: derived from the live ones.
    pub(super) target_crds: Text,
    /// Fields that name another object in the same namespace: what they name must exist.
    pub(super) references: Tables<Reference>,
}

/// A field at `to` that holds the name of another object in the same namespace.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub(super) struct Reference {
    /// CRD whose objects hold the name.
    #[schemars(required)]
    pub(super) from: Text,
    /// JSON pointer of the field: `/spec/warmPoolRef/name`.
    #[schemars(required)]
    pub(super) field: Text,
    /// CRD of the object named.
    #[schemars(required)]
    pub(super) to: Text,
}

/// One step: an id, the steps it needs, and exactly one table that says what it does.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields, extend("oneOf" = one_kind()))]
pub(super) struct Step {
    /// Its id, unique in the runbook: lower-case letters, digits and dashes.
    #[schemars(required, regex(pattern = "^[a-z0-9-]{1,63}$"))]
    pub(super) id: Text,
    /// Ids of the steps that come first.
    pub(super) needs: Texts,
    /// Gate: a workload is rolled out at a wanted image.
    pub(super) client: Option<Field<Table<Client>>>,
    /// Gate: nobody has written `from` for a while.
    pub(super) writers: Option<Field<Table<Writers>>>,
    /// Files that cover every live object, verified.
    pub(super) backup: Option<Field<Table<Backup>>>,
    /// Rewrite every stored record, prove it, prune `storedVersions`.
    pub(super) migrate: Option<Field<Table<Migrate>>>,
    /// Relabel the ownerReferences of children that name `from`.
    pub(super) owners: Option<Field<Table<Owners>>>,
    /// Give up field ownership that would make the deployer's apply of the target CRDs fail.
    pub(super) release: Option<Field<Table<Release>>>,
    /// The point of no return: the deployer applies the target CRDs.
    pub(super) merge: Option<Field<Table<Merge>>>,
    /// Gate: objects that somebody else removes are gone.
    pub(super) gone: Option<Field<Table<Gone>>>,
    /// Delete named or matching objects.
    pub(super) delete: Option<Field<Table<Delete>>>,
    /// Gate: a person says yes.
    pub(super) confirm: Option<Field<Table<Confirm>>>,
    /// Remove named annotations.
    pub(super) strip: Option<Field<Table<Strip>>>,
    /// Server-side apply of files.
    pub(super) manifests: Option<Field<Table<Manifests>>>,
}

/// Names of the tables that say what a step does.
pub const KINDS: [&str; 12] = [
    "client",
    "writers",
    "backup",
    "migrate",
    "owners",
    "release",
    "merge",
    "gone",
    "delete",
    "confirm",
    "strip",
    "manifests",
];

fn one_kind() -> Value {
    KINDS.iter().map(|kind| serde_json::json!({ "required": [kind] })).collect()
}

/// Gate: a workload is rolled out at the wanted image.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub(super) struct Client {
    /// `Deployment/name`, `StatefulSet/name` or `DaemonSet/name`.
    #[schemars(required)]
    pub(super) workload: Text,
    /// Its namespace.
    #[schemars(required)]
    pub(super) namespace: Text,
    /// Container to judge. Default: the only one.
    pub(super) container: Text,
    /// Wanted range of the image's tag: `>=0.15.0`.
    #[schemars(required)]
    pub(super) image: Text,
    /// Digests, `sha256:…`, that are accepted where a tag says nothing.
    pub(super) digests: Texts,
    /// What an environment variable must be where it is set at all.
    pub(super) env: Option<Field<BTreeMap<String, Field<String>>>>,
    /// Judge the running pods' images too. Default: false.
    pub(super) pods: Option<Field<bool>>,
    /// How long apply waits for it when it comes after a change. Default: 10m.
    pub(super) timeout: Text,
}

/// Gate: nobody has written `from` for a while.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub(super) struct Writers {
    /// Quiet for how long: `30m`.
    #[schemars(required)]
    pub(super) quiet_for: Text,
}

/// Files that cover every live object, verified.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub(super) struct Backup {
    /// Folder, relative to the working directory; `{run}` becomes the run's id.
    #[schemars(required)]
    pub(super) to: Text,
}

/// Rewrite, prove, prune.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub(super) struct Migrate {
    /// Annotation set to the time of the rewrite. Default: none.
    pub(super) stamp: Text,
    /// What happens to managedFields entries that name `from`. Default: `relabel`.
    #[schemars(extend("enum" = ["relabel", "drop", "keep"]))]
    pub(super) managed_fields: Text,
    /// Wait since the last change of the CRD's spec. Default: 60s.
    pub(super) settle: Text,
}

/// Children whose ownerReferences name `from`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub(super) struct Owners {
    /// Kinds to look at, as `Kind` or `Kind.group`. Default: every kind this user may list.
    #[schemars(length(min = 1))]
    pub(super) kinds: Texts,
}

/// Field ownership that would make the deployer's apply of the target CRDs fail.
#[derive(Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Release {}

/// The point of no return: the deployer applies the target CRDs.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub(super) struct Merge {
    /// Address of the pull request, shown to whoever approves.
    pub(super) pull_request: Text,
    /// Argo CD Application, `namespace/name`. Left out: the CRDs alone decide.
    pub(super) application: Text,
    /// Commit that Argo CD must have synced.
    pub(super) revision: Text,
    /// How long to watch before stopping. Default: 30m.
    pub(super) timeout: Text,
}

/// Gate: objects that somebody else removes are gone.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub(super) struct Gone {
    /// `Kind/name` or `Kind.group/name`.
    #[schemars(required, length(min = 1))]
    pub(super) objects: Texts,
    /// Their namespace; none for cluster-scoped objects.
    pub(super) namespace: Text,
    /// How long apply waits for it when it comes after a change. Default: 10m.
    pub(super) timeout: Text,
}

/// Delete named objects, or those of a resource that match a condition.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub(super) struct Delete {
    /// `Kind/name` or `Kind.group/name`. Never a `CustomResourceDefinition` or a `Namespace`.
    #[schemars(length(min = 1))]
    pub(super) objects: Texts,
    /// `plural.group` of the objects that match a condition.
    pub(super) resource: Text,
    /// The condition, in the objects' status.
    pub(super) condition: Option<Field<Table<Condition>>>,
    /// More matches than this are a blocker, not a bigger delete.
    pub(super) at_most: Option<Field<usize>>,
    /// Their namespace; none for cluster-scoped objects.
    pub(super) namespace: Text,
}

/// A condition in an object's status.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub(super) struct Condition {
    /// Its type: `Ready`.
    #[serde(rename = "type")]
    #[schemars(required)]
    pub(super) kind: Text,
    /// Its status, if it matters.
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    pub(super) status: Text,
    /// Its reason, if it matters.
    pub(super) reason: Text,
}

/// Gate: a person says yes.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub(super) struct Confirm {
    /// The question.
    #[schemars(required)]
    pub(super) question: Text,
}

/// Remove named annotations.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub(super) struct Strip {
    /// Annotation names; a trailing `*` stands for any ending.
    #[schemars(required, length(min = 1))]
    pub(super) annotations: Texts,
}

/// Server-side apply of files.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub(super) struct Manifests {
    /// Files or folders, relative to the runbook.
    #[schemars(required, length(min = 1))]
    pub(super) files: Texts,
    /// Take fields over from other managers. Default: false.
    pub(super) force: Option<Field<bool>>,
}

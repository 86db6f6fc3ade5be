//! Plans made by hand, so that what a view shows depends on nothing else.

use sbx::{
    object::ObjectRef,
    plan::{Change, ClusterFacts, FieldChange, Finding, Operation, Plan, PlannedStep, RunbookFacts, State, Undo},
    runbook::StepId,
};

/// An id, for a step or what resolves a finding.
pub(crate) fn id(text: &str) -> StepId {
    StepId(text.into())
}

/// An object by group, kind, namespace (empty for none) and name.
pub(crate) fn object(group: &str, kind: &str, namespace: &str, name: &str) -> ObjectRef {
    ObjectRef {
        group: group.into(),
        kind: kind.into(),
        namespace: (!namespace.is_empty()).then(|| namespace.into()),
        name: name.into(),
    }
}

/// A CRD by its name.
pub(crate) fn crd(name: &str) -> ObjectRef {
    object("apiextensions.k8s.io", "CustomResourceDefinition", "", name)
}

/// A change of one object.
pub(crate) fn change(operation: Operation, object: ObjectRef, fields: &[(&str, Option<&str>, Option<&str>)]) -> Change {
    let fields = fields.iter().map(|(path, before, after)| FieldChange::new(*path, *before, *after)).collect();
    Change { operation, object, fields }
}

/// A step that grows: number and needs follow from the plan it is put into.
pub(crate) struct Sample(PlannedStep);

pub(crate) fn gate(name: &str, state: State, summary: &str) -> Sample {
    let mut sample = step(name, "client", state, summary);
    sample.0.gate = true;
    sample
}

pub(crate) fn step(name: &str, kind: &'static str, state: State, summary: &str) -> Sample {
    Sample(PlannedStep {
        number: 0,
        id: id(name),
        kind,
        gate: false,
        needs: Vec::new(),
        state,
        summary: summary.into(),
        undo: Undo::NothingToUndo,
        point_of_no_return: None,
        details: Vec::new(),
        changes: Vec::new(),
        findings: Vec::new(),
    })
}

impl Sample {
    pub(crate) fn needs(mut self, numbers: &[usize]) -> Self {
        self.0.needs = numbers.to_vec();
        self
    }

    pub(crate) fn restored_by(mut self, step: usize) -> Self {
        self.0.undo = Undo::Restore(step);
        self
    }

    pub(crate) fn no_way_back(mut self, phrase: &str) -> Self {
        self.0.undo = Undo::NoWayBack;
        self.approved_by(phrase)
    }

    pub(crate) fn approved_by(mut self, phrase: &str) -> Self {
        self.0.point_of_no_return = Some(phrase.into());
        self
    }

    pub(crate) fn details(mut self, lines: &[&str]) -> Self {
        self.0.details.extend(lines.iter().map(|line| (*line).to_owned()));
        self
    }

    pub(crate) fn changes(mut self, changes: impl IntoIterator<Item = Change>) -> Self {
        self.0.changes.extend(changes);
        self
    }

    pub(crate) fn found(mut self, finding: Finding) -> Self {
        self.0.findings.push(finding);
        self
    }
}

/// A plan of the agent-sandbox upgrade with these steps, numbered in order.
pub(crate) fn plan(steps: Vec<Sample>) -> Plan {
    let sha256 = "4be9ee0ac8ac2d4ac4d9ea1ca31d2c8d5eb0dd0b3b54ba2d9ca7c0f9a4a2ca21";
    let uid = "7c1e7a54-5d8c-4a55-8f7e-4d2f3a0b90af";
    let numbered = |(index, Sample(step))| PlannedStep { number: index + 1, ..step };
    Plan {
        runbook: RunbookFacts {
            path: "runbooks/v1.0.0.toml".into(),
            sha256: sha256.into(),
            title: "agent-sandbox v1.0.0: drop v1alpha1".into(),
            from: "v1alpha1".into(),
            to: "v1beta1".into(),
        },
        cluster: ClusterFacts {
            context: "admin@pitower".into(),
            uid: Some(uid.into()),
            server_version: "v1.36.1".into(),
            user: Some("admin".into()),
        },
        at: "2026-12-01T14:02:11Z".parse().expect("a timestamp"),
        steps: steps.into_iter().enumerate().map(numbered).collect(),
        findings: Vec::new(),
        facts: vec![
            ("cluster uid".into(), uid.into()),
            ("runbook sha256".into(), sha256.into()),
            ("sandboxes.agents.x-k8s.io storedVersions".into(), "v1alpha1, v1beta1".into()),
        ],
    }
}

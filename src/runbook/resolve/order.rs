//! Rules about which step must come before which.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use super::{
    super::{Problem, StepId, Upgrade, load::Declared},
    keys::Placed,
};
use crate::suggest::nearest;

/// What the rules need to know of a step, be the rest of it right or wrong.
pub(super) struct Draft {
    pub(super) id: Option<Placed<String>>,
    pub(super) header: Range<usize>,
    pub(super) needs: Vec<Placed<String>>,
    pub(super) kinds: Vec<(&'static str, Range<usize>)>,
    pub(super) holds_upgraded_crd: bool,
}

impl Draft {
    fn is(&self, kind: &str) -> bool {
        self.kinds.iter().any(|(found, _)| *found == kind)
    }

    fn is_point_of_no_return(&self) -> bool {
        self.is("merge") || self.holds_upgraded_crd
    }

    fn name(&self) -> &str {
        self.id.as_ref().map_or("", |id| &id.value)
    }

    fn place(&self) -> Range<usize> {
        self.id.as_ref().map_or_else(|| self.header.clone(), |id| id.span.clone())
    }
}

/// Checks ids, needs, cycles and the order that keeps the cluster's data safe.
pub(super) fn check(
    drafts: &[Draft],
    upgrade: Option<&Upgrade>,
    cycles: impl Fn(&[Declared]) -> Vec<Vec<StepId>>,
    problems: &mut Vec<Problem>,
) {
    let mut order = Order { drafts, by_id: BTreeMap::new(), problems };
    order.ids();
    order.needs();
    order.cycles(cycles);
    order.once("backup");
    order.once("migrate");
    order.once("merge");
    order.before();
    order.deployer(upgrade);
}

struct Order<'a> {
    drafts: &'a [Draft],
    by_id: BTreeMap<&'a str, usize>,
    problems: &'a mut Vec<Problem>,
}

/// Whether a step needs another of some kind, over others too.
enum Reach {
    Yes,
    No,
    /// A need on the way names no step, so nobody can tell.
    Unclear,
}

impl Order<'_> {
    fn ids(&mut self) {
        for (index, draft) in self.drafts.iter().enumerate() {
            let Some(id) = &draft.id else { continue };
            match self.by_id.get(id.value.as_str()) {
                None => {
                    self.by_id.insert(&id.value, index);
                }
                Some(first) => {
                    let first = self.drafts[*first].place();
                    let problem = Problem::new(id.span.clone(), format!("two steps have the id `{}`", id.value));
                    self.problems.push(problem.label("second").also(first, "first"));
                }
            }
        }
    }

    fn needs(&mut self) {
        for draft in self.drafts {
            let mut seen = BTreeSet::new();
            for need in &draft.needs {
                if !self.by_id.contains_key(need.value.as_str()) {
                    let others = self.by_id.keys().copied().filter(|id| *id != draft.name());
                    let problem = Problem::absent(need.span.clone(), format!("no step has the id `{}`", need.value));
                    self.problems.push(problem.did_you_mean(nearest(&need.value, others)));
                } else if !seen.insert(&need.value) {
                    self.problems.push(Problem::new(need.span.clone(), format!("`{}` stands here twice", need.value)));
                }
            }
        }
    }

    fn cycles(&mut self, cycles: impl Fn(&[Declared]) -> Vec<Vec<StepId>>) {
        let declared: Vec<Declared> = self
            .by_id
            .values()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .map(|index| {
                let draft = &self.drafts[*index];
                let known = draft.needs.iter().filter(|need| self.by_id.contains_key(need.value.as_str()));
                (StepId(draft.name().into()), known.map(|need| StepId(need.value.clone())).collect())
            })
            .collect();
        for cycle in cycles(&declared) {
            let circle: Vec<&str> = cycle.iter().chain(cycle.first()).map(|id| id.0.as_str()).collect();
            // Every pair of neighbours is a need that stands somewhere in the text.
            let mut places = circle.windows(2).filter_map(|pair| {
                let draft = &self.drafts[*self.by_id.get(pair[0])?];
                draft.needs.iter().find(|need| need.value == pair[1]).map(|need| (need.span.clone(), pair))
            });
            let Some((span, _)) = places.next() else { continue };
            let mut problem = Problem::new(span, format!("steps need each other: {}", circle.join(" -> ")))
                .label(if circle.len() == 2 { "a step cannot need itself" } else { "the circle starts here" })
                .hint("take one of these needs away");
            for (span, pair) in places {
                problem = problem.also(span, format!("`{}` needs `{}`", pair[0], pair[1]));
            }
            self.problems.push(problem);
        }
    }

    /// A runbook has one `[upgrade]`, so it is backed up, migrated and merged once.
    fn once(&mut self, kind: &str) {
        let mut found = self.drafts.iter().filter(|draft| draft.is(kind));
        let Some(first) = found.next() else { return };
        for second in found {
            let problem = Problem::new(second.place(), format!("a second `{kind}` step in one runbook"));
            self.problems.push(problem.also(first.place(), "first"));
        }
    }

    /// What must come before what: nothing is written that is not backed up, nothing is dropped that
    /// is not proved, and what makes the drop work happens before it.
    fn before(&mut self) {
        for draft in self.drafts.iter().filter(|draft| draft.id.is_some() && draft.kinds.len() == 1) {
            for kind in ["migrate", "owners", "release", "delete", "strip"] {
                if draft.is(kind) {
                    self.must_reach(draft, "backup", "what it changes would be backed up by nobody");
                }
            }
            if draft.is_point_of_no_return() {
                self.must_reach(draft, "migrate", "nothing proves the stored records before the version is dropped");
                for kind_before in ["owners", "release"] {
                    if self.drafts.iter().any(|draft| draft.is(kind_before)) {
                        self.must_reach(draft, kind_before, "after the drop it is too late for it");
                    }
                }
            }
            if draft.is("strip") && self.drafts.iter().any(Draft::is_point_of_no_return) {
                self.must_reach(draft, "merge", "the conversion webhook would add the annotations again");
            }
        }
    }

    fn must_reach(&mut self, draft: &Draft, wanted: &str, otherwise: &str) {
        let fits = |other: &Draft| other.is(wanted) || (wanted == "merge" && other.is_point_of_no_return());
        if !matches!(self.reach(draft, fits), Reach::No) {
            return;
        }
        let name = draft.name();
        let problem =
            Problem::absent(draft.place(), format!("no `{wanted}` step comes before `{name}`")).label(otherwise);
        self.problems.push(match self.drafts.iter().find(|draft| fits(draft) && draft.id.is_some()) {
            Some(found) => problem.hint(format!("let `{name}` need `{}`, or a step that does", found.name())),
            None => problem.hint(format!("add a step with `[step.{wanted}]`, and let `{name}` need it")),
        });
    }

    fn reach(&self, from: &Draft, fits: impl Fn(&Draft) -> bool) -> Reach {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        let mut unclear = false;
        while let Some(draft) = open.pop() {
            for need in &draft.needs {
                match self.by_id.get(need.value.as_str()) {
                    None => unclear = true,
                    Some(index) if seen.insert(*index) => {
                        let next = &self.drafts[*index];
                        if fits(next) {
                            return Reach::Yes;
                        }
                        // What a step without a readable kind does is not known either.
                        unclear |= next.kinds.is_empty();
                        open.push(next);
                    }
                    Some(_) => {}
                }
            }
        }
        if unclear { Reach::Unclear } else { Reach::No }
    }

    fn deployer(&mut self, upgrade: Option<&Upgrade>) {
        if upgrade.is_none_or(|upgrade| upgrade.deployer.is_some()) {
            return;
        }
        let asks =
            self.drafts.iter().flat_map(|draft| &draft.kinds).find(|(kind, _)| ["release", "merge"].contains(kind));
        if let Some((kind, span)) = asks {
            let problem = Problem::absent(span.clone(), format!("`{kind}` asks for `deployer` in `[upgrade]`"));
            self.problems.push(problem.hint(
                "name the field manager of whoever applies the CRDs: `deployer = \"argocd-controller\"` for Argo CD",
            ));
        }
    }
}

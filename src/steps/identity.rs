//! Whether a CRD is still the one that was planned for. One that was deleted took every object with
//! it, and one of the same name says nothing about them (C06, C30).

use super::{Stop, Survey};
use crate::crd::Crd;

/// What to do before anything else.
const NEXT: &str = "stop whoever deletes it; the backup holds its objects, and nothing may go on before they are back";

/// Refuses a CRD that is on its way out, and one that is not the CRD of the plan or of the backup.
///
/// # Errors
/// Which of these it is.
pub(super) fn unchanged(crd: &Crd, planned: &Survey) -> Result<(), Stop> {
    match wrong(crd, planned) {
        Some(what) => Err(Stop::failed(format!("CRD {} {what}", crd.name())).hint(NEXT)),
        None => Ok(()),
    }
}

fn wrong(crd: &Crd, planned: &Survey) -> Option<&'static str> {
    if crd.object.deleting() {
        return Some("is being deleted, and every object with it");
    }
    let before = planned.installed().find(|before| before.name() == crd.name());
    if before.is_some_and(|before| before.object.uid() != crd.object.uid()) || differs_from_backup(crd, planned) {
        return Some("was deleted and created again; the backup holds its objects");
    }
    None
}

/// Whether the backup was taken of another CRD of that name.
pub(super) fn differs_from_backup(crd: &Crd, survey: &Survey) -> bool {
    survey.backed_up.get(crd.name()).is_some_and(|uid| uid != crd.object.uid())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        object::Object,
        steps::survey::{Records, Surveyed},
    };

    fn crd(uid: &str, deleting: bool) -> Crd {
        let mut metadata = json!({"name": "widgets.demo.test", "uid": uid});
        if deleting {
            metadata["deletionTimestamp"] = "2026-12-01T00:00:00Z".into();
        }
        Crd::of(Object(json!({"metadata": metadata})))
    }

    fn survey(planned: Option<&str>, backed_up: Option<&str>) -> Survey {
        let name = "widgets.demo.test".to_owned();
        let crd = Ok(planned.map(|uid| crd(uid, false)));
        Survey {
            backed_up: backed_up.map(|uid| (name.clone(), uid.to_owned())).into_iter().collect(),
            crds: vec![Surveyed { name, crd, records: Records::NotAsked, reads_at_from: None }],
        }
    }

    #[test]
    fn only_the_crd_of_the_plan_and_of_the_backup_passes() {
        let again = Some("was deleted and created again; the backup holds its objects");
        let going = Some("is being deleted, and every object with it");
        let table = [
            (crd("a", false), survey(Some("a"), Some("a")), None),
            (crd("a", false), survey(None, None), None),
            (crd("b", false), survey(Some("a"), None), again),
            (crd("b", false), survey(Some("b"), Some("a")), again),
            (crd("a", true), survey(Some("a"), Some("a")), going),
        ];
        for (crd, planned, wanted) in table {
            assert_eq!(wrong(&crd, &planned), wanted, "{} {:?}", crd.object.0, planned.backed_up);
        }
    }
}

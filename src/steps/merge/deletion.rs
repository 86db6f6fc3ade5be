//! Settings under which the deployer would delete a CRD instead of changing it, and every object with it. Pure.
//!
//! Argo CD reads `argocd.argoproj.io/sync-options` on a resource beside the Application's own options; Helm reads
//! `helm.sh/resource-policy`.

use super::Application;
use crate::{crd::Crd, plan::Finding};

/// Argo CD's options of one resource, separated by commas.
const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";
/// Together they delete what they should change, and create it again.
const RECREATES: [&str; 2] = ["Replace=true", "Force=true"];
/// What Helm does with a resource that its release holds no more.
const RESOURCE_POLICY: &str = "helm.sh/resource-policy";
/// The Helm release that a resource belongs to.
const HELM_RELEASE: &str = "meta.helm.sh/release-name";

/// What could delete one of these CRDs; the Application, where there is one, deploys all of them.
pub(super) fn findings<'a>(crds: impl IntoIterator<Item = &'a Crd>, application: Option<&Application>) -> Vec<Finding> {
    let app_has = |option: &str| application.is_some_and(|application| application.has(option));
    let recreated_by_app = RECREATES.iter().all(|wanted| app_has(wanted));
    let mut findings = Vec::new();
    let mut pruned = Vec::new();
    let mut total = 0;
    for crd in crds {
        total += 1;
        // Where the Application has both, it is said once for all CRDs below.
        let recreated = RECREATES.iter().all(|wanted| option(crd, wanted) || app_has(wanted));
        if recreated && !recreated_by_app {
            findings.push(
                Finding::blocker(
                    "syncs with Replace and Force: it would be deleted and created again without its objects",
                )
                .hint(format!("take both out of its annotation {SYNC_OPTIONS} before the merge"))
                .about(crd.object.reference()),
            );
        }
        if !option(crd, "Prune=false") {
            pruned.push(crd);
        }
        if let Some(release) = crd.object.annotation(HELM_RELEASE)
            && crd.object.annotation(RESOURCE_POLICY) != Some("keep")
        {
            findings.push(
                Finding::warning(format!(
                    "belongs to the Helm release {release}: a chart whose templates hold it no more, having moved it \
                     to crds/ or elsewhere, deletes it with all its objects"
                ))
                .hint(format!("kubectl annotate crd {} {RESOURCE_POLICY}=keep", crd.name()))
                .about(crd.object.reference()),
            );
        }
    }
    let Some(application) = application else { return findings };
    if recreated_by_app {
        findings.push(
            Finding::blocker(format!(
                "{} syncs with Replace and Force: it would delete the CRDs and create them again, and every object \
                 would be gone",
                application.name
            ))
            .hint("take both out of its syncOptions before the merge"),
        );
    }
    if application.automated.is_some_and(|(prune, _)| prune) && !pruned.is_empty() {
        let of = if pruned.len() == total {
            String::new()
        } else {
            format!(" ({})", pruned.iter().map(|crd| crd.name()).collect::<Vec<_>>().join(", "))
        };
        findings.push(
            Finding::warning(format!(
                "{} prunes by itself: a CRD missing from the merged manifests is deleted with all its objects{of}",
                application.name
            ))
            .hint("look in the pull request that all CRDs are still there"),
        );
    }
    findings
}

/// Whether Argo CD's options of a CRD hold one.
fn option(crd: &Crd, wanted: &str) -> bool {
    let options = crd.object.annotation(SYNC_OPTIONS).unwrap_or_default();
    options.split(',').any(|option| option.trim().eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{object::Object, plan::Grade};

    /// A CRD's annotations, the Application, and what is found.
    type Row = (Vec<(&'static str, &'static str)>, Option<Application>, &'static [Grade]);

    fn crd(annotations: &[(&str, &str)]) -> Crd {
        let annotations: serde_json::Value =
            annotations.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        Crd::of(Object(
            json!({"kind": "CustomResourceDefinition", "metadata": {"name": "w", "annotations": annotations}}),
        ))
    }

    fn application(options: &[&str], prunes: bool) -> Application {
        let sync = json!({"automated": {"prune": prunes}, "syncOptions": options});
        Application::of(&Object(json!({"metadata": {"namespace": "a", "name": "b"}, "spec": {"syncPolicy": sync}})))
    }

    #[test]
    fn what_could_delete_a_crd_is_told() {
        let options = |value| vec![(SYNC_OPTIONS, value)];
        let helm = || vec![(HELM_RELEASE, "r")];
        let kept = || vec![(HELM_RELEASE, "r"), (RESOURCE_POLICY, "keep")];
        let table: [Row; 12] = [
            (vec![], None, &[]),
            (options("Replace=true"), None, &[]),
            (options("ServerSideApply=true, Replace=true,Force=true"), None, &[Grade::Blocker]),
            (options("Force=true"), Some(application(&["Replace=true"], false)), &[Grade::Blocker]),
            (options("Replace=true"), Some(application(&["Force=true"], false)), &[Grade::Blocker]),
            (vec![], Some(application(&["Replace=true"], false)), &[]),
            (vec![], Some(application(&["Replace=true", "Force=true"], false)), &[Grade::Blocker]),
            (vec![], Some(application(&[], true)), &[Grade::Warning]),
            (options("Prune=false"), Some(application(&[], true)), &[]),
            (vec![], Some(application(&[], false)), &[]),
            (helm(), None, &[Grade::Warning]),
            (kept(), None, &[]),
        ];
        for (annotations, application, wanted) in table {
            let found = findings([&crd(&annotations)], application.as_ref());
            let grades: Vec<Grade> = found.iter().map(|finding| finding.grade).collect();
            assert_eq!(grades, wanted, "{annotations:?} {application:?}: {found:?}");
        }
    }

    #[test]
    fn a_prune_names_the_crds_it_could_take() {
        let (kept, taken) = (crd(&[(SYNC_OPTIONS, "Prune=false")]), crd(&[]));
        let found = findings([&kept, &taken], Some(&application(&[], true)));
        assert!(found[0].text.ends_with("all its objects (w)"), "{}", found[0].text);
    }
}

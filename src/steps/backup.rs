//! Files that cover every live object, verified, before anything is touched (design, invariant 3).
//!
//! A run reuses this cluster's newest verified backup and appends what it lacks. What is written:
//! every object at every served version, the CRDs with their managedFields, the ownerReferences
//! that `owners` will change, and whatever later steps delete.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use serde_json::json;

use super::{
    Decision, Look, Progress, Run, Seen as AnySeen, Stop, Survey, World,
    access::{on_crds, on_kinds},
    delete,
    survey::Records,
};
use crate::{
    backup::{self, DataFile, DataWriter, Found, Manifest},
    cluster::{Access, ClusterError, Content},
    crd::Crd,
    object::{Object, ObjectRef, Resource},
    plan::Finding,
    runbook::{Backup, Runbook, Step, StepId, Task},
};

/// The backups found where the runbook puts them.
#[derive(Clone, Debug)]
pub struct Seen {
    /// What the search came to, folders as seen from the working directory.
    pub found: Found,
}

/// Searches the working directory.
pub fn observe(task: &Backup, look: &Look<'_>) -> Seen {
    let mut found = find(task, look.cluster_uid, look.runbook, look.working_dir);
    let verified = found.verified.as_mut().map(|(folder, _)| folder);
    let broken = found.broken.as_mut().map(|(folder, _)| folder);
    for folder in verified.into_iter().chain(broken).chain(&mut found.unfinished).chain(&mut found.foreign) {
        *folder = shown(folder, look.working_dir).to_owned();
    }
    Seen { found }
}

fn shown<'a>(folder: &'a Path, working_dir: &Path) -> &'a Path {
    folder.strip_prefix(working_dir).unwrap_or(folder)
}

fn find(task: &Backup, cluster_uid: Option<&str>, runbook: &Runbook, working_dir: &Path) -> Found {
    backup::find(&task.to, working_dir, cluster_uid.unwrap_or_default(), &runbook.cluster.context)
}

/// Settled when a verified backup covers every live object and all that later steps change.
pub fn decide(task: &Backup, seen: &Seen, world: &World<'_>) -> Decision {
    let wanted = Wanted::of(&world.situation.survey, &world.situation.seen, world.runbook);
    let mut findings = Vec::new();
    for folder in &seen.found.unfinished {
        findings.push(Finding::note(format!("{} was never finished and is not used", folder.display())));
    }
    if let Some((folder, what)) = &seen.found.broken {
        let text = format!("backup {} is not as it was written: {what}", folder.display());
        findings.push(Finding::blocker(text).hint("put it back as it was, or move it away to have a new one taken"));
    }
    if let Some(folder) = &seen.found.foreign {
        findings.push(Finding::blocker(foreign(folder)).hint(FOREIGN_HINT));
    }
    let unread = unread(world);
    let total: usize = wanted.records.values().map(BTreeSet::len).sum();
    let kinds = wanted.records.values().filter(|uids| !uids.is_empty()).count();
    let to = task.to.replace("{run}", "<run>");
    let decision = match &seen.found.verified {
        Some((folder, manifest)) => match wanted.missing_from(manifest) {
            // What could not be looked at is not covered.
            0 if !unread.is_empty() => Decision::pending(format!("not known to be covered: {}", unread.join("; "))),
            0 => Decision::settled(format!("{total} objects covered by {}", folder.display())),
            missing => Decision::pending(format!("append {missing} objects to {}", folder.display())),
        },
        None if unread.is_empty() => Decision::pending(format!("{total} objects of {kinds} kinds -> {to}")),
        // A list that failed is no list of nothing.
        None if total == 0 => Decision::pending("what there is to keep could not be looked at"),
        None => {
            let more = unread.len();
            Decision::pending(format!(
                "{total} objects of {kinds} kinds, and {more} that could not be looked at -> {to}"
            ))
        }
    };
    let unread = unread.into_iter().map(|what| Finding::not_checked(format!("not known to be kept: {what}")));
    decision.with(findings).with(unread)
}

/// What must be covered and could not be looked at.
fn unread(world: &World<'_>) -> Vec<String> {
    let situation = world.situation;
    let records = situation.survey.crds.iter().filter_map(|surveyed| match (&surveyed.crd, &surveyed.records) {
        (Err(error), _) | (_, Records::Unreadable { error, .. }) => {
            Some(format!("{}: {}", surveyed.name, error.words()))
        }
        _ => None,
    });
    records.chain(unseen(&situation.seen)).collect()
}

/// What later steps change and could not be looked at. A kind that `owners` may not list is not in
/// it: no run will change what it cannot see.
fn unseen(seen: &BTreeMap<StepId, AnySeen>) -> Vec<String> {
    let of = |(id, seen): (&StepId, &AnySeen)| match seen {
        AnySeen::Owners(owners) => owners.blindness().iter().map(|why| format!("what {id} changes: {why}")).collect(),
        AnySeen::Delete(delete) => {
            delete.unreadable.iter().map(|words| format!("what {id} deletes: {words}")).collect()
        }
        _ => Vec::new(),
    };
    seen.iter().flat_map(of).collect()
}

fn foreign(folder: &Path) -> String {
    format!("{} holds the backup of another cluster", folder.display())
}

const FOREIGN_HINT: &str = "put `{run}` into the folder's name, or name another folder";

/// Reads everything it writes down.
pub fn rights(_task: &Backup, runbook: &Runbook) -> Vec<Access> {
    let mut rights = on_crds(runbook, "get", "");
    rights.extend(on_kinds(runbook, "list"));
    rights.extend(on_kinds(runbook, "get"));
    rights
}

/// uids of the CRDs that this cluster's newest backup was taken of, by name.
pub(super) fn crds_held(cluster_uid: Option<&str>, runbook: &Runbook, working_dir: &Path) -> BTreeMap<String, String> {
    let task = runbook.steps.iter().find_map(|step| match &step.task {
        Task::Backup(task) => Some(task),
        _ => None,
    });
    let uid = cluster_uid.unwrap_or_default();
    let newest = task.and_then(|task| backup::newest(&task.to, working_dir, uid, &runbook.cluster.context));
    newest.map(|manifest| manifest.crds).unwrap_or_default()
}

/// uids that a deleting step may take: those that matched when the backup was first taken.
///
/// None: there is no verified backup, or it was taken without that step.
pub fn delete_scope(step: &StepId, look: &Look<'_>) -> Option<BTreeSet<String>> {
    let task = look.runbook.steps.iter().find_map(|step| match &step.task {
        Task::Backup(task) => Some(task),
        _ => None,
    })?;
    let (_, manifest) = find(task, look.cluster_uid, look.runbook, look.working_dir).verified?;
    manifest.deletes.get(&step.0).cloned()
}

/// uids of a CRD's objects that this cluster's newest verified backup holds.
pub(super) fn covered(run: &Run<'_>, crd: &str) -> BTreeSet<String> {
    let task = run.runbook.steps.iter().find_map(|step| match &step.task {
        Task::Backup(task) => Some(task),
        _ => None,
    });
    let uid = run.situation.server.cluster_uid.as_deref();
    task.and_then(|task| find(task, uid, run.runbook, run.working_dir).verified)
        .and_then(|(_, mut manifest)| manifest.records.remove(crd))
        .unwrap_or_default()
}

/// Everything that must be covered, by uid.
struct Wanted<'a> {
    records: BTreeMap<String, BTreeSet<String>>,
    children: BTreeMap<String, &'a super::owners::Child>,
    deletes: BTreeMap<String, BTreeMap<String, (Resource, ObjectRef)>>,
}

impl<'a> Wanted<'a> {
    fn of(survey: &Survey, seen: &'a BTreeMap<StepId, AnySeen>, runbook: &Runbook) -> Self {
        let records = survey
            .crds
            .iter()
            .map(|surveyed| {
                let uids = surveyed.records.listed().iter().map(|record| record.uid.clone()).collect();
                (surveyed.name.clone(), uids)
            })
            .collect();
        let mut wanted = Self { records, children: BTreeMap::new(), deletes: BTreeMap::new() };
        for step in &runbook.steps {
            match seen.get(&step.id) {
                Some(AnySeen::Owners(owners)) => {
                    wanted.children.extend(owners.children.iter().map(|child| (child.uid.clone(), child)));
                }
                Some(AnySeen::Delete(delete)) => {
                    let targets = delete.targets.iter();
                    let targets =
                        targets.map(|target| (target.uid.clone(), (target.resource.clone(), target.object.clone())));
                    wanted.deletes.insert(step.id.0.clone(), targets.collect());
                }
                _ => {}
            }
        }
        wanted
    }

    fn missing_from(&self, manifest: &Manifest) -> usize {
        let empty = BTreeSet::new();
        let records: usize = self
            .records
            .iter()
            .map(|(crd, uids)| uids.difference(manifest.records.get(crd).unwrap_or(&empty)).count())
            .sum();
        let children = self.children.keys().filter(|uid| !manifest.children.contains(*uid)).count();
        // A condition that began to match later is not deleted, so it need not be covered.
        let steps = self.deletes.keys().filter(|step| !manifest.deletes.contains_key(*step)).count();
        records + children + steps
    }
}

/// Takes a backup, or appends to the newest one.
///
/// # Errors
/// Something cannot be read, a conversion loses an object, a file cannot be written, or the files
/// do not read back as written.
pub async fn run(task: &Backup, run: &Run<'_>) -> Result<(), Stop> {
    let situation = run.situation;
    let uid = situation.server.cluster_uid.as_deref();
    let found = find(task, uid, run.runbook, run.working_dir);
    if let Some((folder, what)) = found.broken {
        let folder = shown(&folder, run.working_dir).display();
        return Err(Stop::failed(format!("backup {folder} is not as it was written: {what}"))
            .hint("put it back as it was, or move it away to have a new one taken"));
    }
    if let Some(folder) = &found.foreign {
        return Err(Stop::failed(foreign(shown(folder, run.working_dir))).hint(FOREIGN_HINT));
    }
    // A failed look must not be kept as "nothing matched".
    let unseen = unseen(&situation.seen);
    if !unseen.is_empty() {
        return Err(Stop::failed(format!("backup: could not be looked at: {}", unseen.join("; ")))
            .hint("nothing was touched; mend what the server says, then run again"));
    }
    let (folder, mut manifest) = found.verified.unwrap_or_else(|| {
        let manifest = Manifest {
            schema: "sbx.backup/1".into(),
            cluster_uid: uid.unwrap_or_default().into(),
            context: run.runbook.cluster.context.clone(),
            run: run.run_id.into(),
            taken_at: situation.now,
            files: Vec::new(),
            records: BTreeMap::new(),
            children: BTreeSet::new(),
            deletes: BTreeMap::new(),
            crds: BTreeMap::new(),
        };
        (backup::folder(&task.to, run.run_id, run.working_dir), manifest)
    });
    backup::create_folder(&folder).map_err(|error| io_stop(&folder, &error))?;
    let mut files = Files::beside(&manifest, &folder);

    save_crds(&mut files, &mut manifest, run)?;
    for surveyed in &situation.survey.crds {
        let crd = match &surveyed.crd {
            Ok(Some(crd)) => crd,
            Ok(None) => continue,
            // A backup without its records would pass for one of a cluster that has none.
            Err(error) => {
                return Err(Stop::failed(format!("backup: CRD {} could not be read: {error}", surveyed.name))
                    .hint("nothing was touched; mend what the server says, then run again"));
            }
        };
        if run.interrupt.is_set() {
            return Err(Stop::Interrupted("the backup is not finished; nothing was touched".into()));
        }
        // A webhook that is gone is no reason to touch records without a copy: what reads is kept.
        // A server that is busy or says no is: then the list below fails, and the step with it.
        let unreadable =
            surveyed.reads_at_from.as_ref().is_some_and(|read| read.as_ref().is_err_and(ClusterError::is_conversion));
        let versions: Vec<&str> = crd
            .versions
            .iter()
            .filter(|version| version.served && !(unreadable && version.name == run.runbook.upgrade.from))
            .map(|version| version.name.as_str())
            .collect();
        if unreadable {
            let text = format!(
                "{} cannot be read at {}: kept at {}",
                crd.plural,
                run.runbook.upgrade.from,
                versions.join(", ")
            );
            (run.report)(Progress::Said(text));
        }
        save_records(&mut files, &mut manifest, crd, &versions, run).await?;
    }
    let wanted = Wanted::of(&situation.survey, &situation.seen, run.runbook);
    save_children(&mut files, &mut manifest, &wanted)?;
    save_deletes(&mut files, &mut manifest, &wanted, run).await?;

    manifest.files.append(&mut files.written);
    let shown = shown(&folder, run.working_dir).display();
    backup::seal(&folder, &manifest).map_err(|what| Stop::failed(format!("backup {shown}: {what}")))?;
    let objects: usize = manifest.files.iter().map(|file| file.objects).sum();
    (run.report)(Progress::Said(format!(
        "backup {shown} verified: {objects} objects in {} files",
        manifest.files.len()
    )));
    Ok(())
}

fn io_stop(path: &Path, error: &std::io::Error) -> Stop {
    Stop::failed(format!("backup {}: {error}", path.display())).hint("make room or fix the permissions, then run again")
}

/// The files of one run; each is finished before the next one starts.
struct Files {
    folder: PathBuf,
    /// Keeps what is appended apart from what is there.
    suffix: String,
    written: Vec<DataFile>,
}

impl Files {
    /// What is appended keeps apart from what is there.
    fn beside(manifest: &Manifest, folder: &Path) -> Self {
        let number = |file: &DataFile| file.name.strip_suffix(".json")?.rsplit('.').next()?.parse::<usize>().ok();
        let last = manifest.files.iter().filter_map(number).max().unwrap_or(1);
        let suffix = if manifest.files.is_empty() { String::new() } else { format!(".{}", last + 1) };
        Self { folder: folder.into(), suffix, written: Vec::new() }
    }

    fn start(&self, name: &str) -> Result<DataWriter, Stop> {
        DataWriter::start(&self.folder, &format!("{name}{}.json", self.suffix))
            .map_err(|error| io_stop(&self.folder, &error))
    }

    fn add(&self, file: &mut DataWriter, object: &Object) -> Result<(), Stop> {
        file.add(object).map_err(|error| io_stop(&self.folder, &error))
    }

    fn finish(&mut self, file: DataWriter) -> Result<(), Stop> {
        let done = file.finish().map_err(|error| io_stop(&self.folder, &error))?;
        // An appended file with nothing in it says nothing.
        if done.objects > 0 || self.suffix.is_empty() {
            self.written.push(done);
        } else {
            std::fs::remove_file(self.folder.join(&done.name)).map_err(|error| io_stop(&self.folder, &error))?;
        }
        Ok(())
    }
}

fn save_crds(files: &mut Files, manifest: &mut Manifest, run: &Run<'_>) -> Result<(), Stop> {
    let mut file = files.start("crds")?;
    for crd in run.situation.survey.installed() {
        files.add(&mut file, &crd.object)?;
        // The first one counts: a CRD that was created again must not pass for it.
        manifest.crds.entry(crd.name().into()).or_insert_with(|| crd.object.uid().into());
    }
    files.finish(file)
}

/// Every object of a CRD at each of these versions, those aside that the manifest covers.
async fn save_records(
    files: &mut Files,
    manifest: &mut Manifest,
    crd: &Crd,
    versions: &[&str],
    run: &Run<'_>,
) -> Result<(), Stop> {
    let name = crd.name().to_owned();
    let covered = manifest.records.get(&name).cloned().unwrap_or_default();
    let mut at_version: Vec<(String, BTreeMap<String, ObjectRef>)> = Vec::new();
    for &version in versions {
        let resource = crd.resource(version);
        let mut file = files.start(&format!("{name}.{version}"))?;
        let mut uids = BTreeMap::new();
        let mut pages = run.writer.reader().pages(&resource, None, Content::Full);
        while let Some(page) = pages.next().await.map_err(|error| Stop::failed(format!("backup: {error}")))? {
            for object in page {
                // An expired list token can bring an object twice.
                if covered.contains(object.uid()) || uids.insert(object.uid().to_owned(), object.reference()).is_some()
                {
                    continue;
                }
                files.add(&mut file, &object)?;
            }
        }
        files.finish(file)?;
        at_version.push((version.to_owned(), uids));
    }
    reject_lost(&at_version, crd, run).await?;
    // Covered is what every version holds; an object born in between is appended by the next look.
    let mut common: Option<BTreeSet<String>> = None;
    for (_, uids) in at_version {
        let uids: BTreeSet<String> = uids.into_keys().collect();
        common = Some(common.map_or_else(|| uids.clone(), |common| &common & &uids));
    }
    manifest.records.entry(name.clone()).or_default().extend(common.unwrap_or_default());
    let held = manifest.records.get(&name).map_or(0, BTreeSet::len);
    (run.report)(Progress::Said(format!("{name}: {held} objects")));
    Ok(())
}

/// A conversion that returns fewer objects, or other uids, must not pass for a backup.
async fn reject_lost(
    at_version: &[(String, BTreeMap<String, ObjectRef>)],
    crd: &Crd,
    run: &Run<'_>,
) -> Result<(), Stop> {
    let mut lost = Vec::new();
    for (version, uids) in at_version {
        for (other, others) in at_version.iter().filter(|(other, _)| other != version) {
            for (uid, object) in uids.iter().filter(|(uid, _)| !others.contains_key(*uid)) {
                let resource = crd.resource(version);
                let reader = run.writer.reader();
                // Born or deleted between the two lists is fine.
                let still = reader.get_metadata(&resource, object.namespace.as_deref(), &object.name).await;
                let there = reader
                    .get_metadata(&crd.resource(other), object.namespace.as_deref(), &object.name)
                    .await
                    .ok()
                    .flatten()
                    .is_some_and(|there| there.uid() == uid);
                if !there && still.is_ok_and(|still| still.is_some_and(|still| still.uid() == uid)) {
                    lost.push((Some(object.clone()), format!("is there at {version} but not at {other}")));
                }
            }
        }
    }
    if lost.is_empty() {
        return Ok(());
    }
    Err(Stop::Failed {
        text: format!("the conversion of {} loses {} objects; nothing was touched", crd.name(), lost.len()),
        failures: lost,
        hint: Some("mend the conversion webhook, then run again".into()),
    })
}

fn save_children(files: &mut Files, manifest: &mut Manifest, wanted: &Wanted<'_>) -> Result<(), Stop> {
    let mut file = files.start("children")?;
    for (uid, child) in wanted.children.iter().filter(|(uid, _)| !manifest.children.contains(*uid)) {
        let object = json!({
            "apiVersion": child.resource.api_version(), "kind": child.resource.kind,
            "metadata": {
                "namespace": child.object.namespace, "name": child.object.name, "uid": uid,
                "ownerReferences": child.owner_references,
            },
        });
        files.add(&mut file, &Object(object))?;
    }
    manifest.children.extend(wanted.children.keys().cloned());
    files.finish(file)
}

async fn save_deletes(
    files: &mut Files,
    manifest: &mut Manifest,
    wanted: &Wanted<'_>,
    run: &Run<'_>,
) -> Result<(), Stop> {
    let mut file = files.start("deletes")?;
    for (step, targets) in &wanted.deletes {
        if manifest.deletes.contains_key(step) {
            continue;
        }
        let mut uids = BTreeSet::new();
        for (uid, (resource, target)) in targets {
            let object = run
                .writer
                .reader()
                .get(resource, target.namespace.as_deref(), &target.name)
                .await
                .map_err(|error| Stop::failed(format!("backup: {error}")))?;
            if let Some(object) = object.filter(|object| object.uid() == uid) {
                files.add(&mut file, &object)?;
                uids.insert(uid.clone());
            }
        }
        manifest.deletes.insert(step.clone(), uids);
    }
    files.finish(file)
}

/// Appends what a step is about to delete, where the backup lacks it.
///
/// # Errors
/// There is no verified backup, or it cannot be appended to.
pub(super) async fn cover(step: &Step, due: &[&delete::Target], run: &Run<'_>) -> Result<(), Stop> {
    let Some(task) = run.runbook.steps.iter().find_map(|step| match &step.task {
        Task::Backup(task) => Some(task),
        _ => None,
    }) else {
        return Ok(());
    };
    let uid = run.situation.server.cluster_uid.as_deref();
    let Some((folder, mut manifest)) = find(task, uid, run.runbook, run.working_dir).verified else {
        return Err(Stop::failed(format!("no verified backup holds what {} deletes", step.id))
            .hint("nothing was deleted; run the backup step first"));
    };
    let held = manifest.deletes.remove(&step.id.0).unwrap_or_default();
    let lacking = due.iter().filter(|target| !held.contains(&target.uid));
    let lacking: BTreeMap<_, _> =
        lacking.map(|target| (target.uid.clone(), (target.resource.clone(), target.object.clone()))).collect();
    if lacking.is_empty() {
        return Ok(());
    }
    let wanted =
        Wanted { records: BTreeMap::new(), children: BTreeMap::new(), deletes: [(step.id.0.clone(), lacking)].into() };
    let mut files = Files::beside(&manifest, &folder);
    save_deletes(&mut files, &mut manifest, &wanted, run).await?;
    manifest.deletes.entry(step.id.0.clone()).or_default().extend(held);
    manifest.files.append(&mut files.written);
    let shown = shown(&folder, run.working_dir).display();
    backup::seal(&folder, &manifest).map_err(|what| Stop::failed(format!("backup {shown}: {what}")))
}

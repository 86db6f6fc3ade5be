//! Which upgrades there are: CRDs that go from one version to another and come from one deployer.

use std::collections::BTreeMap;

use super::deployer::{Applications, Deployer, deployer};
use crate::{
    cluster::{ClusterError, Content, Reader},
    crd::{Crd, crd_resource},
    suggest,
};

/// A CRD can be large; so many come at once.
const CRDS_A_PAGE: u32 = 50;

/// CRDs that are upgraded together.
#[derive(Clone, Debug)]
pub struct Upgrade {
    /// Version that goes.
    pub from: String,
    /// Version that stays.
    pub to: String,
    /// Who applies them.
    pub deployer: Option<Deployer>,
    /// The CRDs, by name.
    pub crds: Vec<Crd>,
    /// What could not be looked at, in the server's words.
    pub unread: Vec<String>,
}

/// What a search came to.
#[derive(Debug)]
pub enum Found {
    /// No CRD lists more than its storage version; how many were looked at.
    Nothing(usize),
    /// One upgrade.
    One(Box<Upgrade>),
    /// Several: somebody has to choose.
    Several(Vec<Upgrade>),
    /// A CRD that was named cannot be upgraded: which, why, and the name that may have been meant.
    Cannot(String, String, Option<String>),
}

/// Looks for upgrades among all CRDs, or among those named, which then make one.
///
/// # Errors
/// The server does not answer, or the CRDs may not be listed.
pub async fn upgrades(reader: &Reader, named: &[String]) -> Result<Found, ClusterError> {
    if named.is_empty() { all(reader).await } else { these(reader, named).await }
}

async fn all(reader: &Reader) -> Result<Found, ClusterError> {
    let (mut looked_at, mut due) = (0, Vec::new());
    let mut pages = reader.pages(&crd_resource(), None, Content::Full).at_most(CRDS_A_PAGE);
    while let Some(page) = pages.next().await? {
        looked_at += page.len();
        due.extend(page.into_iter().map(Crd::of).filter_map(|crd| Some((stale(&crd)?, crd))));
    }
    let mut groups: BTreeMap<(String, String, Option<Deployer>), Vec<Crd>> = BTreeMap::new();
    let applications = if due.is_empty() { Applications::default() } else { Applications::read(reader).await };
    for ((from, to), crd) in due {
        let deployer = deployer(&crd, &applications);
        groups.entry((from, to, deployer)).or_default().push(crd);
    }
    let upgrade = |((from, to, deployer), crds)| Upgrade {
        from,
        to,
        deployer,
        crds: sorted(crds),
        unread: applications.unread.clone(),
    };
    let mut found: Vec<Upgrade> = groups.into_iter().map(upgrade).collect();
    Ok(match found.len() {
        0 => Found::Nothing(looked_at),
        1 => Found::One(Box::new(found.remove(0))),
        _ => Found::Several(found),
    })
}

async fn these(reader: &Reader, named: &[String]) -> Result<Found, ClusterError> {
    let mut crds: Vec<Crd> = Vec::new();
    for name in named {
        match reader.get(&crd_resource(), None, name).await? {
            Some(crd) if crds.iter().all(|known| known.name() != name) => crds.push(Crd::of(crd)),
            Some(_) => {}
            None => {
                let known = names(reader).await?;
                let near = suggest::nearest(name, known.iter().map(String::as_str)).map(ToOwned::to_owned);
                return Ok(Found::Cannot(name.clone(), "there is no such CRD".into(), near));
            }
        }
    }
    let applications = Applications::read(reader).await;
    let mut groups: BTreeMap<(String, String), Vec<Crd>> = BTreeMap::new();
    for crd in crds {
        let Some(versions) = stale(&crd).or_else(|| served_beside(&crd)) else {
            let why = format!("it has no version beside {}", crd.storage_version().unwrap_or_default());
            return Ok(Found::Cannot(crd.name().into(), why, None));
        };
        groups.entry(versions).or_default().push(crd);
    }
    let upgrade = |((from, to), crds): ((String, String), Vec<Crd>)| {
        let mut deployers: Vec<Option<Deployer>> = crds.iter().map(|crd| deployer(crd, &applications)).collect();
        deployers.dedup();
        let mut unread = applications.unread.clone();
        if deployers.len() > 1 {
            let names: Vec<&str> = deployers.iter().flatten().map(|deployer| deployer.manager.as_str()).collect();
            unread.push(format!("the CRDs have several deployers ({}); a runbook names one", names.join(", ")));
        }
        Upgrade { from, to, deployer: deployers.swap_remove(0), crds: sorted(crds), unread }
    };
    let mut found: Vec<Upgrade> = groups.into_iter().map(upgrade).collect();
    Ok(if found.len() == 1 { Found::One(Box::new(found.remove(0))) } else { Found::Several(found) })
}

async fn names(reader: &Reader) -> Result<Vec<String>, ClusterError> {
    let mut found = Vec::new();
    let mut pages = reader.pages(&crd_resource(), None, Content::Metadata);
    while let Some(page) = pages.next().await? {
        found.extend(page.iter().map(|crd| crd.name().to_owned()));
    }
    Ok(found)
}

fn sorted(mut crds: Vec<Crd>) -> Vec<Crd> {
    crds.sort_by(|one, other| one.name().cmp(other.name()));
    crds
}

/// The first version that `storedVersions` lists beside the storage version, and the latter.
fn stale(crd: &Crd) -> Option<(String, String)> {
    let storage = crd.storage_version()?;
    let old = crd.stored_versions.iter().find(|version| *version != storage)?;
    Some((old.clone(), storage.to_owned()))
}

/// The first version that is declared beside the storage version, and the latter.
fn served_beside(crd: &Crd) -> Option<(String, String)> {
    let storage = crd.storage_version()?;
    let old = crd.versions.iter().find(|version| version.name != storage)?;
    Some((old.name.clone(), storage.to_owned()))
}

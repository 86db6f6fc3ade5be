//! The records of a CRD, each at every served version: lists of all versions side by side, a page
//! of each in memory.
//!
//! The server lists by key, whatever the version, so the lists run in step. Where they do not (a
//! record was made in between, or one that cannot be converted fails a list), the record is asked
//! for by name. A list can also be answered from a cache that was filled while the conversion still
//! worked: the first record is asked for by name, and where that fails, all are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::format::{Record, Refusal};
use crate::{
    cluster::{ClusterError, Content, Pages, Reader},
    crd::Crd,
    object::{Object, Resource},
};

/// Objects a page has: a record can be large, and a page of each version is held.
const PAGE: u32 = 100;
/// Requests by name that may fail, for each version: a webhook that is gone fails them all.
const FAILURES: usize = 200;

/// The records of one CRD, one after the other.
pub(super) struct Pairs<'a> {
    reader: &'a Reader,
    crd: &'a Crd,
    columns: Vec<Column<'a>>,
    /// uids that came already.
    seen: BTreeSet<String>,
}

/// The list at one version.
struct Column<'a> {
    version: String,
    resource: Resource,
    pages: Pages<'a>,
    page: VecDeque<Object>,
    ended: bool,
    /// Why its list stopped.
    failed: Option<ClusterError>,
    /// Requests by name that failed.
    failures: usize,
    /// Why the first record could not be read by name although it was listed.
    suspect: Option<Refusal>,
}

impl<'a> Pairs<'a> {
    /// Of every version that is served; `first` leads where it can be listed.
    pub(super) fn new(reader: &'a Reader, crd: &'a Crd, first: &str) -> Self {
        let mut served: Vec<&str> =
            crd.versions.iter().filter(|version| version.served).map(|version| version.name.as_str()).collect();
        served.sort_by_key(|version| *version != first);
        let column = |version: &str| {
            let resource = crd.resource(version);
            Column {
                version: version.into(),
                pages: reader.pages(&resource, None, Content::Full).at_most(PAGE),
                resource,
                page: VecDeque::new(),
                ended: false,
                failed: None,
                failures: 0,
                suspect: None,
            }
        };
        let columns = served.into_iter().map(column).collect();
        Self { reader, crd, columns, seen: BTreeSet::new() }
    }

    /// The next record; none at the end.
    ///
    /// # Errors
    /// The server does not answer at all.
    pub(super) async fn next(&mut self) -> Result<Option<Record>, ClusterError> {
        while let Some((lead, object)) = self.lead().await? {
            if !self.seen.insert(object.uid().to_owned()) {
                continue;
            }
            let mut record = Record { crd: self.crd.name().into(), at: BTreeMap::new(), unreadable: BTreeMap::new() };
            for index in 0..self.columns.len() {
                if index != lead {
                    self.beside(index, &object, &mut record).await?;
                }
            }
            for index in 0..self.columns.len() {
                self.probe(index, &object, &mut record).await?;
            }
            record.at.insert(self.columns[lead].version.clone(), object);
            return Ok(Some(record));
        }
        Ok(None)
    }

    /// Asks for a record that was listed by name: the first one, and all when that cannot be read.
    async fn probe(&mut self, index: usize, object: &Object, record: &mut Record) -> Result<(), ClusterError> {
        let is_first = self.seen.len() == 1;
        let column = &mut self.columns[index];
        if column.failed.is_some() || !(is_first || column.suspect.is_some()) {
            return Ok(());
        }
        if let Some(refusal) = column.suspect.as_ref().filter(|_| column.failures >= FAILURES) {
            record.unreadable.insert(column.version.clone(), refusal.clone());
            return Ok(());
        }
        match self.reader.get_metadata(&column.resource, object.namespace(), object.name()).await {
            Ok(_) => {}
            Err(error) => {
                let Some(status) = error.status() else { return Err(error) };
                let refusal = Refusal::from(status);
                if error.is_conversion() {
                    column.suspect = Some(refusal.clone());
                }
                column.failures += 1;
                record.unreadable.insert(column.version.clone(), refusal);
            }
        }
        Ok(())
    }

    /// Versions whose list failed, and the server's answer.
    pub(super) fn failed(&self) -> impl Iterator<Item = (&Resource, &ClusterError)> {
        self.columns.iter().filter_map(|column| Some((&column.resource, column.failed.as_ref()?)))
    }

    /// The next object of the first list that goes on.
    async fn lead(&mut self) -> Result<Option<(usize, Object)>, ClusterError> {
        for (index, column) in self.columns.iter_mut().enumerate() {
            if column.fill().await? {
                return Ok(column.page.pop_front().map(|object| (index, object)));
            }
            // A list that came to its end has led through all there is.
            if column.failed.is_none() {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// The same record at another version.
    async fn beside(&mut self, index: usize, lead: &Object, record: &mut Record) -> Result<(), ClusterError> {
        let column = &mut self.columns[index];
        while column.fill().await? {
            let Some(head) = column.page.front() else { break };
            if head.uid() == lead.uid() {
                record.at.extend(column.page.pop_front().map(|object| (column.version.clone(), object)));
                return Ok(());
            }
            // What comes before the lead is not in the lead's list: made or deleted in between.
            if key(head) >= key(lead) {
                break;
            }
            column.page.pop_front();
        }
        let version = column.version.clone();
        if let Some(error) = column.failed.as_ref().filter(|error| error.is_forbidden() || column.failures >= FAILURES)
        {
            record.unreadable.extend(error.status().map(|status| (version, Refusal::from(status))));
            return Ok(());
        }
        match self.reader.get(&column.resource, lead.namespace(), lead.name()).await {
            Ok(Some(object)) if object.uid() == lead.uid() => {
                record.at.insert(version, object);
            }
            // Deleted, and perhaps made anew, in between.
            Ok(_) => {}
            Err(error) => {
                let Some(status) = error.status() else { return Err(error) };
                record.unreadable.insert(version, Refusal::from(status));
                column.failures += 1;
            }
        }
        Ok(())
    }
}

impl Column<'_> {
    /// Reads on until an object is there; false at the end, and where the list failed.
    async fn fill(&mut self) -> Result<bool, ClusterError> {
        while self.page.is_empty() && !self.ended {
            match self.pages.next().await {
                Ok(Some(page)) => self.page.extend(page),
                Ok(None) => self.ended = true,
                Err(error) if error.status().is_none() => return Err(error),
                Err(error) => {
                    self.failed = Some(error);
                    self.ended = true;
                }
            }
        }
        Ok(!self.page.is_empty())
    }
}

/// By what the server orders a list.
fn key(object: &Object) -> String {
    object.namespace().map_or_else(|| object.name().to_owned(), |namespace| format!("{namespace}/{}", object.name()))
}

//! What the API servers count of writes at the old version, compared over a run.

use std::collections::BTreeMap;

use crate::steps::writers::Seen;

/// The first count of each server process that answered, by when it started. Each counts for itself,
/// and anew after a restart.
#[derive(Debug, Default)]
pub(super) struct Counted(BTreeMap<String, u64>);

impl Counted {
    /// Writes since the same process was first asked; none where nothing can be compared.
    pub(super) fn since_first(&mut self, seen: &Seen) -> Option<u64> {
        let now = seen.mutations?;
        let first = *self.0.entry(seen.process.clone().unwrap_or_default()).or_insert(now);
        Some(now.saturating_sub(first)).filter(|writes| *writes > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(process: &str, mutations: Option<u64>) -> Seen {
        Seen { mutations, process: Some(process.into()), counts: Vec::new(), unread: None }
    }

    #[test]
    fn counts_of_one_server_are_compared_and_of_two_are_not() {
        let mut counted = Counted::default();
        for (process, mutations, wanted) in [
            ("1", Some(5), None),
            ("1", Some(5), None),
            // Another server behind the same address, and one that started again.
            ("2", Some(900), None),
            ("1", None, None),
            ("3", Some(0), None),
            ("3", Some(2), Some(2)),
            ("2", Some(901), Some(1)),
            ("1", Some(5), None),
        ] {
            assert_eq!(counted.since_first(&seen(process, mutations)), wanted, "{process} {mutations:?}");
        }
    }
}

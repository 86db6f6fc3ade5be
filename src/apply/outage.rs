//! An API server that does not answer between two steps: waited for, within a bound.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::{
    clock::Clock,
    cluster::ClusterError,
    steps::{Interrupt, Situation, survey::Records},
};

/// What should heal is waited for so long.
const HOLD: SignedDuration = SignedDuration::from_secs(120);
/// A watch cache that starts at all has started by then.
const HOLD_INITIALIZING: SignedDuration = SignedDuration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// One outage, from its first error on.
pub(super) struct Outage {
    since: Option<Timestamp>,
    pause: Duration,
}

impl Default for Outage {
    fn default() -> Self {
        Self { since: None, pause: FIRST_PAUSE }
    }
}

impl Outage {
    /// Waits before another look; `say` is called when an outage begins. False: no more looks, because
    /// it will not heal, the bound is reached or somebody asked to stop.
    pub(super) async fn wait(
        &mut self,
        error: &ClusterError,
        clock: &Clock,
        interrupt: &Interrupt,
        say: impl FnOnce(String),
    ) -> bool {
        let now = clock.now();
        let bound = if error.is_initializing() { HOLD_INITIALIZING } else { HOLD };
        let since = *self.since.get_or_insert_with(|| {
            say(format!("{error}; trying again for up to {} s", bound.as_secs()));
            now
        });
        let wait = self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        let longer = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
        if interrupt.is_set() || now.duration_since(since).saturating_add(longer) > bound {
            return false;
        }
        tokio::select! {
            () = clock.sleep(wait) => true,
            () = interrupt.asked() => false,
        }
    }
}

/// Why a look says less than it could, where another one may say more.
pub(super) fn cut_short(seen: &Result<Situation, ClusterError>) -> Option<ClusterError> {
    let error = match seen {
        Err(error) => Some(error),
        Ok(situation) => situation.survey.crds.iter().find_map(|surveyed| match (&surveyed.crd, &surveyed.records) {
            (Err(error), _) | (Ok(_), Records::Unreadable { error, .. }) => Some(error),
            _ => None,
        }),
    };
    error.filter(|error| error.may_heal()).cloned()
}

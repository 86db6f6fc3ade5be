//! How hard the API server is pressed, and how long an outage is sat out.
//!
//! One [`Pace`] a run of a step, shared by every write in flight: a server that says it is busy
//! gets fewer writes at once, and an outage is held for 120 s together rather than by each object
//! in turn.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;

use super::{Progress, Run};
use crate::cluster::ClusterError;

/// Writes in flight at most.
pub const WIDTH: usize = 8;
/// Good answers in a row after which one more write may be in flight.
const STREAK: usize = 50;
/// What should heal is held for so long.
const HOLD: SignedDuration = SignedDuration::from_secs(120);
/// A watch cache that starts at all has started by then (design, fact 3).
const HOLD_INITIALIZING: SignedDuration = SignedDuration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The pace of one run of a step.
#[derive(Debug)]
pub struct Pace {
    state: Mutex<State>,
    room: Notify,
}

#[derive(Debug)]
struct State {
    width: usize,
    in_flight: usize,
    streak: usize,
    failing_since: Option<Timestamp>,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            state: Mutex::new(State { width: WIDTH, in_flight: 0, streak: 0, failing_since: None }),
            room: Notify::new(),
        }
    }
}

/// The right to have one request in flight.
pub struct Turn<'a>(&'a Pace);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state().in_flight -= 1;
        self.0.room.notify_one();
    }
}

impl Pace {
    fn state(&self) -> MutexGuard<'_, State> {
        // Counters are whole whatever their last writer did.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until one more request may be in flight.
    pub async fn turn(&self) -> Turn<'_> {
        loop {
            {
                let mut state = self.state();
                if state.in_flight < state.width {
                    state.in_flight += 1;
                    return Turn(self);
                }
            }
            self.room.notified().await;
        }
    }

    /// The server answered: an outage is over, and after a while there is room for more.
    pub fn went_well(&self) {
        let mut state = self.state();
        state.failing_since = None;
        state.streak += 1;
        if state.streak >= STREAK && state.width < WIDTH {
            state.streak = 0;
            state.width += 1;
            drop(state);
            self.room.notify_one();
        }
    }

    /// The server is busy: half as many at once.
    fn slow_down(&self) {
        let mut state = self.state();
        state.streak = 0;
        state.width = (state.width / 2).max(1);
    }

    /// Since when nothing has gone well, and whether that begins now.
    fn failing(&self, now: Timestamp) -> (Timestamp, bool) {
        let mut state = self.state();
        let begins = state.failing_since.is_none();
        (*state.failing_since.get_or_insert(now), begins)
    }

    /// Writes that may be in flight now.
    pub fn width(&self) -> usize {
        self.state().width
    }
}

/// The patience for one object.
pub struct Hold {
    since: Option<Timestamp>,
    pause: Duration,
}

impl Default for Hold {
    fn default() -> Self {
        Self { since: None, pause: FIRST_PAUSE }
    }
}

impl Hold {
    /// Waits before another try, as long as the server asks or a growing pause. False: no more
    /// tries, because the bound is reached or somebody asked to stop.
    pub async fn wait(&mut self, error: &ClusterError, run: &Run<'_>) -> bool {
        let clock = run.writer.reader().clock();
        let now = clock.now();
        if error.is_busy() {
            run.pace.slow_down();
        }
        let (outage, begins) = run.pace.failing(now);
        let since = (*self.since.get_or_insert(now)).min(outage);
        let bound = if error.is_initializing() { HOLD_INITIALIZING } else { HOLD };
        let asked = error.status().and_then(|status| status.retry_after).map(Duration::from_secs);
        let wait = asked.unwrap_or(self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        let waited = now.duration_since(since);
        let longer = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
        if run.interrupt.is_set() || waited.saturating_add(longer) > bound {
            return false;
        }
        if begins {
            let until = since.checked_add(bound).unwrap_or(since);
            (run.report)(Progress::Waiting { what: format!("the API server: {}", error.words()), until });
        }
        tokio::select! {
            () = clock.sleep(wait) => true,
            () = run.interrupt.asked() => false,
        }
    }

    /// The server's words, with what they mean where they mislead.
    pub fn words(error: &ClusterError) -> String {
        let words = error.words();
        if error.is_initializing() {
            format!(
                "{words} (for more than {} s: the server's cache of this kind cannot start, as with a record stored \
                 at a version that the CRD no longer declares)",
                HOLD_INITIALIZING.as_secs()
            )
        } else if error.is_conversion() {
            format!("its conversion failed, which says nothing about the record: {words}")
        } else {
            words
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_busy_server_gets_fewer_writes_and_more_again_when_it_answers() {
        let pace = Pace::default();
        let turns = [pace.turn().await, pace.turn().await];
        pace.slow_down();
        pace.slow_down();
        assert_eq!(pace.width(), 2);
        let third = tokio::time::timeout(Duration::from_millis(20), pace.turn()).await;
        assert!(third.is_err(), "two in flight fill a width of two");
        drop(turns);
        drop(pace.turn().await);
        pace.slow_down();
        pace.slow_down();
        assert_eq!(pace.width(), 1, "never none");
        for _ in 0..STREAK {
            pace.went_well();
        }
        assert_eq!(pace.width(), 2);
    }

    #[test]
    fn an_outage_lasts_until_something_goes_well() {
        let pace = Pace::default();
        let (first, later) = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH + Duration::from_secs(5));
        assert_eq!(pace.failing(first), (first, true));
        assert_eq!(pace.failing(later), (first, false));
        pace.went_well();
        assert_eq!(pace.failing(later), (later, true));
    }
}

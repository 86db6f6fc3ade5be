//! What time it is for the cluster, and waiting.
//!
//! Now is this machine's clock, corrected by the server's `Date` header: durations in a runbook
//! are judged against times the API server wrote. A rehearsal and the tests turn the clock.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

/// A shared clock; clones tell the same time.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    mode: Mode,
    /// What is added to this machine's clock.
    ahead: Mutex<SignedDuration>,
    /// Held clocks: until when somebody waits. Tests await it instead of sleeping.
    waiting: watch::Sender<Option<Timestamp>>,
    turned: watch::Sender<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Real,
    Jumping,
    Held,
}

impl Clock {
    /// Time as it passes.
    pub fn real() -> Self {
        Self::of(Mode::Real)
    }

    /// A wait turns the clock instead of taking time.
    pub fn jumping() -> Self {
        Self::of(Mode::Jumping)
    }

    /// A wait lasts until [`Clock::turn`] has turned the clock past its end.
    pub fn held() -> Self {
        Self::of(Mode::Held)
    }

    fn of(mode: Mode) -> Self {
        Self(Arc::new(Inner {
            mode,
            ahead: Mutex::new(SignedDuration::ZERO),
            waiting: watch::Sender::new(None),
            turned: watch::Sender::new(0),
        }))
    }

    fn ahead(&self) -> MutexGuard<'_, SignedDuration> {
        // A duration is whole whatever its last writer did.
        self.0.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Now.
    pub fn now(&self) -> Timestamp {
        let ahead = *self.ahead();
        Timestamp::now().checked_add(ahead).unwrap_or(Timestamp::MAX)
    }

    /// Takes over the server's time, to the second that a `Date` header has.
    pub fn follow(&self, server: Timestamp) {
        let behind = server.duration_since(Timestamp::now());
        // Under two seconds is the header's own coarseness and the way it travelled.
        if self.0.mode == Mode::Real && behind.abs() >= SignedDuration::from_secs(2) {
            *self.ahead() = behind;
        }
    }

    /// Turns the clock forward.
    pub fn turn(&self, by: Duration) {
        {
            let mut ahead = self.ahead();
            *ahead = ahead.saturating_add(SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX));
        }
        self.0.turned.send_modify(|turns| *turns += 1);
    }

    /// Waits.
    pub async fn sleep(&self, wait: Duration) {
        match self.0.mode {
            Mode::Real => tokio::time::sleep(wait).await,
            Mode::Jumping => {
                self.turn(wait);
                // Lets whoever plays the rest of the world have a turn.
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            Mode::Held => {
                let mut turned = self.0.turned.subscribe();
                let end = self.now().checked_add(wait).unwrap_or(Timestamp::MAX);
                self.0.waiting.send_replace(Some(end));
                while self.now() < end {
                    if turned.changed().await.is_err() {
                        break;
                    }
                }
                self.0.waiting.send_replace(None);
            }
        }
    }

    /// Held clocks: resolves once somebody waits, with the end of that wait.
    pub async fn someone_waits(&self) -> Timestamp {
        let mut waiting = self.0.waiting.subscribe();
        loop {
            if let Some(end) = *waiting.borrow_and_update() {
                return end;
            }
            if waiting.changed().await.is_err() {
                return Timestamp::MAX;
            }
        }
    }
}

//! What time it is for the cluster, and waiting.
//!
//! Now is this machine's clock, corrected by the server's `Date` header: durations in a runbook
//! are judged against times the API server wrote. A rehearsal and the tests turn the clock.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

/// A shared clock; clones tell the same time.
#[derive(Clone)]
pub struct Clock(Arc<Inner>);

struct Inner {
    mode: Mode,
    /// What is added to this machine's clock.
    ahead: Mutex<SignedDuration>,
    /// Held clocks: until when somebody waits. Tests await it instead of sleeping.
    waiting: watch::Sender<Option<Timestamp>>,
    turned: watch::Sender<u64>,
}

/// The hands of a clock that is turned by hand. Clones show the same time.
#[derive(Clone, Debug)]
pub struct Hands(Arc<Mutex<Timestamp>>);

impl Hands {
    /// Hands that show this time.
    pub fn at(time: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(time)))
    }

    /// The time they show.
    pub fn now(&self) -> Timestamp {
        // A time is whole whatever its last writer did.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Turns them forward.
    pub fn turn(&self, by: Duration) {
        let mut time = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *time = time.checked_add(by).unwrap_or(Timestamp::MAX);
    }
}

/// What the rest of the world does while somebody waits.
pub type World = Box<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

enum Mode {
    Real,
    Held,
    Played { hands: Hands, world: World },
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}

impl Clock {
    /// Time as it passes.
    pub fn real() -> Self {
        Self::of(Mode::Real)
    }

    /// A wait lasts until [`Clock::turn`] has turned the clock past its end.
    pub fn held() -> Self {
        Self::of(Mode::Held)
    }

    /// Time stands still but for waits: each turns the clock by its length, and the world has its move.
    pub fn played(hands: Hands, world: World) -> Self {
        Self::of(Mode::Played { hands, world })
    }

    /// A played clock that starts now, in a world where nothing happens.
    pub fn jumping() -> Self {
        Self::played(Hands::at(Timestamp::now()), Box::new(|| Box::pin(tokio::task::yield_now())))
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
        match &self.0.mode {
            Mode::Played { hands, .. } => hands.now(),
            Mode::Real | Mode::Held => Timestamp::now().checked_add(*self.ahead()).unwrap_or(Timestamp::MAX),
        }
    }

    /// Takes over the server's time, to the second that a `Date` header has.
    pub fn follow(&self, server: Timestamp) {
        if matches!(self.0.mode, Mode::Real) {
            let ahead = server.duration_since(Timestamp::now());
            // Under two seconds is the header's own coarseness and the way it travelled. A machine whose
            // clock was put right meanwhile has nothing to correct any more.
            let differs = ahead.abs() >= SignedDuration::from_secs(2);
            *self.ahead() = if differs { ahead } else { SignedDuration::ZERO };
        }
    }

    /// Turns the clock forward.
    pub fn turn(&self, by: Duration) {
        match &self.0.mode {
            Mode::Played { hands, .. } => hands.turn(by),
            Mode::Real | Mode::Held => {
                let mut ahead = self.ahead();
                *ahead = ahead.saturating_add(SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX));
            }
        }
        self.0.turned.send_modify(|turns| *turns += 1);
    }

    /// Waits.
    pub async fn sleep(&self, wait: Duration) {
        match &self.0.mode {
            Mode::Real => tokio::time::sleep(wait).await,
            Mode::Played { world, .. } => {
                self.turn(wait);
                world().await;
            }
            Mode::Held => self.held_until(self.now().checked_add(wait).unwrap_or(Timestamp::MAX)).await,
        }
    }

    async fn held_until(&self, end: Timestamp) {
        let mut turned = self.0.turned.subscribe();
        self.0.waiting.send_replace(Some(end));
        while self.now() < end && turned.changed().await.is_ok() {}
        self.0.waiting.send_replace(None);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_agrees_again_takes_the_correction_back() {
        let clock = Clock::real();
        let off = |clock: &Clock| clock.now().duration_since(Timestamp::now()).as_secs_f64().round();
        let hour = SignedDuration::from_hours(1);
        for (ahead, wanted) in [(hour, 3600.0), (-hour, -3600.0), (SignedDuration::from_secs(1), 0.0)] {
            clock.follow(Timestamp::now() + ahead);
            assert!((off(&clock) - wanted).abs() < 2.0, "{ahead:?}: {}", off(&clock));
        }
        assert!(off(&clock).abs() < 0.5, "not even the header's second is left");
    }
}

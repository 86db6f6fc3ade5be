//! A request to stop: finish what is in flight, start nothing new.

use tokio::sync::watch;

/// A shared flag; clones see the same.
#[derive(Clone, Debug)]
pub struct Interrupt(watch::Sender<bool>);

impl Default for Interrupt {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Interrupt {
    /// Asks to stop.
    pub fn set(&self) {
        self.0.send_replace(true);
    }

    /// Whether somebody asked.
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Resolves once somebody asks.
    pub async fn asked(&self) {
        let mut seen = self.0.subscribe();
        // The sender lives as long as self.
        let _ = seen.wait_for(|set| *set).await;
    }
}

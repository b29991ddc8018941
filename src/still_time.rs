//! Time that stands still, for tests of limits: nothing is late because the machine is busy.

use std::sync::mpsc;
use std::time::Duration;

/// As long as it lives, no time passes for the runtime but what [`StillTime::pass`] lets pass.
pub(crate) struct StillTime {
    /// A paused runtime that has nothing to do would go on to its next timer, unless it waits for a blocking task.
    _held: mpsc::Sender<()>,
}

impl StillTime {
    /// Stops the clock of a runtime of one thread.
    pub(crate) fn begin() -> Self {
        tokio::time::pause();
        let (held, until_dropped) = mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || until_dropped.recv());
        Self { _held: held }
    }

    /// Lets time pass, at once.
    pub(crate) async fn pass(&self, time: Duration) {
        tokio::time::advance(time).await;
    }
}

/// The clock goes on.
impl Drop for StillTime {
    fn drop(&mut self) {
        tokio::time::resume();
    }
}

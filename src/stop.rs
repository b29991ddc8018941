//! The one stop signal: Ctrl-C, SIGTERM, a batch timeout and a parent's end all arrive here.
//!
//! A [`Stopper`] gives the signal, every [`Stop`] made from it hears it. Whoever runs something awaits
//! [`Stop::stopped`], ends what it runs with the usual grace, and cuts the grace short at [`Stop::stopped_now`].

use tokio::sync::watch;

/// How far a stop has gone. It only ever rises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopLevel {
    /// Nobody asked to stop.
    Running,
    /// End what runs, with the grace period; start nothing new.
    Stopping,
    /// End what runs now, without grace.
    Now,
}

/// Gives the stop signal.
#[derive(Debug)]
pub struct Stopper {
    sender: watch::Sender<StopLevel>,
}

impl Default for Stopper {
    fn default() -> Self {
        Self {
            sender: watch::Sender::new(StopLevel::Running),
        }
    }
}

impl Stopper {
    /// A signal that nobody has given yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A listener of this signal.
    pub fn stop(&self) -> Stop {
        Stop {
            receiver: self.sender.subscribe(),
        }
    }

    /// Raises the signal to `level`; a lower or equal one changes nothing.
    pub fn raise(&self, level: StopLevel) {
        self.sender.send_if_modified(|current| {
            let rises = level > *current;
            if rises {
                *current = level;
            }
            rises
        });
    }

    /// How far the stop has gone.
    pub fn level(&self) -> StopLevel {
        *self.sender.borrow()
    }

    /// Passes another signal on for as long as it is polled; never ends.
    pub async fn follow(&self, stop: &Stop) {
        stop.stopped().await;
        self.raise(StopLevel::Stopping);
        stop.stopped_now().await;
        self.raise(StopLevel::Now);
        std::future::pending::<()>().await;
    }
}

/// Hears the stop signal. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Stop {
    receiver: watch::Receiver<StopLevel>,
}

impl Stop {
    /// A signal that is never given.
    pub fn never() -> Self {
        Stopper::new().stop()
    }

    /// How far the stop has gone.
    pub fn level(&self) -> StopLevel {
        *self.receiver.borrow()
    }

    /// Whether nothing new may start.
    pub fn is_stopping(&self) -> bool {
        self.level() > StopLevel::Running
    }

    /// Waits until a stop is asked for; for ever if it never is.
    pub async fn stopped(&self) {
        self.reached(StopLevel::Stopping).await;
    }

    /// Waits until the grace is over; for ever if it never is.
    pub async fn stopped_now(&self) {
        self.reached(StopLevel::Now).await;
    }

    async fn reached(&self, level: StopLevel) {
        let mut receiver = self.receiver.clone();
        if receiver
            .wait_for(|current| *current >= level)
            .await
            .is_err()
        {
            // The stopper is gone: nobody can raise the level any more.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stop_only_rises() {
        let stopper = Stopper::new();
        let stop = stopper.stop();
        assert!(!stop.is_stopping());
        stopper.raise(StopLevel::Now);
        stopper.raise(StopLevel::Stopping);
        assert_eq!(stop.level(), StopLevel::Now);
        stop.stopped().await;
        stop.stopped_now().await;
    }
}

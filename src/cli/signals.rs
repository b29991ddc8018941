//! Signals become the one stop: the first with grace, the second without.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use pitool::stop::{Stop, StopLevel, Stopper};
use tokio::signal::unix::{SignalKind, signal};

/// The signals that stop a run.
pub(crate) struct Signals {
    stopper: Arc<Stopper>,
    first: Arc<AtomicU8>,
}

impl Signals {
    /// Listens from now on; inside a runtime. The listening tasks end with the runtime.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let signals = Self {
            stopper: Arc::new(Stopper::new()),
            first: Arc::new(AtomicU8::new(0)),
        };
        // A file that grows over its limit (`ulimit -f`) ends a process, and all results with it. Handled, the write fails
        // instead, and tools are as they would be: what is handled is not inherited.
        #[cfg(target_os = "linux")]
        let _handled = signal(SignalKind::from_raw(libc::SIGXFSZ))?;
        for (kind, number) in [
            (SignalKind::interrupt(), 2),
            (SignalKind::terminate(), 15),
            (SignalKind::hangup(), 1),
            (SignalKind::quit(), 3),
        ] {
            let mut stream = signal(kind)?;
            let (stopper, first) = (Arc::clone(&signals.stopper), Arc::clone(&signals.first));
            tokio::spawn(async move {
                while stream.recv().await.is_some() {
                    // Only the first one names the exit code.
                    let is_first = first
                        .compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed)
                        .is_ok();
                    stopper.raise(if is_first {
                        StopLevel::Stopping
                    } else {
                        StopLevel::Now
                    });
                }
            });
        }
        Ok(signals)
    }

    /// The stop that the signals give.
    pub(crate) fn stop(&self) -> Stop {
        self.stopper.stop()
    }

    /// For others who may stop the run.
    pub(crate) fn stopper(&self) -> Arc<Stopper> {
        Arc::clone(&self.stopper)
    }

    /// The first signal that came.
    pub(crate) fn received(&self) -> Option<u8> {
        Some(self.first.load(Ordering::Relaxed)).filter(|number| *number != 0)
    }
}

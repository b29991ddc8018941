//! Where servers tell people something: they live longer than one batch, so they cannot tell its listener.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::event::Notice;

/// Hears the notices of servers.
pub type Hear = Arc<dyn Fn(Notice) + Send + Sync>;

/// The way from the servers of a registry to whoever listens; nobody may.
#[derive(Clone, Default)]
pub(crate) struct Notices(Arc<OnceLock<Hear>>);

impl Notices {
    /// Lets `hear` hear from now on; the first one stays.
    pub(crate) fn hear(&self, hear: Hear) {
        let _ = self.0.set(hear);
    }

    pub(crate) fn send(&self, notice: Notice) {
        if let Some(hear) = self.0.get() {
            hear(notice);
        }
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notices")
    }
}

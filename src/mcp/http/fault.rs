//! What went wrong on the way to a server, in a sentence.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::transport::streamable_http_client::StreamableHttpError;

use crate::mcp::connection::protocol_error;

/// A sentence that names the address and what was wrong there; without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault(pub(crate) String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

impl From<StreamableHttpError<Fault>> for Fault {
    fn from(error: StreamableHttpError<Fault>) -> Self {
        match error {
            StreamableHttpError::Client(fault) => fault,
            StreamableHttpError::SessionExpired => {
                Self("it does not know the session any more (HTTP 404)".to_owned())
            }
            StreamableHttpError::SessionRecoveryTimeout => Self(
                "it does not know the session any more, and a new one did not begin in time"
                    .to_owned(),
            ),
            StreamableHttpError::ReinitializationFailed(error) => Self(format!(
                "it does not know the session any more, and a new one did not begin: {}",
                protocol_error(&error)
            )),
            other => Self(other.to_string()),
        }
    }
}

/// The last fault on a connection: what ends a stream is told where the stream ends, not where somebody waits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults(Arc<Mutex<Option<Fault>>>);

impl Faults {
    /// Keeps the fault and gives it back.
    pub(super) fn note(&self, fault: Fault) -> Fault {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault.clone());
        fault
    }

    /// The last fault, which is told once.
    pub(crate) fn take(&self) -> Option<Fault> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

//! Notices that nobody reads stdout any more, without writing to it.

use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;

/// Watches stdout, if it is something that can lose its reader (a pipe, a socket).
#[derive(Debug)]
pub(crate) struct StdoutWatch(Option<Sender>);

impl StdoutWatch {
    /// Starts to watch; inside a runtime. Files and devices cannot be watched and never lose their reader.
    pub(crate) fn new() -> Self {
        // Closed in programs that are started: a tool must not hold our stdout.
        let stdout = rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 0).ok();
        // Nothing is written through it, so it need not be switched to non-blocking mode.
        Self(stdout.and_then(|stdout| Sender::from_owned_fd_unchecked(stdout).ok()))
    }

    /// Waits until the reader is gone; for ever if it stays.
    pub(crate) async fn closed(&self) {
        if let Some(stdout) = &self.0
            && let Ok(ready) = stdout.ready(Interest::ERROR).await
            && ready.is_error()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}

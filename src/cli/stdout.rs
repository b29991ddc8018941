//! Whether there is a stdout, and notices that nobody reads it any more, without writing to it.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;

use super::Hinted;

/// Whether the process was started without a stdout.
static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Rust's runtime opens `/dev/null` in the place of a stdout that is not there, before `main` begins: every result would be
/// written, and lost. Only code that runs before it can see that.
#[cfg(any(target_os = "linux", target_os = "macos"))]
#[expect(
    unsafe_code,
    reason = "there is no safe way to run code before the runtime; this asks the system about one descriptor and \
              stores the answer"
)]
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
static LOOK: extern "C" fn() = {
    extern "C" fn look() {
        if rustix::io::fcntl_getfd(std::io::stdout()) == Err(rustix::io::Errno::BADF) {
            WAS_CLOSED.store(true, Ordering::Relaxed);
        }
    }
    look
};

/// Fails if there is nowhere to write results to.
pub(crate) fn check() -> anyhow::Result<()> {
    if WAS_CLOSED.load(Ordering::Relaxed) {
        let message = "cannot write to stdout: it was closed from the start";
        let hint = "redirect it to /dev/null if nobody wants the results";
        return Err(Hinted::new(message, hint).into());
    }
    Ok(())
}

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

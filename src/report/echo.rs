//! Keeps `^C` from being written into the rows.
//!
//! The terminal shows a typed Ctrl-C where the cursor stands, at the end of the last row: in a full line that wraps, and
//! everything below is one line off. While rows are drawn, control characters are not shown.

use std::io;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Until it is dropped, the terminal behind stderr does not show control characters that are typed.
pub(super) struct QuietControls(Option<Termios>);

impl QuietControls {
    /// Begins; on something that is no terminal nothing happens.
    pub(super) fn begin() -> Self {
        let Ok(before) = tcgetattr(io::stderr()) else {
            return Self(None);
        };
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHOCTL);
        let is_set = tcsetattr(io::stderr(), OptionalActions::Now, &quiet).is_ok();
        Self(is_set.then_some(before))
    }
}

impl Drop for QuietControls {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // A terminal that is gone needs nothing back.
            let _ = tcsetattr(io::stderr(), OptionalActions::Now, before);
        }
    }
}

//! What people see: who may write where, and how things look.
//!
//! stdout carries results and nothing else, so that it can be piped on. stderr is for people: progress, warnings and
//! what tools say there, all through one [`progress::Progress`] while calls run, so that lines and rows never mix.
//! Renderers are pure: they take values and [`style::Styles`] and return text. What happened comes as
//! [`pitool::event::Event`]; nothing here changes what happens.
//!
//! Text of tools is shown through [`sanitize`], whether the stream is a terminal or not: logs end up on terminals too.
//! JSON keeps its data.

pub(crate) mod card;
pub(crate) mod difference;
mod echo;
pub(crate) mod lines;
pub(crate) mod pretty;
pub(crate) mod progress;
mod rows;
pub(crate) mod sanitize;
pub(crate) mod spans;
pub(crate) mod steps;
pub(crate) mod style;
pub(crate) mod table;
mod tally;
pub(crate) mod text;
pub(crate) mod timeline;
mod usage;

use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard};

use rows::Size;

/// The size of the terminal behind a stream; none if it is no terminal or does not know.
fn terminal_size(stream: &impl AsFd) -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    let size = Size {
        columns: usize::from(size.ws_col),
        lines: usize::from(size.ws_row),
    };
    (size.columns > 0 && size.lines > 0).then_some(size)
}

/// The width for text on a stream: that of its terminal, else what files and logs are read at.
pub(crate) fn columns(stream: &impl AsFd) -> usize {
    terminal_size(stream).map_or(100, |size| size.columns)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder of the lock panics")
}

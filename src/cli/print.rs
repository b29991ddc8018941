//! JSON on stdout, for commands that print at once.

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

use anyhow::Context as _;
use serde::Serialize;
use serde_json::Value;

use super::{Exit, Global};
use crate::report::pretty::pretty;
use crate::report::sanitize;
use crate::report::style::Styles;

/// Prints one value, indented; `exit` unless nobody reads it.
pub(crate) fn document(
    value: &impl Serialize,
    global: &Global,
    exit: Exit,
) -> anyhow::Result<Exit> {
    let text = if io::stdout().is_terminal() {
        pretty(value, &Styles::of_stream(global.color, true))
    } else {
        serde_json::to_string_pretty(value).context("cannot write JSON")?
    };
    text_of(&(text + "\n"), exit)
}

/// Prints values, one a line; `exit` unless nobody reads them.
pub(crate) fn lines(values: &[Value], exit: Exit) -> anyhow::Result<Exit> {
    let is_terminal = io::stdout().is_terminal();
    let mut text = String::new();
    for value in values {
        let line = value.to_string();
        // A terminal must not obey what a message says.
        text += &if is_terminal {
            sanitize::json(&line)
        } else {
            line.as_str().into()
        };
        text.push('\n');
    }
    text_of(&text, exit)
}

/// Prints text for people.
pub(crate) fn text_of(text: &str, exit: Exit) -> anyhow::Result<Exit> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Ok(()) => Ok(exit),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Exit::ClosedPipe),
        Err(error) => Err(error).context("cannot write to stdout"),
    }
}

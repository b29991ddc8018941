//! The input stream: values one after another, each a message, an array or a line of a session file.
//!
//! One value is in memory at a time; only a session file is held as a whole, since its last line decides which branch
//! counts. A value that cannot be read or understood is an error with its line, and reading goes on behind it.

use std::collections::VecDeque;
use std::fmt;
use std::io::BufRead;

use serde_json::Value;

use crate::json::{JsonError, Values};

use super::Format;
use super::document::Document;
use super::session::{Session, is_entry, is_header};
use super::turn::Turn;

/// How input is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InputOptions {
    /// The format; `None` recognises it value by value.
    pub from: Option<Format>,
    /// Which calls of arrays and sessions are answered.
    pub rerun: Rerun,
    /// What turns and documents hold.
    pub keep: Keep,
}

impl InputOptions {
    /// Whether a value is part of a session file; inside one, more values are.
    pub(super) fn may_be_session(self, value: &Value, inside: bool) -> bool {
        self.from.is_none_or(|from| from == Format::Pi)
            && (is_header(value) || is_entry(value, inside))
    }
}

/// Which calls of arrays and sessions are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rerun {
    /// Those without a result.
    #[default]
    Unanswered,
    /// All.
    All,
}

/// What is held of the input beside the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// Nothing: [`Turn::message`] is `null`. For those who only judge calls.
    Calls,
    /// The assistant messages.
    #[default]
    Messages,
    /// Everything, for [`Document::answered`].
    Documents,
}

/// A value of the input that could not be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputError {
    /// Where the value starts, from 1.
    pub line: usize,
    /// Where reading stopped, if it is no JSON.
    pub column: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for InputError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            Some(column) => write!(
                formatter,
                "line {} column {column}: {}",
                self.line, self.message
            ),
            None => write!(formatter, "line {}: {}", self.line, self.message),
        }
    }
}

impl std::error::Error for InputError {}

impl From<JsonError> for InputError {
    fn from(error: JsonError) -> Self {
        Self {
            line: error.line,
            column: Some(error.column),
            message: error.message,
        }
    }
}

/// The documents of a stream, in order.
pub struct Documents<R> {
    values: Values<R>,
    options: InputOptions,
    session: Option<Session>,
    /// What was read beyond a session's end.
    ready: VecDeque<Result<Document, InputError>>,
}

impl<R: BufRead> Documents<R> {
    /// Reads from `reader`.
    pub fn new(reader: R, options: InputOptions) -> Self {
        Self {
            values: Values::new(reader),
            options,
            session: None,
            ready: VecDeque::new(),
        }
    }

    /// Takes a value into the open session, or reads it as a document of its own.
    fn take(&mut self, line: usize, value: Value) {
        if self.options.may_be_session(&value, self.session.is_some()) {
            if is_header(&value) {
                self.end_session();
            }
            let session = self.session.get_or_insert_default();
            session.entries.push((line, value));
            return;
        }
        self.end_session();
        let document = Document::read(line, value, self.options).map_err(|message| InputError {
            line,
            column: None,
            message,
        });
        self.ready.push_back(document);
    }

    fn end_session(&mut self) {
        if let Some(session) = self.session.take() {
            let document = Document::of_session(session, self.options);
            self.ready.push_back(Ok(document));
        }
    }
}

impl<R: BufRead> Iterator for Documents<R> {
    type Item = Result<Document, InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some(ready);
            }
            match self.values.next() {
                Some(Ok(located)) => self.take(located.line, located.value),
                Some(Err(error)) => return Some(Err(error.into())),
                None if self.session.is_some() => self.end_session(),
                None => return None,
            }
        }
    }
}

/// The turns of a stream, in order.
///
/// ```
/// use pitool::format::{Format, Input, InputOptions};
///
/// let lines = r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"echo","input":{}}]}
/// {"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"b","type":"function","function":{"name":"echo","arguments":"{}"}}]}}]}
/// {"no":"message"}"#;
/// let mut turns = Input::new(lines.as_bytes(), InputOptions::default());
/// assert_eq!(turns.next().unwrap()?.format, Format::Anthropic);
/// assert_eq!(turns.next().unwrap()?.calls[0].id, "b");
/// // What cannot be understood is an error with its line, and reading goes on behind it.
/// assert_eq!(turns.next().unwrap().unwrap_err().line, 3);
/// assert!(turns.next().is_none());
/// # Ok::<(), pitool::format::InputError>(())
/// ```
pub struct Input<R> {
    documents: Documents<R>,
    turns: VecDeque<Turn>,
}

impl<R: BufRead> Input<R> {
    /// Reads from `reader`.
    pub fn new(reader: R, options: InputOptions) -> Self {
        Self {
            documents: Documents::new(reader, options),
            turns: VecDeque::new(),
        }
    }
}

impl<R: BufRead> Iterator for Input<R> {
    type Item = Result<Turn, InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(turn) = self.turns.pop_front() {
                return Some(Ok(turn));
            }
            match self.documents.next()? {
                Ok(document) => self.turns = document.turns.into(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests;

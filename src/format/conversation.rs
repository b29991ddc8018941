//! A whole transcript: an array, JSON lines or a pi session file, as one list of messages.
//!
//! Unlike [`super::Input`], which answers value by value, everything is read before anything is said about it.

use std::io::BufRead;

use serde_json::Value;

use crate::json::Values;

use super::Format;
use super::input::InputError;
use super::recognise::{Recognised, not_a_message, recognise};
use super::session::{Session, is_entry, is_header};
use super::wire::Element;

/// A transcript that has been read to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    pub(super) format: Format,
    pub(super) elements: Vec<Element>,
    pub(super) body: Body,
}

/// How the transcript was written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Body {
    List,
    /// `lines[i]` is the line of element `i`.
    Lines(Vec<usize>),
    /// `entries[i]` is the entry that holds element `i`.
    Session {
        session: Session,
        entries: Vec<usize>,
    },
}

impl Conversation {
    /// Reads a transcript; the first value that cannot be read or understood ends it.
    pub fn read(reader: impl BufRead, from: Option<Format>) -> Result<Self, InputError> {
        let mut values = Vec::new();
        for value in Values::new(reader) {
            let located = value?;
            values.push((located.line, located.value));
        }
        let is_session = from.is_none_or(|from| from == Format::Pi)
            && values
                .first()
                .is_some_and(|(_, value)| is_header(value) || is_entry(value, false));
        if is_session {
            return Ok(Self::of_session(Session { entries: values }));
        }
        Self::of_values(values, from)
    }

    fn of_session(session: Session) -> Self {
        let messages = session.messages();
        let entries = messages.iter().map(|message| message.entry).collect();
        Self {
            format: Format::Pi,
            elements: messages
                .into_iter()
                .map(|message| Element::bare(message.message))
                .collect(),
            body: Body::Session { session, entries },
        }
    }

    fn of_values(values: Vec<(usize, Value)>, from: Option<Format>) -> Result<Self, InputError> {
        let is_list = matches!(values.as_slice(), [(_, Value::Array(_))]);
        let mut lines = Vec::new();
        let mut messages = Vec::new();
        for (line, value) in values {
            let several = match value {
                Value::Array(several) => several,
                one => vec![one],
            };
            lines.extend(std::iter::repeat_n(line, several.len()));
            messages.extend(several);
        }
        let error = |line: usize, message: String| InputError {
            line,
            column: None,
            message,
        };
        let first_line = lines.first().copied().unwrap_or(1);
        let recognised =
            recognise(&messages, from).map_err(|message| error(first_line, message))?;
        let format = match recognised {
            Recognised::Calls(format) | Recognised::Message(format) => format,
            Recognised::Nothing => match messages.first() {
                Some(message) => return Err(error(first_line, not_a_message(message, from))),
                None => from.unwrap_or(Format::Pi),
            },
        };
        let mut elements = Vec::new();
        let mut element_lines = Vec::new();
        for (index, (line, message)) in lines.into_iter().zip(messages).enumerate() {
            let no_message = |value: &Value| {
                let text = not_a_message(value, Some(format));
                error(line, format!("message {}: {text}", index + 1))
            };
            if !message.is_object() {
                return Err(no_message(&message));
            }
            let unwrapped = format
                .wire()
                .unwrap(message)
                .map_err(|text| error(line, text))?;
            let mut values = unwrapped.iter().map(|element| &element.value);
            if let Some(other) = values.find(|value| !value.is_object()) {
                return Err(no_message(other));
            }
            element_lines.extend(std::iter::repeat_n(line, unwrapped.len()));
            elements.extend(unwrapped);
        }
        let body = if is_list {
            Body::List
        } else {
            Body::Lines(element_lines)
        };
        Ok(Self {
            format,
            elements,
            body,
        })
    }

    /// The format that the messages are in.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The messages in their order; of a session file those that the model sees now.
    pub fn messages(&self) -> impl Iterator<Item = &Value> {
        self.elements.iter().map(|element| &element.value)
    }

    /// Where a message stands, for people: its line, or its number in an array.
    pub(super) fn place(&self, element: usize) -> String {
        match &self.body {
            Body::List => format!("message {}", element + 1),
            Body::Lines(lines) => format!("line {}", lines[element]),
            Body::Session { session, entries } => {
                format!("line {}", session.entries[entries[element]].0)
            }
        }
    }
}

//! A manifest's text becomes its type, or a list of all that is wrong with it.
//!
//! The types themselves say which fields there are: [`read`] asks them, so that no second list of fields exists.
//! Text that is right takes one pass of serde_json; only text that is wrong is read a second time, to find every
//! fault in it and to say where it stands. What the fields mean is the business of the modules that
//! have the types: [`crate::tool`], [`crate::hook`], [`crate::mcp`], [`crate::cases`].

mod diagnose;
mod fields;
mod locate;
mod nearest;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::json::pointer::unescaped;

pub(crate) use diagnose::diagnose;
pub(crate) use fields::fields_of;
pub(crate) use locate::member_span;
pub use locate::{Part, Place};
pub(crate) use nearest::nearest;

/// One thing that is wrong with a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub at: At,
    /// What, as a sentence without a period.
    pub message: String,
    /// What was probably meant.
    pub hint: Option<String>,
}

/// Where a fault is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// At the value that a JSON Pointer names, or at its key.
    Pointer(String, Part),
    /// At a place that the reader of the text named.
    Place(Place),
}

impl Fault {
    /// A fault of the value that `pointer` names.
    pub fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            at: At::Pointer(pointer.into(), Part::Value),
            message: message.into(),
            hint: None,
        }
    }

    /// A field that should not be there; `pointer` names it.
    fn unknown_field(pointer: String, name: &str, hint: Option<String>) -> Self {
        Self {
            at: At::Pointer(pointer, Part::Key),
            message: format!("unknown field \"{name}\""),
            hint,
        }
    }

    /// The message behind the dotted path of the field it is about, for example
    /// `execute.timeoutMs: expected a whole number of 0 or more, got string`.
    pub fn full_message(&self) -> String {
        let At::Pointer(pointer, part) = &self.at else {
            return self.message.clone();
        };
        let about = match part {
            Part::Key => pointer.rsplit_once('/').map_or("", |(parent, _)| parent),
            Part::Value => pointer,
        };
        match about.strip_prefix('/') {
            Some(path) => {
                let path = unescaped(&path.replace('/', "."));
                format!("{path}: {}", self.message)
            }
            None => self.message.clone(),
        }
    }

    /// Where the fault stands in the manifest's text.
    pub fn place(&self, text: &str) -> Place {
        match &self.at {
            At::Pointer(pointer, part) => locate::place(text, pointer, *part),
            At::Place(place) => *place,
        }
    }
}

/// Reads `text`, which holds the JSON `value`, as a `T`.
///
/// All faults are found, not only the first: unknown fields at every level, wrong values, missing fields. A `T` comes
/// with them where nothing but unknown fields is wrong, so that a caller can go on looking.
pub fn read<T: DeserializeOwned>(text: &str, value: &Value) -> (Option<T>, Vec<Fault>) {
    let refusal = match serde_json::from_str(text) {
        Ok(read) => return (Some(read), Vec::new()),
        Err(refusal) => refusal,
    };
    let (read, mut faults) = diagnose(value);
    if faults.is_empty() && refusal.is_data() {
        // Only the text shows a field that is given twice.
        faults.push(Fault {
            at: At::Place(Place {
                line: refusal.line(),
                column: refusal.column(),
            }),
            message: without_place(&refusal),
            hint: None,
        });
    }
    (read, faults)
}

/// serde_json ends its messages with the place, which is told apart here.
fn without_place(refusal: &serde_json::Error) -> String {
    let message = refusal.to_string().replace('`', "\"");
    match message.rfind(" at line ") {
        Some(end) => message[..end].to_owned(),
        None => message,
    }
}

/// Reads an optional field that is there: `null` is a value like any other, not its absence.
pub(crate) fn given<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}

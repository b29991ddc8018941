//! The calls of one assistant message, and how calls on the wire become them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde_json::{Map, Value};

use crate::message::ToolCall;

use super::Format;
use super::arguments;
use super::wire::{RawCall, WireId};

/// What one assistant message asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The format it came in, and goes out in unless asked otherwise.
    pub format: Format,
    /// The assistant message in pi form, with all its calls, for hooks and events; `null` with [`super::Keep::Calls`].
    pub message: Value,
    /// The calls to answer, in order: all of them, or in an array or session those without a result.
    pub calls: Vec<ToolCall>,
    /// Why the model stopped, in pi's words (`stop`, `length`, `toolUse`, `error`, `aborted`) where it is known;
    /// other words are carried.
    pub stop_reason: Option<String>,
    /// What was odd about it, for people: made-up ids, repeated ids.
    pub warnings: Vec<String>,
    /// The line of the input where the value starts, from 1.
    pub line: usize,
    pub(super) origins: Vec<Origin>,
    /// Whether it came in an array.
    pub(super) in_list: bool,
    /// The elements of the document that the turn takes up.
    pub(super) elements: Range<usize>,
}

/// What answering a call needs beyond [`ToolCall`].
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Origin {
    /// The id as it was; `None` when there was none.
    pub(super) id: Option<Value>,
    /// Whether the call takes free text instead of JSON (OpenAI's custom tools).
    pub(super) is_custom: bool,
    /// Its position among all calls of the message.
    pub(super) position: usize,
    /// Fields that the result repeats.
    pub(super) echo: Vec<(&'static str, Value)>,
}

impl Turn {
    /// Whether it came in an array, as an API's answer to a list does.
    pub fn is_in_list(&self) -> bool {
        self.in_list
    }

    /// Whether the call at `position` brought its id; otherwise it was made up here.
    pub fn has_given_id(&self, position: usize) -> bool {
        let origin = self.origins.get(position);
        origin.is_some_and(|origin| origin.id.is_some())
    }

    /// What is known of the calls beyond themselves, call by call, if the turn came in this format.
    pub(super) fn origins_in(&self, format: Format) -> impl Iterator<Item = Option<&Origin>> {
        let known = self.format == format;
        self.origins
            .iter()
            .map(move |origin| known.then_some(origin))
    }
}

/// The ids in use, so that made-up ones are free. Ids are never given back, which keeps the search for free ones short.
#[derive(Debug, Default)]
pub(super) struct Ids {
    used: HashSet<String>,
    /// For a number that was looked at: the next one worth looking at.
    next_number: HashMap<usize, usize>,
    /// How many others of an id were made up.
    others: HashMap<String, usize>,
}

impl Ids {
    pub(super) fn reserve(&mut self, id: WireId<'_>) {
        self.used.extend(id.text());
    }

    /// Reserves an id; whether it was free.
    pub(super) fn take(&mut self, id: &str) -> bool {
        self.used.insert(id.to_owned())
    }

    /// Reserves `ID_2`, or the next number that is free.
    pub(super) fn take_another(&mut self, id: &str) -> String {
        let last = self.others.get(id).copied().unwrap_or(1);
        let (number, other) = (last + 1..=usize::MAX)
            .map(|number| (number, format!("{id}_{number}")))
            .find(|(_, other)| !self.used.contains(other))
            .expect("numbers do not run out");
        self.others.insert(id.to_owned(), number);
        self.used.insert(other.clone());
        other
    }

    /// `call_N`, N the call's position from 1, or the next number that is free.
    fn make_up(&mut self, position: usize) -> String {
        let mut looked_at = Vec::new();
        let mut number = position + 1;
        let id = loop {
            if let Some(next) = self.next_number.get(&number) {
                looked_at.push(number);
                number = *next;
                continue;
            }
            let id = format!("call_{number}");
            if !self.used.contains(&id) {
                break id;
            }
            looked_at.push(number);
            number += 1;
        };
        looked_at.push(number);
        let next = looked_at
            .into_iter()
            .map(|looked_at| (looked_at, number + 1));
        self.next_number.extend(next);
        self.used.insert(id.clone());
        id
    }
}

/// What becomes of arguments that are values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arguments {
    /// Calls get copies.
    Copy,
    /// Calls get `null`, and [`Decoded::left`] says so: the caller moves them.
    Leave,
}

/// A call that is ready to run, with where it came from.
pub(super) struct Decoded {
    pub(super) call: ToolCall,
    pub(super) origin: Origin,
    /// Whether its arguments are still where they were.
    pub(super) left: bool,
}

/// Decodes the calls of one message; odd things become `warnings`.
pub(super) fn decode(
    raw: &[RawCall<'_>],
    policy: Arguments,
    ids: &mut Ids,
    warnings: &mut Vec<String>,
) -> Vec<Decoded> {
    let mut seen = HashSet::new();
    raw.iter()
        .enumerate()
        .map(|(position, call)| {
            let decoded = decode_call(call, position, policy, ids, warnings);
            if !seen.insert(decoded.call.id.clone()) {
                warnings.push(format!(
                    "two calls have the id {:?}; both run and both are answered, in order",
                    decoded.call.id
                ));
            }
            decoded
        })
        .collect()
}

fn decode_call(
    raw: &RawCall<'_>,
    position: usize,
    policy: Arguments,
    ids: &mut Ids,
    warnings: &mut Vec<String>,
) -> Decoded {
    let id = raw.id.text().unwrap_or_else(|| ids.make_up(position));
    if raw.id == WireId::Missing {
        warnings.push(format!(
            "call {} has no id and is answered as {id:?}",
            position + 1
        ));
    }
    if raw.name.is_none() {
        warnings.push(format!("call {} has no name", position + 1));
    }
    let left = policy == Arguments::Leave && raw.arguments.can_be_left();
    let parsed = if left {
        Ok(Value::Null)
    } else {
        arguments::parse(raw.arguments)
    };
    let (arguments, error) = match parsed {
        Ok(value) => (value, None),
        Err(error) => (Value::Object(Map::new()), Some(error)),
    };
    let given_error = raw.arguments_error.filter(|error| !error.is_empty());
    Decoded {
        call: ToolCall {
            id,
            name: raw.name.unwrap_or_default().to_owned(),
            arguments,
            arguments_error: given_error.map(str::to_owned).or(error),
        },
        origin: Origin {
            id: match raw.id {
                WireId::Given(id) => Some(id.clone()),
                WireId::Missing | WireId::Optional => None,
            },
            is_custom: matches!(raw.arguments, arguments::RawArguments::Free(_)),
            position,
            echo: raw
                .echo
                .iter()
                .map(|(field, value)| (*field, (*value).clone()))
                .collect(),
        },
        left,
    }
}

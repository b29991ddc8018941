//! One value of the input, or one session file: its turns, and the whole of it with results inserted.

use serde_json::Value;

use crate::message::{ToolCall, ToolResultMessage};

use super::Format;
use super::answer::replies;
use super::input::{InputError, InputOptions, Keep, Rerun};
use super::recognise::{Recognised, not_a_message, recognise};
use super::session::Session;
use super::thread;
use super::thread::{FoundResult, Place, ThreadTurn};
use super::turn::{Arguments, Turn};
use super::weave::{Unit, Woven, weave};
use super::wire::Element;

/// One value of the input (a message, an array of messages) or one session file.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The line where it starts, from 1.
    pub line: usize,
    /// The assistant messages in it that want answers, in order. A message that stands alone is one even without
    /// calls.
    pub turns: Vec<Turn>,
    format: Format,
    body: Body,
    elements: Vec<Value>,
    /// For each turn: where each of its calls is answered already.
    answered: Vec<Vec<Vec<FoundResult>>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Body {
    Message,
    List,
    /// `entries[i]` is the entry that holds element `i`.
    Session {
        session: Session,
        entries: Vec<usize>,
    },
}

impl Document {
    /// Reads one value: a message or an array.
    pub(super) fn read(line: usize, value: Value, options: InputOptions) -> Result<Self, String> {
        match value {
            Value::Array(values) => Self::read_list(line, values, options),
            value => Self::read_message(line, value, options),
        }
    }

    /// Reads one value of a stream as [`Documents`](super::Documents) does, if it stands for itself. An entry of a
    /// session file does not (only the whole stream tells what it means): it is handed back.
    pub fn read_alone(
        line: usize,
        value: Value,
        options: InputOptions,
    ) -> Result<Result<Self, InputError>, Value> {
        if options.may_be_session(&value, false) {
            return Err(value);
        }
        let document = Self::read(line, value, options);
        Ok(document.map_err(|message| InputError {
            line,
            column: None,
            message,
        }))
    }

    fn read_message(line: usize, value: Value, options: InputOptions) -> Result<Self, String> {
        let format = match recognise(std::slice::from_ref(&value), options.from)? {
            Recognised::Calls(format) | Recognised::Message(format) => format,
            Recognised::Nothing => return Err(not_a_message(&value, options.from)),
        };
        let elements = format.wire().unwrap(value)?;
        let options = InputOptions {
            rerun: Rerun::All,
            ..options
        };
        Ok(Self::of_elements(
            line,
            format,
            Body::Message,
            elements,
            options,
        ))
    }

    fn read_list(line: usize, values: Vec<Value>, options: InputOptions) -> Result<Self, String> {
        let format = match recognise(&values, options.from)? {
            Recognised::Calls(format) | Recognised::Message(format) => format,
            Recognised::Nothing => match values.first() {
                Some(value) => {
                    return Err(format!("message 1: {}", not_a_message(value, options.from)));
                }
                None => options.from.unwrap_or(Format::Pi),
            },
        };
        let mut elements = Vec::with_capacity(values.len());
        for value in values {
            elements.extend(format.wire().unwrap(value)?);
        }
        Ok(Self::of_elements(
            line,
            format,
            Body::List,
            elements,
            options,
        ))
    }

    /// Takes a session file that has been read to its end.
    pub(super) fn of_session(session: Session, options: InputOptions) -> Self {
        let messages = session.messages();
        let entries: Vec<usize> = messages.iter().map(|message| message.entry).collect();
        let elements = messages
            .into_iter()
            .map(|message| Element::bare(message.message))
            .collect();
        let line = session.entries.first().map_or(1, |(line, _)| *line);
        let lines: Vec<usize> = entries
            .iter()
            .map(|&entry| session.entries[entry].0)
            .collect();
        let body = Body::Session { session, entries };
        let mut document = Self::of_elements(line, Format::Pi, body, elements, options);
        for turn in &mut document.turns {
            turn.line = lines[turn.elements.start];
        }
        document
    }

    fn of_elements(
        line: usize,
        format: Format,
        body: Body,
        elements: Vec<Element>,
        options: InputOptions,
    ) -> Self {
        let policy = match options.keep {
            Keep::Calls => Arguments::Leave,
            Keep::Messages | Keep::Documents => Arguments::Copy,
        };
        let thread = thread::read(format, &elements, policy);
        let mut document = Self {
            line,
            turns: Vec::new(),
            format,
            body,
            elements: elements.into_iter().map(|element| element.value).collect(),
            answered: Vec::new(),
        };
        for turn in thread.turns {
            document.add_turn(turn, options);
        }
        if options.keep != Keep::Documents {
            document.elements = Vec::new();
            document.body = Body::Message;
            document.answered = Vec::new();
        }
        document
    }

    fn add_turn(&mut self, turn: ThreadTurn, options: InputOptions) {
        let stands_alone = self.body == Body::Message;
        let open = |results: &[FoundResult]| options.rerun == Rerun::All || results.is_empty();
        if !stands_alone && !turn.calls.iter().any(|call| open(&call.results)) {
            return;
        }
        if options.keep == Keep::Documents {
            self.adopt_ids(&turn);
        }
        let message = match options.keep {
            Keep::Calls => Value::Null,
            Keep::Messages | Keep::Documents => self.message(&turn),
        };
        let mut calls = Vec::new();
        let mut origins = Vec::new();
        let mut answered = Vec::new();
        for call in turn.calls {
            if open(&call.results) {
                let mut decoded = call.decoded;
                if decoded.left {
                    let wire = self.format.wire();
                    let element = &mut self.elements[call.place.element];
                    decoded.call.arguments =
                        wire.take_arguments(wire.slots(element).remove(call.place.index));
                }
                calls.push(decoded.call);
                origins.push(decoded.origin);
            }
            answered.push(call.results);
        }
        self.answered.push(answered);
        self.turns.push(Turn {
            format: self.format,
            message,
            calls,
            stop_reason: turn.stop_reason,
            warnings: turn.warnings,
            line: self.line,
            origins,
            in_list: self.body == Body::List,
            elements: turn.elements,
        });
    }

    /// The turn as an assistant message in pi form.
    fn message(&self, turn: &ThreadTurn) -> Value {
        let elements: Vec<&Value> = self.elements[turn.elements.clone()].iter().collect();
        let calls: Vec<ToolCall> = turn
            .calls
            .iter()
            .map(|call| call.decoded.call.clone())
            .collect();
        let mut message = self.format.wire().to_pi(&elements, calls);
        if let Some(reason) = &turn.stop_reason {
            message.insert("stopReason".to_owned(), reason.as_str().into());
        }
        Value::Object(message)
    }

    /// Writes made-up ids into the conversation, so that its results have something to name.
    fn adopt_ids(&mut self, turn: &ThreadTurn) {
        let wire = self.format.wire();
        for call in turn.calls.iter().filter(|call| call.id_is_made_up()) {
            let mut slots = wire.slots(&mut self.elements[call.place.element]);
            let id = call.decoded.call.id.as_str();
            slots[call.place.index].insert(wire.id_key().to_owned(), id.into());
        }
    }

    /// The document with results inserted where its API wants them, ready for the next request; `results[i]` answers
    /// `self.turns[i]`. An array stays one value, other documents become a value per line. Needs
    /// [`Keep::Documents`].
    pub fn answered(mut self, results: &[Vec<ToolResultMessage>]) -> Vec<Value> {
        if let Body::Session { session, entries } = &mut self.body {
            let mut insertions = Vec::new();
            for (turn, (messages, answered)) in
                self.turns.iter().zip(results.iter().zip(&self.answered))
            {
                let inserted = answer_in_session(session, entries, turn, messages, answered);
                insertions.push(inserted);
            }
            session.insert(insertions);
            return std::mem::take(session).into_values();
        }
        let mut dropped = Vec::new();
        let turns: Vec<Woven> = self
            .turns
            .iter()
            .zip(results.iter().zip(&self.answered))
            .filter(|(_, (messages, _))| !messages.is_empty())
            .map(|(turn, (messages, answered))| woven(turn, messages, answered, &mut dropped))
            .collect();
        let values = weave(self.format, self.elements, turns, &dropped);
        match self.body {
            Body::List => vec![Value::Array(values)],
            Body::Message | Body::Session { .. } => values,
        }
    }
}

/// What shall stand behind a turn: the results it has and the new ones, in the order of its calls.
fn woven(
    turn: &Turn,
    messages: &[ToolResultMessage],
    answered: &[Vec<FoundResult>],
    dropped: &mut Vec<Place>,
) -> Woven {
    let answer = turn.format.wire().answer(turn, &replies(messages));
    let positions = turn.origins.iter().map(|origin| origin.position);
    let mut new = positions.zip(answer.units).peekable();
    let mut units = Vec::new();
    for (position, results) in answered.iter().enumerate() {
        let places = results.iter().map(|result| result.place);
        match new.next_if(|(new, _)| *new == position) {
            Some((_, unit)) => {
                units.push(Unit::New(unit));
                dropped.extend(places);
            }
            None => units.extend(places.map(Unit::Kept)),
        }
    }
    Woven {
        after: turn.elements.end - 1,
        units,
        extras: answer.extras,
    }
}

/// Replaces the results of calls that ran again; the others go behind what the turn has already, the entry that comes
/// with them.
fn answer_in_session(
    session: &mut Session,
    entries: &[usize],
    turn: &Turn,
    messages: &[ToolResultMessage],
    answered: &[Vec<FoundResult>],
) -> (usize, Vec<Value>) {
    let units = turn.format.wire().answer(turn, &replies(messages)).units;
    let mut added = Vec::new();
    for (origin, unit) in turn.origins.iter().zip(units) {
        match answered[origin.position].first() {
            Some(found) => {
                let entry = &mut session.entries[entries[found.place.element]].1;
                entry["message"] = unit;
            }
            None => added.push(unit),
        }
    }
    let last_result = answered
        .iter()
        .flatten()
        .map(|found| found.place.element)
        .max();
    let after = last_result.unwrap_or(turn.elements.end - 1);
    (entries[after], added)
}

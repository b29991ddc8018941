//! Makes a transcript one that every provider accepts, and says what it did.
//!
//! Results move directly behind their turn, in the order of the calls. Missing ones become errors that say so; results
//! without a call and second results go. Repeated and missing ids become new ones. What cannot be undone, such as a
//! truncated call that ran, stays.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::message::{ToolResult, ToolResultMessage};

use crate::format::answer::replies;
use crate::format::conversation::{Body, Conversation};
use crate::format::lint::shown;
use crate::format::session::Session;
use crate::format::thread::{self, Place, Thread, ThreadTurn};
use crate::format::turn::{Arguments, Ids, Turn};
use crate::format::weave::{Unit, Woven, weave};

/// A repaired transcript.
#[derive(Debug, Clone, PartialEq)]
pub struct Repaired {
    /// As the transcript was written: one array, or a value per line.
    pub values: Vec<Value>,
    /// What was done, in the order of the messages.
    pub changes: Vec<String>,
}

/// What a missing result says.
const NO_RESULT: &str = "No result was recorded for this call; whether the tool ran is unknown.";

/// Repairs a transcript. `timestamp` (Unix milliseconds) is for results that have to be made up.
pub fn repair(mut conversation: Conversation, timestamp: u64) -> Repaired {
    let thread = thread::read(conversation.format, &conversation.elements, Arguments::Copy);
    let mut changes = Vec::new();
    rename(&mut conversation, &thread, &mut changes);
    fix_arguments(&mut conversation, &thread, &mut changes);
    // Ids are different now, and so are the results that name them.
    let thread = thread::read(conversation.format, &conversation.elements, Arguments::Copy);
    let mut plan = Plan {
        conversation: &conversation,
        turns: Vec::new(),
        dropped: Vec::new(),
        timestamp,
        changes,
    };
    let next_turns = thread.turns.iter().skip(1).map(|turn| turn.elements.start);
    let ends: Vec<usize> = next_turns.chain([usize::MAX]).collect();
    for (turn, next_turn) in thread.turns.iter().zip(ends) {
        plan.turn(turn, next_turn);
    }
    plan.drop_orphans(&thread);
    let Plan {
        turns,
        dropped,
        changes,
        ..
    } = plan;
    Repaired {
        values: rebuild(conversation, turns, &dropped),
        changes,
    }
}

/// Gives calls without an id, and calls whose id another has, an id of their own, and their results the same.
fn rename(conversation: &mut Conversation, thread: &Thread, changes: &mut Vec<String>) {
    let wire = conversation.format.wire();
    let mut ids = Ids::default();
    let all: Vec<&str> = calls(thread)
        .map(|call| call.decoded.call.id.as_str())
        .collect();
    for id in &all {
        ids.take(id);
    }
    let mut seen = HashSet::new();
    for call in calls(thread).filter(|call| call.wants_id) {
        let id = call.decoded.call.id.as_str();
        let is_first = seen.insert(id);
        if is_first && !call.id_is_made_up() {
            continue;
        }
        let new = if is_first {
            id.to_owned()
        } else {
            ids.take_another(id)
        };
        changes.push(format!(
            "{}: {} got the id {new:?}",
            conversation.place(call.place.element),
            shown(call)
        ));
        let value = &mut conversation.elements[call.place.element].value;
        set(&mut wire.slots(value), call.place, wire.id_key(), &new);
        for result in &call.results {
            let value = &mut conversation.elements[result.place.element].value;
            set(
                &mut wire.result_slots(value),
                result.place,
                wire.result_id_key(),
                &new,
            );
        }
    }
}

fn calls(thread: &Thread) -> impl Iterator<Item = &thread::ThreadCall> {
    thread.turns.iter().flat_map(|turn| &turn.calls)
}

fn set(slots: &mut [&mut Map<String, Value>], place: Place, key: &str, id: &str) {
    slots[place.index].insert(key.to_owned(), id.into());
}

/// Arguments that are no object become the object that their text holds, or an empty one.
fn fix_arguments(conversation: &mut Conversation, thread: &Thread, changes: &mut Vec<String>) {
    let wire = conversation.format.wire();
    for call in calls(thread).filter(|call| call.has_bad_arguments()) {
        changes.push(format!(
            "{}: the arguments of {} became an object",
            conversation.place(call.place.element),
            shown(call)
        ));
        let value = &mut conversation.elements[call.place.element].value;
        let arguments = match &call.decoded.call.arguments {
            object @ Value::Object(_) => object.clone(),
            _ => json!({}),
        };
        wire.set_arguments(wire.slots(value)[call.place.index], arguments);
    }
}

/// What shall become of the results.
struct Plan<'c> {
    conversation: &'c Conversation,
    turns: Vec<Woven>,
    dropped: Vec<Place>,
    timestamp: u64,
    changes: Vec<String>,
}

impl Plan<'_> {
    fn turn(&mut self, turn: &ThreadTurn, next_turn: usize) {
        if turn.calls.is_empty() {
            return;
        }
        let missing: Vec<usize> = (0..turn.calls.len())
            .filter(|&index| turn.calls[index].results.is_empty())
            .collect();
        self.drop_repeated(turn);
        let is_in_place = missing.is_empty() && self.stands_right(turn, next_turn);
        if is_in_place {
            return;
        }
        for &index in &missing {
            let call = &turn.calls[index];
            self.change(
                call.place.element,
                &format!("{} got an error as its result", shown(call)),
            );
        }
        if missing.len() < turn.calls.len() && !self.stands_right(turn, next_turn) {
            let text = "the results were put behind it, in the order of the calls";
            self.change(turn.elements.start, text);
        }
        let made_up = self.made_up(turn, &missing);
        let answer = self
            .conversation
            .format
            .wire()
            .answer(&made_up.0, &replies(&made_up.1));
        let mut new = answer.units.into_iter();
        let units = turn
            .calls
            .iter()
            .filter_map(|call| match call.results.first() {
                Some(result) => Some(Unit::Kept(result.place)),
                None => new.next().map(Unit::New),
            });
        let units = units.collect();
        self.turns.push(Woven {
            after: turn.elements.end - 1,
            units,
            extras: Vec::new(),
        });
    }

    fn change(&mut self, element: usize, text: &str) {
        let place = self.conversation.place(element);
        self.changes.push(format!("{place}: {text}"));
    }

    /// Whether the results that there are stand directly behind the turn, in order, and before the next one.
    fn stands_right(&self, turn: &ThreadTurn, next_turn: usize) -> bool {
        let wire = self.conversation.format.wire();
        let places: Vec<Place> = turn
            .calls
            .iter()
            .filter_map(|call| Some(call.results.first()?.place))
            .collect();
        let in_order = places.windows(2).all(|pair| pair[0] < pair[1]);
        let last = places
            .last()
            .map_or(turn.elements.end, |place| place.element + 1);
        let holds_results = |element: usize| {
            let value = &self.conversation.elements[element].value;
            !wire.read(value).results.is_empty() && wire.results_lead(value)
        };
        // Looked at last: results far behind would have every turn read all that is between.
        in_order && last <= next_turn && (turn.elements.end..last).all(holds_results)
    }

    fn drop_repeated(&mut self, turn: &ThreadTurn) {
        for call in &turn.calls {
            for result in call.results.iter().skip(1) {
                self.change(
                    result.place.element,
                    &format!("a second result of {} was dropped", shown(call)),
                );
                self.dropped.push(result.place);
            }
        }
    }

    fn drop_orphans(&mut self, thread: &Thread) {
        for &place in &thread.orphans {
            self.change(place.element, "a result without a call was dropped");
            self.dropped.push(place);
        }
    }

    /// Error results for calls that have none.
    fn made_up(&self, turn: &ThreadTurn, missing: &[usize]) -> (Turn, Vec<ToolResultMessage>) {
        let calls = missing.iter().map(|&index| &turn.calls[index].decoded);
        let messages = calls.clone().map(|decoded| {
            let result = ToolResult::thrown(NO_RESULT);
            ToolResultMessage {
                tool_call_id: decoded.call.id.clone(),
                tool_name: decoded.call.name.clone(),
                content: result.content,
                details: result.details,
                usage: None,
                nested_calls: None,
                is_error: true,
                duration_ms: None,
                timestamp: self.timestamp,
            }
        });
        let messages = messages.collect();
        let turn = Turn {
            format: self.conversation.format,
            message: Value::Null,
            calls: calls.clone().map(|decoded| decoded.call.clone()).collect(),
            stop_reason: None,
            warnings: Vec::new(),
            line: 0,
            origins: calls.map(|decoded| decoded.origin.clone()).collect(),
            in_list: false,
            elements: turn.elements.clone(),
        };
        (turn, messages)
    }
}

fn rebuild(conversation: Conversation, turns: Vec<Woven>, dropped: &[Place]) -> Vec<Value> {
    let elements: Vec<Value> = conversation
        .elements
        .into_iter()
        .map(|element| element.value)
        .collect();
    match conversation.body {
        Body::List => vec![Value::Array(weave(
            conversation.format,
            elements,
            turns,
            dropped,
        ))],
        Body::Lines(_) => weave(conversation.format, elements, turns, dropped),
        Body::Session { session, entries } => {
            rebuild_session(session, &entries, elements, turns, dropped)
        }
    }
}

/// In a session file an element is an entry: results are taken out of the tree and put in again elsewhere.
fn rebuild_session(
    mut session: Session,
    entries: &[usize],
    mut elements: Vec<Value>,
    turns: Vec<Woven>,
    dropped: &[Place],
) -> Vec<Value> {
    for (&entry, element) in entries.iter().zip(&elements) {
        session.set_message(entry, element);
    }
    let kept = turns.iter().flat_map(|turn| &turn.units);
    let moved = kept.filter_map(|unit| match unit {
        Unit::Kept(place) => Some(place),
        Unit::New(_) => None,
    });
    session.take_out(moved.chain(dropped).map(|place| entries[place.element]));
    let insertions = turns.into_iter().map(|turn| {
        let messages = turn.units.into_iter().map(|unit| match unit {
            Unit::New(message) => message,
            Unit::Kept(place) => elements[place.element].take(),
        });
        (entries[turn.after], messages.collect())
    });
    session.insert(insertions.collect());
    session.into_values()
}

#[cfg(test)]
mod tests;

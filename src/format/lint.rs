//! What is wrong with the calls and results of a transcript.
//!
//! Every provider refuses a request whose transcript has an unanswered call or a result of no call; the other rules are
//! those that at least one of them has, and one of our own: calls that were cut off must not have run.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;

use super::conversation::Conversation;
use super::stop_reason::keeps_calls_from_running;
use super::thread::{self, FoundResult, Place, Thread, ThreadCall, ThreadTurn};
use super::turn::Arguments;

/// Something that is wrong with a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    /// Where: `line 7`, or `message 7` in an array.
    pub place: String,
    /// The rule, in a word that scripts can rely on.
    pub rule: &'static str,
    /// The call that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// What is wrong.
    pub message: String,
}

/// Finds the faults of a transcript, message by message.
pub fn lint(conversation: &Conversation) -> Vec<Fault> {
    let thread = thread::read(conversation.format, &conversation.elements, Arguments::Copy);
    let mut found = Vec::new();
    let mut lint = Lint {
        conversation,
        ids: HashSet::new(),
        found: &mut found,
    };
    for (index, turn) in thread.turns.iter().enumerate() {
        let next_turn = thread.turns.get(index + 1);
        lint.turn(
            turn,
            next_turn.map_or(usize::MAX, |next| next.elements.start),
        );
    }
    lint.orphans(&thread);
    found.sort_by_key(|(element, _)| *element);
    found.into_iter().map(|(_, fault)| fault).collect()
}

struct Lint<'c> {
    conversation: &'c Conversation,
    ids: HashSet<String>,
    /// With the element that they are about.
    found: &'c mut Vec<(usize, Fault)>,
}

impl Lint<'_> {
    fn add(
        &mut self,
        element: usize,
        rule: &'static str,
        call: Option<&ThreadCall>,
        message: String,
    ) {
        let fault = Fault {
            place: self.conversation.place(element),
            rule,
            call_id: call.map(|call| call.decoded.call.id.clone()),
            message,
        };
        self.found.push((element, fault));
    }

    fn turn(&mut self, turn: &ThreadTurn, next_turn: usize) {
        for call in &turn.calls {
            self.id(call);
            self.arguments(call);
            self.results(turn, call, next_turn);
        }
        self.order(turn);
        self.interruptions(turn, next_turn);
    }

    fn id(&mut self, call: &ThreadCall) {
        let element = call.place.element;
        if call.id_is_made_up() {
            let message = format!("{} has no id", shown(call));
            self.add(element, "missing-id", Some(call), message);
        } else if call.wants_id && !self.ids.insert(call.decoded.call.id.clone()) {
            let message = format!("{} has an id that another call has", shown(call));
            self.add(element, "repeated-id", Some(call), message);
        }
    }

    fn arguments(&mut self, call: &ThreadCall) {
        if call.has_bad_arguments() {
            let message = format!("the arguments of {} are no JSON object", shown(call));
            self.add(call.place.element, "bad-arguments", Some(call), message);
        }
    }

    fn results(&mut self, turn: &ThreadTurn, call: &ThreadCall, next_turn: usize) {
        let Some(first) = call.results.first() else {
            let message = format!("{} has no result", shown(call));
            self.add(call.place.element, "missing-result", Some(call), message);
            return;
        };
        if first.place.element >= next_turn {
            let message = format!(
                "the result of {} comes after the next turn of the model",
                shown(call)
            );
            self.add(first.place.element, "late-result", Some(call), message);
        }
        for further in &call.results[1..] {
            let message = format!("{} has another result already", shown(call));
            self.add(
                further.place.element,
                "repeated-result",
                Some(call),
                message,
            );
        }
        let stop_reason = turn.stop_reason.as_deref().unwrap_or_default();
        if keeps_calls_from_running(stop_reason) && first.is_error == Some(false) {
            let message = format!(
                "{} ran, although the response ended with stop reason \"{stop_reason}\"",
                shown(call)
            );
            self.add(first.place.element, "truncated-call", Some(call), message);
        }
    }

    /// Results in another order than their calls.
    fn order(&mut self, turn: &ThreadTurn) {
        let results: Vec<(&ThreadCall, &FoundResult)> = turn
            .calls
            .iter()
            .filter_map(|call| Some((call, call.results.first()?)))
            .collect();
        for pair in results.windows(2) {
            let [(_, earlier), (call, result)] = pair else {
                continue;
            };
            if result.place < earlier.place {
                let message = format!(
                    "the result of {} comes before that of an earlier call",
                    shown(call)
                );
                self.add(result.place.element, "order", Some(call), message);
            }
        }
    }

    /// Something that stands between a turn and its results.
    fn interruptions(&mut self, turn: &ThreadTurn, next_turn: usize) {
        let wire = self.conversation.format.wire();
        let elements: Vec<usize> = turn
            .calls
            .iter()
            .filter_map(|call| call.results.first())
            .map(|result| result.place.element)
            .filter(|&element| element < next_turn)
            .collect();
        let Some(&last) = elements.iter().max() else {
            return;
        };
        for element in turn.elements.end..=last {
            let value = &self.conversation.elements[element].value;
            let says = if !holds_results(self.conversation, value) {
                "stands between calls and their results"
            } else if !wire.results_lead(value) {
                "has something before its results"
            } else {
                continue;
            };
            self.add(element, "interruption", None, format!("the message {says}"));
        }
    }

    fn orphans(&mut self, thread: &Thread) {
        let of_one_element = |one: &Place, other: &Place| one.element == other.element;
        for places in thread.orphans.chunk_by(of_one_element) {
            let element = places[0].element;
            let value = &self.conversation.elements[element].value;
            let entry = self.conversation.format.wire().read(value);
            for place in places {
                let id = entry.results[place.index].id.text();
                let message = match &id {
                    Some(id) => format!("the result for {id:?} has no call before it"),
                    None => "a result without an id has no call before it".to_owned(),
                };
                let fault = Fault {
                    place: self.conversation.place(element),
                    rule: "orphan-result",
                    call_id: id,
                    message,
                };
                self.found.push((element, fault));
            }
        }
    }
}

fn holds_results(conversation: &Conversation, value: &Value) -> bool {
    !conversation.format.wire().read(value).results.is_empty()
}

/// A call in a message for people.
pub(super) fn shown(call: &ThreadCall) -> String {
    format!(
        "call {:?} of {:?}",
        call.decoded.call.id, call.decoded.call.name
    )
}

//! Messages of all formats: read, answered, woven, linted and repaired.

use std::io::BufReader;

use pitool::format::{
    Conversation, Documents, Format, Input, InputOptions, Keep, Rerun, Turn, encode, lint, repair,
};
use pitool::json;
use pitool::message::{Content, ToolResultMessage};
use serde_json::Value;

use crate::harness::{Observed, Target};

pub(crate) const TARGET: Target = Target {
    name: "messages",
    beside: &["samples", "tests/golden/format"],
    inputs: 1_500,
    check,
};

fn check(input: &[u8], observed: &mut Observed) {
    let shape = input
        .iter()
        .fold(input.len(), |sum, byte| sum + usize::from(*byte));
    let forced = Format::ALL.get(shape % 16).copied();
    for from in [None, forced] {
        read_and_answer(input, from, observed);
        repaired_is_accepted(input, from, observed);
    }
}

fn options(from: Option<Format>, keep: Keep) -> InputOptions {
    InputOptions {
        from,
        rerun: Rerun::Unanswered,
        keep,
    }
}

fn read_and_answer(input: &[u8], from: Option<Format>, observed: &mut Observed) {
    let documents: Vec<_> = Documents::new(input, options(from, Keep::Documents)).collect();
    let pieces = BufReader::with_capacity(5, input);
    let pieces: Vec<_> = Documents::new(pieces, options(from, Keep::Documents)).collect();
    assert_eq!(documents, pieces, "read in pieces");
    let turns = Input::new(input, options(from, Keep::Messages)).filter_map(Result::ok);
    let calls: usize = turns.map(|turn| turn.calls.len()).sum();
    let mut answered = 0;
    for document in documents {
        match document {
            Err(error) => observed.sentence(&error.message),
            Ok(document) => {
                let results: Vec<_> = document.turns.iter().map(results).collect();
                answered += results.iter().map(Vec::len).sum::<usize>();
                for (turn, results) in document.turns.iter().zip(&results) {
                    encoded_in_every_format(turn, results, observed);
                }
                for value in document.answered(&results) {
                    is_json(&value);
                }
            }
        }
    }
    assert_eq!(answered, calls, "turn by turn and as documents");
}

fn results(turn: &Turn) -> Vec<ToolResultMessage> {
    let result = |call: &pitool::message::ToolCall| {
        assert!(!call.id.is_empty(), "every call has an id");
        assert!(json::depth(&call.arguments) <= json::MAX_DEPTH);
        ToolResultMessage {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content: vec![Content::text(call.name.clone())],
            details: None,
            usage: None,
            nested_calls: None,
            is_error: call.arguments_error.is_some(),
            duration_ms: None,
            timestamp: 0,
        }
    };
    turn.calls.iter().map(result).collect()
}

fn encoded_in_every_format(turn: &Turn, results: &[ToolResultMessage], observed: &mut Observed) {
    observed.fact((
        turn.format.name(),
        turn.calls.len().min(3),
        turn.warnings.len().min(3),
    ));
    for to in Format::ALL {
        let values = encode(turn, to, results);
        assert_eq!(values.is_empty(), results.is_empty(), "{to}");
        values.iter().for_each(is_json);
    }
}

fn is_json(value: &Value) {
    let text = json::compact(value);
    assert!(json::parse(text.as_bytes()).is_ok(), "{text}");
}

fn repaired_is_accepted(input: &[u8], from: Option<Format>, observed: &mut Observed) {
    let Ok(conversation) = Conversation::read(input, from) else {
        return;
    };
    let format = conversation.format();
    for fault in lint(&conversation) {
        observed.fact(fault.rule);
    }
    let repaired = repair(conversation, 0);
    let lines: Vec<String> = repaired.values.iter().map(json::compact).collect();
    let again = Conversation::read(lines.join("\n").as_bytes(), Some(format));
    let again = match again {
        Ok(again) => again,
        // Of an input with a few results without a call only what is of no known shape is left.
        Err(error) if error.message.starts_with("expected a message") => return,
        Err(error) => panic!("{error}: {lines:?}"),
    };
    let left = lint(&again);
    observed.fact(left.is_empty());
    let twice = repair(again, 0);
    assert_eq!(
        twice.changes, [""; 0],
        "repaired twice: {left:?} in {lines:?}"
    );
}

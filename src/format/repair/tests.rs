use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::format::Format;
use crate::format::lint;

/// The conversation of a text: an array, or lines.
fn read(text: &str, from: Option<Format>) -> Conversation {
    Conversation::read(text.as_bytes(), from).unwrap()
}

fn rules(conversation: &Conversation) -> Vec<String> {
    lint(conversation)
        .into_iter()
        .map(|fault| format!("{}: {}", fault.place, fault.rule))
        .collect()
}

/// The faults of a list of messages, and the list after repair.
#[track_caller]
fn case(messages: &Value, faults: &[&str], repaired: &Value) {
    let conversation = read(&messages.to_string(), None);
    assert_eq!(rules(&conversation), faults);
    let repair = repair(conversation, 7);
    assert_eq!(
        repair.values,
        std::slice::from_ref(repaired),
        "{:?}",
        repair.changes
    );
    assert_eq!(repair.changes.is_empty(), messages == repaired);
}

fn call(id: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "echo", "arguments": {}})
}

fn asks(ids: &[&str]) -> Value {
    let blocks: Vec<Value> = ids.iter().map(|id| call(id)).collect();
    json!({"role": "assistant", "content": blocks})
}

fn answers(id: &str) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "echo", "content": [], "isError": false})
}

fn made_up(id: &str) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "echo",
        "content": [{"type": "text", "text": NO_RESULT}], "details": {}, "isError": true, "timestamp": 7})
}

fn user() -> Value {
    json!({"role": "user", "content": "go on"})
}

#[test]
fn a_sound_transcript_stays_as_it_is() {
    let sound = json!([
        user(),
        asks(&["a", "b"]),
        answers("a"),
        answers("b"),
        user(),
        asks(&[])
    ]);
    case(&sound, &[], &sound);
    case(&json!([]), &[], &json!([]));
}

#[test]
fn missing_results_become_errors() {
    case(
        &json!([asks(&["a", "b"]), answers("b"), user()]),
        &["message 1: missing-result"],
        &json!([asks(&["a", "b"]), made_up("a"), answers("b"), user()]),
    );
}

#[test]
fn results_without_a_call_go() {
    case(
        &json!([answers("a"), asks(&["a"]), answers("a"), answers("x")]),
        &["message 1: orphan-result", "message 4: orphan-result"],
        &json!([asks(&["a"]), answers("a")]),
    );
}

#[test]
fn second_results_go() {
    case(
        &json!([asks(&["a"]), answers("a"), answers("a")]),
        &["message 3: repeated-result"],
        &json!([asks(&["a"]), answers("a")]),
    );
}

#[test]
fn results_come_behind_their_turn_in_its_order() {
    case(
        &json!([asks(&["a", "b"]), answers("b"), answers("a")]),
        &["message 2: order"],
        &json!([asks(&["a", "b"]), answers("a"), answers("b")]),
    );
    case(
        &json!([asks(&["a"]), user(), answers("a")]),
        &["message 2: interruption"],
        &json!([asks(&["a"]), answers("a"), user()]),
    );
    case(
        &json!([asks(&["a"]), asks(&["b"]), answers("b"), answers("a")]),
        &["message 4: late-result"],
        &json!([asks(&["a"]), answers("a"), asks(&["b"]), answers("b")]),
    );
}

#[test]
fn ids_become_unique() {
    case(
        &json!([asks(&["a"]), answers("a"), asks(&["a"]), answers("a")]),
        &["message 3: repeated-id"],
        &json!([asks(&["a"]), answers("a"), asks(&["a_2"]), answers("a_2")]),
    );
    case(
        &json!([
            asks(&["x", "x", "x_2"]),
            answers("x"),
            answers("x"),
            answers("x_2")
        ]),
        &["message 1: repeated-id"],
        &json!([
            asks(&["x", "x_3", "x_2"]),
            answers("x"),
            answers("x_3"),
            answers("x_2")
        ]),
    );
    case(
        &json!([asks(&[""])]),
        &["message 1: missing-id", "message 1: missing-result"],
        &json!([asks(&["call_1"]), made_up("call_1")]),
    );
}

#[test]
fn calls_that_were_cut_off_and_ran_are_named_and_stay() {
    let mut cut_off = asks(&["a"]);
    cut_off["stopReason"] = json!("length");
    let transcript = json!([cut_off, answers("a")]);
    case(&transcript, &["message 2: truncated-call"], &transcript);
}

#[test]
fn arguments_become_objects() {
    let with = |arguments: Value| {
        json!([{"role": "assistant", "content": [
        {"type": "toolCall", "id": "a", "name": "echo", "arguments": arguments}]}, answers("a")])
    };
    let fault = ["message 1: bad-arguments"];
    case(&with(json!("{\"x\":1}")), &fault, &with(json!({"x": 1})));
    case(&with(json!([1])), &fault, &with(json!({})));
    let text = |arguments: &str| {
        json!([
        {"role": "assistant", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "echo", "arguments": arguments}}]},
        {"role": "tool", "tool_call_id": "a", "content": "x"}])
    };
    case(&text("{\"x\":"), &fault, &text("{}"));
    case(&text(""), &[], &text(""));
}

#[test]
fn anthropic_wants_all_results_first_in_the_next_message() {
    let asks = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "a", "name": "echo", "input": {}},
        {"type": "tool_use", "id": "b", "name": "echo", "input": {}}]});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "x"});
    let text = json!({"type": "text", "text": "hi"});
    case(
        &json!([asks, {"role": "user", "content": [text, result("b")]}, {"role": "user", "content": [result("a")]}]),
        &["message 2: order", "message 2: interruption"],
        &json!([asks, {"role": "user", "content": [result("a"), result("b"), text]}]),
    );
}

#[test]
fn openai_and_gemini_transcripts_are_repaired_in_their_own_words() {
    let call = json!({"role": "assistant", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "echo", "arguments": "{}"}}]});
    case(
        &json!([call, user()]),
        &["message 1: missing-result"],
        &json!([call, {"role": "tool", "tool_call_id": "a", "content": NO_RESULT}, user()]),
    );
    let call = json!({"role": "model", "parts": [{"functionCall": {"name": "echo", "args": {}}},
        {"functionCall": {"name": "other", "args": {}}}]});
    let result = json!({"functionResponse": {"name": "other", "response": {"output": "x"}}});
    let missing = json!({"functionResponse": {"name": "echo", "response": {"error": NO_RESULT}}});
    case(
        &json!([call, {"role": "user", "parts": [result]}]),
        &["message 1: missing-result"],
        &json!([call, {"role": "user", "parts": [missing, result]}]),
    );
}

#[test]
fn lines_stay_lines_and_are_named() {
    let text = format!("{}\n\n{}\n", asks(&["a"]), user());
    let conversation = read(&text, None);
    assert_eq!(rules(&conversation), ["line 1: missing-result"]);
    assert_eq!(
        repair(conversation, 7).values,
        [asks(&["a"]), made_up("a"), user()]
    );
}

#[test]
fn a_session_file_stays_a_tree() {
    let entry = |id: &str, parent: Option<&str>, message: Value| json!({"type": "message", "id": id, "parentId": parent, "timestamp": "t", "message": message});
    let header = json!({"type": "session", "version": 3, "id": "s", "timestamp": "t"});
    let entries = [
        header.clone(),
        entry("1", None, asks(&["a", "b"])),
        entry("2", Some("1"), user()),
        entry("3", Some("2"), answers("b")),
        entry("4", Some("3"), answers("x")),
    ];
    let lines: Vec<String> = entries.iter().map(Value::to_string).collect();
    let conversation = read(&lines.join("\n"), None);
    assert_eq!(
        rules(&conversation),
        [
            "line 2: missing-result",
            "line 3: interruption",
            "line 5: orphan-result"
        ]
    );
    let expected = [
        header,
        entry("1", None, asks(&["a", "b"])),
        entry("00000005", Some("1"), made_up("a")),
        entry("00000006", Some("00000005"), answers("b")),
        entry("2", Some("00000006"), user()),
    ];
    assert_eq!(repair(conversation, 7).values, expected);
}

#[test]
fn what_cannot_be_read_is_an_error_with_its_line() {
    let error = Conversation::read(&b"{\"role\":\"user\"}\n{\"role\":\n"[..], None).unwrap_err();
    assert_eq!(error.line, 2);
    let error = Conversation::read(&b"[{\"foo\":1}]"[..], None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 1: expected a message of a known format, got an object with foo"
    );
    let error =
        Conversation::read(&b"[{\"role\":\"user\",\"content\":\"x\"},null]"[..], None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 1: message 2: expected a message in the pi format, got null"
    );
}

/// One step of a random transcript: calls with these ids, a result with this id, or a message of the user.
#[derive(Debug, Clone)]
enum Step {
    Calls(Vec<String>),
    Result(String),
    User,
}

fn any_step() -> impl Strategy<Value = Step> {
    let id = || prop_oneof![Just(String::new()), "[ab]", "call_[12]"];
    prop_oneof![
        prop::collection::vec(id(), 0..3).prop_map(Step::Calls),
        id().prop_map(Step::Result),
        Just(Step::User),
    ]
}

fn written(step: &Step, format: Format) -> Value {
    match (format, step) {
        (Format::Gemini, Step::User) => json!({"role": "user", "parts": [{"text": "hi"}]}),
        (Format::OpenaiResponses | Format::Openai | Format::Anthropic, Step::User) => user(),
        (Format::Pi | Format::Mcp, Step::User) => json!({"role": "user", "content": []}),
        (Format::Anthropic, Step::Calls(ids)) => {
            let block = |id| json!({"type": "tool_use", "id": id, "name": "echo", "input": {}});
            json!({"role": "assistant", "content": ids.iter().map(block).collect::<Vec<_>>()})
        }
        (Format::Anthropic, Step::Result(id)) => json!({"role": "user", "content": [
            {"type": "text", "text": "hm"}, {"type": "tool_result", "tool_use_id": id, "content": "x"}]}),
        (Format::Openai, Step::Calls(ids)) => {
            let call = |id| json!({"id": id, "type": "function", "function": {"name": "echo", "arguments": "{}"}});
            json!({"role": "assistant", "tool_calls": ids.iter().map(call).collect::<Vec<_>>()})
        }
        (Format::Openai, Step::Result(id)) => {
            json!({"role": "tool", "tool_call_id": id, "content": "x"})
        }
        (Format::OpenaiResponses, Step::Calls(ids)) => {
            let id = ids.first().cloned().unwrap_or_default();
            json!({"type": "function_call", "call_id": id, "name": "echo", "arguments": "{}"})
        }
        (Format::OpenaiResponses, Step::Result(id)) => {
            json!({"type": "function_call_output", "call_id": id, "output": "x"})
        }
        (Format::Gemini, Step::Calls(ids)) => {
            let part =
                |id: &String| json!({"functionCall": {"id": id, "name": "echo", "args": {}}});
            json!({"role": "model", "parts": ids.iter().map(part).collect::<Vec<_>>()})
        }
        (Format::Gemini, Step::Result(id)) => json!({"role": "user", "parts": [
            {"functionResponse": {"id": id, "name": "echo", "response": {}}}]}),
        (Format::Pi | Format::Mcp, Step::Calls(ids)) => {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            asks(&ids)
        }
        (Format::Pi | Format::Mcp, Step::Result(id)) => answers(id),
    }
}

proptest! {
    #[test]
    fn a_repaired_transcript_has_no_faults_and_stays_as_it_is(
        steps in prop::collection::vec(any_step(), 0..12),
    ) {
        for format in [
            Format::Pi,
            Format::Anthropic,
            Format::Openai,
            Format::OpenaiResponses,
            Format::Gemini,
        ] {
            let messages: Vec<Value> = steps.iter().map(|step| written(step, format)).collect();
            let transcript = Value::from(messages).to_string();
            let first = repair(read(&transcript, Some(format)), 7).values.remove(0);
            let again = read(&first.to_string(), Some(format));
            prop_assert_eq!(rules(&again), Vec::<String>::new(), "{} became {}", transcript, first);
            let second = repair(again, 7);
            prop_assert_eq!(&second.changes, &Vec::<String>::new());
            prop_assert_eq!(second.values, [first]);
        }
    }
}

/// So many turns, each with a message behind it: each would be searched for each result, were calls not found by their
/// ids.
fn many(
    turns: usize,
    call: impl Fn(usize) -> Value,
    result: impl Fn(usize) -> Value,
) -> Vec<Value> {
    let turn = |n| {
        let mut asks = asks(&[]);
        asks["content"] = json!([call(n)]);
        [asks, result(n)]
    };
    (0..turns).flat_map(turn).collect()
}

fn answers_to(id: &str) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "echo", "content": [], "isError": false})
}

#[test]
fn a_huge_transcript_of_orphans_is_linear() {
    let messages = many(
        100_000,
        |n| call(&format!("c{n}")),
        |n| answers_to(&format!("other{n}")),
    );
    let conversation = read(&Value::from(messages).to_string(), None);
    assert_eq!(lint(&conversation).len(), 200_000);
    let repair = repair(conversation, 7);
    assert_eq!(repair.changes.len(), 200_000);
    assert_eq!(repair.values[0].as_array().unwrap().len(), 200_000);
}

#[test]
fn a_huge_transcript_of_one_id_or_none_is_linear() {
    for id in ["same", ""] {
        let messages = many(20_000, |_| call(id), |_| answers_to(id));
        let conversation = read(&Value::from(messages).to_string(), None);
        let repair = repair(conversation, 7);
        let again = read(&repair.values[0].to_string(), None);
        assert_eq!(rules(&again), [""; 0], "{id:?}");
    }
}

#[test]
fn a_huge_session_is_linear() {
    let mut lines = json!({"type": "session", "version": 3, "id": "s"}).to_string();
    let messages = many(
        20_000,
        |n| call(&format!("c{n}")),
        |n| answers_to(&format!("other{n}")),
    );
    for (n, message) in messages.into_iter().enumerate() {
        let parent = n.checked_sub(1).map(|n| format!("e{n}"));
        let entry = json!({"type": "message", "id": format!("e{n}"), "parentId": parent, "message": message});
        lines += &format!("\n{entry}");
    }
    let repair = repair(read(&lines, None), 7);
    assert_eq!(repair.values.len(), 40_001);
    let lines: Vec<String> = repair.values.iter().map(Value::to_string).collect();
    assert_eq!(rules(&read(&lines.join("\n"), None)), [""; 0]);
}

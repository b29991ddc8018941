//! What is read, and what is refused.

use serde_json::json;

use super::*;

fn read(text: &str, options: InputOptions) -> Vec<Result<Turn, InputError>> {
    Input::new(text.as_bytes(), options).collect()
}

/// The ids of the calls of each turn; an error is its text.
#[track_caller]
fn case(text: &str, expected: &[&str]) {
    case_with(text, InputOptions::default(), expected);
}

#[track_caller]
fn case_with(text: &str, options: InputOptions, expected: &[&str]) {
    let found: Vec<String> = read(text, options)
        .into_iter()
        .map(|turn| match turn {
            Ok(turn) => {
                let ids: Vec<&str> = turn.calls.iter().map(|call| call.id.as_str()).collect();
                format!("{}: {}", turn.line, ids.join(" "))
            }
            Err(error) => error.to_string(),
        })
        .collect();
    assert_eq!(found, expected);
}

const RERUN: InputOptions = InputOptions {
    from: None,
    rerun: Rerun::All,
    keep: Keep::Messages,
};

fn call(id: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "echo", "arguments": {}})
}

fn asks(ids: &[&str]) -> Value {
    let blocks: Vec<Value> = ids.iter().map(|id| call(id)).collect();
    json!({"role": "assistant", "content": blocks, "stopReason": "toolUse"})
}

fn answers(id: &str) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "echo", "content": [], "isError": false})
}

#[test]
fn a_message_on_its_own_line_always_runs() {
    let lines = format!(
        "{}\n\n{}\n{}\n",
        asks(&["a", "b"]),
        answers("a"),
        asks(&["c"])
    );
    case(&lines, &["1: a b", "4: c"]);
}

#[test]
fn a_message_without_calls_is_a_turn_without_calls() {
    case(r#"{"role":"assistant","content":"hi"}"#, &["1: "]);
    case(r#"{"role":"user","content":"hi"}"#, &[]);
    case("", &[]);
    case("[]", &[]);
}

#[test]
fn in_an_array_only_calls_without_a_result_run() {
    let list = json!([asks(&["a", "b"]), answers("a"), asks(&["c"]), answers("c")]);
    case(&list.to_string(), &["1: b"]);
    case_with(&list.to_string(), RERUN, &["1: a b", "1: c"]);
}

#[test]
fn a_result_belongs_to_the_nearest_open_call_with_its_id() {
    let again = json!([asks(&["x"]), answers("x"), asks(&["x"])]);
    case(&again.to_string(), &["1: x"]);
    let first_is_open = json!([asks(&["x"]), asks(&["x"]), answers("x")]);
    let turns = read(&first_is_open.to_string(), InputOptions::default());
    assert_eq!(turns.len(), 1);
    let twice = json!([asks(&["x", "x"]), answers("x")]);
    case(&twice.to_string(), &["1: x"]);
}

#[test]
fn a_number_as_an_id_is_the_text_of_it() {
    let mut call = asks(&["x"]);
    call["content"][0]["id"] = json!(7);
    case(&call.to_string(), &["1: 7"]);
    case(&json!([call, answers("7")]).to_string(), &[]);
}

#[test]
fn bad_lines_are_reported_and_reading_goes_on() {
    let lines = format!(
        "{}\n{{\"role\":\n{}\n5\n{{\"a\":1}}\n",
        asks(&["a"]),
        asks(&["b"])
    );
    let found = read(&lines, InputOptions::default());
    let errors: Vec<usize> = found
        .iter()
        .filter_map(|turn| turn.as_ref().err())
        .map(|error| error.line)
        .collect();
    assert_eq!(errors, [2, 4, 5]);
    assert_eq!(found.iter().filter(|turn| turn.is_ok()).count(), 2);
}

#[test]
fn what_is_no_message_is_named() {
    case(
        "5",
        &["line 1: expected a message of a known format, got a number"],
    );
    case(
        r#"{"foo":1,"bar":2}"#,
        &["line 1: expected a message of a known format, got an object with foo, bar"],
    );
    case(
        r#"{"type":"error","error":{"type":"x","message":"Overloaded"}}"#,
        &["line 1: expected a message, got an API error: Overloaded"],
    );
    case(
        "[1]",
        &["line 1: message 1: expected a message of a known format, got a number"],
    );
}

#[test]
fn missing_ids_become_the_next_free_number() {
    let message = json!({"role": "assistant", "content": [
        call("call_2"), call(""), {"type": "toolCall", "arguments": {}}, call("call_3"),
    ]});
    case(&message.to_string(), &["1: call_2 call_4 call_5 call_3"]);
    let turn = read(&message.to_string(), InputOptions::default())
        .remove(0)
        .unwrap();
    assert_eq!(turn.calls[2].name, "");
    assert_eq!(turn.message["content"][1]["id"], "call_4");
    assert_eq!(
        turn.warnings,
        [
            "call 2 has no id and is answered as \"call_4\"",
            "call 3 has no id and is answered as \"call_5\"",
            "call 3 has no name",
        ]
    );
}

#[test]
fn repeated_ids_are_kept_with_a_warning() {
    let turn = read(&asks(&["x", "x"]).to_string(), InputOptions::default())
        .remove(0)
        .unwrap();
    assert_eq!(turn.calls.len(), 2);
    assert_eq!(turn.warnings.len(), 1, "{:?}", turn.warnings);
}

#[test]
fn arguments_text_absence_and_errors_are_decoded() {
    let message = json!({"role": "assistant", "content": [
        {"type": "toolCall", "id": "1", "name": "a", "arguments": "{\"x\":1}"},
        {"type": "toolCall", "id": "2", "name": "a"},
        {"type": "toolCall", "id": "3", "name": "a", "arguments": null},
        {"type": "toolCall", "id": "4", "name": "a", "arguments": "null"},
        {"type": "toolCall", "id": "5", "name": "a", "arguments": {}, "argumentsError": "bad"},
        {"type": "toolCall", "id": "6", "name": "a", "arguments": {}, "argumentsError": ""},
    ]});
    let turn = read(&message.to_string(), InputOptions::default())
        .remove(0)
        .unwrap();
    let decoded: Vec<(Value, Option<String>)> = turn
        .calls
        .into_iter()
        .map(|call| (call.arguments, call.arguments_error))
        .collect();
    let not_an_object = "Tool arguments must be a JSON object\n\nReceived arguments:\nnull";
    assert_eq!(
        decoded,
        [
            (json!({"x": 1}), None),
            (json!({}), None),
            (json!(null), None),
            (json!({}), Some(not_an_object.to_owned())),
            (json!({}), Some("bad".to_owned())),
            (json!({}), None),
        ]
    );
}

#[test]
fn a_message_in_pi_form_is_carried_as_it_is() {
    let mut message = asks(&["a"]);
    message["usage"] = json!({"input": 1});
    let turn = read(&message.to_string(), InputOptions::default())
        .remove(0)
        .unwrap();
    assert_eq!(turn.message.to_string(), message.to_string());
    assert_eq!(turn.stop_reason.as_deref(), Some("toolUse"));
}

#[test]
fn keeping_calls_only_leaves_the_message_out() {
    let options = InputOptions {
        keep: Keep::Calls,
        ..InputOptions::default()
    };
    let turn = read(&asks(&["a"]).to_string(), options).remove(0).unwrap();
    assert_eq!(turn.message, Value::Null);
    assert_eq!(turn.calls.len(), 1);
    let everything = |keep| {
        let options = InputOptions {
            keep,
            ..InputOptions::default()
        };
        let text = every_format() + &deep();
        let turns: Vec<Turn> = read(&text, options)
            .into_iter()
            .map(Result::unwrap)
            .collect();
        turns.into_iter().map(|turn| turn.calls).collect::<Vec<_>>()
    };
    assert_eq!(everything(Keep::Calls), everything(Keep::Messages));
}

/// Arguments that are values, text, absent and too deep, in every format that has them.
fn every_format() -> String {
    let values = [
        json!({"x": [1]}),
        json!("{\"y\":2}"),
        json!(null),
        json!([3]),
    ];
    let mut lines = Vec::new();
    for arguments in values {
        lines.push(json!({"role": "assistant", "content": [
            {"type": "toolCall", "id": "1", "name": "a", "arguments": arguments}, {"type": "toolCall", "id": "2"}]}));
        lines.push(json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": "1", "name": "a", "input": arguments}]}));
        lines.push(json!({"role": "assistant", "tool_calls": [
            {"id": "1", "function": {"name": "a", "arguments": arguments}}]}));
        lines.push(
            json!({"type": "function_call", "call_id": "1", "name": "a", "arguments": arguments}),
        );
        lines.push(
            json!({"role": "model", "parts": [{"functionCall": {"name": "a", "args": arguments}}]}),
        );
        lines.push(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "a", "arguments": arguments}}));
    }
    lines.iter().map(|line| line.to_string() + "\n").collect()
}

/// A call whose arguments are nested too deep.
fn deep() -> String {
    let nested = format!("{}{}", "[".repeat(600), "]".repeat(600));
    format!(
        r#"{{"role":"assistant","content":[{{"type":"toolCall","id":"1","name":"a","arguments":{{"a":{nested}}}}}]}}"#
    )
}

/// A session whose branch was left at `b` for `c`.
fn session() -> Vec<Value> {
    let entry = |id: &str, parent: Option<&str>, message: Value| {
        json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-11-30T00:00:00.000Z",
            "message": message})
    };
    vec![
        json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-11-30T00:00:00.000Z"}),
        entry("a", None, asks(&["one", "two"])),
        entry("r", Some("a"), answers("one")),
        entry("b", Some("r"), asks(&["left"])),
        entry("c", Some("r"), json!({"role": "user", "content": "go on"})),
    ]
}

fn lines(values: &[Value]) -> String {
    let lines: Vec<String> = values.iter().map(Value::to_string).collect();
    lines.join("\n") + "\n"
}

#[test]
fn a_session_file_runs_what_its_current_branch_left_open() {
    case(&lines(&session()), &["2: two"]);
    case_with(&lines(&session()), RERUN, &["2: one two"]);
}

#[test]
fn a_session_file_of_the_first_version_is_one_branch() {
    let values: Vec<Value> = session()
        .into_iter()
        .map(|mut entry| {
            entry.as_object_mut().unwrap().remove("id");
            entry.as_object_mut().unwrap().remove("parentId");
            entry
        })
        .collect();
    case(&lines(&values), &["2: two", "4: left"]);
}

#[test]
fn a_message_behind_a_session_file_stands_alone() {
    let text = format!("{}{}", lines(&session()), asks(&["x"]));
    case(&text, &["2: two", "6: x"]);
    let twice = format!("{}{}", lines(&session()), lines(&session()));
    case(&twice, &["2: two", "7: two"]);
}

#[test]
fn what_a_compaction_dropped_is_not_run() {
    let mut values = session();
    values.push(
        json!({"type": "compaction", "id": "d", "parentId": "c", "timestamp": "t",
        "summary": "…", "firstKeptEntryId": "c"}),
    );
    case(&lines(&values), &[]);
}

#[test]
fn results_go_into_a_session_file_behind_their_call() {
    let text = lines(&session());
    let options = InputOptions {
        keep: Keep::Documents,
        ..InputOptions::default()
    };
    let document = Documents::new(text.as_bytes(), options)
        .next()
        .unwrap()
        .unwrap();
    let result = result_of("two");
    let mut expected = session();
    expected.insert(
        3,
        json!({"type": "message", "id": "00000005", "parentId": "r",
            "timestamp": "2026-11-30T00:00:00.000Z", "message": serde_json::to_value(&result).unwrap()}),
    );
    expected[5]["parentId"] = json!("00000005");
    assert_eq!(document.answered(&[vec![result]]), expected);
}

#[test]
fn a_result_can_follow_an_entry_without_an_id() {
    let mut entries = session();
    let last = entries.last_mut().unwrap();
    last.as_object_mut().unwrap().remove("id");
    last["message"] = asks(&["three"]);
    let options = InputOptions {
        keep: Keep::Documents,
        ..InputOptions::default()
    };
    let text = lines(&entries);
    let document = Documents::new(text.as_bytes(), options).next();
    let document = document.unwrap().unwrap();
    let results_of = |turn: &Turn| turn.calls.iter().map(|call| result_of(&call.id)).collect();
    let results: Vec<_> = document.turns.iter().map(results_of).collect();
    let answered = document.answered(&results);
    let asked = &answered[answered.len() - 2];
    assert_eq!(answered[answered.len() - 1]["parentId"], asked["id"]);
    assert!(asked["id"].is_string(), "{asked}");
}

#[test]
fn results_go_into_an_array_behind_their_turn_in_the_order_of_the_calls() {
    let list =
        json!([asks(&["a", "b"]), {"role": "user", "content": "?"}, answers("b"), asks(&["c"])]);
    let options = InputOptions {
        keep: Keep::Documents,
        ..InputOptions::default()
    };
    let text = list.to_string();
    let document = Documents::new(text.as_bytes(), options)
        .next()
        .unwrap()
        .unwrap();
    let (first, second) = (result_of("a"), result_of("c"));
    let expected = json!([
        list[0],
        serde_json::to_value(&first).unwrap(),
        list[2],
        list[1],
        list[3],
        serde_json::to_value(&second).unwrap(),
    ]);
    assert_eq!(document.answered(&[vec![first], vec![second]]), [expected]);
}

fn result_of(id: &str) -> crate::message::ToolResultMessage {
    crate::message::ToolResultMessage {
        tool_call_id: id.to_owned(),
        tool_name: "echo".to_owned(),
        content: Vec::new(),
        details: None,
        usage: None,
        nested_calls: None,
        is_error: false,
        duration_ms: None,
        timestamp: 1,
    }
}

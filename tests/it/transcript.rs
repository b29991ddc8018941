//! `pitool transcript`: what a list of messages declares, and whether its calls and results fit.

use serde_json::{Value, json};

use crate::support::Test;

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "Does it", "parameters": {"type": "object"}})
}

fn manifest(name: &str) -> Value {
    let mut manifest = tool(name);
    manifest["execute"] = json!({"jq": "{content: []}"});
    manifest
}

fn system(added: &[&str], removed: &[&str]) -> Value {
    let added: Vec<Value> = added.iter().map(|name| tool(name)).collect();
    let removed: Vec<Value> = removed.iter().map(|name| json!({"name": name})).collect();
    json!({"role": "system", "content": "Be brief.", "toolsAdded": added, "toolsRemoved": removed, "timestamp": 1})
}

fn user() -> Value {
    json!({"role": "user", "content": "hi"})
}

fn lines(messages: &[Value]) -> String {
    messages
        .iter()
        .map(|message| message.to_string() + "\n")
        .collect()
}

#[track_caller]
fn printed(test: Test) -> Value {
    let done = test.run().code(0).quiet();
    serde_json::from_str(&done.stdout).unwrap()
}

#[test]
fn tools_are_read_from_an_array_lines_a_session_and_a_file() {
    let messages = [system(&["a", "b"], &[]), user(), system(&["c"], &["a"])];
    let expected = json!([tool("b"), tool("c")]);
    let array = Value::from(messages.to_vec()).to_string();
    assert_eq!(
        printed(Test::new(["transcript", "tools"]).stdin(array.clone())),
        expected
    );
    assert_eq!(
        printed(Test::new(["transcript", "tools"]).stdin(lines(&messages))),
        expected
    );
    let file = Test::new(["transcript", "tools", "chat.json"]).file("chat.json", array);
    assert_eq!(printed(file), expected);
    let entry = |(at, message): (usize, &Value)| {
        let parent = at.checked_sub(1).map(|parent| parent.to_string());
        json!({"type": "message", "id": at.to_string(), "parentId": parent, "timestamp": "t", "message": message})
    };
    let header = json!({"type": "session", "version": 3, "id": "s", "timestamp": "t"});
    let entries: Vec<Value> = std::iter::once(header)
        .chain(messages.iter().enumerate().map(entry))
        .collect();
    assert_eq!(
        printed(Test::new(["transcript", "tools"]).stdin(lines(&entries))),
        expected
    );
}

#[test]
fn resolve_splits_by_what_the_api_supports() {
    let messages = lines(&[system(&["a"], &[]), user(), system(&["b"], &[])]);
    let resolved = |support| {
        let test =
            Test::new(["transcript", "resolve", "--support", support]).stdin(messages.clone());
        printed(test)
    };
    assert_eq!(
        resolved("none"),
        json!({"requestTools": [tool("a"), tool("b")], "foldedSystemMessages": 2})
    );
    assert_eq!(
        resolved("additions"),
        json!({"requestTools": [tool("a")], "foldedSystemMessages": 1})
    );
    assert_eq!(
        resolved("changes"),
        json!({"requestTools": [], "foldedSystemMessages": 0})
    );
}

#[test]
fn changes_lead_to_the_tools_folder() {
    let test = Test::new(["transcript", "changes"])
        .manifest("a", &manifest("a"))
        .manifest("c", &manifest("c"))
        .stdin(lines(&[system(&["a", "b"], &[])]));
    assert_eq!(
        printed(test),
        json!({"toolsAdded": [tool("c")], "toolsRemoved": [{"name": "b"}]})
    );
}

#[test]
fn declare_prints_what_to_append() {
    let test = || {
        Test::new(["transcript", "declare"])
            .manifest("a", &manifest("a"))
            .stdin(lines(&[system(&["b"], &[])]))
    };
    let mut message = printed(test());
    assert!(message["timestamp"].take().is_u64());
    assert_eq!(
        message,
        json!({"role": "system", "content": "", "timestamp": null, "toolsAdded": [tool("a")],
            "toolsRemoved": [{"name": "b"}]})
    );
    let pending = json!([{"role": "system", "content": "New."}, user()]);
    let done = test()
        .args(["--pending", "pending.json"])
        .file("pending.json", pending.to_string())
        .run()
        .code(0);
    let carrier = json!({"role": "system", "content": "New.", "toolsAdded": [tool("a")],
        "toolsRemoved": [{"name": "b"}]});
    assert_eq!(done.lines(), [carrier, user()]);
}

#[test]
fn declare_prints_nothing_when_nothing_changed() {
    let done = Test::new(["transcript", "declare"])
        .manifest("a", &manifest("a"))
        .stdin(lines(&[system(&["a"], &[])]))
        .run()
        .code(0)
        .quiet();
    assert_eq!(done.stdout, "");
}

#[test]
fn system_prints_the_current_message_or_its_text() {
    let messages = lines(&[
        json!({"role": "system", "content": "One.", "sections": {"x": "old", "y": "why"}, "timestamp": 1}),
        json!({"role": "system", "content": "Two.", "sections": {"x": "new", "y": null}}),
    ]);
    let message = printed(Test::new(["transcript", "system"]).stdin(messages.clone()));
    assert_eq!(
        message,
        json!({"role": "system", "content": "One.\n\nTwo.", "sections": {"x": "new"}, "timestamp": 1})
    );
    let text = Test::new(["transcript", "system", "--text"])
        .stdin(messages)
        .run()
        .code(0);
    assert_eq!(text.stdout, "One.\n\nTwo.\n\nnew\n");
    let none = Test::new(["transcript", "system"])
        .stdin(lines(&[user()]))
        .run()
        .code(0);
    assert_eq!(none.stdout, "");
}

fn unanswered() -> String {
    let call = json!({"type": "toolCall", "id": "x", "name": "echo", "arguments": {}});
    lines(&[json!({"role": "assistant", "content": [call]}), user()])
}

#[test]
fn lint_names_faults_and_fails() {
    let done = Test::new(["transcript", "lint"])
        .stdin(unanswered())
        .run()
        .code(1);
    assert_eq!(
        done.stdout,
        "line 1: call \"x\" of \"echo\" has no result [missing-result]\n"
    );
    let done = Test::new(["transcript", "lint", "--report", "jsonl"])
        .stdin(unanswered())
        .run()
        .code(1);
    assert_eq!(
        done.lines(),
        [
            json!({"place": "line 1", "rule": "missing-result", "callId": "x",
            "message": "call \"x\" of \"echo\" has no result"})
        ]
    );
    let sound = Test::new(["transcript", "lint"])
        .stdin(lines(&[user()]))
        .run()
        .code(0)
        .quiet();
    assert_eq!(sound.stdout, "");
}

#[test]
fn repair_prints_a_transcript_that_lint_finds_nothing_in() {
    let done = Test::new(["transcript", "repair"])
        .stdin(unanswered())
        .run()
        .code(0);
    assert_eq!(
        done.stderr,
        "pitool: line 1: call \"x\" of \"echo\" got an error as its result\n"
    );
    Test::new(["transcript", "lint"])
        .stdin(done.stdout)
        .run()
        .code(0)
        .quiet();
}

#[test]
fn a_transcript_that_cannot_be_read_is_named() {
    let done = Test::new(["transcript", "tools"])
        .stdin("{\"role\":\"user\"}\n{")
        .run()
        .code(2);
    assert!(
        done.stderr.starts_with("pitool: stdin: line 2 column 1: "),
        "{}",
        done.stderr
    );
    let nested = json!({"object": "response", "output": [{"type": "reasoning"}, [{"type": "function_call"}]]});
    let done = Test::new(["transcript", "repair"])
        .stdin(nested.to_string())
        .run()
        .code(2);
    assert_eq!(
        done.stderr,
        "pitool: stdin: line 1: message 1: expected a message in the openai-responses format, got an array\n"
    );
    let done = Test::new(["transcript", "lint", "gone.json"]).run().code(2);
    assert!(
        done.stderr.starts_with("pitool: gone.json: "),
        "{}",
        done.stderr
    );
}

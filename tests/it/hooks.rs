//! What hooks can do: block, rewrite, fail.

use serde_json::{Value, json};

use crate::support::{Done, Test};

fn hook(moment: &str, tools: &Value, jq: &str) -> Value {
    json!({"hook": moment, "tools": tools, "run": {"jq": jq}})
}

fn before(jq: &str) -> Done {
    Test::new(["run", "--output", "outcomes"])
        .sh("t", "touch ran; echo ran")
        .manifest("h", &hook("beforeToolCall", &json!(["t"]), jq))
        .calls(&[("a", "t", json!({"x": 1}))])
        .run()
}

#[track_caller]
fn blocked(jq: &str, text: &str) {
    let done = before(jq).code(1);
    let outcome = &done.lines()[0];
    assert_eq!(outcome["result"]["content"][0]["text"], text);
    assert!(outcome.get("durationMs").is_none(), "execute did not run");
}

#[test]
fn a_block_says_why() {
    blocked("{block: true, reason: \"not today\"}", "not today");
    blocked("{block: true}", "Tool execution was blocked");
    blocked("{block: true, reason: \"\"}", "Tool execution was blocked");
    blocked(
        "if .args.x == 1 and .toolCall.id == \"a\" and .assistantMessage.role == \"assistant\" \
             then {block: true, reason: \"saw all\"} else empty end",
        "saw all",
    );
}

#[test]
fn a_guard_that_fails_blocks() {
    blocked("error(\"guard is broken\")", "guard is broken");
}

#[test]
fn no_answer_lets_the_call_pass() {
    for jq in [
        "empty",
        "null",
        "{}",
        "{block: false, reason: \"ignored\", terminate: true}",
    ] {
        let done = before(jq).code(0);
        assert_eq!(
            done.lines()[0]["result"]["content"][0]["text"],
            "ran",
            "{jq}"
        );
        assert!(
            done.lines()[0]["result"].get("terminate").is_none(),
            "terminate counts only with block"
        );
    }
}

#[test]
fn blocked_call_never_starts_a_process() {
    let test = Test::new(["run"])
        .sh("t", "touch ran")
        .manifest("h", &hook("beforeToolCall", &json!(["*"]), "{block: true}"))
        .manifest(
            "after",
            &json!({"hook": "afterToolCall", "run": {"command": ["touch", "after_ran"]}}),
        )
        .calls(&[("a", "t", json!({}))]);
    let (done, folder) = test.run_and_keep();
    done.code(1);
    assert!(!folder.path().join("ran").exists() && !folder.path().join("after_ran").exists());
}

#[test]
fn the_first_block_wins_in_file_order() {
    let done = Test::new(["run"])
        .sh("t", "echo ran")
        .manifest(
            "20-late",
            &hook(
                "beforeToolCall",
                &json!(["t"]),
                "{block: true, reason: \"late\"}",
            ),
        )
        .manifest(
            "10-early",
            &hook(
                "beforeToolCall",
                &json!(["t"]),
                "{block: true, reason: \"early\"}",
            ),
        )
        .calls(&[("a", "t", json!({}))])
        .run()
        .code(1);
    assert_eq!(done.texts(), ["error: early"]);
}

fn after(hooks: &[&str]) -> Done {
    let execute = json!({"jq": "{content: [{type: \"text\", text: \"original\"}], details: {k: 1}, structuredContent: {s: 1}}"});
    let mut test = Test::new(["run", "--output", "outcomes"]).tool("t", &execute);
    for (index, jq) in hooks.iter().enumerate() {
        test = test.manifest(
            &format!("h{index}"),
            &hook("afterToolCall", &json!(["t"]), jq),
        );
    }
    test.calls(&[("a", "t", json!({}))]).run()
}

#[test]
fn after_hooks_replace_whole_fields_in_a_chain() {
    let done = after(&[
        "{details: {other: 2}}",
        "{content: [{type: \"text\", text: (.result.content[0].text + \"!\")}], structuredContent: .result.structuredContent}",
        "{isError: true}",
    ])
    .code(1);
    assert_eq!(
        done.lines()[0]["result"],
        json!({"content": [{"type": "text", "text": "original!"}], "details": {"other": 2}, "structuredContent": {"s": 1}})
    );
}

#[test]
fn content_alone_drops_structured_content() {
    let done = after(&["{content: []}"]).code(0);
    assert_eq!(
        done.lines()[0]["result"],
        json!({"content": [], "details": {"k": 1}})
    );
}

#[test]
fn a_failing_after_hook_replaces_the_result_and_the_chain_goes_on() {
    let done = after(&[
        "error(\"broken\")",
        "{details: {saw: .result.content[0].text}}",
    ])
    .code(1);
    assert_eq!(
        done.lines()[0]["result"],
        json!({"content": [{"type": "text", "text": "broken"}], "details": {"saw": "broken"}})
    );
}

#[test]
fn after_hooks_run_after_a_throw_too() {
    let done = Test::new(["run"])
        .sh("t", "exit 7")
        .manifest(
            "h",
            &hook(
                "afterToolCall",
                &json!(["t"]),
                "{content: [{type: \"text\", text: \"told\"}]}",
            ),
        )
        .calls(&[("a", "t", json!({}))])
        .run()
        .code(1);
    assert_eq!(done.texts(), ["error: told"]);
}

//! `transcript.jsonl`: tool declarations and system messages in a transcript.

use pitool::transcript::{
    ToolChangeSupport, collapse_system_messages, current_system_message, current_system_prompt,
    current_tools, declarations_equal, declare_tools, declared_tools,
    has_non_additive_tool_changes, resolve_tools, to_declaration, tool_changes,
};
use serde_json::{Value, json};

const CASES: &str = include_str!("transcript.jsonl");
/// Stands for the time at which a system message was made.
const NOW: u64 = 987_654_321;

#[test]
fn every_case_answers_as_the_reference_did() {
    let mut failures = Vec::new();
    let mut count = 0;
    for line in CASES.lines() {
        let case: Value = serde_json::from_str(line).expect("a case is a JSON value");
        let actual = without_now(answer(&case));
        if actual != case["expect"] {
            failures.push(format!(
                "{} ({})\n  expected {}\n  actual   {actual}",
                case["id"], case["note"], case["expect"]
            ));
        }
        count += 1;
    }
    assert_eq!(count, 382);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn texts_that_depend_on_order_are_the_same_text() {
    for line in CASES.lines() {
        let case: Value = serde_json::from_str(line).expect("a case is a JSON value");
        let op = case["op"].as_str().expect("a case has an op");
        if matches!(
            op,
            "getCurrentTools" | "getDeclaredTools" | "getToolStateChanges"
        ) {
            assert_eq!(
                answer(&case).to_string(),
                case["expect"].to_string(),
                "{}",
                case["id"]
            );
        }
    }
}

fn answer(case: &Value) -> Value {
    let input = &case["input"];
    let messages = || list(&input["messages"]);
    match case["op"].as_str().expect("a case has an op") {
        "getCurrentTools" => current_tools(&messages()).into(),
        "getDeclaredTools" => declared_tools(&messages()).into(),
        "hasNonAdditiveToolChanges" => has_non_additive_tool_changes(&messages()).into(),
        "getCurrentSystemMessage" => current_system_message(&messages()).into(),
        "getCurrentSystemPrompt" => current_system_prompt(&messages()).into(),
        "collapseSystemMessages" => json!({"messages": collapse_system_messages(&messages())}),
        "resolveTranscriptTools" => json!(resolve_tools(&messages(), support(&input["support"]))),
        "getToolStateChanges" => {
            json!(tool_changes(
                &list(&input["previous"]),
                &list(&input["current"])
            ))
        }
        "toToolDeclaration" => to_declaration(&input["tool"]),
        "declarationsEqual" => declarations_equal(&input["left"], &input["right"]).into(),
        "declareToolChanges" => declared_by_a_run(&messages(), input).into(),
        other => panic!("unknown op {other}"),
    }
}

/// A run declares the changes with its pending messages, and looks once more before its first request.
fn declared_by_a_run(messages: &[Value], input: &Value) -> Vec<Value> {
    let tools = list(&input["tools"]);
    let mut added = declare_tools(messages, &tools, list(&input["pending"]), NOW);
    let transcript: Vec<Value> = messages.iter().chain(&added).cloned().collect();
    added.extend(declare_tools(&transcript, &tools, Vec::new(), NOW));
    added
}

fn support(name: &Value) -> ToolChangeSupport {
    match name.as_str() {
        Some("none") => ToolChangeSupport::None,
        Some("additions") => ToolChangeSupport::Additions,
        Some("changes") => ToolChangeSupport::Changes,
        _ => panic!("unknown support {name}"),
    }
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// Writes the time of made messages as the data does.
fn without_now(mut value: Value) -> Value {
    for message in value.as_array_mut().into_iter().flatten() {
        if message.get("timestamp") == Some(&json!(NOW)) {
            message["timestamp"] = json!("<volatile>");
        }
    }
    value
}

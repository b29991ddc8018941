//! `--profile course`: the strict teaching executor, in its exact words.

use serde_json::{Value, json};

use crate::support::{Done, Test, project};

fn run(tools: &str, sample: &str) -> Done {
    let folder = project().join("samples/course");
    let stdin = std::fs::read(folder.join(sample)).unwrap();
    let tools = folder.join(tools);
    Test::new(["run", "--profile", "course", "--tools"])
        .args([tools])
        .stdin(stdin)
        .run()
}

#[track_caller]
fn case(sample: &str, text: &str, details: &Value, is_error: bool) {
    let done = run("tools.d", sample).code(i32::from(is_error));
    let mut message = done.lines().remove(0);
    message
        .as_object_mut()
        .unwrap()
        .remove("timestamp")
        .unwrap();
    let name = message["toolName"].clone();
    assert_eq!(
        message,
        json!({"role": "toolResult", "toolCallId": "call-1", "toolName": name, "isError": is_error,
               "content": [{"type": "text", "text": text}], "details": details})
    );
}

#[track_caller]
fn failure(sample: &str, name: &str, message: &str) {
    case(
        sample,
        &format!("Tool {name} failed: {message}"),
        &json!({"error": message}),
        true,
    );
}

#[test]
fn results_are_as_the_tool_gave_them() {
    case(
        "ignored-field.json",
        "Pi",
        &json!({"source": "echo"}),
        false,
    );
    let context = json!({"toolCallId": "call-1", "toolName": "whoami"});
    case(
        "context.json",
        "whoami in call-1",
        &json!({"context": context}),
        false,
    );
    case(
        "domain-error.json",
        "insufficient funds",
        &json!({"balance": 0, "asked": 5}),
        true,
    );
}

#[test]
fn failures_have_one_shape() {
    failure("wrong-type.json", "echo", "必须是 string");
    failure("missing-value.json", "echo", "必须是 string");
    failure("other-violation.json", "withdraw", "expected >= 1");
    failure("unknown-tool.json", "nope", "未知工具");
    failure("exploding-tool.json", "explode", "boom");
}

#[test]
fn a_tool_defined_twice_is_told_in_its_words() {
    let done = run("twice", "wrong-type.json").code(2);
    assert!(done.stderr.contains("Tool 已存在：echo"), "{}", done.stderr);
    assert_eq!(done.lines().len(), 1, "the call is answered all the same");
}

#[test]
fn nothing_is_coerced() {
    let tool = json!({
        "name": "t", "description": "",
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "execute": {"jq": "{content: []}"},
    });
    let done = Test::new(["run", "--profile", "course"])
        .manifest("t", &tool)
        .calls(&[("a", "t", json!({"n": "5"}))])
        .run()
        .code(1);
    assert_eq!(done.texts(), ["error: Tool t failed: 必须是 integer"]);
}

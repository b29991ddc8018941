//! `samples/agent-loop.sh`, as the README shows it, against recorded responses.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::project;

/// Stands for the API: keeps each request and answers with the response of its number.
const CURL: &str = r#"#!/bin/sh
number=$(($(cat count 2> /dev/null || echo 0) + 1))
echo "$number" > count
cat > "request-$number.json"
cat "response-$number.json"
"#;

fn run(folder: &Path, responses: &[Value]) -> Output {
    std::fs::write(folder.join("curl"), CURL).unwrap();
    std::fs::set_permissions(folder.join("curl"), std::fs::Permissions::from_mode(0o755)).unwrap();
    for (number, response) in responses.iter().enumerate() {
        let file = folder.join(format!("response-{}.json", number + 1));
        std::fs::write(file, response.to_string()).unwrap();
    }
    let question = json!({"role": "user", "content": "Say Pi."});
    std::fs::write(folder.join("chat.jsonl"), format!("{question}\n")).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_pitool")).parent().unwrap();
    let path = format!(
        "{}:{}:{}",
        folder.display(),
        bin.display(),
        std::env::var("PATH").unwrap()
    );
    Command::new(project().join("samples/agent-loop.sh"))
        .arg("chat.jsonl")
        .current_dir(folder)
        .env("PATH", path)
        .env("PITOOL_TOOLS", project().join("tools.d"))
        .env("ANTHROPIC_API_KEY", "none")
        .output()
        .unwrap()
}

fn response(content: &Value, stop_reason: &str) -> Value {
    json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5",
        "content": content, "stop_reason": stop_reason, "stop_sequence": null,
        "usage": {"input_tokens": 1, "output_tokens": 1}})
}

fn json_of(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn the_loop_runs_tools_until_the_model_calls_none() {
    let folder = tempfile::tempdir().unwrap();
    let call =
        json!([{"type": "tool_use", "id": "toolu_1", "name": "echo", "input": {"value": "Pi"}}]);
    let text = json!([{"type": "text", "text": "Pi."}]);
    let responses = [response(&call, "tool_use"), response(&text, "end_turn")];
    let output = run(folder.path(), &responses);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    let chat = std::fs::read_to_string(folder.path().join("chat.jsonl")).unwrap();
    let chat: Vec<Value> = chat
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let expected = [
        json!({"role": "user", "content": "Say Pi."}),
        json!({"role": "assistant", "content": call}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1",
            "content": [{"type": "text", "text": "Pi"}]}]}),
        json!({"role": "assistant", "content": text}),
    ];
    assert_eq!(chat, expected);
    let request = json_of(&folder.path().join("request-2.json"));
    assert_eq!(request["messages"], Value::from(expected[..3].to_vec()));
    let tools = request["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "echo"), "{tools:?}");
}

#[test]
fn the_readme_shows_the_loop() {
    let sample = std::fs::read_to_string(project().join("samples/agent-loop.sh")).unwrap();
    let start = sample.find("while\n").unwrap();
    let readme = std::fs::read_to_string(project().join("README.md")).unwrap();
    assert!(readme.contains(&format!("```sh\n{}```", &sample[start..])));
}

#[test]
fn an_error_of_the_api_ends_the_loop() {
    let folder = tempfile::tempdir().unwrap();
    let error =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let output = run(folder.path(), &[error]);
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("got an API error: Overloaded"), "{stderr}");
}

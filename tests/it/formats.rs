//! `pitool run` with the messages of every provider.

use serde_json::{Value, json};

use crate::support::{Test, message};

fn echo(test: Test) -> Test {
    test.tool(
        "echo",
        &json!({"jq": "{content: [{type: \"text\", text: (.v // \"none\")}]}"}),
    )
}

fn anthropic(value: &str) -> Value {
    json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": format!("toolu_{value}"), "name": "echo", "input": {"v": value}}]})
}

fn anthropic_result(value: &str) -> Value {
    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": format!("toolu_{value}"),
        "content": [{"type": "text", "text": value}]}]})
}

fn openai(arguments: &str) -> Value {
    json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant",
        "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "echo", "arguments": arguments}}]}}]})
}

#[test]
fn each_line_is_answered_in_its_own_format() {
    let lines = format!(
        "{}\n{}\n{}\n",
        anthropic("a"),
        openai(r#"{"v":"b"}"#),
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "echo", "arguments": {"v": "c"}}}),
    );
    let done = echo(Test::new(["run"])).stdin(lines).run().code(0).quiet();
    assert_eq!(
        done.lines(),
        [
            anthropic_result("a"),
            json!({"role": "tool", "tool_call_id": "call_1", "content": "b"}),
            json!({"jsonrpc": "2.0", "id": 7,
                "result": {"content": [{"type": "text", "text": "c"}], "isError": false}}),
        ]
    );
}

#[test]
fn to_answers_in_another_format() {
    let done = echo(Test::new(["run", "--to", "openai"]))
        .stdin(anthropic("a").to_string())
        .run()
        .code(0);
    assert_eq!(
        done.lines(),
        [json!({"role": "tool", "tool_call_id": "toolu_a", "content": "a"})]
    );
}

#[test]
fn broken_arguments_text_is_an_error_with_the_text() {
    let done = echo(Test::new(["run"]))
        .stdin(openai("{\"v\":").to_string())
        .run()
        .code(1);
    let text = done.lines()[0]["content"].as_str().unwrap().to_owned();
    assert!(
        text.starts_with("Invalid arguments for tool \"echo\": "),
        "{text}"
    );
    assert!(text.ends_with("\n\nReceived arguments:\n{\"v\":"), "{text}");
}

#[test]
fn truncated_responses_run_nothing() {
    let mut truncated = anthropic("a");
    truncated["type"] = json!("message");
    truncated["stop_reason"] = json!("max_tokens");
    let done = Test::new(["run"])
        .sh("echo", "touch ran")
        .stdin(truncated.to_string())
        .run_and_keep();
    let (done, folder) = done;
    let result = &done.code(1).lines()[0]["content"][0];
    assert_eq!(result["is_error"], true);
    assert!(!folder.path().join("ran").exists());
}

#[test]
fn gemini_responses_are_read_as_the_python_client_prints_them_too() {
    let response = |reason: &str| {
        json!({"candidates": [{"content": {"role": "model", "parts": [
            {"text": null, "function_call": {"id": null, "name": "echo", "args": {"v": "a"}}}]},
            "finish_reason": reason}], "prompt_feedback": null})
    };
    let answer = |response: Value| {
        let test = echo(Test::new(["run"])).stdin(response.to_string());
        test.run().lines()[0]["parts"][0]["functionResponse"].clone()
    };
    assert_eq!(
        answer(response("STOP")),
        json!({"name": "echo", "response": {"output": "a"}})
    );
    let truncated = answer(response("MAX_TOKENS"));
    assert!(truncated["response"]["error"].is_string(), "{truncated}");
    let answered = json!([response("STOP")["candidates"][0]["content"],
        {"role": "user", "parts": [{"function_response": {"name": "echo", "response": {"output": "a"}}}]}]);
    let done = echo(Test::new(["run"])).stdin(answered.to_string()).run();
    assert_eq!(done.code(0).quiet().stdout, "");
}

#[test]
fn what_has_a_result_runs_again_only_if_asked() {
    let call = |id: &str| message(&[(id, "echo", json!({"v": id}))]);
    let result = json!({"role": "toolResult", "toolCallId": "a", "toolName": "echo", "content": [], "isError": false});
    let entry = |id: &str, parent: Option<&str>, message: &Value| json!({"type": "message", "id": id, "parentId": parent, "timestamp": "t", "message": message});
    // The second branch is the current one: "b" was called on the one that was left.
    let session: String = [
        json!({"type": "session", "version": 3, "id": "s", "timestamp": "t"}),
        entry("1", None, &call("a")),
        entry("2", Some("1"), &result),
        entry("3", Some("2"), &call("b")),
        entry("4", Some("2"), &call("c")),
    ]
    .map(|line| line.to_string() + "\n")
    .concat();
    let array = json!([call("a"), result, call("c")]).to_string();
    for input in [session, array] {
        let texts = |arguments: &[&str]| {
            let test = echo(Test::new(arguments)).stdin(input.clone());
            test.run().code(0).quiet().texts()
        };
        assert_eq!(texts(&["run"]), ["c"]);
        assert_eq!(texts(&["run", "--rerun"]), ["a", "c"]);
    }
}

#[test]
fn two_readings_are_refused_and_the_others_run() {
    let mut both = anthropic("a");
    both["tool_calls"] = openai("{}")["choices"][0]["message"]["tool_calls"].clone();
    let done = echo(Test::new(["run"]))
        .stdin(format!("{both}\n{}\n", anthropic("b")))
        .run()
        .code(2);
    assert_eq!(done.lines(), [anthropic_result("b")]);
    assert!(
        done.stderr
            .contains("can be read as anthropic and as openai; say which with --from"),
        "{}",
        done.stderr
    );
}

#[test]
fn transcript_is_the_input_with_the_results_in_it() {
    let list = json!([{"role": "user", "content": "go"}, anthropic("a"), {"role": "user", "content": "and?"}]);
    let done = echo(Test::new(["run", "--output", "transcript"]))
        .stdin(list.to_string())
        .run()
        .code(0)
        .quiet();
    let mut results = anthropic_result("a");
    let text = json!({"type": "text", "text": "and?"});
    results["content"].as_array_mut().unwrap().push(text);
    assert_eq!(done.lines(), [json!([list[0], list[1], results])]);
}

#[test]
fn transcript_of_lines_is_lines_and_needs_no_more_answers() {
    let lines = format!(
        "{}\n{}\n",
        json!({"role": "user", "content": "go"}),
        anthropic("a")
    );
    let done = echo(Test::new(["run", "--output", "transcript"]))
        .stdin(lines)
        .run()
        .code(0);
    let user = json!({"role": "user", "content": "go"});
    assert_eq!(done.lines(), [user, anthropic("a"), anthropic_result("a")]);
    Test::new(["transcript", "lint"])
        .stdin(done.stdout)
        .run()
        .code(0)
        .quiet();
}

#[test]
fn transcript_of_a_session_file_is_a_session_file() {
    let entry = |id: &str, parent: Option<&str>, message: Value| json!({"type": "message", "id": id, "parentId": parent, "timestamp": "t", "message": message});
    let header = json!({"type": "session", "version": 3, "id": "s", "timestamp": "t"});
    let call = entry("a", None, message(&[("c", "echo", json!({"v": "x"}))]));
    let session = format!("{header}\n{call}\n");
    let done = echo(Test::new(["run", "--output", "transcript"]))
        .stdin(session)
        .run()
        .code(0);
    let lines = done.lines();
    assert_eq!(lines[..2], [header, call]);
    assert_eq!(lines[2]["parentId"], "a");
    assert_eq!(lines[2]["message"]["toolCallId"], "c");
    // Answered now, so there is nothing left to run.
    let again = echo(Test::new(["run"]))
        .stdin(done.stdout)
        .run()
        .code(0)
        .quiet();
    assert_eq!(again.stdout, "");
}

#[test]
fn transcript_is_in_the_format_of_the_input() {
    let done = Test::new(["run", "--output", "transcript", "--to", "pi"])
        .run()
        .code(2);
    assert_eq!(
        done.stderr,
        "pitool: --output transcript is in the format of the input: leave --to out\n"
    );
}

//! `pitool run`: what is printed where, and the exit code.

use serde_json::{Value, json};

use crate::support::{Done, Test, message};

fn echo_call(id: &str) -> (&str, &str, Value) {
    (id, "echo", json!({"value": "Pi", "ignored": "drop me"}))
}

#[test]
fn echo_is_answered_by_exactly_one_line() {
    let done = Test::new(["run"])
        .shipped_tools()
        .calls(&[echo_call("call-1")])
        .run()
        .code(0)
        .quiet();
    assert!(!done.stdout.contains("ignored"));
    let mut lines = done.lines();
    assert_eq!(lines.len(), 1);
    let fields = lines[0].as_object_mut().unwrap();
    assert!(fields.remove("timestamp").unwrap().as_u64().unwrap() > 1_700_000_000_000);
    assert!(fields.remove("durationMs").unwrap().is_u64());
    assert_eq!(
        lines[0],
        json!({"role": "toolResult", "toolCallId": "call-1", "toolName": "echo",
               "content": [{"type": "text", "text": "Pi"}], "details": {"source": "echo"}, "isError": false})
    );
}

#[test]
fn unknown_tool_is_an_error_with_nearest_names_on_stderr() {
    let done = Test::new(["run"])
        .shipped_tools()
        .calls(&[("a", "ehco", json!({}))])
        .run()
        .code(1);
    assert_eq!(done.texts(), ["error: Tool ehco not found"]);
    assert!(done.stderr.contains("echo"), "{}", done.stderr);
}

#[test]
fn invalid_arguments_are_told_in_the_references_words() {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n", "m"]});
    let tool =
        json!({"name": "t", "description": "", "parameters": schema, "execute": {"jq": "."}});
    let done = Test::new(["run"])
        .manifest("t", &tool)
        .calls(&[("a", "t", json!({"n": "x"}))])
        .run()
        .code(1);
    assert_eq!(
        done.texts(),
        [
            "error: Validation failed for tool \"t\":\n  - m: missing\n  - n: expected integer, got string\n\n\
          Received arguments:\n{\n  \"n\": \"x\"\n}"
        ]
    );
    assert!(done.lines()[0].get("durationMs").is_none());
}

#[test]
fn inputs_without_calls_print_nothing() {
    for stdin in [
        "",
        "\n",
        r#"{"role":"assistant","content":[{"type":"text","text":"hi"}]}"#,
        "[]",
    ] {
        let done = Test::new(["run"])
            .sh("ok", "echo ok")
            .stdin(stdin)
            .run()
            .code(0)
            .quiet();
        assert_eq!(done.stdout, "", "{stdin:?}");
    }
}

#[test]
fn a_line_that_cannot_be_read_does_not_stop_the_others() {
    let good = message(&[("a", "ok", json!({}))]).to_string();
    let stdin = format!("{good}\n{{\"role\": oops}}\n{good}\n");
    let done = Test::new(["run"])
        .sh("ok", "echo ok")
        .stdin(stdin.clone())
        .run()
        .code(2);
    assert_eq!(done.texts(), ["ok", "ok"]);
    assert!(done.stderr.contains("line 2"), "{}", done.stderr);
    let done = Test::new(["run", "--fail-fast"])
        .sh("ok", "echo ok")
        .stdin(stdin)
        .run()
        .code(2);
    assert_eq!(done.texts(), ["ok"]);
}

#[test]
fn a_name_or_id_with_line_breaks_makes_no_line_on_stderr() {
    let forged = "a\npitool: error: x";
    let done = Test::new(["run"])
        .sh("sleeper", "sleep 60 &")
        .calls(&[
            (forged, "sleeper\n", json!({})),
            (forged, "sleeper", json!({})),
        ])
        .run()
        .code(1);
    let lines: Vec<&str> = done.stderr.lines().collect();
    assert_eq!(
        lines,
        [
            r#"pitool: warning: two calls have the id "a\npitool: error: x"; both run and both are answered, in order"#,
            r#"pitool: warning: tool "sleeper\n" not found; nearest names: sleeper"#,
            r"pitool: warning: sleeper a\npitool: error: x: a process that it left running was stopped",
        ]
    );
}

#[test]
fn empty_elements_of_the_path_list_name_no_folder() {
    for list in ["", ":", ":tools.d", "tools.d::"] {
        let test = Test::new(["run"]).sh("a", "echo a");
        let test = test.env("PITOOL_TOOLS", list);
        let done = test.calls(&[("1", "a", json!({}))]).run().code(0).quiet();
        assert_eq!(done.texts(), ["a"], "{list}");
    }
}

#[test]
fn no_tools_folder_is_told_and_calls_are_answered() {
    let done = Test::new(["run", "--tools", "nowhere"])
        .calls(&[("a", "ok", json!({}))])
        .run()
        .code(2);
    assert_eq!(
        done.texts(),
        ["error: Tool \"ok\" was not executed: nowhere could not be loaded"]
    );
    assert!(done.stderr.contains("nowhere"), "{}", done.stderr);
}

#[test]
fn a_broken_manifest_stops_every_tool_but_answers_every_call() {
    let done = Test::new(["run"])
        .sh("ok", "echo ok")
        .file(
            "tools.d/guard.json",
            r#"{"hook": "beforeToolCall", "rnu": {"jq": "."}}"#,
        )
        .calls(&[("a", "ok", json!({})), ("b", "nope", json!({}))])
        .run()
        .code(2);
    let texts = done.texts();
    assert_eq!(texts.len(), 2);
    assert!(
        texts[0].starts_with("error: Tool \"ok\" was not executed: "),
        "{texts:?}"
    );
    assert!(
        texts[0].ends_with("guard.json could not be loaded"),
        "{texts:?}"
    );
    assert!(done.stderr.contains("guard.json:1:"), "{}", done.stderr);
    assert!(done.stderr.contains("\"run\""), "{}", done.stderr);
}

#[test]
fn a_schema_that_does_not_compile_is_an_error_of_its_tool_alone() {
    let broken = json!({"name": "broken", "description": "", "parameters": {"properties": {"a": 5}}, "execute": {"jq": "."}});
    let done = Test::new(["run"])
        .manifest("broken", &broken)
        .sh("ok", "echo ok")
        .calls(&[("a", "broken", json!({})), ("b", "ok", json!({}))])
        .run()
        .code(1);
    assert!(done.texts()[0].starts_with("error: "), "{done:?}");
    assert_eq!(done.texts()[1], "ok");
}

#[test]
fn truncated_and_failed_messages_run_nothing() {
    let mut input = message(&[("a", "touch", json!({})), ("b", "touch", json!({}))]);
    for (reason, text) in [
        (
            "length",
            "error: Tool call \"touch\" was not executed: the response hit the output token limit, so its arguments \
             may be truncated. Re-issue the tool call with complete arguments.",
        ),
        (
            "error",
            "error: Tool call \"touch\" was not executed: the response ended with stop reason \"error\".",
        ),
        (
            "aborted",
            "error: Tool call \"touch\" was not executed: the response ended with stop reason \"aborted\".",
        ),
    ] {
        input["stopReason"] = reason.into();
        let test = Test::new(["run"])
            .sh("touch", "touch ran")
            .stdin(input.to_string());
        let (done, folder) = test.run_and_keep();
        assert_eq!(done.code(1).texts(), [text, text]);
        assert!(!folder.path().join("ran").exists());
    }
}

#[test]
fn repeated_missing_and_empty_ids_are_all_answered() {
    let stdin = r#"{"role":"assistant","content":[
        {"type":"toolCall","id":"a","name":"ok","arguments":{}},
        {"type":"toolCall","id":"a","name":"ok"},
        {"type":"toolCall","name":"ok","arguments":""},
        {"type":"toolCall","id":"","arguments":{}}]}"#;
    let done = Test::new(["run"])
        .sh("ok", "echo ok")
        .stdin(stdin)
        .run()
        .code(1);
    assert_eq!(done.texts(), ["ok", "ok", "ok", "error: Tool  not found"]);
    let ids: Vec<_> = done
        .lines()
        .iter()
        .map(|line| line["toolCallId"].clone())
        .collect();
    assert_eq!(ids, ["a", "a", "call_3", "call_4"]);
    assert!(done.stderr.contains("\"a\""), "{}", done.stderr);
}

fn outputs(output: &str) -> Done {
    Test::new(["run", "--output", output])
        .sh("ok", "echo ok")
        .sh("bad", "echo why >&2; exit 3")
        .calls(&[("a", "ok", json!({})), ("b", "bad", json!({}))])
        .run()
        .code(1)
}

#[test]
fn output_json_is_one_array() {
    let array: Value = serde_json::from_str(&outputs("json").stdout).unwrap();
    assert_eq!(array.as_array().unwrap().len(), 2);
    assert_eq!(
        Test::new(["run", "--output", "json"]).run().code(0).stdout,
        "[]\n"
    );
}

#[test]
fn output_pretty_is_indented_json() {
    let done = outputs("pretty");
    let values: Vec<Value> = serde_json::Deserializer::from_str(&done.stdout)
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(values.len(), 2);
    assert!(
        done.stdout.contains("\n  \"toolCallId\": \"a\""),
        "{}",
        done.stdout
    );
    assert!(!done.stdout.contains('\u{1b}'));
}

#[test]
fn output_events_are_the_references_events() {
    let done = outputs("events");
    let types: Vec<_> = done
        .lines()
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect();
    let count = |name: &str| types.iter().filter(|ty| *ty == name).count();
    assert_eq!(
        (count("tool_execution_start"), count("tool_execution_end")),
        (2, 2)
    );
    assert_eq!((count("message_start"), count("message_end")), (2, 2));
    assert_eq!(types.last().unwrap(), "turn_end");
    assert!(done.lines().iter().all(|event| event["atMs"].is_u64()));
}

#[test]
fn output_outcomes_hold_the_call_and_the_whole_result() {
    let tool = json!({
        "name": "t", "description": "",
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "execute": {"jq": "{content: [], structuredContent: {n: .n}, terminate: true}"},
    });
    let done = Test::new(["run", "--output", "outcomes"])
        .manifest("t", &tool)
        .calls(&[("a", "t", json!({"n": "5"}))])
        .run()
        .code(0);
    let outcome = &done.lines()[0];
    assert_eq!(outcome["toolCall"]["arguments"], json!({"n": "5"}));
    assert_eq!(outcome["result"]["structuredContent"], json!({"n": 5}));
    assert_eq!(outcome["result"]["terminate"], true);
    assert_eq!(outcome["coercion"][0]["path"], "/n");
    assert_eq!(outcome["coercion"][0]["lossy"], false);
}

#[test]
fn output_text_is_a_card_per_call() {
    let done = outputs("text");
    assert!(
        done.stdout.contains("ok") && done.stdout.contains("Command exited with code 3"),
        "{}",
        done.stdout
    );
}

#[test]
fn events_go_to_a_file_as_well() {
    let test = Test::new(["run", "--events", "events.jsonl"])
        .sh("ok", "echo ok")
        .calls(&[("a", "ok", json!({}))]);
    let (done, folder) = test.run_and_keep();
    assert_eq!(done.code(0).texts(), ["ok"]);
    let events = std::fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    assert!(
        events
            .lines()
            .next()
            .unwrap()
            .contains("tool_execution_start")
    );
    assert!(events.lines().last().unwrap().contains("turn_end"));
}

#[test]
fn only_limits_what_exists() {
    let done = Test::new(["run", "--only", "o*"])
        .sh("ok", "echo ok")
        .sh("no", "touch ran")
        .calls(&[("a", "ok", json!({})), ("b", "no", json!({}))])
        .run()
        .code(1);
    assert_eq!(done.texts(), ["ok", "error: Tool no not found"]);
}

#[test]
fn allow_and_deny_block_before_anything_runs() {
    let blocked = "error: Tool execution was blocked";
    for (options, expected) in [
        (&["--deny", "n*"][..], ["ok", blocked]),
        (&["--allow", "ok"], ["ok", blocked]),
        (&["--allow", "*", "--deny", "ok"], [blocked, "no"]),
        // Without a terminal nobody can say yes.
        (&["--confirm", "no"], ["ok", blocked]),
    ] {
        let mut test = Test::new(["run"])
            .args(options)
            .sh("ok", "echo ok")
            .sh("no", "echo no");
        test = test.calls(&[("a", "ok", json!({})), ("b", "no", json!({}))]);
        assert_eq!(
            test.in_background().run().code(1).texts(),
            expected,
            "{options:?}"
        );
    }
}

#[test]
fn lossy_conversions_can_be_refused() {
    let tool = json!({
        "name": "t", "description": "",
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "execute": {"jq": "{content: [{type: \"text\", text: (.n | tostring)}]}"},
    });
    let call = [("a", "t", json!({"n": 3.7}))];
    let run = |arguments: &[&str]| {
        Test::new(["run"])
            .args(arguments)
            .manifest("t", &tool)
            .calls(&call)
            .run()
    };
    assert_eq!(run(&[]).code(0).texts(), ["3"]);
    let refused = run(&["--deny-lossy"]).code(1);
    assert!(
        refused.texts()[0].contains("n: lossy conversion from"),
        "{refused:?}"
    );
    assert!(
        run(&["--coerce", "off"]).code(1).texts()[0].contains("n: expected integer, got number")
    );
}

#[test]
fn a_broken_output_promise_is_a_warning_or_an_error() {
    let tool = json!({
        "name": "t", "description": "",
        "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        "execute": {"jq": "{content: [{type: \"text\", text: \"kept\"}], structuredContent: {n: \"5\"}}"},
    });
    let run = |arguments: &[&str]| {
        Test::new(["run"])
            .args(arguments)
            .manifest("t", &tool)
            .calls(&[("a", "t", json!({}))])
            .run()
    };
    let warned = run(&[]).code(0);
    assert_eq!(warned.texts(), ["kept"]);
    assert!(
        warned.stderr.contains("n: expected integer, got string"),
        "{}",
        warned.stderr
    );
    let failed = run(&["--strict-output"]).code(1);
    assert!(
        failed.texts()[0].contains("n: expected integer, got string"),
        "{failed:?}"
    );
}

#[test]
fn terminate_code_speaks_only_for_the_last_batch() {
    let tool = |name: &str, terminate: bool| json!({"name": name, "description": "", "execute": {"jq": format!("{{content: [], terminate: {terminate}}}")}});
    let run = |names: &[&str]| {
        let messages = names
            .iter()
            .map(|name| message(&[("a", name, json!({}))]).to_string() + "\n");
        Test::new(["run", "--terminate-code", "42"])
            .manifest("end", &tool("end", true))
            .manifest("go", &tool("go", false))
            .stdin(messages.collect::<String>())
            .run()
    };
    run(&["go", "end"]).code(42);
    run(&["end", "go"]).code(0);
    run(&["end", "nope"]).code(1);
    run(&[]).code(0);
}

#[test]
fn a_call_times_out_with_its_output_so_far() {
    let done = Test::new(["run", "--timeout", "2s"])
        .sh("slow", "echo begun; exec sleep 60")
        .calls(&[("a", "slow", json!({}))])
        .run()
        .code(1);
    assert_eq!(
        done.texts(),
        ["error: begun\n\nCommand timed out after 2 seconds"]
    );
}

#[test]
fn batch_timeout_is_no_success_even_if_every_tool_gives_its_result() {
    let script = r#"trap 'echo "{\"content\":[]}"; exit 0' TERM; sleep 60 & wait"#;
    let execute = json!({"command": ["sh", "-c", script], "output": "items"});
    let done = Test::new(["run", "--timeout-batch", "1s"])
        .tool("saves", &execute)
        .calls(&[("1", "saves", json!({}))])
        .run()
        .code(1);
    assert_eq!(done.lines()[0]["isError"], false);
}

#[test]
fn a_batch_times_out_and_answers_everything() {
    let done = Test::new(["run", "--timeout-batch", "3s", "--jobs", "2"])
        .sh("ok", "echo ok")
        .sh("slow", "echo begun; exec sleep 60")
        .calls(&[
            ("a", "slow", json!({})),
            ("b", "ok", json!({})),
            ("c", "slow", json!({})),
            ("d", "slow", json!({})),
        ])
        .run()
        .code(1);
    let aborted = "error: begun\n\nOperation aborted";
    assert_eq!(
        done.texts(),
        [aborted, "ok", aborted, "error: Operation aborted"]
    );
}

#[test]
fn big_integers_keep_every_digit() {
    let tool = json!({
        "name": "t", "description": "",
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}},
        "execute": {"command": ["cat"]},
    });
    let stdin = r#"{"role":"assistant","content":[{"type":"toolCall","id":"a","name":"t","arguments":{"n":18446744073709551615,"s":9007199254740993}}]}"#;
    let done = Test::new(["run"])
        .manifest("t", &tool)
        .stdin(stdin)
        .run()
        .code(0);
    assert_eq!(
        done.texts(),
        [r#"{"n":18446744073709551615,"s":"9007199254740993"}"#]
    );
}

#[test]
fn deep_arguments_fail_alone() {
    let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let call = |id: &str, levels: usize| {
        format!(
            r#"{{"type":"toolCall","id":"{id}","name":"t","arguments":{{"a":{}}}}}"#,
            deep(levels)
        )
    };
    let calls = [
        call("a", 500),
        call("b", 5000),
        call("c", 100_000),
        call("d", 1),
    ]
    .join(",");
    let stdin = format!(r#"{{"role":"assistant","content":[{calls}]}}"#);
    let done = Test::new(["run"])
        .sh("t", "wc -c | tr -d ' '")
        .stdin(stdin)
        .run()
        .code(1);
    let texts = done.texts();
    assert_eq!((texts[0].as_str(), texts[3].as_str()), ("1008", "10"));
    assert!(
        texts[1].starts_with("error: ") && texts[2].starts_with("error: "),
        "{texts:?}"
    );
}

#[test]
fn dry_run_says_what_would_start_and_starts_nothing() {
    let tool = json!({
        "name": "t", "description": "",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "n": {"type": "integer"}}},
        "prepareArguments": {"command": ["touch", "prepared"]},
        "execute": {"command": ["touch", "--", "{path}"]},
    });
    let test = Test::new(["run", "--dry-run", "--deny", "no"])
        .manifest("t", &tool)
        .manifest(
            "h",
            &json!({"hook": "beforeToolCall", "run": {"command": ["touch", "hooked"]}}),
        )
        .tool("jq", &json!({"jq": "."}))
        .tool("no", &json!({"jq": "."}))
        .calls(&[
            ("a", "t", json!({"path": "made", "n": "5"})),
            ("b", "jq", json!({})),
            ("c", "no", json!({})),
            ("d", "nope", json!({})),
            ("e", "t", json!({"n": "x"})),
        ]);
    let (done, folder) = test.run_and_keep();
    let lines = done.code(1).lines();
    assert_eq!(
        lines[0],
        json!({"toolCallId": "a", "toolName": "t", "arguments": {"path": "made", "n": 5},
               "wouldRun": {"command": ["touch", "--", "made"]}})
    );
    assert_eq!(lines[1]["wouldRun"], json!({"jq": "."}));
    assert_eq!(lines[2]["error"], "Tool execution was blocked");
    assert_eq!(lines[3]["error"], "Tool nope not found");
    assert!(
        lines[4]["error"]
            .as_str()
            .unwrap()
            .contains("n: expected integer, got string")
    );
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["tools.d"]);
}

/// A short file is read at once, a long one and a pipe by and by: nobody sees a difference.
#[test]
fn a_file_is_read_as_a_pipe_is() {
    let message = |id: usize| {
        let call = json!({"type": "toolCall", "id": format!("{id}"), "name": "t", "arguments": {}});
        json!({"role": "assistant", "content": [call]}).to_string()
    };
    let good = |from, to| (from..to).map(message).collect::<Vec<_>>().join("\n");
    for count in [2, 2_000] {
        let text = format!(
            "{}\nnot JSON\n{}",
            good(0, count / 2),
            good(count / 2, count)
        );
        for (option, answered) in [("--progress=never", count), ("--fail-fast", count / 2)] {
            let run = || Test::new(["run", option]).tool("t", &json!({"jq": "{content: []}"}));
            let piped = run().stdin(text.as_str()).run().code(2);
            let mut from_file = run().file("input.jsonl", text.as_str());
            let input = std::fs::File::open(from_file.folder().join("input.jsonl")).unwrap();
            let from_file = from_file.command().stdin(input).output().unwrap();
            assert_eq!(from_file.status.code(), Some(2));
            assert_eq!(String::from_utf8(from_file.stderr).unwrap(), piped.stderr);
            let stdout = String::from_utf8(from_file.stdout).unwrap();
            let ids = |text: &str| {
                let messages = text.lines().map(|line| {
                    let message: Value = serde_json::from_str(line).unwrap();
                    message["toolCallId"].clone()
                });
                messages.collect::<Vec<_>>()
            };
            assert_eq!(ids(&stdout), ids(&piped.stdout));
            assert_eq!(stdout.lines().count(), answered);
        }
    }
}

#[test]
fn a_file_among_the_arguments_is_told_the_way_to_stdin() {
    for command in ["run", "validate", "timeline"] {
        let test = Test::new([command, "my call.json"]).file("my call.json", "{}");
        let told = test.run().code(2).stderr;
        let hint =
            format!("hint: the input is read from stdin: pitool {command} < 'my call.json'\n");
        assert!(told.ends_with(&hint), "{told}");
        let told = Test::new([command, "nothing.json"]).run().code(2).stderr;
        assert!(!told.contains("hint"), "{told}");
    }
}

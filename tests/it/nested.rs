//! Tools that call tools: `pitool call` inside a running tool, and by hand.

use serde_json::{Value, json};

use crate::support::{Done, Test};

/// A tool that runs a line of `sh`, in which `pitool` is this binary.
fn caller(name: &str, script: &str, more: &Value) -> Value {
    let script = format!(
        "pitool() {{ {} \"$@\"; }}; {script}",
        env!("CARGO_BIN_EXE_pitool")
    );
    let mut tool = json!({
        "name": name, "description": "", "callsTools": true,
        "execute": {"command": ["sh", "-c", script]}
    });
    for (field, value) in more.as_object().unwrap() {
        tool[field] = value.clone();
    }
    tool
}

/// A tool that says its argument `text`.
fn say() -> Value {
    json!({
        "name": "say", "description": "",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "execute": {"jq": ".text", "output": "text"}
    })
}

fn run(script: &str, more: &Value) -> Test {
    Test::new(["run"])
        .manifest("parent", &caller("parent", script, more))
        .manifest("say", &say())
        .calls(&[("p", "parent", json!({}))])
}

/// The text of the parent and its `nestedCalls`.
fn parent(done: &Done) -> (String, Value) {
    let mut message = done.lines().remove(0);
    (
        crate::support::text(&message),
        message["nestedCalls"].take(),
    )
}

fn without_durations(mut nested: Value) -> Value {
    for call in nested["calls"].as_array_mut().into_iter().flatten() {
        let call = call.as_object_mut().unwrap();
        if call["status"] == "ok" {
            assert!(call.remove("durationMs").unwrap().is_u64());
        }
    }
    nested
}

#[test]
fn outcome_is_printed_to_the_tool_and_listed_in_its_message() {
    let done = run("pitool call say text=hello", &json!({}))
        .run()
        .code(0)
        .quiet();
    let (text, nested) = parent(&done);
    let mut outcome: Value = serde_json::from_str(&text).unwrap();
    assert!(
        outcome
            .as_object_mut()
            .unwrap()
            .remove("durationMs")
            .unwrap()
            .is_u64()
    );
    assert_eq!(
        outcome,
        json!({"toolCall": {"type": "toolCall", "id": "p/1", "name": "say", "arguments": {"text": "hello"}},
               "result": {"content": [{"type": "text", "text": "hello"}]}, "isError": false})
    );
    assert_eq!(
        without_durations(nested),
        json!({"calls": [{"id": "p/1", "name": "say", "arguments": {"text": "hello"}, "status": "ok"}], "complete": true})
    );
}

#[test]
fn every_way_to_give_arguments() {
    let script = r#"
        pitool call say text=one >/dev/null
        pitool call say 'text:="two"' >/dev/null
        echo '{"text": "three"}' | pitool call say - >/dev/null
        pitool call say --args '{"text": "four"}' >/dev/null
        pitool call say < /dev/null >/dev/null"#;
    let done = run(script, &json!({})).run().code(0);
    let (_, nested) = parent(&done);
    let arguments: Vec<&Value> = nested["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| &call["arguments"]["text"])
        .collect();
    assert_eq!(
        json!(arguments),
        json!(["one", "two", "three", "four", null])
    );
}

#[test]
fn failed_call_is_an_outcome_with_exit_code_zero() {
    let script = "pitool call say > out && pitool call missing > out2 && echo went on";
    let done = run(script, &json!({})).run().code(0);
    let (text, nested) = parent(&done);
    assert_eq!(text, "went on");
    assert_eq!(nested["calls"][0]["status"], "error");
    let error = nested["calls"][0]["error"].as_str().unwrap();
    assert!(
        error.starts_with("Validation failed for tool \"say\""),
        "{error}"
    );
    assert_eq!(nested["calls"][1]["error"], "Tool missing not found");
    assert_eq!(nested["complete"], true);
}

#[test]
fn only_named_tools_may_be_called() {
    let script = "pitool call say text=x; pitool call other";
    let done = run(script, &json!({"callsTools": ["s*"]}))
        .sh("other", "touch ran")
        .run_and_keep();
    let (_, nested) = parent(&done.0);
    assert_eq!(nested["calls"][0]["status"], "ok");
    assert_eq!(
        nested["calls"][1]["error"],
        "Tool \"parent\" may not call tool \"other\""
    );
    assert!(!done.1.path().join("ran").exists());
}

#[test]
fn tool_that_calls_nobody_gets_no_socket() {
    let done = Test::new(["run"])
        .sh("t", "echo \"${PITOOL_SOCKET-none}\"")
        .calls(&[("a", "t", json!({}))])
        .run();
    assert_eq!(done.texts(), ["none"]);
}

#[test]
fn socket_folder_is_private_and_gone_afterwards() {
    let done = run(
        "d=$(dirname \"$PITOOL_SOCKET\"); stat -c %a \"$d\"; echo \"$d\"",
        &json!({}),
    )
    .run();
    let (text, nested) = parent(&done);
    let (mode, folder) = text.split_once('\n').unwrap();
    assert_eq!(mode, "700");
    assert!(!std::path::Path::new(folder).exists());
    assert_eq!(nested, Value::Null);
}

#[test]
fn hooks_judge_nested_calls_and_see_the_parents_message() {
    let hook = json!({
        "hook": "beforeToolCall", "tools": ["say"],
        "run": {"jq": "{block: true, reason: (.assistantMessage.content[0].name + \" wants \" + .toolCall.id)}"}
    });
    let done = run("pitool call say text=x", &json!({}))
        .manifest("10-guard", &hook)
        .run();
    let (_, nested) = parent(&done);
    assert_eq!(nested["calls"][0]["error"], "parent wants p/1");
}

#[test]
fn nested_calls_send_no_events() {
    let done = run("pitool call say text=x", &json!({}))
        .args(["--output", "events"])
        .run()
        .code(0);
    let all = done.lines();
    let of_nested = all.iter().filter(|event| event["toolCallId"] == "p/1");
    assert_eq!(of_nested.count(), 0);
}

#[test]
fn nested_calls_run_in_the_slot_of_their_parent() {
    let done = run("pitool call say text=x >/dev/null && echo ok", &json!({}))
        .args(["--jobs", "1"])
        .run();
    assert_eq!(parent(&done).0, "ok");
}

/// `second` has the file and waits for the only slot, which `first` holds while its nested call waits for the file.
#[test]
fn slot_is_lent_while_a_nested_call_waits_for_a_file() {
    let writer = json!({
        "mutates": ["path"],
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}
    });
    let done = run("pitool call write path=file", &json!({}))
        .manifest("write", &caller("write", "echo written", &writer))
        .calls(&[
            ("first", "parent", json!({})),
            ("second", "write", json!({"path": "file"})),
        ])
        .args(["--jobs", "1", "--timeout-batch", "30s"])
        .run()
        .code(0);
    let (text, _) = parent(&done);
    assert!(text.contains("written"), "{text}");
    assert_eq!(done.texts()[1], "written");
}

#[test]
fn calls_nest_eight_deep_and_no_deeper() {
    let done = run("pitool call parent", &json!({})).run().code(0);
    let mut depth = 0;
    let (mut text, _) = parent(&done);
    let error = loop {
        let outcome: Value = serde_json::from_str(&text).unwrap();
        let result = outcome["result"]["content"][0]["text"].as_str().unwrap();
        if outcome["isError"] == true {
            break result.to_owned();
        }
        depth += 1;
        text = result.to_owned();
    };
    assert_eq!(depth, 8);
    assert_eq!(
        error,
        "Tool \"parent\" was not run: tools call each other more than 8 deep"
    );
}

#[test]
fn files_of_an_ancestor_are_no_reason_to_wait() {
    let writer = |name: &str, script: &str| {
        caller(
            name,
            script,
            &json!({
                "mutates": ["path"],
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}
            }),
        )
    };
    let done = Test::new(["run"])
        .manifest(
            "outer",
            &writer("outer", "pitool call inner path=file >/dev/null && echo ok"),
        )
        .manifest("inner", &writer("inner", "echo inner"))
        .calls(&[("o", "outer", json!({"path": "file"}))])
        .run();
    assert_eq!(parent(&done).0, "ok");
}

/// Each holds one file and asks for that of the other.
#[test]
fn wait_that_would_close_a_circle_fails() {
    let holder = |name: &str, other: &str| {
        let script = format!(
            "touch {name}.holds; while [ ! -e {other}.holds ]; do sleep 0.01; done; \
             pitool call write path={other}.file >/dev/null; echo done"
        );
        caller(
            name,
            &script,
            &json!({
                "mutates": ["path"],
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}
            }),
        )
    };
    let done = Test::new(["run"])
        .manifest("a", &holder("a", "b"))
        .manifest("b", &holder("b", "a"))
        .manifest(
            "write",
            &caller(
                "write",
                "echo written",
                &json!({
                    "mutates": ["path"],
                    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}
                }),
            ),
        )
        .calls(&[
            ("1", "a", json!({"path": "a.file"})),
            ("2", "b", json!({"path": "b.file"})),
        ])
        .run()
        .code(0);
    assert_eq!(done.texts(), ["done", "done"]);
    let errors: Vec<String> = done
        .lines()
        .iter()
        .filter_map(|message| {
            Some(
                message["nestedCalls"]["calls"][0]["error"]
                    .as_str()?
                    .to_owned(),
            )
        })
        .collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(
        errors[0].starts_with("Tool \"write\" was not run: waiting for "),
        "{errors:?}"
    );
    assert!(errors[0].ends_with(".file would deadlock"), "{errors:?}");
}

#[test]
fn calls_still_running_at_the_parents_end_are_stopped_and_unfinished() {
    let script = "(pitool call slow >/dev/null 2>&1 &) ; while [ ! -e started ]; do sleep 0.01; done; echo done";
    let (done, folder) = run(script, &json!({}))
        .sh("slow", "touch started; sleep 30; touch survived")
        .run_and_keep();
    let (text, nested) = parent(&done);
    assert_eq!(text, "done");
    assert_eq!(
        nested,
        json!({"calls": [{"id": "p/1", "name": "slow", "arguments": {}, "status": "unfinished"}], "complete": false})
    );
    assert!(!folder.path().join("survived").exists());
}

#[test]
fn stopped_batch_stops_nested_calls() {
    let (done, folder) = run("pitool call slow", &json!({}))
        .sh("slow", "sleep 30; touch survived")
        .args(["--timeout-batch", "1s"])
        .run_and_keep();
    let done = done.code(1);
    assert!(parent(&done).0.ends_with("Operation aborted"), "{done:?}");
    assert!(!folder.path().join("survived").exists());
}

#[test]
fn nested_calls_at_once_are_answered_each() {
    let script = "for i in $(seq 20); do pitool call say text=$i > out.$i & done; wait; cat out.*";
    let done = run(script, &json!({})).run().code(0);
    let (text, nested) = parent(&done);
    assert_eq!(text.lines().count(), 20);
    for line in text.lines() {
        let outcome: Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            outcome["toolCall"]["arguments"]["text"],
            outcome["result"]["content"][0]["text"]
        );
    }
    assert_eq!(nested["calls"].as_array().unwrap().len(), 20);
    assert_eq!(nested["complete"], true);
}

/// Large arguments and a large result, by the socket.
#[test]
fn large_values_pass() {
    let script = r#"head -c 300000 /dev/zero | tr '\0' x | sed 's/^/{"text":"/;s/$/"}/' | pitool call say - | wc -c"#;
    let done = run(script, &json!({})).run().code(0);
    let length: usize = parent(&done).0.trim().parse().unwrap();
    assert!(length > 350_000, "{length}");
}

#[cfg(target_os = "linux")]
#[test]
fn confined_tool_without_network_can_still_call() {
    let script = "pitool call say text=one; pitool call say text=two";
    let (done, _folder) = run(
        script,
        &json!({"sandbox": {"read": ["."], "network": false}}),
    )
    .run_and_keep();
    let (text, nested) = parent(&done);
    let texts: Vec<Value> = text
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["result"]["content"][0]["text"].clone()
        })
        .collect();
    assert_eq!(json!(texts), json!(["one", "two"]), "{done:?}");
    assert_eq!(nested["complete"], true);
}

#[test]
fn by_hand_it_exits_as_run_does() {
    let call = |arguments: &[&str]| {
        Test::new(["call"])
            .args(arguments)
            .manifest("say", &say())
            .run()
    };
    let done = call(&["say", "text=hi"]).code(0).quiet();
    assert_eq!(done.lines()[0]["result"]["content"][0]["text"], "hi");
    assert_eq!(done.lines()[0]["toolCall"]["id"], "call_1");
    call(&["say"]).code(1);
    call(&["missing"]).code(1);
    call(&["say", "text"]).code(2);
    call(&["say", "text:=nothing"]).code(2);
    call(&["say", "-", "text=x"]).code(2);
    call(&["say", "--args", "{"]).code(2);
}

#[test]
fn without_a_dash_stdin_is_not_read() {
    let mut test = Test::new(["call", "say", "text=hi"]).manifest("say", &say());
    let (child, _open) = test.spawn_with_open_stdin();
    let done = Done::of(child).code(0);
    assert_eq!(done.lines().len(), 1);
}

#[test]
fn socket_without_a_listener_is_said() {
    let done = Test::new(["call", "say", "text=hi"])
        .manifest("say", &say())
        .env("PITOOL_SOCKET", "/nonexistent/socket")
        .run()
        .code(2);
    assert!(
        done.stderr
            .contains("cannot reach the running pitool at PITOOL_SOCKET"),
        "{done:?}"
    );
}

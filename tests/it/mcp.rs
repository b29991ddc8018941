//! Tools of MCP servers: found, run and answered like any other tool.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::{Test, message, text};

/// A server in sh, as `server.sh` in the folder; `call` answers a call with `$id`, and every start is noted.
fn server(call: &str) -> String {
    format!(
        r#"echo started >> starts
answer() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$1"; }}
text() {{ answer '{{"content":[{{"type":"text","text":"'"$1"'"}}]}}'; }}
while read -r line; do
  id=${{line#*\"id\":}}; id=${{id%%[,\}}]*}}
  case $line in
    *'"method":"initialize"'*) answer '{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"fake","version":"1"}}}}' ;;
    *'"method":"tools/list"'*) answer '{{"tools":[{{"name":"say","description":"Say it","inputSchema":{{"type":"object","properties":{{"n":{{"type":"integer"}}}}}}}},{{"name":"say.it"}},{{"name":"say-it"}}]}}' ;;
    *'"method":"tools/call"'*) {call} ;;
  esac
done
"#
    )
}

fn run(call: &str, entry: Value) -> Test {
    let mut entry = entry;
    entry["command"] = json!("sh");
    entry["args"] = json!(["server.sh"]);
    Test::new(["run"])
        .file("server.sh", server(call))
        .manifest("servers", &json!({"mcpServers": {"fake": entry}}))
}

#[test]
fn a_server_is_started_once_for_all_messages_and_calls() {
    let stdin = [
        message(&[
            ("a", "mcp__fake__say", json!({"n": "7"})),
            ("b", "mcp__fake__say", json!({"n": 8})),
        ]),
        message(&[("c", "mcp__fake__say", json!({}))]),
    ];
    let stdin: Vec<String> = stdin.iter().map(ToString::to_string).collect();
    let call =
        r#"case $line in *'"n":7'*) text seven ;; *'"n":8'*) text eight ;; *) text none ;; esac"#;
    let (done, folder) = run(call, json!({})).stdin(stdin.join("\n")).run_and_keep();
    let done = done.code(0).quiet();
    assert_eq!(done.texts(), ["seven", "eight", "none"]);
    assert_eq!(
        std::fs::read_to_string(folder.path().join("starts")).unwrap(),
        "started\n"
    );
}

#[test]
fn a_server_that_is_not_called_is_not_started() {
    let (done, folder) = run("text x", json!({}))
        .sh("here", "echo here")
        .calls(&[
            ("a", "here", json!({})),
            ("b", "mcp__other__say", json!({})),
        ])
        .run_and_keep();
    let done = done.code(1);
    assert_eq!(
        done.texts(),
        ["here", "error: Tool mcp__other__say not found"]
    );
    assert!(!folder.path().join("starts").exists());
}

#[test]
fn arguments_are_judged_and_hooks_are_asked() {
    let done = run("text said", json!({}))
        .manifest("guard", &json!({"hook": "beforeToolCall", "tools": ["mcp__fake__*"],
            "run": {"jq": "if .args.n == 1 then {block: true, reason: \"not one\"} else empty end"}}))
        .manifest("stamp", &json!({"hook": "afterToolCall",
            "run": {"jq": "{content: [{type: \"text\", text: (.result.content[0].text + \"!\")}]}"}}))
        .calls(&[
            ("a", "mcp__fake__say", json!({"n": "many"})),
            ("b", "mcp__fake__say", json!({"n": 1})),
            ("c", "mcp__fake__say", json!({"n": 2})),
        ])
        .run()
        .code(1);
    let texts = done.texts();
    assert!(
        texts[0].starts_with("error: Validation failed for tool \"mcp__fake__say\""),
        "{texts:?}"
    );
    assert_eq!(texts[1..], ["error: not one", "said!"]);
}

#[test]
fn a_tool_that_the_server_has_not_is_not_found() {
    let done = run("text x", json!({}))
        .calls(&[("a", "mcp__fake__sya", json!({}))])
        .run()
        .code(1);
    assert_eq!(done.texts(), ["error: Tool mcp__fake__sya not found"]);
    assert!(
        done.stderr.contains("nearest names: mcp__fake__say"),
        "{}",
        done.stderr
    );
}

#[test]
fn a_server_that_does_not_start_fails_its_calls_only() {
    let entry = json!({"mcpServers": {"broken": {"command": "no-such-program-at-all"}}});
    let done = run("text x", json!({}))
        .manifest("broken", &entry)
        .calls(&[
            ("a", "mcp__broken__x", json!({})),
            ("b", "mcp__fake__say", json!({})),
        ])
        .run()
        .code(1);
    let reason = "MCP server \"broken\" did not start: Cannot start \"no-such-program-at-all\": it was not found";
    assert_eq!(done.texts(), [format!("error: {reason}"), "x".to_owned()]);
}

#[test]
fn the_environment_of_a_server_is_short() {
    let done = run(
        "text \"$SECRET-$GIVEN-$PITOOL_TEST_HOME\"",
        json!({"env": {"GIVEN": "${PITOOL_TEST_HOME:-none}"}}),
    )
    .env("SECRET", "s3cret")
    .calls(&[("a", "mcp__fake__say", json!({}))])
    .run()
    .code(0);
    assert_eq!(done.texts(), ["-none-"]);
}

#[test]
fn an_unset_variable_is_named() {
    let done = run("text x", json!({"env": {"TOKEN": "${PITOOL_TEST_UNSET}"}}))
        .calls(&[("a", "mcp__fake__say", json!({}))])
        .run()
        .code(1);
    assert!(
        done.texts()[0].contains("Environment variable PITOOL_TEST_UNSET is not set"),
        "{done:?}"
    );
}

#[test]
fn unknown_fields_of_a_server_are_warnings() {
    let done = run("text x", json!({"autoApprove": ["say"], "timout": 5}))
        .calls(&[("a", "mcp__fake__say", json!({}))])
        .run()
        .code(0);
    assert_eq!(done.texts(), ["x"]);
    assert!(
        done.stderr.contains("warning: tools.d/servers.json:1:"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("timeout"), "{}", done.stderr);
}

#[test]
fn two_servers_of_one_name_withhold_every_call() {
    let done = run("text x", json!({}))
        .manifest("more", &json!({"mcpServers": {"fake": {"command": "x"}}}))
        .calls(&[("a", "mcp__fake__say", json!({}))])
        .run()
        .code(2);
    let texts = done.texts();
    assert!(
        texts[0].contains("servers.json could not be loaded"),
        "{texts:?}"
    );
    assert!(
        done.stderr.contains("would both be named mcp__fake__*"),
        "{}",
        done.stderr
    );
}

#[test]
fn only_limits_the_tools_of_servers_too() {
    let (done, folder) = run("text x", json!({}))
        .args(["--only", "here*"])
        .calls(&[("a", "mcp__fake__say", json!({}))])
        .run_and_keep();
    assert_eq!(
        done.code(1).texts(),
        ["error: Tool mcp__fake__say not found"]
    );
    assert!(!folder.path().join("starts").exists());
}

#[test]
fn a_dry_run_starts_no_server() {
    let (done, folder) = run("text x", json!({}))
        .args(["--dry-run"])
        .calls(&[("a", "mcp__fake__say", json!({"n": 1}))])
        .run_and_keep();
    let lines = done.code(0).lines();
    assert_eq!(lines[0]["wouldRun"], json!({"server": "fake"}), "{lines:?}");
    assert!(!folder.path().join("starts").exists());
}

#[test]
fn the_servers_of_a_message_start_at_the_same_time() {
    // Each waits for the other before it speaks.
    let wait = |own: &str, other: &str| {
        format!(
            "touch {own}; until [ -e {other} ]; do :; done\n{}",
            server("text hi")
        )
    };
    let done = Test::new(["run"])
        .file("a.sh", wait("a", "b"))
        .file("b.sh", wait("b", "a"))
        .manifest(
            "servers",
            &json!({"mcpServers": {"a": {"command": "sh", "args": ["a.sh"]}, "b": {"command": "sh", "args": ["b.sh"]}}}),
        )
        .calls(&[("1", "mcp__a__say", json!({})), ("2", "mcp__b__say", json!({}))])
        .run()
        .code(0);
    assert_eq!(done.texts(), ["hi", "hi"]);
}

#[test]
fn what_a_server_says_beside_the_protocol_goes_to_stderr() {
    let done = run("echo log; echo more >&2; text x", json!({}))
        .calls(&[("a", "mcp__fake__say", json!({}))])
        .run()
        .code(0);
    assert_eq!(done.texts(), ["x"]);
    assert!(
        done.stderr.contains("fake: log\n") && done.stderr.contains("fake: more\n"),
        "{}",
        done.stderr
    );
}

#[test]
fn a_killed_server_leaves_every_call_an_answer() {
    let calls: Vec<_> = (0..100)
        .map(|n| (format!("c{n}"), "mcp__fake__say", json!({"n": n})))
        .collect();
    let calls: Vec<_> = calls
        .iter()
        .map(|(id, name, arguments)| (id.as_str(), *name, arguments.clone()))
        .collect();
    let done = run(
        "count=$((count+1)); [ $count -gt 50 ] && kill -KILL $$; text ok",
        json!({}),
    )
    .args(["--jobs", "0"])
    .calls(&calls)
    .run()
    .code(1);
    let lines = done.lines();
    let ids: Vec<&str> = lines
        .iter()
        .map(|line| line["toolCallId"].as_str().unwrap())
        .collect();
    assert_eq!(ids, calls.iter().map(|(id, ..)| *id).collect::<Vec<_>>());
    let died = "error: MCP server \"fake\" was killed by SIGKILL before it answered";
    assert!(
        lines
            .iter()
            .map(text)
            .all(|text| text == "ok" || text == died),
        "{done:?}"
    );
}

#[test]
fn a_stop_cancels_the_call_and_ends_the_server() {
    let mut test = run("echo $$ > pid; echo called > called", json!({})).calls(&[(
        "a",
        "mcp__fake__say",
        json!({}),
    )]);
    let child = test.spawn();
    let called = test.folder().join("called");
    while !called.exists() {
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let done = crate::support::Done::of(child).code(130);
    assert_eq!(done.texts(), ["error: Operation aborted"]);
    let server = std::fs::read_to_string(test.folder().join("pid")).unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{}/cmdline", server.trim())).exists());
}

#[test]
fn pitool_is_a_server_that_pitool_can_call() {
    let pitool = env!("CARGO_BIN_EXE_pitool");
    let inner = json!({"name": "add", "description": "Adds", "parameters": {
        "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]},
        "outputSchema": {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]},
        "execute": {"jq": "{sum: (.a + .b)}", "output": "json"}});
    let done = Test::new(["run"])
        .file("inner/add.json", inner.to_string())
        .manifest("outer", &json!({"mcpServers": {"inner": {"command": pitool, "args": ["serve", "--tools", "inner"]}}}))
        .args(["--output", "outcomes"])
        .calls(&[("a", "mcp__inner__add", json!({"a": 2, "b": "40"})), ("b", "mcp__inner__add", json!({"a": 1}))])
        .run()
        .code(1);
    let lines = done.lines();
    assert_eq!(
        lines[0]["result"]["structuredContent"],
        json!({"sum": 42}),
        "{done:?}"
    );
    assert_eq!(
        lines[0]["result"]["content"],
        json!([{"type": "text", "text": "{\"sum\":42}"}])
    );
    assert_eq!(lines[1]["isError"], true);
}

#[test]
fn a_server_in_a_file_of_its_own_is_found_from_the_manifest() {
    let test = Test::new(["run"]).file(
        "tools.d/bin/server",
        format!("#!/bin/sh\n{}", server("text beside")),
    );
    let program = test.folder().join("tools.d/bin/server");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let done = test
        .manifest(
            "s",
            &json!({"mcpServers": {"s": {"command": "./bin/server"}}}),
        )
        .calls(&[("a", "mcp__s__say", json!({}))])
        .run()
        .code(0);
    assert_eq!(done.texts(), ["beside"]);
}

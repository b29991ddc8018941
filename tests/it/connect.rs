//! `--connect`: looking at tools starts an MCP server only when it is asked for.

use serde_json::{Value, json};

use crate::support::{Done, Test, message};

/// A server with one tool that notes its start and says something on stderr.
const SERVER: &str = r#"echo started >> starts
echo hello >&2
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}' ;;
    *'"method":"tools/list"'*) answer '{"tools":[{"name":"say","title":"Say","description":"Say it","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},"annotations":{"readOnlyHint":true}}]}' ;;
  esac
done
"#;

/// The command beside the server `fake` and the tool `here`: what it said, and whether the server was started.
fn look(arguments: &[&str], stdin: &str) -> (Done, bool) {
    let (done, folder) = Test::new(arguments)
        .file("server.sh", SERVER)
        .manifest(
            "servers",
            &json!({"mcpServers": {"fake": {"command": "sh", "args": ["server.sh"], "replay": "safe"}}}),
        )
        .manifest(
            "guard",
            &json!({"hook": "beforeToolCall", "tools": ["mcp__fake__say"], "run": {"jq": "empty"}}),
        )
        .sh("here", "true")
        .stdin(stdin)
        .run_and_keep();
    (done, folder.path().join("starts").exists())
}

#[test]
fn without_it_nothing_starts_and_the_output_says_so() {
    let call = message(&[("a", "here", json!({}))]).to_string();
    let cases: [(&[&str], &str); 4] = [
        (&["list"], ""),
        (&["check"], ""),
        (&["declare", "--for", "mcp"], ""),
        (&["validate"], &call),
    ];
    for (arguments, stdin) in cases {
        let (done, is_started) = look(arguments, stdin);
        let done = done.code(0);
        assert_eq!(
            done.stderr,
            "pitool: MCP server fake was not started; --connect starts it to look at the tools\n",
            "{arguments:?}"
        );
        assert!(!is_started, "{arguments:?}");
        assert!(!done.stdout.contains("no tool has a name"), "{done:?}");
    }
    let (done, is_started) = look(&["show", "mcp__fake__say"], "");
    let done = done.code(2);
    assert!(done.stderr.contains("--connect starts it"), "{done:?}");
    assert!(!is_started);
    // Nothing is left out of a tool that is here.
    let (done, is_started) = look(&["show", "here"], "");
    done.code(0).quiet();
    assert!(!is_started);
}

#[test]
fn with_it_the_tools_of_servers_are_looked_at() {
    let (done, _) = look(&["list", "--connect"], "");
    let done = done.code(0);
    assert!(
        done.stdout
            .contains("mcp__fake__say\tSay it\ttools.d/servers.json\n"),
        "{done:?}"
    );
    assert_eq!(done.stderr, "pitool: fake: hello\n");

    let (done, _) = look(&["show", "mcp__fake__say", "--connect", "--json"], "");
    let shown: Value = serde_json::from_str(&done.code(0).stdout).unwrap();
    assert_eq!(
        shown["manifest"],
        json!({"server": "fake", "tool": "say", "label": "Say", "annotations": {"readOnlyHint": true}, "replay": "safe"})
    );
    assert_eq!(shown["hooks"].as_array().unwrap().len(), 1);
    let (done, _) = look(&["show", "mcp__fake__say", "--connect"], "");
    let done = done.code(0);
    assert!(done.stdout.contains("that of its server"), "{done:?}");

    let (done, _) = look(&["check", "--connect"], "");
    let done = done.code(0);
    assert!(
        done.stdout.contains("whatever its MCP server may"),
        "{done:?}"
    );
    assert!(done.stdout.contains("2 tools"), "{done:?}");

    let (done, _) = look(&["declare", "--for", "openai", "--connect"], "");
    assert!(done.code(0).stdout.contains("mcp__fake__say"));

    let call = message(&[("a", "mcp__fake__say", json!({"n": "5"}))]).to_string();
    let (done, _) = look(&["validate", "--connect"], &call);
    assert_eq!(done.code(0).stdout, "{\"n\":5}\n");
    let (done, _) = look(
        &["validate", "--connect", "--tool", "mcp__fake__say"],
        "{\"n\": true}",
    );
    assert_eq!(done.code(0).stdout, "{\"n\":1}\n");
}

#[test]
fn a_server_that_does_not_start_is_told_beside_the_others() {
    let broken = |arguments: &[&str]| {
        Test::new(arguments)
            .manifest(
                "broken",
                &json!({"mcpServers": {"broken": {"command": "no-such-program-at-all"}}}),
            )
            .sh("here", "true")
            .run()
            .code(1)
    };
    let reason = "MCP server \"broken\" did not start: Cannot start \"no-such-program-at-all\": it was not found";
    let done = broken(&["list", "--connect"]);
    assert_eq!(
        done.stderr,
        format!("pitool: error: tools.d/broken.json: {reason}\n")
    );
    assert!(done.stdout.starts_with("here\t"), "{done:?}");
    let done = broken(&["check", "--connect", "--report", "jsonl"]);
    let found = done
        .lines()
        .into_iter()
        .find(|line| line["rule"] == "server");
    let found = found.unwrap();
    assert_eq!(
        (&found["severity"], &found["message"]),
        (&json!("error"), &json!(reason))
    );
}

//! What servers in the wild do: strange schemas, results without their parts, logs among messages. No text gets lost.

use serde_json::{Value, json};

use crate::support::{Test, text};

/// A server in sh that lists `list.json` and answers the call of a tool with the file of its name.
const SERVER: &str = r#"echo started >> starts
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"logging":{},"experimental":{"x":{}}},"serverInfo":{"name":"fake","version":"1","title":"Fake"},"instructions":"Call one tool at a time."}' ;;
    *'"method":"tools/list"'*) answer "$(cat list.json)" ;;
    *'"method":"tools/call"'*)
      cat before 2>/dev/null
      name=${line#*\"name\":\"}; name=${name%%\"*}
      answer "$(cat "$name.json")" ;;
  esac
done
"#;

/// A run of calls to a server with these tools, each `(name, its schemas, its result)`.
fn run(tools: &[(&str, Value, Value)]) -> Test {
    let mut test = Test::new(["run"]).file("server.sh", SERVER).manifest(
        "servers",
        &json!({"mcpServers": {"s": {"command": "sh", "args": ["server.sh"]}}}),
    );
    let mut list = Vec::new();
    for (name, schemas, result) in tools {
        let mut tool = json!({"name": name, "inputSchema": {"type": "object"}});
        tool.as_object_mut()
            .unwrap()
            .extend(schemas.as_object().unwrap().clone());
        list.push(tool);
        test = test.file(&format!("{name}.json"), result.to_string());
    }
    test.file("list.json", json!({"tools": list}).to_string())
}

fn said(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

#[test]
fn structured_results_are_never_empty() {
    let tools = [
        (
            "object",
            json!({}),
            json!({"content": [], "structuredContent": {"answer": 42}}),
        ),
        ("array", json!({}), json!({"structuredContent": []})),
        (
            "empty",
            json!({}),
            json!({"content": [], "structuredContent": {}}),
        ),
        (
            "both",
            json!({}),
            json!({"content": [{"type": "text", "text": "told"}], "structuredContent": {"a": 1}}),
        ),
    ];
    let calls = [
        ("1", "mcp__s__object", json!({})),
        ("2", "mcp__s__array", json!({})),
        ("3", "mcp__s__empty", json!({})),
        ("4", "mcp__s__both", json!({})),
    ];
    let done = run(&tools)
        .args(["--output", "outcomes"])
        .calls(&calls)
        .run()
        .code(0);
    let results: Vec<Value> = done
        .lines()
        .iter()
        .map(|line| line["result"].clone())
        .collect();
    let texts: Vec<String> = results.iter().map(text).collect();
    assert_eq!(texts, [r#"{"answer":42}"#, "[]", "{}", "told"]);
    assert_eq!(results[0]["structuredContent"], json!({"answer": 42}));
    assert_eq!(results[3]["structuredContent"], json!({"a": 1}));
}

#[test]
fn output_schemas_warn_and_lose_no_text() {
    let schema = json!({"outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}});
    let structured = |value: Value| json!({"content": [{"type": "text", "text": "told"}], "structuredContent": value});
    let tools = [
        ("bare", schema.clone(), said("told")),
        ("loose", schema.clone(), structured(json!({"n": "5"}))),
        ("wrong", schema.clone(), structured(json!({"m": 1}))),
        ("right", schema.clone(), structured(json!({"n": 5}))),
        (
            "failed",
            schema,
            json!({"content": [{"type": "text", "text": "no luck"}], "isError": true}),
        ),
    ];
    let calls = [
        ("1", "mcp__s__bare", json!({})),
        ("2", "mcp__s__loose", json!({})),
        ("3", "mcp__s__wrong", json!({})),
        ("4", "mcp__s__right", json!({})),
        ("5", "mcp__s__failed", json!({})),
    ];
    let done = run(&tools).calls(&calls).run().code(1);
    assert_eq!(
        done.texts(),
        ["told", "told", "told", "told", "error: no luck"]
    );
    for (tool, is_told) in [
        ("bare", true),
        ("loose", true),
        ("wrong", true),
        ("right", false),
        ("failed", false),
    ] {
        let name = format!("mcp__s__{tool}");
        assert_eq!(
            done.stderr.contains(&name),
            is_told,
            "{tool}: {}",
            done.stderr
        );
    }
    let strict = run(&tools)
        .args(["--strict-output"])
        .calls(&calls)
        .run()
        .code(1);
    let is_error = |line: &Value| line["isError"] == true;
    let failed: Vec<bool> = strict.lines().iter().map(is_error).collect();
    assert_eq!(failed, [true, true, true, false, true]);
}

#[test]
fn old_and_broken_schemas_reject_only_what_they_must() {
    let draft_7 = json!({"inputSchema": {
        "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        "definitions": {"id": {"type": "integer", "exclusiveMinimum": 0}},
        "properties": {"id": {"$ref": "#/definitions/id"}, "pair": {"items": [{"type": "string"}, {"type": "integer"}], "additionalItems": false}},
        "dependencies": {"pair": ["id"]}}});
    let dangling = json!({"inputSchema": {"type": "object",
        "properties": {"good": {"type": "integer"}, "bad": {"$ref": "#/$defs/nowhere"}}}});
    let tools = [
        ("old", draft_7, said("old")),
        ("dangling", dangling, said("dangling")),
        ("none", json!({"inputSchema": null}), said("none")),
    ];
    let done = run(&tools)
        .calls(&[
            ("1", "mcp__s__old", json!({"id": "3", "pair": ["a", "1"]})),
            ("2", "mcp__s__old", json!({"id": 0})),
            ("3", "mcp__s__old", json!({"pair": ["a", 1]})),
            ("4", "mcp__s__dangling", json!({"good": "1"})),
            ("5", "mcp__s__dangling", json!({"bad": 1})),
            ("6", "mcp__s__none", json!({"anything": [1]})),
        ])
        .run()
        .code(1);
    let lines = done.lines();
    let texts: Vec<String> = lines.iter().map(text).collect();
    assert_eq!(
        (&*texts[0], &*texts[3], &*texts[5]),
        ("old", "dangling", "none")
    );
    for wrong in [1, 2, 4] {
        assert!(
            texts[wrong].starts_with("error: Validation failed for tool"),
            "{texts:?}"
        );
    }
}

#[test]
fn what_a_model_cannot_see_is_told_and_kept() {
    let blocks = json!([
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGVsbG8=", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
        {"type": "resource", "resource": {"uri": "file:///b", "text": "inside"}}
    ]);
    let done = run(&[("mixed", json!({}), json!({"content": blocks}))])
        .calls(&[("1", "mcp__s__mixed", json!({}))])
        .run()
        .code(0);
    let message = &done.lines()[0];
    assert_eq!(message["content"][0]["type"], "image");
    assert_eq!(
        text(message),
        "[Audio audio/wav, 5 bytes]\n[Resource file:///a: a]\n[Resource file:///b]\ninside"
    );
    assert_eq!(message["details"]["mcp"]["content"], blocks);
}

#[test]
fn logs_of_any_length_stand_before_the_answer() {
    let mut before = format!(
        "starting\n\n{{\"level\":\"info\"}}\n{}\n",
        "x".repeat(1 << 20)
    );
    before.push_str("no line break, then: ");
    let done = run(&[("loud", json!({}), said("heard"))])
        .file("before", before)
        .calls(&[("1", "mcp__s__loud", json!({}))])
        .run()
        .code(0);
    assert_eq!(done.texts(), ["heard"]);
    assert!(done.stderr.contains("s: starting\n"), "{}", done.stderr);
    assert!(done.stderr.contains("(1048576 bytes)"), "{}", done.stderr);
    assert!(
        done.stderr.contains("s: no line break, then:\n"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.len() < 10_000);
}

#[test]
fn a_journal_answers_for_a_server_too() {
    let test = run(&[("once", json!({}), said("done"))])
        .args(["--journal", "journal"])
        .calls(&[("1", "mcp__s__once", json!({}))]);
    let (done, folder) = test.run_and_keep();
    assert_eq!(done.code(0).texts(), ["done"]);
    let again = Test::again(folder, ["run", "--journal", "journal"]).calls(&[(
        "1",
        "mcp__s__once",
        json!({}),
    )]);
    let (done, folder) = again.run_and_keep();
    assert_eq!(done.code(0).texts(), ["done"]);
    let starts = std::fs::read_to_string(folder.path().join("starts")).unwrap();
    assert_eq!(starts, "started\n");
}

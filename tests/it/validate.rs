//! `pitool validate`: judgements in order, on the right stream, with the right exit code.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Done, Test, message};

fn search() -> Value {
    json!({"name": "search", "description": "", "parameters": {
        "type": "object", "properties": {"q": {"type": "string"}, "limit": {"type": "integer"}}, "required": ["q"],
        "additionalProperties": false,
    }, "execute": {"command": ["sh", "-c", "echo ran >> ran; exit 1"]}})
}

fn validate(options: &[&str], stdin: &str) -> Done {
    Test::new([&["validate"], options].concat())
        .manifest("search", &search())
        .stdin(stdin)
        .run()
}

#[test]
fn argument_values_are_printed_coerced() {
    let done = validate(
        &["--tool", "search"],
        "{\"q\":\"a\",\"limit\":\"5\"}\n{\"q\":1}\n{\n \"q\": \"b\"\n}\n\"{\\\"q\\\":\\\"text\\\"}\"\n",
    );
    let done = done.code(0).quiet();
    assert_eq!(
        done.stdout,
        "{\"q\":\"a\",\"limit\":5}\n{\"q\":\"1\"}\n{\"q\":\"b\"}\n{\"q\":\"text\"}\n"
    );
}

#[test]
fn line_and_call_name_each_input_once() {
    let numbers = |done: Done| -> Vec<(u64, u64)> {
        let number = |line: &Value, name: &str| line[name].as_u64().unwrap();
        let lines = done.lines();
        let lines = lines.iter();
        lines
            .map(|line| (number(line, "line"), number(line, "call")))
            .collect()
    };
    let options = ["--tool", "search", "--report", "jsonl"];
    let values = validate(&options, "{\"q\":1} {\"q\":2}\n{\"q\":3}");
    assert_eq!(numbers(values), [(1, 1), (1, 2), (2, 1)]);
    let one = message(&[("1", "search", json!({"q": "a"}))]);
    let two = message(&[
        ("1", "search", json!({"q": "a"})),
        ("2", "search", json!({"q": "b"})),
    ]);
    let calls = validate(
        &["--report", "jsonl"],
        &format!("[{two},{one}] {one}\n{one}\n"),
    );
    assert_eq!(numbers(calls), [(1, 1), (1, 2), (1, 3), (1, 4), (2, 1)]);
}

#[test]
fn what_is_wrong_stands_behind_its_line_on_stderr() {
    let done = validate(
        &["--tool", "search"],
        "{\"q\":\"a\"}\n\n{\"limit\":1}\n{\"q\":\"b\"}\n",
    );
    let done = done.code(1);
    assert_eq!(done.stdout, "{\"q\":\"a\"}\n{\"q\":\"b\"}\n");
    assert_eq!(
        done.stderr,
        "line 3: Validation failed for tool \"search\":\n  - q: missing\n\nReceived arguments:\n{\n  \"limit\": 1\n}\n"
    );
}

#[test]
fn an_unreadable_line_is_reported_and_the_rest_goes_on() {
    let done = validate(
        &["--tool", "search"],
        "{\"q\":\"a\"}\nnope\n{\"q\":\"b\"}\n",
    )
    .code(2);
    assert_eq!(done.stdout, "{\"q\":\"a\"}\n{\"q\":\"b\"}\n");
    assert!(
        done.stderr.starts_with("line 2: not JSON at column 2:"),
        "{}",
        done.stderr
    );
}

#[test]
fn fail_fast_ends_at_the_first_that_is_not_well() {
    let done = validate(
        &["--tool", "search", "--fail-fast"],
        "{\"q\":\"a\"}\n{}\n{\"q\":\"b\"}\nnope\n",
    );
    let done = done.code(1);
    assert_eq!(done.stdout, "{\"q\":\"a\"}\n");
    assert_eq!(done.stderr.matches("line ").count(), 1, "{}", done.stderr);
}

#[test]
fn each_call_of_a_message_is_judged_by_its_own_tool() {
    let calls = [
        ("c1", "search", json!({"q": "a", "limit": "7"})),
        ("c2", "serach", json!({})),
        ("c3", "search", json!([1])),
    ];
    let lines = format!("{}\n5\n", message(&calls));
    let done = validate(&["--report", "jsonl"], &lines).code(2).quiet();
    let text = "Validation failed for tool \"search\":\n  - root: expected object, got array\n\nReceived arguments:\n[\n  1\n]";
    assert_eq!(
        done.lines(),
        [
            json!({"line": 1, "call": 1, "toolCallId": "c1", "tool": "search", "ok": true,
                   "value": {"q": "a", "limit": 7}}),
            json!({"line": 1, "call": 2, "toolCallId": "c2", "tool": "serach", "ok": false, "errors": [],
                   "text": "Tool serach not found"}),
            json!({"line": 1, "call": 3, "toolCallId": "c3", "tool": "search", "ok": false,
                   "errors": [{"path": "", "keyword": "type", "message": "expected object, got array"}],
                   "text": text}),
            json!({"line": 2, "ok": false, "text": "expected a message of a known format, got a number"}),
        ]
    );
}

#[test]
fn nothing_but_the_preparation_runs() {
    let mut tool = search();
    tool["prepareArguments"] = json!({"jq": "{q: .query}"});
    let guard =
        json!({"hook": "beforeToolCall", "run": {"command": ["sh", "-c", "echo ran >> ran"]}});
    let (done, folder) = Test::new(["validate"])
        .manifest("search", &tool)
        .manifest("guard", &guard)
        .calls(&[("c1", "search", json!({"query": "old"}))])
        .run_and_keep();
    let done = done.code(0).quiet();
    assert_eq!(done.stdout, "{\"q\":\"old\"}\n");
    assert!(!folder.path().join("ran").exists());
}

#[test]
fn any_value_is_judged_by_a_schema_of_its_own() {
    let done = Test::new(["validate", "--schema", "schema.json"])
        .file(
            "schema.json",
            r#"{"type":"array","items":{"type":"integer"}}"#,
        )
        .stdin("[1,\"2\"]\n\"3\"\n[\"x\"]\n18446744073709551615\n")
        .run()
        .code(1);
    assert_eq!(done.stdout, "[1,2]\n[3]\n[18446744073709551615]\n");
    assert_eq!(
        done.stderr,
        "line 3: Validation failed:\n  - 0: expected integer, got string\n"
    );
}

#[test]
fn explanations_are_a_table_for_people_and_steps_for_programs() {
    let value = "{\"q\":true,\"limit\":3.7}\n{\"q\":\"a\"}\n";
    let done = validate(&["--tool", "search", "--explain"], value).code(0);
    assert_eq!(done.stdout, "{\"q\":\"true\",\"limit\":3}\n{\"q\":\"a\"}\n");
    assert_eq!(
        done.stderr,
        "line 1: search: 2 changes\n\
         PATH   SENT  BECAME  RULE        LOSSY\n\
         q      true  \"true\"  to-string\n\
         limit  3.7   3       to-integer  lossy\n\
         line 2: search: nothing changed\n"
    );
    let done = validate(
        &["--tool", "search", "--explain", "--report", "jsonl"],
        value,
    )
    .code(0);
    assert_eq!(
        done.lines()[0]["steps"][1],
        json!({"path": "/limit", "from": 3.7, "to": 3, "rule": "to-integer", "lossy": true})
    );
    assert_eq!(done.lines()[1]["steps"], json!([]));
}

#[test]
fn the_three_coercions_stand_side_by_side() {
    let compare = |options: &[&str]| {
        Test::new(
            [
                &["validate", "--schema", "schema.json", "--compare"],
                options,
            ]
            .concat(),
        )
        .file(
            "schema.json",
            r#"{"type":"array","items":{"type":"integer"}}"#,
        )
        .stdin("\"5\"\n")
        .run()
        .code(0)
        .quiet()
    };
    assert_eq!(
        compare(&[]).stdout,
        "line 1\n\
         COERCION  VERDICT  BECOMES\n\
         off       invalid  root: expected array, got string\n\
         standard  valid    [5]\n\
         extended  valid    [5]\n"
    );
    let line = &compare(&["--report", "jsonl"]).lines()[0];
    assert_eq!(line["compare"]["off"]["ok"], false);
    assert_eq!(line["compare"]["off"]["steps"], json!([]));
    assert_eq!(line["compare"]["extended"]["value"], json!([5]));
}

#[test]
fn coercion_can_be_refused() {
    let done = validate(&["--tool", "search", "--coerce", "off"], "{\"q\":1}").code(1);
    assert!(
        done.stderr.contains("q: expected string, got integer"),
        "{}",
        done.stderr
    );
    let done = validate(
        &["--tool", "search", "--deny-lossy"],
        "{\"q\":\"a\",\"limit\":3.7}",
    )
    .code(1);
    assert!(
        done.stderr
            .contains("limit: lossy conversion from 3.7 to 3"),
        "{}",
        done.stderr
    );
}

#[test]
fn what_cannot_be_judged_at_all_is_exit_2() {
    let done = validate(&["--tool", "serach"], "{}").code(2);
    assert_eq!(
        done.stderr,
        "pitool: no tool is named \"serach\"\nhint: did you mean search?\n"
    );
    let done = Test::new(["validate", "--schema", "gone.json"])
        .run()
        .code(2);
    assert!(
        done.stderr.starts_with("pitool: cannot read gone.json: "),
        "{}",
        done.stderr
    );
    let done = Test::new(["validate", "--schema", "bad.json"])
        .file("bad.json", "{")
        .run()
        .code(2);
    assert!(
        done.stderr
            .starts_with("pitool: bad.json is not valid JSON: line 1 "),
        "{}",
        done.stderr
    );
    let done = validate(&[], "").code(0).quiet();
    assert_eq!(done.stdout, "");
}

/// Enough lines for many pieces, with values that span lines and broken ones in between, keep order and numbers.
#[test]
fn many_inputs_keep_their_order() {
    let mut stdin = String::new();
    let mut expected = Vec::new();
    let mut line = 1;
    for number in 0..40_000 {
        let (text, is_readable) = match number % 1000 {
            500 => (format!("{{\"q\":\n\"{number}\"\n}}\n"), true),
            501 => ("{\"q\": nope}\n".to_owned(), false),
            _ => (
                format!("{{\"q\":\"{number}\",\"limit\":\"{number}\"}}\n"),
                true,
            ),
        };
        expected.push((line, is_readable));
        line += text.matches('\n').count();
        stdin.push_str(&text);
    }
    let done = validate(&["--tool", "search", "--report", "jsonl"], &stdin)
        .code(2)
        .quiet();
    let found: Vec<(usize, bool)> = done
        .lines()
        .iter()
        .map(|line| {
            (
                usize::try_from(line["line"].as_u64().unwrap()).unwrap(),
                line["ok"] == true,
            )
        })
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn an_answer_does_not_wait_for_more_input() {
    let mut test = Test::new(["validate", "--tool", "search"]).manifest("search", &search());
    let mut child = test
        .command()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut stdout = BufReader::new(stdout);
    for value in ["a", "b", "c"] {
        writeln!(stdin, "{{\"q\":\"{value}\"}}").unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, format!("{{\"q\":\"{value}\"}}\n"));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    let lines = "{\"q\":\"a\"}\n".repeat(200_000);
    let mut test = Test::new(["validate", "--tool", "search"])
        .manifest("search", &search())
        .stdin(lines);
    let mut child = test.spawn();
    drop(child.stdout.take());
    Done::of(child).code(141).quiet();
}

#[test]
fn session_files_are_judged_by_their_branch() {
    let call = |id: &str, q: &Value| message(&[(id, "search", json!({"q": q}))]);
    let entry = |id: &str, parent: &Value, message: &Value| json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00Z", "message": message});
    let lines = [
        json!({"type": "session", "id": "s", "timestamp": "2026-01-01T00:00:00Z", "version": 3, "cwd": "/"}),
        entry("1", &Value::Null, &call("left", &json!({}))),
        entry("2", &Value::Null, &call("taken", &json!("a"))),
    ];
    let stdin: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let done = validate(&["--report", "jsonl"], &stdin).code(0).quiet();
    let lines = done.lines();
    assert_eq!(lines.len(), 1);
    assert_eq!(
        (&lines[0]["line"], &lines[0]["toolCallId"]),
        (&json!(3), &json!("taken"))
    );
}

#[test]
fn lines_and_summary_name_their_source() {
    let test = Test::new([
        "validate",
        "--report",
        "jsonl",
        "--source",
        "shard 1",
        "--summary",
        "summary.json",
    ])
    .manifest("search", &search());
    let call = |id: &str, arguments: Value| json!({"type": "toolCall", "id": id, "name": "search", "arguments": arguments});
    let several = json!({"role": "assistant", "content": [
        call("a", json!({"q": "x"})),
        {"type": "text", "text": "\u{1f600}"},
        call("b", json!({"limit": 1})),
    ]});
    let unusual = json!({"content": [{"type": "toolCall", "name": "search", "arguments": "{\"q\":\"y\"}", "id": "c"}],
                         "role": "assistant", "usage": {"input": 1}});
    let input = format!("{several}\nnope\n{unusual}\n");
    let (done, folder) = test.stdin(input).run_and_keep();
    let done = done.code(2);
    let ids: Vec<String> = done
        .lines()
        .iter()
        .map(|line| {
            format!(
                "{} {} {} {}",
                line["source"], line["line"], line["call"], line["ok"]
            )
        })
        .collect();
    assert_eq!(
        ids,
        [
            "\"shard 1\" 1 1 true",
            "\"shard 1\" 1 2 false",
            "\"shard 1\" 2 null false",
            "\"shard 1\" 3 1 true"
        ]
    );
    assert_eq!(
        std::fs::read_to_string(folder.path().join("summary.json")).unwrap(),
        "{\"valid\":2,\"invalid\":1,\"unreadable\":1,\"source\":\"shard 1\"}\n"
    );
}

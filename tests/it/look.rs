//! `pitool list`, `show` and `check`: looking at the tools runs nothing.

use serde_json::{Value, json};

use crate::support::Test;

fn echo() -> Value {
    json!({"name": "echo", "label": "Echo", "description": "Echo one value\nand no more",
           "execute": {"jq": "."}, "executionMode": "sequential"})
}

fn grep() -> Value {
    json!({"name": "grep", "description": "Search", "execute": {
        "command": ["sh", "-c", "touch ran"], "env": {"MODE": "${UNSET_MODE:-fast}"},
    }})
}

fn tools(arguments: &[&str]) -> Test {
    Test::new(arguments)
        .manifest("echo", &echo())
        .manifest("grep", &grep())
        .manifest(
            "10-guard",
            &json!({"hook": "beforeToolCall", "tools": ["gr*"], "run": {"jq": "empty"}}),
        )
}

#[test]
fn list_is_stable_lines_in_a_pipe() {
    let done = tools(&["list"]).run().code(0).quiet();
    assert_eq!(
        done.stdout,
        "echo\tEcho one value\ttools.d/echo.json\ngrep\tSearch\ttools.d/grep.json\n"
    );
    let done = tools(&["list", "--json", "e*"]).run().code(0).quiet();
    assert_eq!(
        done.lines(),
        [
            json!({"name": "echo", "label": "Echo", "description": "Echo one value\nand no more",
                "file": "tools.d/echo.json"})
        ]
    );
}

#[test]
fn list_shows_what_is_right_and_says_what_is_not() {
    let done = tools(&["list"])
        .file("tools.d/broken.json", "{")
        .run()
        .code(2);
    assert_eq!(done.stdout.lines().count(), 2);
    assert!(
        done.stderr.contains("tools.d/broken.json:1:2"),
        "{}",
        done.stderr
    );
}

#[test]
fn show_tells_a_tool_whole_and_runs_nothing() {
    let (done, folder) = tools(&["show", "grep", "--json"])
        .env("SECRET", "hidden")
        .env("HOME", "/home/pi")
        .run_and_keep();
    let done = done.code(0).quiet();
    let shown: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(shown["declaration"]["name"], "grep");
    assert_eq!(shown["manifest"]["execute"], grep()["execute"]);
    assert_eq!(shown["environment"]["MODE"], "fast");
    assert_eq!(shown["environment"]["HOME"], "/home/pi");
    assert_eq!(shown["environment"]["PITOOL_TOOL_NAME"], "grep");
    assert_eq!(shown["environment"].get("SECRET"), None);
    assert_eq!(
        shown["hooks"],
        json!([{"hook": "beforeToolCall", "file": "tools.d/10-guard.json", "run": {"jq": "empty"}}])
    );
    assert!(!folder.path().join("ran").exists());
}

/// What `show` says of the environment is what the process sees.
#[test]
fn show_prints_exactly_the_variables_of_the_process() {
    let env = json!({"name": "env", "description": "", "execute": {"command": ["env"], "env": {"A": "b"}}});
    let shown = Test::new(["show", "env", "--json"])
        .manifest("env", &env)
        .run()
        .code(0);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let mut expected: Vec<String> = shown["environment"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap()))
        .map(|line| line.replace("(the id of the call)", "c1"))
        .collect();
    expected.sort();
    let ran = Test::new(["run"])
        .manifest("env", &env)
        .calls(&[("c1", "env", json!({}))])
        .run()
        .code(0);
    let mut seen: Vec<String> = ran.texts()[0].lines().map(str::to_owned).collect();
    seen.sort();
    assert_eq!(seen, expected);
}

#[test]
fn show_is_text_for_people() {
    let done = tools(&["show", "echo"]).run().code(0).quiet();
    assert_eq!(
        done.stdout,
        "echo\nEcho one value\nand no more\n\n\
         Parameters\n{\n  \"type\": \"object\"\n}\n\n\
         Manifest\ntools.d/echo.json\n{\n  \"label\": \"Echo\",\n  \"execute\": {\n    \"jq\": \".\"\n  },\n  \"executionMode\": \"sequential\"\n}\n\n\
         Environment of its process\nnone: a filter runs in pitool itself\n\n\
         May touch\nnothing: a filter has no files, no network and no environment\n\n\
         Hooks\nnone\n"
    );
    let done = tools(&["show", "ecko"]).run().code(2);
    assert_eq!(
        done.stderr,
        "pitool: no tool is named \"ecko\"\nhint: did you mean echo?\n"
    );
}

#[test]
fn check_finds_nothing_in_good_tools() {
    let (done, folder) = tools(&["check"]).run_and_keep();
    let done = done.code(0).quiet();
    assert_eq!(
        done.stdout,
        "TOOL  MAY TOUCH\n\
         echo  nothing: a filter has no files, no network and no environment\n\
         grep  whatever you may: no sandbox\n\
         2 tools, 1 hook: 0 errors, 0 warnings\n"
    );
    assert!(!folder.path().join("ran").exists());
}

#[test]
fn check_names_every_finding_with_place_and_rule() {
    let tool = "{\"name\": \"t\", \"description\": \"\", \"parameters\": {\"properties\": {\n  \
                \"a\": {\"$ref\": \"#/$defs/gone\"},\n  \
                \"b\": {\"type\": \"string\", \"format\": \"made-up\"}}},\n  \
                \"execute\": {\"command\": [\"no-such-program\"]}}";
    let done = Test::new(["check", "--report", "jsonl"])
        .file("tools.d/t.json", tool)
        .manifest(
            "z",
            &json!({"hook": "afterToolCall", "tools": ["u"], "run": {"jq": "{"}}),
        )
        .run()
        .code(1)
        .quiet();
    let found: Vec<(String, String, Value)> = done
        .lines()
        .iter()
        .map(|line| {
            let text = |field: &str| line[field].as_str().unwrap().to_owned();
            (text("rule"), text("severity"), line["line"].clone())
        })
        .collect();
    let expected = [
        ("dangling-ref", "error", 2),
        ("unknown-format", "warning", 3),
        ("access", "note", 4),
        ("program", "warning", 4),
        ("hook", "warning", 1),
        ("jq", "error", 1),
    ];
    let expected =
        expected.map(|(rule, severity, line)| (rule.to_owned(), severity.to_owned(), json!(line)));
    assert_eq!(found, expected);
}

#[test]
fn check_for_an_api_finds_what_it_does_not_take() {
    let manifest = "{\n  \"name\": \"a.b\",\n  \"description\": \"\",\n  \"parameters\": {\"type\": \"object\",\n    \
        \"properties\": {\"s\": {\"type\": \"string\",\n      \"pattern\": \"^x\"}}},\n  \
        \"execute\": {\"jq\": \".\"}\n}\n";
    let arguments = [
        "check", "--report", "jsonl", "--for", "openai", "--for", "gemini",
    ];
    let done = Test::new(arguments)
        .file("tools.d/a.json", manifest)
        .run()
        .code(1);
    let found: Vec<String> = done
        .lines()
        .iter()
        .filter(|finding| finding["rule"] != "access")
        .map(|finding| {
            format!(
                "{} {} {}: {}",
                finding["severity"].as_str().unwrap(),
                finding["rule"].as_str().unwrap(),
                finding["line"],
                finding["message"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            "error tool-name 2: for openai: openai refuses '.' in the name of a tool",
            "warning keyword 6: for gemini: gemini does not read pattern; it was left out",
        ]
    );
    Test::new(["check"])
        .file("tools.d/a.json", manifest)
        .run()
        .code(0);
}

#[test]
fn check_tells_a_manifest_that_does_not_load() {
    let done = Test::new(["check"])
        .file(
            "tools.d/t.json",
            "{\"name\": \"t\", \"description\": \"\", \"exekute\": {\"jq\": \".\"}}",
        )
        .run()
        .code(2);
    assert!(
        done.stdout.starts_with("tools.d/t.json:1:"),
        "{}",
        done.stdout
    );
    assert!(
        done.stdout
            .contains("error: unknown field \"exekute\" [manifest]\n  hint: "),
        "{}",
        done.stdout
    );
}

#[test]
fn what_a_manifest_says_never_drives_the_terminal() {
    let tool = json!({"name": "t", "label": "\u{1b}[2J", "description": "\u{1b}]0;x\u{7}\u{202e}",
                      "parameters": {"properties": {"\u{9b}2J": {"format": "\u{1b}c"}}}, "execute": {"jq": "."}});
    for arguments in [&["list"][..], &["show", "t"], &["check"]] {
        let done = Test::new(arguments).manifest("t", &tool).run().code(0);
        let is_bad = |character: char| {
            character.is_control() && !"\n\t".contains(character) || character == '\u{202e}'
        };
        assert!(
            !done.stdout.contains(is_bad),
            "{arguments:?}: {}",
            done.stdout
        );
    }
}

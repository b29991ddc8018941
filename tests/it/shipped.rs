//! The tools and hooks of `tools.d`: they load without a word, and do what they say.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use pitool::hook::HookRun;
use pitool::program::Program;
use pitool::registry::{Loaded, Registry};
use pitool::tool::Executor;
use serde_json::{Value, json};

use crate::support::{Done, Test, project};

fn loaded() -> Loaded {
    Registry::load(&[project().join("tools.d")])
}

/// Runs calls of shipped tools, `c1`, `c2`, … one after the other.
fn run(test: Test, calls: &[(&str, Value)]) -> (Done, tempfile::TempDir) {
    let ids: Vec<String> = (1..=calls.len()).map(|n| format!("c{n}")).collect();
    let calls: Vec<_> = ids
        .iter()
        .zip(calls)
        .map(|(id, (name, arguments))| (id.as_str(), *name, arguments.clone()))
        .collect();
    test.shipped_tools().calls(&calls).run_and_keep()
}

fn test() -> Test {
    Test::new(["run", "--mode", "sequential"])
}

#[test]
fn every_manifest_is_right_and_every_program_is_there() {
    let loaded = loaded();
    assert_eq!(loaded.problems, []);
    let names: Vec<&str> = loaded
        .registry
        .tools()
        .iter()
        .map(|tool| tool.name())
        .collect();
    assert_eq!(
        names,
        [
            "append_line",
            "calculate",
            "echo",
            "edit_file",
            "finish",
            "long_task",
            "now",
            "read_file",
            "search_text"
        ]
    );
    for tool in loaded.registry.tools() {
        assert!(tool.schema().is_ok(), "{}", tool.name());
        assert!(
            tool.compiled_output_schema()
                .is_none_or(|schema| schema.is_ok())
        );
        let Executor::Program(program) = &tool.executor else {
            panic!("{} is no program", tool.name());
        };
        runs(program);
    }
    assert_eq!(loaded.registry.hooks().len(), 2);
    for hook in loaded.registry.hooks() {
        let HookRun::Program(program) = &hook.run else {
            panic!("a hook is no program");
        };
        runs(program);
    }
}

#[track_caller]
fn runs(program: &Program) {
    assert_eq!(program.check(), Ok(()));
}

#[test]
fn the_calculator_knows_arithmetic_and_nothing_else() {
    let cases = [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("10 - 2 - 3", "5"),
        ("8 / 4 / 2", "1"),
        ("2 ^ 3 ^ 2", "512"),
        ("-2 ^ 2", "-4"),
        ("2 ^ -1", "0.5"),
        ("7.5 % 2", "1.5"),
        (".5 * 4", "2"),
        ("1e3 + 1", "1001"),
        ("--2", "2"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("1 / 0", "error: division by zero"),
        ("(-8) ^ 0.5", "error: the result is no finite number"),
        ("1 +", "error: a number is missing"),
        ("", "error: a number is missing"),
        ("2 3", "error: an operator is missing"),
        ("(1", "error: a ) is missing"),
        ("1)", "error: a ( is missing"),
        ("1.2.3", "error: \"1.2.3\" is no number"),
        (
            "system(1)",
            "error: \"s\" is not part of an arithmetic expression",
        ),
        (
            "$(touch x)",
            "error: \"$\" is not part of an arithmetic expression",
        ),
    ];
    let calls: Vec<_> = cases
        .iter()
        .map(|(expression, _)| ("calculate", json!({"expression": expression})))
        .collect();
    let (done, _) = run(test(), &calls);
    let texts = done.texts();
    let answers: Vec<(&str, &str)> = cases
        .iter()
        .zip(&texts)
        .map(|((expression, _), text)| (*expression, text.as_str()))
        .collect();
    assert_eq!(answers, cases);
}

#[test]
fn a_calculation_is_structured() {
    let (done, _) = run(
        test().args(["--output", "outcomes"]),
        &[("calculate", json!({"expression": "6 * 7"}))],
    );
    let result = &done.code(0).quiet().lines()[0]["result"];
    assert_eq!(result["structuredContent"], json!({"value": 42}));
}

#[test]
fn a_deep_calculation_does_not_end_the_program() {
    let expression = format!("{}1{}", "(".repeat(999), ")".repeat(999));
    let (done, _) = run(test(), &[("calculate", json!({"expression": expression}))]);
    assert_eq!(done.code(0).texts(), ["1"]);
}

#[test]
fn now_is_a_point_in_time() {
    let (done, _) = run(test(), &[("now", json!({}))]);
    let text = &done.code(0).texts()[0];
    let shape = regex::Regex::new(r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$").unwrap();
    assert!(shape.is_match(text), "{text}");
}

#[test]
fn a_file_is_read_whole_or_by_lines() {
    let file = test().file("f.txt", "one\ntwo\nthree\n");
    let (done, _) = run(
        file,
        &[
            ("read_file", json!({"path": "f.txt"})),
            ("read_file", json!({"path": "f.txt", "offset": 2})),
            ("read_file", json!({"path": "f.txt", "limit": 2})),
            (
                "read_file",
                json!({"path": "f.txt", "offset": 2, "limit": 1}),
            ),
            ("read_file", json!({"path": "f.txt", "offset": 9})),
            ("read_file", json!({"path": "none"})),
            ("read_file", json!({"path": "."})),
        ],
    );
    assert_eq!(
        done.texts(),
        [
            "one\ntwo\nthree",
            "two\nthree",
            "one\ntwo",
            "two",
            "(no output)",
            "error: none does not exist\n\nCommand exited with code 1",
            "error: . is not a regular file\n\nCommand exited with code 1",
        ]
    );
}

#[test]
fn a_search_tells_file_line_and_text() {
    let files = test()
        .file("a.txt", "alpha\n-beta\n")
        .file("b.md", "alpha alpha\nalpha\n");
    let (done, _) = run(
        files,
        &[
            ("search_text", json!({"pattern": "^-b|z", "path": "."})),
            ("search_text", json!({"pattern": "-b", "path": "a.txt"})),
            (
                "search_text",
                json!({"pattern": "alpha", "path": ".", "files": "*.md", "maxPerFile": 1}),
            ),
            ("search_text", json!({"pattern": "nothing", "path": "."})),
            ("search_text", json!({"pattern": "alpha", "path": "-rf"})),
        ],
    );
    assert_eq!(
        done.texts(),
        [
            "./a.txt:2:-beta",
            "a.txt:2:-beta",
            "./b.md:1:alpha alpha",
            "(no output)",
            "error: grep: -rf: No such file or directory\n\nCommand exited with code 2",
        ]
    );
}

#[test]
fn an_edit_changes_the_text_that_stands_once_and_nothing_else() {
    let before = "keep \u{1} me\r\n\u{fc}ber $x\\n\n\nno line break at the end";
    let file = test().file("d/f.txt", before);
    let path = file.folder().join("d/f.txt");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let edit = json!({"path": "d/f.txt", "oldText": "\u{fc}ber $x\\n", "newText": "& \\1 $(touch PWNED)\n--new={x}"});
    let (done, folder) = run(file, &[("edit_file", edit)]);
    assert_eq!(done.code(0).texts(), ["Replaced one text in d/f.txt"]);
    assert_eq!(
        fs::read_to_string(folder.path().join("d/f.txt")).unwrap(),
        "keep \u{1} me\r\n& \\1 $(touch PWNED)\n--new={x}\n\nno line break at the end"
    );
    let metadata = fs::metadata(folder.path().join("d/f.txt")).unwrap();
    assert_eq!(metadata.mode() & 0o777, 0o640);
    let left: Vec<_> = fs::read_dir(folder.path().join("d")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(!folder.path().join("PWNED").exists());
}

#[test]
fn an_edit_that_is_not_clear_changes_nothing() {
    let file = test().file("f.txt", "aXbXc");
    let edit = |path: &str, old: &str| {
        (
            "edit_file",
            json!({"path": path, "oldText": old, "newText": "new"}),
        )
    };
    let (done, folder) = run(
        file,
        &[
            edit("f.txt", "Y"),
            edit("f.txt", "X"),
            edit("none", "X"),
            edit(".", "X"),
        ],
    );
    assert_eq!(
        done.code(1).texts(),
        [
            "error: oldText does not stand in f.txt\n\nCommand exited with code 1",
            "error: oldText stands more than once in f.txt: give more of the text around it\n\nCommand exited with code 1",
            "error: none does not exist\n\nCommand exited with code 1",
            "error: . is not a regular file\n\nCommand exited with code 1",
        ]
    );
    assert_eq!(
        fs::read_to_string(folder.path().join("f.txt")).unwrap(),
        "aXbXc"
    );
}

#[test]
fn an_edit_through_a_link_changes_the_file_and_keeps_the_link() {
    let file = test().file("real.txt", "old");
    symlink("real.txt", file.folder().join("link.txt")).unwrap();
    let edit = json!({"path": "link.txt", "oldText": "old", "newText": "new"});
    let (done, folder) = run(file, &[("edit_file", edit)]);
    done.code(0);
    assert_eq!(
        fs::read_to_string(folder.path().join("real.txt")).unwrap(),
        "new"
    );
    assert!(folder.path().join("link.txt").is_symlink());
}

#[test]
fn lines_are_appended_in_the_order_of_the_calls() {
    let line = |line: &str| ("append_line", json!({"path": "log.txt", "line": line}));
    let (done, folder) = run(
        test(),
        &[line("-first"), line("second"), line("two\nlines")],
    );
    assert!(done.code(1).texts()[2].starts_with("error: Validation failed"));
    assert_eq!(
        fs::read_to_string(folder.path().join("log.txt")).unwrap(),
        "-first\nsecond\n"
    );
}

#[test]
fn a_long_task_reports_its_progress() {
    let (done, _) = run(
        test().args(["--output", "events"]),
        &[("long_task", json!({"steps": 3, "stepMs": 1}))],
    );
    let events = done.code(0).lines();
    let updates: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "tool_execution_update")
        .map(|event| &event["partialResult"]["details"])
        .collect();
    assert_eq!(
        updates,
        [
            &json!({"progress": 1, "total": 3}),
            &json!({"progress": 2, "total": 3}),
            &json!({"progress": 3, "total": 3})
        ]
    );
}

#[test]
fn a_stopped_long_task_says_how_far_it_came() {
    let (done, _) = run(
        test().args(["--timeout-batch", "2s"]),
        &[("long_task", json!({"steps": 1000, "stepMs": 10}))],
    );
    let text = &done.code(1).texts()[0];
    let said = regex::Regex::new(r"^error: Stopped after \d+ of 1000 steps$").unwrap();
    assert!(said.is_match(text), "{text}");
}

#[test]
fn the_guard_blocks_paths_that_lead_up() {
    let blocked = |path: &str| format!("error: Paths with .. in them are not allowed: {path}");
    let read = |path: &str| ("read_file", json!({"path": path}));
    let files = test().file("a..b/c", "in").file("d/e", "in");
    let (done, _) = run(
        files,
        &[
            read("../x"),
            read("d/../d/e"),
            read(".."),
            read("a..b/c"),
            ("echo", json!({"value": "../x"})),
        ],
    );
    let mut expected = vec![blocked("../x"), blocked("d/../d/e"), blocked("..")];
    expected.extend(["in".to_owned(), "../x".to_owned()]);
    assert_eq!(done.texts(), expected);
}

#[test]
fn secrets_do_not_reach_the_model() {
    let cases = [
        (
            "nothing secret: a token, a password",
            "nothing secret: a token, a password",
        ),
        ("api_key=abc123def456 then", "api_key=[redacted] then"),
        (
            "\"Password\": \"hunter2222\"",
            "\"Password\": \"[redacted]\"",
        ),
        ("sk-abcdefghijklmnop1234.", "[redacted]."),
        ("AKIAABCDEFGHIJKLMNOP", "[redacted]"),
        (
            "a\n-----BEGIN RSA PRIVATE KEY-----\nx\n-----END RSA PRIVATE KEY-----\nb",
            "a\n[redacted private key]\nb",
        ),
    ];
    let calls: Vec<_> = cases
        .iter()
        .map(|(text, _)| ("echo", json!({"value": text})))
        .collect();
    let (done, _) = run(test(), &calls);
    let expected: Vec<&str> = cases.iter().map(|(_, text)| *text).collect();
    assert_eq!(done.code(0).texts(), expected);
}

#[test]
fn redaction_keeps_structured_content() {
    let tool = json!({"name": "leak", "description": "", "execute": {
        "jq": "{content: [{type: \"text\", text: \"token=abcdef123456\"}], structuredContent: {n: 1}, details: {d: 2}}"}});
    let hook = fs::read(project().join("tools.d/20-redact.json")).unwrap();
    let done = test()
        .args(["--output", "outcomes"])
        .manifest("leak", &tool)
        .file("tools.d/20-redact.json", hook)
        .calls(&[("a", "leak", json!({}))])
        .run()
        .code(0);
    assert_eq!(
        done.lines()[0]["result"],
        json!({"content": [{"type": "text", "text": "token=[redacted]"}], "structuredContent": {"n": 1},
            "details": {"d": 2}})
    );
}

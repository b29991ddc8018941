//! The promise: an audit finds what is wrong with a tool's manners, and nothing where nothing is.

use serde_json::{Value, json};

use crate::support::{Done, LEAVES_ITS_GROUP, Test};

/// Audits one tool with an argument; what it prints must not depend on how busy the machine is.
fn audit(execute: &Value) -> Done {
    Test::new(["audit", "t", "a=1", "--report", "jsonl"])
        .tool("t", execute)
        .run()
}

/// The checks whose verdict is `wrong`, each with what was seen; all of them come with advice.
#[track_caller]
fn wrong(done: &Done) -> Vec<(String, String)> {
    let lines = done.lines();
    assert_eq!(lines.len(), 10, "{done:#?}");
    let wrong = lines.iter().filter(|line| line["verdict"] == "wrong");
    let told = |line: &Value| {
        assert!(line["advice"].is_string(), "{line}");
        let text = |field: &str| line[field].as_str().unwrap().to_owned();
        (text("check"), text("seen"))
    };
    wrong.map(told).collect()
}

/// Nothing but this is wrong with the tool.
#[track_caller]
fn finds(execute: &Value, check: &str, seen: &str) {
    let done = audit(execute).code(1).quiet();
    assert_eq!(wrong(&done), [(check.to_owned(), seen.to_owned())]);
}

fn sh(script: &str) -> Value {
    json!({"command": ["sh", "-c", script]})
}

/// A program that reads its arguments, with one more field.
fn with(script: &str, field: &str, value: Value) -> Value {
    let mut program = sh(&format!("cat >/dev/null; {script}"));
    program[field] = value;
    program
}

#[test]
fn nothing_is_wrong_with_a_good_tool() {
    let done = audit(&sh("cat")).code(0).quiet();
    assert_eq!(wrong(&done), []);
    let verdicts = done.lines();
    let reads = verdicts.iter().find(|line| line["check"] == "reads-stdin");
    assert_eq!(reads.unwrap()["seen"], "10 of 10 bytes");
}

#[test]
fn tool_that_does_not_end() {
    finds(
        &with("exec sleep 300", "timeoutMs", json!(300)),
        "ends",
        "Command timed out after 0.3 seconds",
    );
}

#[test]
fn tool_that_ignores_sigterm() {
    let execute = with(
        "trap '' TERM; while :; do sleep 1; done",
        "timeoutMs",
        json!(2000),
    );
    let found = wrong(&audit(&execute).code(1));
    let seen = "ignored SIGTERM for 2 s and was killed".to_owned();
    assert_eq!(found.len(), 2);
    assert_eq!(found[1], ("stops".to_owned(), seen));
}

#[test]
fn time_from_sigterm_to_the_end_is_told() {
    let done = audit(&with("exec sleep 300", "timeoutMs", json!(300)));
    let lines = done.lines();
    let stops = lines.iter().find(|line| line["check"] == "stops").unwrap();
    assert_eq!(stops["verdict"], "ok");
    assert!(
        stops["seen"]
            .as_str()
            .unwrap()
            .ends_with(" ms after SIGTERM")
    );
}

#[test]
fn tool_that_leaves_children() {
    finds(
        &sh("cat; sleep 300 &"),
        "leaves-children",
        "a process that it started ran on and was stopped",
    );
    let done = audit(&sh(&format!("cat; {LEAVES_ITS_GROUP}"))).code(1);
    let found = wrong(&done);
    assert_eq!(found[0].0, "leaves-children");
    assert!(found[0].1.starts_with("left its group and ran on: "));
}

#[test]
fn tool_that_no_argument_reaches() {
    let seen = "it does not, and its command has no placeholder: no argument reaches it";
    finds(&sh("echo hi"), "reads-stdin", seen);
    let done = audit(&json!({"command": ["echo", "hi"], "stdin": "none"}));
    assert_eq!(wrong(&done.code(0)), []);
}

#[test]
fn tool_that_waits_for_more_than_the_end_of_its_stdin() {
    finds(
        &json!({"command": ["sh", "-c", "until read -r line; do sleep 0.05; done; echo $line"], "timeoutMs": 2000}),
        "closed-stdin",
        "does not end when its stdin is empty",
    );
}

#[test]
fn tool_that_writes_after_its_result() {
    finds(
        &with(
            r#"echo '{"details":1}'; echo; echo more"#,
            "output",
            json!("items"),
        ),
        "after-result",
        "4 bytes after its result, which nobody reads",
    );
}

#[test]
fn tool_whose_output_is_no_utf_8() {
    finds(
        &with("printf 'a\\377\\n'", "output", json!("text")),
        "utf-8",
        "bytes on stdout that are none",
    );
    finds(
        &with("echo ok; printf '\\377\\n' >&2", "output", json!("text")),
        "utf-8",
        "bytes on stderr that are none",
    );
    let image = with("printf '\\211PNG'", "output", json!("image/png"));
    assert_eq!(wrong(&audit(&image).code(0)), []);
}

#[test]
fn tool_that_exceeds_the_cap() {
    let done = Test::new(["audit", "t", "a=1", "--report", "jsonl"])
        .tool("t", &with("seq 3000", "output", json!("text")))
        .file("temporary/file", "")
        .env("TMPDIR", "temporary")
        .run_and_keep();
    let (done, folder) = (done.0.code(1), done.1);
    let seen = "13893 bytes and 3000 line breaks, of which the model gets the end";
    assert_eq!(wrong(&done), [("cap".to_owned(), seen.to_owned())]);
    let left = std::fs::read_dir(folder.path().join("temporary")).unwrap();
    assert_eq!(left.count(), 1, "the full output is of no use to anybody");
}

#[test]
fn exit_status_that_contradicts_the_result() {
    let items = |script: &str| with(script, "output", json!("items"));
    finds(
        &items(r#"echo '{"content":[]}'; exit 3"#),
        "exit-status",
        "exit code 3 after a result, which is lost but for its text",
    );
    finds(&items("true"), "exit-status", "exit code 0 and no result");
    finds(
        &with("exit 4", "output", json!("text")),
        "exit-status",
        "exit code 4 and not a word",
    );
    finds(
        &with("echo broken >&2", "output", json!("text")),
        "exit-status",
        "exit code 0, nothing on stdout and 7 bytes on stderr",
    );
    let crash = audit(&sh("cat; kill -SEGV $$")).code(1);
    let found = wrong(&crash);
    assert_eq!(
        found[0],
        ("exit-status".to_owned(), "killed by SIGSEGV".to_owned())
    );
    assert_eq!(found[1].0, "closed-stdin");
    let fails_well = with("echo why >&2; exit 3", "output", json!("text"));
    assert_eq!(wrong(&audit(&fails_well).code(0)), []);
}

#[test]
fn tool_with_another_answer_each_time() {
    let execute = with("echo $$", "output", json!("text"));
    finds(&execute, "same-answer", "another one the second time");
    let done = Test::new(["audit", "t", "a=1", "--skip", "same-answer"])
        .tool("t", &execute)
        .run()
        .code(0);
    assert!(!done.stdout.contains("same-answer"));
}

#[test]
fn filter_has_no_process_to_judge() {
    let done = audit(&json!({"jq": "{content: []}"})).code(0);
    let not_applicable = done.lines();
    let not_applicable = not_applicable
        .iter()
        .filter(|line| line["verdict"] == "notApplicable");
    assert_eq!(not_applicable.count(), 8);
}

#[test]
fn people_get_a_table_and_advice() {
    let done = Test::new(["audit", "t"])
        .tool("t", &with("echo; echo a; exit 4", "stdin", json!("none")))
        .tool("u", &sh("exit 4"))
        .run()
        .code(0);
    assert!(
        done.stdout
            .starts_with("CHECK            VERDICT  SEEN\nends             ok")
    );
    let done = Test::new(["audit", "u"])
        .tool("u", &sh("exit 4"))
        .run()
        .code(1);
    let advice = "\nexit-status: say on stderr why it failed: the model reads it\n";
    assert!(done.stdout.ends_with(advice), "{}", done.stdout);
}

#[test]
fn guards_hold_for_an_audit_too() {
    let guard =
        json!({"hook": "beforeToolCall", "run": {"jq": "{block: true, reason: \"not here\"}"}});
    let (done, folder) = Test::new(["audit", "t"])
        .tool("t", &sh("touch RAN"))
        .manifest("guard", &guard)
        .run_and_keep();
    assert_eq!(
        done.code(2).stderr,
        "pitool: the tool was not run: not here\n"
    );
    assert!(!folder.path().join("RAN").exists());
}

#[test]
fn what_cannot_be_run_is_told() {
    let done = Test::new(["audit", "x"]).run().code(2);
    assert_eq!(done.stderr, "pitool: no tool is named \"x\"\n");
    let schema = json!({"properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let done = Test::new(["audit", "t", "n=x"])
        .manifest(
            "t",
            &json!({"name": "t", "description": "", "parameters": schema, "execute": sh("true")}),
        )
        .run()
        .code(2);
    assert!(
        done.stderr
            .starts_with("pitool: the tool was not run: Validation failed")
    );
}

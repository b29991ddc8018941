//! `"sandbox"` in a manifest: what the process of a tool cannot reach, and what it says when it tries.
#![cfg(target_os = "linux")]

use serde_json::{Value, json};

use crate::support::Test;

/// Runs a line of `sh` in this sandbox, in a folder with `in/data`, `out` and `secret`.
fn confined(sandbox: &Value, script: &str) -> String {
    let tool = json!({
        "name": "t", "description": "", "sandbox": sandbox,
        "execute": {"command": ["sh", "-c", script]}
    });
    let done = Test::new(["run"])
        .manifest("t", &tool)
        .file("in/data", "content")
        .file("out/old", "old")
        .file("secret", "hidden")
        .calls(&[("a", "t", json!({}))])
        .run();
    done.texts().remove(0)
}

#[track_caller]
fn case(sandbox: &Value, script: &str, expected: &str) {
    let text = confined(sandbox, script);
    assert!(text.contains(expected), "{script}: {text}");
    assert!(!text.contains("hidden"), "{script}: {text}");
}

#[test]
fn files_outside_are_closed_and_the_model_is_told() {
    let sandbox = json!({"read": ["in"], "write": ["out"]});
    case(
        &sandbox,
        "cat in/data; echo new > out/new; cat out/new",
        "contentnew",
    );
    case(&sandbox, "cat secret", "Permission denied");
    case(&sandbox, "echo x > in/data", "in/data: Permission denied");
    case(&sandbox, "cat /proc/$PPID/environ", "Permission denied");
    case(&sandbox, "ls /root /home; cat secret", "error: ");
}

#[test]
fn private_folder_is_the_tools_own_and_goes_away() {
    let text = confined(
        &json!({}),
        "echo x > \"$TMPDIR/f\" && cat \"$TMPDIR/f\" && echo \"$TMPDIR\"",
    );
    let (content, folder) = text.split_once('\n').unwrap();
    assert_eq!(content, "x");
    assert!(!std::path::Path::new(folder).exists());
}

#[test]
fn limits_end_the_process_by_name() {
    case(
        &json!({"cpuSeconds": 1}),
        "while :; do :; done",
        "Command was killed by SIGXCPU",
    );
}

#[test]
fn limits_of_a_filter_cannot_be_enforced() {
    let tool = json!({"name": "t", "description": "", "sandbox": {"cpuSeconds": 1}, "execute": {"jq": "."}});
    let done = Test::new(["run"])
        .manifest("t", &tool)
        .calls(&[("a", "t", json!({}))])
        .run()
        .code(1);
    assert!(done.texts()[0].contains("cannot be enforced, so it was not run"));
}

#[test]
fn what_cannot_be_enforced_fails_the_call() {
    case(
        &json!({"write": ["missing"]}),
        "echo ran",
        "error: The sandbox of this tool cannot be enforced, so it was not run: ",
    );
}

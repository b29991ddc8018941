//! The promise: when stdout takes no results, tools are stopped, nothing panics, and the exit code says what happened.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use crate::support::{Done, Test};

/// Nothing of a Rust panic is for people.
#[track_caller]
fn without_noise(done: &Done) {
    assert!(!done.stderr.contains("panicked"), "{done:#?}");
    assert!(!done.stderr.contains("thread"), "{done:#?}");
}

#[test]
fn closed_early() {
    let tool = "echo $$ >pid; exec sleep 300";
    let mut test = Test::new(["run"]).sh("fast", "echo ok").sh("slow", tool);
    let line = |id: &str, name: &str| crate::support::message(&[(id, name, json!({}))]).to_string();
    test = test.stdin(format!("{}\n{}\n", line("1", "fast"), line("2", "slow")));
    let mut child = test.spawn();
    // As `head -n 1`: one result, and then nobody.
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    drop(stdout);
    let done = Done::of(child).code(141).quiet();
    without_noise(&done);
    let pid = std::fs::read_to_string(test.folder().join("pid")).unwrap_or_default();
    assert!(pid.is_empty() || !Path::new("/proc").join(pid.trim()).exists());
}

#[test]
fn full() {
    for arguments in [
        &["run"][..],
        &["run", "--output", "events"],
        &["list"],
        &["check"],
    ] {
        let mut test = Test::new(arguments)
            .sh("t", "echo ok")
            .calls(&[("c", "t", json!({}))]);
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let command = test.command();
        command
            .stdin(Stdio::null())
            .stdout(full)
            .stderr(Stdio::piped());
        let done = Done::of(if arguments[0] == "run" {
            with_stdin(&mut test)
        } else {
            test.command().spawn().unwrap()
        });
        let done = done.code(2);
        let expected = "pitool: cannot write to stdout: No space left on device (os error 28)\n";
        assert_eq!(done.stderr, expected, "{arguments:?}");
    }
}

/// Starts it with a call on stdin, and the stdout that it has already.
fn with_stdin(test: &mut Test) -> std::process::Child {
    let call = crate::support::message(&[("c", "t", json!({}))]).to_string();
    let input = test.folder().join("input");
    std::fs::write(&input, call).unwrap();
    let input = std::fs::File::open(input).unwrap();
    test.command().stdin(input).spawn().unwrap()
}

/// `>&-`: Rust's runtime puts `/dev/null` in its place, where every result would be lost with exit 0.
#[test]
fn closed_from_the_start() {
    let run = |redirection: &str| {
        let script = format!("exec \"$0\" \"$@\" {redirection}");
        Test::new(["run"])
            .sh("t", "touch RAN")
            .calls(&[("c", "t", json!({}))])
            .under(["sh", "-c", &script])
            .run_and_keep()
    };
    let (done, folder) = run(">&-");
    let done = done.code(2);
    let expected = "pitool: cannot write to stdout: it was closed from the start\n\
                    hint: redirect it to /dev/null if nobody wants the results\n";
    assert_eq!(done.stderr, expected);
    assert!(!folder.path().join("RAN").exists());
    for wanted in [">/dev/null", "1<>/dev/null"] {
        let (done, folder) = run(wanted);
        done.code(0).quiet();
        assert!(folder.path().join("RAN").exists(), "{wanted}");
    }
    // A stderr that is not there keeps nothing from being done.
    let (done, _) = run("2>&-");
    assert_eq!(done.code(0).lines().len(), 1);
}

//! Signals: all results are printed, nothing is left running, the exit code says which signal it was.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::{Done, Test};

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Whether a process runs; one that is dead and only waits to be reaped by its new parent does not.
fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits until the event stream of a running command says that each of these calls reported something.
fn wait_for_updates(stdout: &mut impl std::io::BufRead, ids: &[&str]) -> String {
    let mut awaited: Vec<String> = ids
        .iter()
        .map(|id| format!("\"toolCallId\":\"{id}\""))
        .collect();
    let mut seen = String::new();
    while !awaited.is_empty() {
        let at = seen.len();
        assert!(
            stdout.read_line(&mut seen).unwrap() > 0,
            "no update of {awaited:?}: {seen}"
        );
        let line = &seen[at..];
        if line.contains("tool_execution_update") {
            awaited.retain(|id| !line.contains(id.as_str()));
        }
    }
    seen
}

/// Starts `fast`, `slow` and `later` (which never gets a slot), stops them once `slow` runs.
fn stop_with(signal: Signal, slow: &str) -> (Vec<serde_json::Value>, Option<i32>) {
    let mut test = Test::new(["run", "--output", "events", "--jobs", "2"])
        .sh("fast", "echo ok")
        .sh("slow", slow)
        .calls(&[
            ("a", "fast", json!({})),
            ("b", "slow", json!({})),
            ("c", "slow", json!({})),
            ("d", "slow", json!({})),
        ]);
    let mut child = test.spawn();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut seen = wait_for_updates(&mut stdout, &["b", "c"]);
    send(&child, signal);
    stdout.read_to_string(&mut seen).unwrap();
    let done = Done::of(child);
    let messages = seen
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let messages = messages
        .filter(|event| event["type"] == "message_end")
        .map(|event| event["message"].clone());
    (messages.collect(), done.code)
}

#[test]
fn every_signal_prints_all_results_and_exits_with_its_code() {
    for (signal, code) in [
        (Signal::INT, 130),
        (Signal::TERM, 143),
        (Signal::HUP, 129),
        (Signal::QUIT, 131),
    ] {
        let (messages, exit) = stop_with(signal, "echo begun; exec sleep 60");
        let texts: Vec<_> = messages.iter().map(crate::support::text).collect();
        let aborted = "error: begun\n\nOperation aborted";
        assert_eq!(texts, ["ok", aborted, aborted, "error: Operation aborted"]);
        assert_eq!(exit, Some(code));
    }
}

#[test]
fn a_result_within_the_grace_counts() {
    let (messages, exit) = stop_with(
        Signal::TERM,
        "trap 'echo cleaned; exit 0' TERM; echo begun; sleep 60 & wait",
    );
    let texts: Vec<_> = messages.iter().map(crate::support::text).collect();
    assert_eq!(
        texts,
        [
            "ok",
            "begun\ncleaned",
            "begun\ncleaned",
            "error: Operation aborted"
        ]
    );
    assert_eq!(exit, Some(143));
}

#[test]
fn nothing_of_a_stopped_tool_is_left() {
    let mut test = Test::new(["run", "--output", "events"])
        .sh("t", "trap '' TERM; sleep 60 & echo $! $$; wait; wait")
        .calls(&[("a", "t", json!({}))]);
    let mut child = test.spawn();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let seen = wait_for_updates(&mut stdout, &["a"]);
    send(&child, Signal::INT);
    send(&child, Signal::INT);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(Done::of(child).code, Some(130));
    let update: serde_json::Value = serde_json::from_str(seen.lines().last().unwrap()).unwrap();
    let pids = update["partialResult"]["content"][0]["text"]
        .as_str()
        .unwrap();
    for pid in pids.split_whitespace() {
        assert!(!is_running(pid), "{pid} is left");
    }
}

#[test]
fn a_stop_while_stdin_is_awaited_ends_at_once() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pitool"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("tools.d")).unwrap();
    std::fs::write(
        folder.path().join("tools.d/t.json"),
        r#"{"name":"t","description":"","execute":{"jq":"{content: []}"}}"#,
    )
    .unwrap();
    command.arg("run").current_dir(folder.path());
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    // One answered message proves that it listens.
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let message = crate::support::message(&[("a", "t", json!({}))]);
    std::io::Write::write_all(&mut stdin, format!("{message}\n").as_bytes()).unwrap();
    stdout.read_line(&mut String::new()).unwrap();
    send(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn what_was_read_is_answered_whole_and_nothing_more_is_read() {
    let asks = |id: &str| {
        json!({"role": "assistant", "content": [
            {"type": "toolCall", "id": id, "name": "slow", "arguments": {}}]})
    };
    let ids: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    let list: Vec<_> = ids.iter().map(|id| asks(id)).collect();
    let mut test = Test::new(["run", "--output", "events"]).sh("slow", "echo begun; exec sleep 60");
    let (mut child, mut open) = test.spawn_with_open_stdin();
    std::io::Write::write_all(&mut open, json!(list).to_string().as_bytes()).unwrap();
    // An input without an end: writing ends when nobody reads.
    let writer = std::thread::spawn(
        move || {
            while std::io::Write::write_all(&mut open, b"[]\n").is_ok() {}
        },
    );
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut seen = wait_for_updates(&mut stdout, &["0"]);
    send(&child, Signal::INT);
    stdout.read_to_string(&mut seen).unwrap();
    let done = Done::of(child).code(130);
    // It holds the other end of what is written to.
    drop(test);
    writer.join().unwrap();
    assert_eq!(done.stderr, "");
    for id in ids {
        let end = format!("{{\"type\":\"tool_execution_end\",\"toolCallId\":\"{id}\"");
        assert_eq!(seen.matches(&end).count(), 1, "{id}");
    }
}

//! Long inputs: memory stays flat, and nothing waits for what comes later.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Test, message, peak_memory};

fn echo() -> Value {
    json!({"name": "echo", "description": "",
        "parameters": {"type": "object", "properties": {"v": {"type": "string"}}},
        "execute": {"jq": ".v | length", "output": "text"}})
}

fn line(value: &str) -> String {
    message(&[("c", "echo", json!({"v": value}))]).to_string() + "\n"
}

/// The peak of a command that reads so many lines of ten thousand bytes, in kB.
fn peak(arguments: &[&str], lines: usize) -> u64 {
    let mut test = Test::new(arguments)
        .manifest("echo", &echo())
        .stdin(line(&"x".repeat(10_000)).repeat(lines));
    let mut child = test.spawn_with_stderr(Stdio::null());
    let peak = peak_memory(&mut child);
    assert!(child.wait().unwrap().success());
    peak
}

#[test]
fn memory_does_not_grow_with_the_length_of_the_input() {
    for arguments in [
        &["run"][..],
        &["run", "--output", "transcript"],
        &["run", "--output", "events"],
        &["validate"],
        &["validate", "--report", "jsonl", "--explain"],
    ] {
        let (some, many) = (peak(arguments, 400), peak(arguments, 4_000));
        assert!(many < some + 10_000, "{arguments:?}: {some} kB, {many} kB");
    }
}

#[test]
fn a_message_is_answered_before_the_next_one_is_there() {
    for output in ["jsonl", "outcomes", "text"] {
        let mut test = Test::new(["run", "--output", output]).manifest("echo", &echo());
        let command = test.command();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut stdout = BufReader::new(stdout).lines();
        for length in 1..4 {
            stdin
                .write_all(line(&"x".repeat(length)).as_bytes())
                .unwrap();
            let answer = format!("\"text\":\"{length}\"");
            let is_answer =
                |line: &String| line.contains(&answer) || *line == format!("│  {length}");
            assert!(
                stdout
                    .by_ref()
                    .map_while(Result::ok)
                    .any(|line| is_answer(&line))
            );
        }
        drop(stdin);
        assert!(child.wait().unwrap().success());
    }
}

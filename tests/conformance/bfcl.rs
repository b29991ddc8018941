//! BFCL: calls that models really made, each judged against its own tool, all by one `pitool validate`.
//!
//! A head of the corpus lies in `benches/sample`; the whole of it is judged where it is there (see `cases::outside`).

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    thread,
};

use pitool::json;
use serde_json::{Value, json};

use crate::{cases::outside, validation::same};

/// What became of the calls of a corpus.
#[derive(Debug, PartialEq)]
struct Tally {
    calls: usize,
    accepted: usize,
    /// Those of the accepted whose arguments were repaired.
    changed: usize,
}

#[test]
fn a_head_of_the_corpus_is_judged_as_by_the_reference() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/sample");
    let judged = judge(&corpus);
    let rejected: Vec<&Value> = judged.iter().filter(|line| line["ok"] == false).collect();
    let text = "Validation failed for tool \"get_prime_factors\":\n  - formatted: missing\n\n\
                Received arguments:\n{\n  \"number\": 450\n}";
    assert_eq!(
        rejected,
        [&json!({
            "line": 32, "call": 1, "toolCallId": "call_32", "tool": "get_prime_factors", "ok": false,
            "errors": [{"path": "/formatted", "keyword": "required", "message": "missing"}], "text": text,
        })]
    );
    let tally = Tally {
        calls: 60,
        accepted: 59,
        changed: 0,
    };
    assert_eq!(tally_of(&corpus, &judged), tally);
}

#[test]
fn the_corpus_is_judged_as_by_the_reference() {
    let Some(calls) = outside("bfcl-calls.jsonl") else {
        return;
    };
    let corpus = calls.parent().expect("a file lies in a folder");
    let tally = Tally {
        calls: 6_736,
        accepted: 6_537,
        changed: 247,
    };
    assert_eq!(tally_of(corpus, &judge(corpus)), tally);
}

fn tally_of(corpus: &Path, judged: &[Value]) -> Tally {
    let sent = lines(&corpus.join("bfcl-calls.jsonl"));
    let accepted: Vec<(&Value, &Value)> = sent
        .iter()
        .zip(judged)
        .filter(|(_, verdict)| verdict["ok"] == true)
        .collect();
    let is_changed =
        |(call, verdict): &&(&Value, &Value)| !same(&call["arguments"], &verdict["value"]);
    Tally {
        calls: judged.len(),
        accepted: accepted.len(),
        changed: accepted.iter().filter(is_changed).count(),
    }
}

/// The verdicts of one process on all calls of a corpus, in their order.
fn judge(corpus: &Path) -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a folder can be made");
    for (number, mut tool) in lines(&corpus.join("bfcl-tools.jsonl"))
        .into_iter()
        .enumerate()
    {
        tool["execute"] = json!({"jq": "."});
        let file = folder.path().join(format!("{number:05}.json"));
        fs::write(file, tool.to_string()).expect("a manifest can be written");
    }
    let judged = validate(folder.path(), messages(&corpus.join("bfcl-calls.jsonl")));
    let numbers = judged.iter().map(|verdict| verdict["line"].as_u64());
    assert!(
        numbers.eq((1..).map(Some).take(judged.len())),
        "verdicts are not in the order of the calls"
    );
    judged
}

fn validate(tools: &Path, messages: String) -> Vec<Value> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pitool"))
        .args(["validate", "--report", "jsonl", "--tools"])
        .arg(tools)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("pitool starts");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    let writer = thread::spawn(move || stdin.write_all(messages.as_bytes()));
    let output = child.wait_with_output().expect("pitool ends");
    writer.join().expect("no panic").expect("pitool reads all");
    assert_eq!(output.status.code(), Some(1), "some calls are rejected");
    parsed(&output.stdout)
}

/// A message for each call.
fn messages(calls: &Path) -> String {
    let message = |(index, call): (usize, &Value)| {
        let id = format!("call_{}", index + 1);
        let block = json!({"type": "toolCall", "id": id, "name": call["name"], "arguments": call["arguments"]});
        json!({"role": "assistant", "content": [block], "stopReason": "toolUse"}).to_string() + "\n"
    };
    lines(calls).iter().enumerate().map(message).collect()
}

fn lines(file: &Path) -> Vec<Value> {
    parsed(&fs::read(file).expect("the corpus is readable"))
}

fn parsed(text: &[u8]) -> Vec<Value> {
    text.split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| json::parse(line).expect("a line is JSON"))
        .collect()
}

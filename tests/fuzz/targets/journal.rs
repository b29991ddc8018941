//! A journal that something else wrote, or tore.

use std::cell::OnceCell;

use pitool::journal::{Journal, Recording};
use pitool::message::ToolCall;
use serde_json::json;

use crate::harness::{Observed, Target};

pub(crate) const TARGET: Target = Target {
    name: "journal",
    beside: &[],
    inputs: 500,
    check,
};

thread_local! {
    static FOLDER: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
}

fn check(input: &[u8], observed: &mut Observed) {
    let path = FOLDER.with(|folder| {
        let folder = folder.get_or_init(|| tempfile::tempdir().unwrap());
        folder.path().join("journal")
    });
    std::fs::write(&path, input).unwrap();
    let calls = ["call-1", "call-2"].map(|id| ToolCall {
        id: id.to_owned(),
        name: "echo".to_owned(),
        arguments: json!({"value": "Pi", "ignored": "drop me"}),
        arguments_error: None,
    });
    match Recording::open(&path) {
        Err(error) => observed.sentence(&error.to_string().replace(path.to_str().unwrap(), "")),
        Ok(recording) => {
            let answer = recording.outcome("echo", &calls[0].arguments);
            observed.fact(answer.map(|answer| answer.is_some()).ok());
        }
    }
    assert_eq!(
        std::fs::read(&path).unwrap(),
        input,
        "a recording is not changed"
    );
    match Journal::open(&path) {
        Err(error) => {
            observed.sentence(&error.to_string().replace(path.to_str().unwrap(), ""));
            assert_eq!(
                std::fs::read(&path).unwrap(),
                input,
                "what is refused is not changed"
            );
        }
        Ok(journal) => {
            observed.fact(journal.open_intents().len().min(3));
            for calls in [&calls[..1], &calls[1..], &calls] {
                if let Ok(batch) = journal.batch(calls, &[]) {
                    observed.fact(batch.recorded(0).is_ok());
                }
            }
        }
    }
}

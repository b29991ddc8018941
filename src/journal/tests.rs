//! What a journal remembers, and what of it holds when a run goes on.

use std::fs;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::message::ToolResult;

use super::*;

struct World {
    folder: TempDir,
}

impl World {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("journal")
    }

    fn open(&self) -> Journal {
        Journal::open(&self.path()).unwrap()
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.path()).unwrap()
    }

    fn append(&self, bytes: &[u8]) {
        let mut content = self.bytes();
        content.extend_from_slice(bytes);
        fs::write(self.path(), content).unwrap();
    }
}

fn call(id: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: id.into(),
        name: "tool".into(),
        arguments,
        arguments_error: None,
    }
}

fn calls(ids: &[&str]) -> Vec<ToolCall> {
    ids.iter().map(|id| call(id, json!({}))).collect()
}

fn outcome(text: &str) -> RecordedOutcome {
    RecordedOutcome {
        result: ToolResult::text(text),
        is_error: false,
        duration_ms: Some(5),
        nested_calls: None,
        timestamp: 1_760_000_000_000,
    }
}

async fn run(batch: &BatchJournal, position: usize, call: &ToolCall, text: &str) {
    batch.intent(position, call).await.unwrap();
    batch.outcome(position, call, &outcome(text)).await.unwrap();
}

fn answered(text: &str) -> Recorded {
    Recorded::Outcome(Box::new(outcome(text)))
}

const OPEN: Recorded = Recorded::OpenIntent {
    called_never: false,
};

/// Runs `a` to its end, starts `b`, never reaches `c`.
async fn interrupted(world: &World) -> Vec<ToolCall> {
    let calls = calls(&["a", "b", "c"]);
    let journal = world.open();
    let batch = journal.batch(&calls, &[]).unwrap();
    run(&batch, 0, &calls[0], "done").await;
    batch.intent(1, &calls[1]).await.unwrap();
    calls
}

#[tokio::test]
async fn interrupted_batch_is_known_call_by_call() {
    let world = World::new();
    let calls = interrupted(&world).await;
    let journal = world.open();
    let batch = journal.batch(&calls, &[]).unwrap();
    assert_eq!(batch.recorded(0).unwrap(), answered("done"));
    assert_eq!(batch.recorded(1).unwrap(), OPEN);
    assert_eq!(batch.recorded(2).unwrap(), Recorded::Nothing);
    assert_eq!(
        journal.open_intents(),
        [OpenIntent {
            tool_call_id: "b".into(),
            tool_name: "tool".into()
        }]
    );
    run(&batch, 1, &calls[1], "late").await;
    drop((batch, journal));
    let journal = world.open();
    let batch = journal.batch(&calls, &[]).unwrap();
    assert_eq!(batch.recorded(1).unwrap(), answered("late"));
    assert!(journal.open_intents().is_empty());
}

#[tokio::test]
async fn repeated_batches_are_told_apart_by_how_often_they_came() {
    let world = World::new();
    let calls = calls(&["same"]);
    let journal = world.open();
    for text in ["first", "second"] {
        run(&journal.batch(&calls, &[]).unwrap(), 0, &calls[0], text).await;
    }
    drop(journal);
    let journal = world.open();
    let recorded = || journal.batch(&calls, &[]).unwrap().recorded(0).unwrap();
    assert_eq!(recorded(), answered("first"));
    assert_eq!(recorded(), answered("second"));
    assert_eq!(recorded(), Recorded::Nothing);
}

#[tokio::test]
async fn other_ids_names_or_order_are_another_batch() {
    let world = World::new();
    interrupted(&world).await;
    let journal = world.open();
    let mut renamed = calls(&["a", "b", "c"]);
    renamed[0].name = "other".into();
    for other in [calls(&["a", "c", "b"]), calls(&["a", "b"]), renamed] {
        let batch = journal.batch(&other, &[]).unwrap();
        assert_eq!(batch.recorded(0).unwrap(), Recorded::Nothing);
    }
}

#[tokio::test]
async fn changed_arguments_of_a_known_id_are_refused() {
    let world = World::new();
    let mut calls = interrupted(&world).await;
    calls[2].arguments = json!({"new": true});
    let error = world.open().batch(&calls, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the journal knows call \"c\" of tool \"tool\" with other arguments"
    );
}

#[tokio::test]
async fn made_up_ids_are_known_by_their_arguments() {
    let world = World::new();
    let one = [call("call_1", json!({"n": 1}))];
    let two = [call("call_1", json!({"n": 2}))];
    let made_up = [IdOrigin::MadeUp];
    let journal = world.open();
    run(&journal.batch(&one, &made_up).unwrap(), 0, &one[0], "one").await;
    drop(journal);
    let journal = world.open();
    let recorded = |calls| journal.batch(calls, &made_up).unwrap().recorded(0).unwrap();
    assert_eq!(recorded(&two), Recorded::Nothing);
    assert_eq!(recorded(&one), answered("one"));
    // An id that was given is another one, even if it reads the same.
    let given = journal.batch(&one, &[]).unwrap();
    assert_eq!(given.recorded(0).unwrap(), Recorded::Nothing);
}

#[tokio::test]
async fn two_calls_with_one_id_are_two() {
    let world = World::new();
    let calls = calls(&["same", "same"]);
    let journal = world.open();
    run(&journal.batch(&calls, &[]).unwrap(), 1, &calls[1], "second").await;
    drop(journal);
    let batch = world.open().batch(&calls, &[]).unwrap();
    assert_eq!(batch.recorded(0).unwrap(), Recorded::Nothing);
    assert_eq!(batch.recorded(1).unwrap(), answered("second"));
}

#[tokio::test]
async fn nested_calls_say_whether_their_parent_may_run_again() {
    for (replay, called_never) in [(Replay::Safe, false), (Replay::Never, true)] {
        let world = World::new();
        let calls = calls(&["parent"]);
        let batch = world.open().batch(&calls, &[]).unwrap();
        batch.intent(0, &calls[0]).await.unwrap();
        let nested = call("parent/1", json!({"n": 1}));
        batch.nested_intent(0, &nested, replay).await.unwrap();
        batch
            .nested_outcome(0, &nested, &outcome("nested"))
            .await
            .unwrap();
        drop(batch);
        let batch = world.open().batch(&calls, &[]).unwrap();
        assert_eq!(
            batch.recorded(0).unwrap(),
            Recorded::OpenIntent { called_never }
        );
    }
}

#[tokio::test]
async fn requests_to_a_server_are_never_recognised() {
    let world = World::new();
    let calls = calls(&["1"]);
    let journal = world.open();
    for text in ["first", "second"] {
        run(&journal.new_batch(&calls), 0, &calls[0], text).await;
    }
    journal
        .new_batch(&calls)
        .intent(0, &calls[0])
        .await
        .unwrap();
    drop(journal);
    let journal = world.open();
    let batch = journal.batch(&calls, &[]).unwrap();
    assert_eq!(batch.recorded(0).unwrap(), Recorded::Nothing);
    assert_eq!(journal.open_intents().len(), 1);
}

/// Whatever part of the file an interruption leaves: it opens, every call is known as far as its lines go,
/// and what is written next can be read.
#[tokio::test]
async fn every_torn_end_is_cut() {
    let world = World::new();
    let calls = interrupted(&world).await;
    let whole = world.bytes();
    let is_worth_it = |length: &usize| {
        let after_a_line = whole[..*length].ends_with(b"\n");
        after_a_line || whole[*length] == b'\n' || length.is_multiple_of(13)
    };
    for length in (0..whole.len()).filter(is_worth_it) {
        fs::write(world.path(), &whole[..length]).unwrap();
        let journal = world.open();
        let batch = journal.batch(&calls, &[]).unwrap();
        let expected = match whole[..length].split(|byte| *byte == b'\n').count() - 1 {
            0..=2 => Recorded::Nothing,
            3 => OPEN,
            _ => answered("done"),
        };
        assert_eq!(batch.recorded(0).unwrap(), expected, "cut at {length}");
        run(&batch, 2, &calls[2], "next").await;
        drop((batch, journal));
        let batch = world.open().batch(&calls, &[]).unwrap();
        assert_eq!(batch.recorded(0).unwrap(), expected, "cut at {length}");
        assert_eq!(batch.recorded(2).unwrap(), answered("next"));
    }
}

#[tokio::test]
async fn zeros_of_a_crash_are_cut() {
    let world = World::new();
    let calls = interrupted(&world).await;
    let whole = world.bytes();
    for tail in [&[0; 4096][..], b"\0\0\0\n", b"{\"type\":\"outc\0\0\0\n"] {
        world.append(tail);
        let batch = world.open().batch(&calls, &[]).unwrap();
        assert_eq!(batch.recorded(1).unwrap(), OPEN);
        assert_eq!(world.bytes(), whole);
    }
}

#[tokio::test]
async fn damage_in_the_middle_is_never_cut() {
    let world = World::new();
    interrupted(&world).await;
    let text = String::from_utf8(world.bytes()).unwrap();
    let damaged = text.replacen("\"outcome\"", "\"out\0\0me\"", 1);
    fs::write(world.path(), &damaged).unwrap();
    let error = Journal::open(&world.path()).unwrap_err();
    assert!(
        matches!(error, JournalError::Damaged { line: 4, .. }),
        "{error}"
    );
    assert_eq!(world.bytes(), damaged.as_bytes());
}

#[test]
fn foreign_files_are_left_alone() {
    let world = World::new();
    for content in [
        "hello\n",
        "hello",
        "{}\n",
        "{\"role\":\"user\"}\n{\"torn",
        "[1]\n",
    ] {
        fs::write(world.path(), content).unwrap();
        let error = Journal::open(&world.path()).unwrap_err();
        assert!(
            matches!(error, JournalError::Foreign(_)),
            "{content}: {error}"
        );
        assert_eq!(world.bytes(), content.as_bytes());
    }
    assert!(Journal::open(world.folder.path()).is_err());
    assert!(Journal::open(Path::new("/dev/null")).is_err());
}

#[test]
fn newer_version_is_refused() {
    let world = World::new();
    fs::write(world.path(), "{\"journal\":\"pitool\",\"version\":2}\n").unwrap();
    let error = Journal::open(&world.path()).unwrap_err();
    assert!(matches!(error, JournalError::Newer(_)), "{error}");
}

/// The lines that version 1 writes, as they were written on the first day: they stay readable.
#[test]
fn lines_of_the_first_version_stay_readable() {
    let world = World::new();
    fs::write(
        world.path(),
        concat!(
            r#"{"journal":"pitool","version":1}"#, "\n",
            r#"{"type":"batch","batch":0,"occurrence":0,"calls":[{"id":"a","name":"tool","arguments":{}}]}"#, "\n",
            r#"{"type":"intent","batch":0,"call":0,"toolCallId":"a","toolName":"tool","timestamp":1}"#, "\n",
            r#"{"type":"nestedIntent","batch":0,"call":0,"toolCallId":"a/1","toolName":"tool","arguments":{},"replay":"safe","timestamp":1}"#, "\n",
            r#"{"type":"nestedOutcome","batch":0,"call":0,"toolCallId":"a/1","toolName":"tool","outcome":{"result":{"content":[]},"isError":true,"timestamp":1}}"#, "\n",
            r#"{"type":"outcome","batch":0,"call":0,"toolCallId":"a","toolName":"tool","outcome":{"result":{"content":[{"type":"text","text":"done"}]},"isError":false,"durationMs":5,"timestamp":1760000000000}}"#, "\n",
        ),
    )
    .unwrap();
    let batch = world.open().batch(&calls(&["a"]), &[]).unwrap();
    assert_eq!(batch.recorded(0).unwrap(), answered("done"));
}

#[tokio::test]
async fn deep_and_odd_results_come_back_as_they_were() {
    let world = World::new();
    let calls = calls(&["a"]);
    let mut deep = json!(1);
    for _ in 0..512 {
        deep = json!([deep]);
    }
    let mut odd = outcome("\0\u{7f}\u{2028} \"\\");
    odd.result.details = Some(json!({"deep": deep, "big": u64::MAX, "float": 0.1, "null": null}));
    let journal = world.open();
    let batch = journal.batch(&calls, &[]).unwrap();
    batch.outcome(0, &calls[0], &odd).await.unwrap();
    drop((batch, journal));
    let batch = world.open().batch(&calls, &[]).unwrap();
    assert_eq!(batch.recorded(0).unwrap(), Recorded::Outcome(Box::new(odd)));
}

#[test]
fn second_run_on_one_journal_is_refused() {
    let world = World::new();
    let first = world.open();
    let error = Journal::open(&world.path()).unwrap_err();
    assert!(
        error.to_string().ends_with("in use by another run"),
        "{error}"
    );
    drop(first);
    world.open();
}

#[test]
fn only_the_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    world.open();
    let mode = fs::metadata(world.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn calls_that_run_at_once_share_syncs() {
    let world = World::new();
    let ids: Vec<String> = (0..1000).map(|number| format!("c{number}")).collect();
    let calls: Vec<ToolCall> = ids.iter().map(|id| call(id, json!({}))).collect();
    let journal = world.open();
    let batch = journal.batch(&calls, &[]).unwrap();
    let before = journal.syncs();
    join_all(
        calls
            .iter()
            .enumerate()
            .map(|(position, call)| run(&batch, position, call, "done")),
    )
    .await;
    let syncs = journal.syncs() - before;
    assert!(syncs * 16 <= 2000, "{syncs} syncs for 2000 records");
    drop((batch, journal));
    let batch = world.open().batch(&calls, &[]).unwrap();
    for position in 0..calls.len() {
        assert_eq!(batch.recorded(position).unwrap(), answered("done"));
    }
}

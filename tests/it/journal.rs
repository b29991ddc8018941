//! `--journal` and `--replay`: what an interrupted run did is not done again, and not said otherwise.

use std::collections::HashMap;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Done, Test, message, text};

const UNKNOWN: &str =
    "was started before an interruption and its outcome is unknown; it was not run again.";

/// A tool that appends its argument `id` to the file `effects` and says it.
fn effect(replay: &str, script: &str) -> Value {
    json!({
        "name": replay, "description": "", "replay": replay,
        "parameters": {"type": "object", "properties": {"id": {"type": "string"}}},
        "execute": {"command": ["sh", "-c", format!("echo \"$1\" >> effects; {script} echo \"$1\""), "_", "{id}"]}
    })
}

fn effects(folder: &TempDir) -> HashMap<String, usize> {
    let text = std::fs::read_to_string(folder.path().join("effects")).unwrap_or_default();
    let mut counts = HashMap::new();
    for id in text.lines() {
        *counts.entry(id.to_owned()).or_default() += 1;
    }
    counts
}

/// Calls `a`, `b` and `c` of tools of the same names; the tool `b` kills pitool the first time it runs.
fn interrupted(replay: &str) -> TempDir {
    let tool = |name: &str, replay: &str, script: &str| {
        let mut tool = effect(replay, script);
        tool["name"] = name.into();
        tool
    };
    let kill = "if [ ! -e killed ]; then touch killed; kill -9 $PPID; sleep 10; fi;";
    let (done, folder) = Test::new(["run", "--journal", "journal", "--mode", "sequential"])
        .manifest("a", &tool("a", "never", ""))
        .manifest("b", &tool("b", replay, kill))
        .manifest("c", &tool("c", "never", ""))
        .stdin(three_calls())
        .run_and_keep();
    assert_eq!(done.code, None, "{done:#?}");
    folder
}

fn three_calls() -> String {
    message(&[
        ("a", "a", json!({"id": "a"})),
        ("b", "b", json!({"id": "b"})),
        ("c", "c", json!({"id": "c"})),
    ])
    .to_string()
}

fn resume(folder: TempDir) -> (Done, TempDir) {
    Test::again(
        folder,
        ["run", "--journal", "journal", "--mode", "sequential"],
    )
    .stdin(three_calls())
    .run_and_keep()
}

#[test]
fn resumed_run_answers_what_is_known_and_runs_the_rest() {
    let (done, folder) = resume(interrupted("never"));
    let done = done.code(1);
    let unknown = format!("error: Tool \"b\" {UNKNOWN}");
    assert_eq!(done.texts(), ["a", unknown.as_str(), "c"]);
    let once = [("a", 1), ("b", 1), ("c", 1)].map(|(id, count)| (id.to_owned(), count));
    assert_eq!(effects(&folder), HashMap::from(once.clone()));

    let (again, folder) = resume(folder);
    let (first, second) = (done.lines(), again.lines());
    assert_eq!((&first[0], &first[2]), (&second[0], &second[2]));
    assert_eq!(again.texts(), done.texts());
    assert_eq!(effects(&folder), HashMap::from(once));
}

#[test]
fn safe_call_with_unknown_outcome_runs_again() {
    let (done, folder) = resume(interrupted("safe"));
    assert_eq!(done.code(0).texts(), ["a", "b", "c"]);
    assert_eq!(effects(&folder)["b"], 2);
    assert_eq!(effects(&folder)["a"], 1);
}

#[test]
fn events_say_what_is_replayed() {
    let (_, folder) = resume(interrupted("never"));
    let done = Test::again(
        folder,
        ["run", "--journal", "journal", "--output", "events"],
    )
    .stdin(three_calls())
    .run();
    let replayed: Vec<(String, bool)> = done
        .lines()
        .iter()
        .filter(|event| {
            event["type"]
                .as_str()
                .unwrap()
                .starts_with("tool_execution")
        })
        .map(|event| {
            let id = event["toolCallId"].as_str().unwrap().to_owned();
            (id, event["replayed"] == true)
        })
        .collect();
    let expected = [("a", true), ("b", false), ("c", true)];
    let twice = expected
        .iter()
        .flat_map(|(id, replayed)| [((*id).to_owned(), *replayed), ((*id).to_owned(), *replayed)]);
    assert_eq!(replayed, twice.collect::<Vec<_>>());
}

#[test]
fn changed_arguments_are_refused_before_anything_runs() {
    let folder = interrupted("safe");
    let before = effects(&folder);
    let (done, folder) = Test::again(folder, ["run", "--journal", "journal"])
        .calls(&[
            ("a", "a", json!({"id": "a"})),
            ("b", "b", json!({"id": "b"})),
            ("c", "c", json!({"id": "changed"})),
        ])
        .run_and_keep();
    let done = done.code(2);
    let reason = "the journal knows call \"c\" of tool \"c\" with other arguments";
    assert!(done.stderr.contains(reason), "{}", done.stderr);
    let refused = |name| format!("error: Tool call \"{name}\" was not executed: {reason}");
    assert_eq!(done.texts(), [refused("a"), refused("b"), refused("c")]);
    assert_eq!(effects(&folder), before);
}

#[test]
fn calls_that_never_executed_are_not_recorded() {
    let run = ["run", "--journal", "journal"];
    let calls = [("x", "never", json!({"id": "x"}))];
    let (done, folder) = Test::new(run)
        .args(["--deny", "never"])
        .manifest("never", &effect("never", ""))
        .calls(&calls)
        .run_and_keep();
    assert_eq!(done.code(1).texts(), ["error: Tool execution was blocked"]);
    let done = Test::again(folder, run).calls(&calls).run();
    assert_eq!(done.code(0).texts(), ["x"]);
}

#[test]
fn same_message_twice_in_one_input_runs_twice_and_resumes_as_two() {
    let input = || {
        let message = message(&[("x", "never", json!({"id": "x"}))]);
        format!("{message}\n{message}\n")
    };
    let run = ["run", "--journal", "journal"];
    let (first, folder) = Test::new(run)
        .manifest("never", &effect("never", ""))
        .stdin(input())
        .run_and_keep();
    assert_eq!(effects(&folder)["x"], 2);
    let (second, folder) = Test::again(folder, run).stdin(input()).run_and_keep();
    assert_eq!(first.code(0).stdout, second.code(0).stdout);
    assert_eq!(effects(&folder)["x"], 2);
}

#[test]
fn second_run_on_one_journal_is_refused() {
    let mut first = Test::new(["run", "--journal", "journal", "--output", "events"])
        .sh("wait", "echo ready; while [ ! -e go ]; do sleep 0.02; done")
        .calls(&[("a", "wait", json!({}))]);
    let path = first.folder().join("journal");
    let mut child = first.spawn();
    while !std::fs::read_to_string(&path).is_ok_and(|text| text.contains("\"intent\"")) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let second = Test::new(["run", "--journal", path.to_str().unwrap()])
        .calls(&[("a", "wait", json!({}))])
        .run()
        .code(2);
    assert_eq!(second.stdout, "");
    assert!(
        second.stderr.contains("in use by another run"),
        "{second:?}"
    );
    std::fs::write(first.folder().join("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn recording_answers_by_name_and_arguments_and_runs_nothing() {
    let (_, folder) = resume(interrupted("safe"));
    let before = effects(&folder);
    std::fs::remove_dir_all(folder.path().join("tools.d")).unwrap();
    let (done, folder) = Test::again(folder, ["run", "--replay", "journal"])
        .calls(&[
            ("1", "c", json!({"id": "c"})),
            ("2", "a", json!({"id": "other"})),
            ("3", "missing", json!({})),
        ])
        .run_and_keep();
    let none = |name| format!("error: No recorded outcome for tool \"{name}\"");
    assert_eq!(
        done.code(1).texts(),
        ["c".to_owned(), none("a"), none("missing")]
    );
    assert_eq!(effects(&folder), before);
}

#[test]
fn file_that_is_no_journal_is_refused_and_kept() {
    let (done, folder) = Test::new(["run", "--journal", "notes"])
        .file("notes", "my notes\n")
        .calls(&[])
        .run_and_keep();
    assert!(done.code(2).stderr.contains("no journal of pitool"));
    let kept = std::fs::read_to_string(folder.path().join("notes")).unwrap();
    assert_eq!(kept, "my notes\n");
}

/// A limit on the size of files stands for a full disk: writing fails half-way through a line.
#[test]
fn without_room_for_an_intent_nothing_executes() {
    let test = Test::new(["unused"]).manifest("never", &effect("never", ""));
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" run --journal journal --jobs 1";
    let calls: Vec<(String, Value)> = (0..20)
        .map(|number| (format!("c{number}"), json!({"id": format!("c{number}")})))
        .collect();
    let calls: Vec<(&str, &str, Value)> = calls
        .iter()
        .map(|(id, arguments)| (id.as_str(), "never", arguments.clone()))
        .collect();
    std::fs::write(test.folder().join("input"), message(&calls).to_string()).unwrap();
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_pitool")])
        .current_dir(test.folder())
        .stdin(std::fs::File::open(test.folder().join("input")).unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let messages: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(messages.len(), 20);
    let effects = std::fs::read_to_string(test.folder().join("effects")).unwrap_or_default();
    let refused = messages.iter().filter(|message| {
        text(message).contains("was not executed: journal journal: File too large")
    });
    assert_eq!(refused.count() + effects.lines().count(), 20, "{stdout}");
    assert!(effects.lines().count() < 20);
}

/// Forty calls with effects, half of them `never`, half `safe`.
struct Forty {
    calls: Vec<(String, &'static str, Value)>,
}

impl Forty {
    fn new() -> Self {
        let calls = (0..40).map(|number| {
            let id = format!("c{number}");
            let tool = if number % 2 == 0 { "never" } else { "safe" };
            (id.clone(), tool, json!({"id": id}))
        });
        Self {
            calls: calls.collect(),
        }
    }

    fn start(&self, folder: Option<TempDir>, events: &str) -> Test {
        let arguments = [
            "run",
            "--journal",
            "journal",
            "--jobs",
            "4",
            "--events",
            events,
        ];
        let calls: Vec<(&str, &str, Value)> = self
            .calls
            .iter()
            .map(|(id, tool, arguments)| (id.as_str(), *tool, arguments.clone()))
            .collect();
        match folder {
            Some(folder) => Test::again(folder, arguments),
            None => Test::new(arguments)
                .manifest("never", &effect("never", "sleep 0.01;"))
                .manifest("safe", &effect("safe", "sleep 0.01;")),
        }
        .calls(&calls)
    }

    /// Kills a run at this moment and resumes it.
    fn killed_after(&self, moment: Duration) {
        let mut test = self.start(None, "events.1");
        let mut child = test.spawn();
        std::thread::sleep(moment);
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        child.stdout = None;
        child.wait().unwrap();
        let (done, folder) = self
            .start(Some(test.into_folder()), "events.2")
            .run_and_keep();
        self.check(&done, &folder);
    }

    fn check(&self, done: &Done, folder: &TempDir) {
        let effects = effects(folder);
        let messages = done.lines();
        assert_eq!(messages.len(), self.calls.len(), "{done:#?}");
        for ((id, tool, _), message) in self.calls.iter().zip(&messages) {
            assert_eq!(message["toolCallId"], **id);
            let count = effects.get(id).copied().unwrap_or(0);
            match (*tool, text(message)) {
                ("never", text) if text == *id => assert_eq!(count, 1, "{id}"),
                ("never", text) => {
                    assert_eq!(text, format!("error: Tool \"never\" {UNKNOWN}"));
                    assert!(count <= 1, "{id}: {count}");
                }
                (_, text) => {
                    assert_eq!(text, *id);
                    assert!(count >= 1, "{id}: {count}");
                }
            }
        }
        self.check_what_was_said(&messages, folder);
    }

    /// What the first run told as ended, the second must tell the same way.
    fn check_what_was_said(&self, messages: &[Value], folder: &TempDir) {
        let events = std::fs::read_to_string(folder.path().join("events.1")).unwrap_or_default();
        // The last line may be torn.
        let ends = events
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|event| event["type"] == "tool_execution_end");
        for end in ends {
            let position = self
                .calls
                .iter()
                .position(|(id, ..)| end["toolCallId"] == **id)
                .unwrap();
            let message = &messages[position];
            assert_eq!(message["content"], end["result"]["content"]);
            assert_eq!(message["isError"], end["isError"]);
            assert_eq!(message["durationMs"], end["durationMs"]);
        }
    }
}

/// Set `PITOOL_KILL_MOMENTS` for more moments.
#[test]
fn run_killed_at_any_moment_can_be_resumed() {
    let forty = Forty::new();
    let start = Instant::now();
    let (done, folder) = forty.start(None, "events.1").run_and_keep();
    let whole = start.elapsed();
    forty.check(&done, &folder);
    let moments = std::env::var("PITOOL_KILL_MOMENTS").map_or(8, |text| text.parse().unwrap());
    for moment in 0..moments {
        forty.killed_after(whole * moment / moments);
    }
}

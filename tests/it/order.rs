//! Who runs when: parallel and sequential batches, the file queue. Order is read from a log that the tools write.

use serde_json::{Value, json};

use crate::support::{Test, message};

/// Waits for a file that another call makes.
fn wait_for(file: &str) -> String {
    format!("while [ ! -e {file} ]; do sleep 0.01; done; ")
}

fn ended(events: &[Value]) -> Vec<&str> {
    let ends = events
        .iter()
        .filter(|event| event["type"] == "tool_execution_end");
    ends.map(|event| event["toolCallId"].as_str().unwrap())
        .collect()
}

#[test]
fn parallel_calls_run_at_the_same_time_and_end_in_their_own_order() {
    // Each waits for what the other makes: one after the other they would never end. `left` ends when `right` has.
    let hook = "until grep -q '\"type\":\"tool_execution_end\",\"toolCallId\":\"b\"' events.jsonl; do sleep 0.01; done";
    let test = Test::new(["run", "--events", "events.jsonl"])
        .sh("left", &format!("touch l; {}echo left", wait_for("r")))
        .sh("right", &format!("touch r; {}echo right", wait_for("l")))
        .manifest("after", &json!({"hook": "afterToolCall", "tools": ["left"], "run": {"command": ["sh", "-c", hook]}}))
        .calls(&[("a", "left", json!({})), ("b", "right", json!({}))]);
    let (done, folder) = test.run_and_keep();
    assert_eq!(
        done.code(0).texts(),
        ["left", "right"],
        "messages keep source order"
    );
    let events = std::fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    let events: Vec<Value> = events
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(ended(&events), ["b", "a"], "ends come as they happen");
}

#[test]
fn one_sequential_tool_makes_the_whole_batch_sequential() {
    let log =
        "echo begin $PITOOL_TOOL_CALL_ID >>log; sleep 0.05; echo end $PITOOL_TOOL_CALL_ID >>log";
    let sequential = json!({
        "name": "seq", "description": "", "executionMode": "sequential", "execute": {"command": ["sh", "-c", log]},
    });
    let test = Test::new(["run"])
        .sh("par", log)
        .manifest("seq", &sequential)
        .calls(&[
            ("1", "par", json!({})),
            ("2", "par", json!({})),
            ("3", "seq", json!({})),
        ]);
    let (done, folder) = test.run_and_keep();
    done.code(0);
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert_eq!(log, "begin 1\nend 1\nbegin 2\nend 2\nbegin 3\nend 3\n");
}

#[test]
fn jobs_bound_how_many_run_at_once() {
    let count = "mkdir -p run; touch run/$PITOOL_TOOL_CALL_ID; ls run | wc -l >>log; sleep 0.05; rm run/$PITOOL_TOOL_CALL_ID";
    let ids: Vec<String> = (0..8).map(|n| n.to_string()).collect();
    let calls: Vec<_> = ids.iter().map(|id| (id.as_str(), "t", json!({}))).collect();
    let (done, folder) = Test::new(["run", "--jobs", "2"])
        .sh("t", count)
        .calls(&calls)
        .run_and_keep();
    done.code(0);
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    let most = log
        .lines()
        .map(|line| line.trim().parse::<u32>().unwrap())
        .max();
    assert_eq!(most, Some(2), "{log}");
}

#[test]
fn before_hooks_run_before_any_tool_starts() {
    let test = Test::new(["run"])
        .sh("t", "echo tool >>log")
        .manifest("h", &json!({"hook": "beforeToolCall", "run": {"command": ["sh", "-c", "sleep 0.05; echo hook >>log"]}}))
        .calls(&[("a", "t", json!({})), ("b", "t", json!({}))]);
    let (done, folder) = test.run_and_keep();
    done.code(0);
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert_eq!(log, "hook\nhook\ntool\ntool\n");
}

#[test]
fn calls_that_change_one_file_never_overlap_others_do() {
    // The second change of `f` must find the first one done; `other` runs while the first holds the file.
    let script = format!(
        "cat \"$1\" >>log; {} echo \"$2\" >>\"$1\"",
        wait_for("other_ran")
    );
    let change = json!({
        "name": "change", "description": "",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "line": {"type": "string"}},
                       "required": ["path", "line"]},
        "mutates": ["path"],
        "execute": {"command": ["sh", "-c", script, "_", "{path}", "{line}"]},
    });
    let test = Test::new(["run"])
        .manifest("change", &change)
        .sh("other", "touch other_ran")
        .file("f", "")
        .calls(&[
            ("a", "change", json!({"path": "f", "line": "one"})),
            ("b", "change", json!({"path": "./f", "line": "two"})),
            ("c", "other", json!({})),
        ]);
    let (done, folder) = test.run_and_keep();
    done.code(0);
    assert_eq!(
        std::fs::read_to_string(folder.path().join("f")).unwrap(),
        "one\ntwo\n"
    );
    assert_eq!(
        std::fs::read_to_string(folder.path().join("log")).unwrap(),
        "one\n"
    );
}

#[test]
fn ten_parallel_edits_of_one_file_lose_none() {
    let original: String = (0..10).map(|n| format!("line {n} old\n")).collect();
    let calls: Vec<(String, Value)> = (0..10)
        .map(|n| (n.to_string(), json!({"path": "f.txt", "oldText": format!("line {n} old"), "newText": format!("line {n} new")})))
        .collect();
    let calls: Vec<_> = calls
        .iter()
        .map(|(id, arguments)| (id.as_str(), "edit_file", arguments.clone()))
        .collect();
    let test = Test::new(["run"])
        .shipped_tools()
        .file("f.txt", &original)
        .calls(&calls);
    let (done, folder) = test.run_and_keep();
    done.code(0);
    let edited = std::fs::read_to_string(folder.path().join("f.txt")).unwrap();
    assert_eq!(edited, original.replace("old", "new"));
}

#[test]
fn messages_follow_each_other() {
    let stdin = [
        message(&[("a", "t", json!({}))]),
        message(&[("b", "t", json!({}))]),
    ];
    let stdin: String = stdin.iter().map(|message| format!("{message}\n")).collect();
    let script =
        "echo begin $PITOOL_TOOL_CALL_ID >>log; sleep 0.05; echo end $PITOOL_TOOL_CALL_ID >>log";
    let (done, folder) = Test::new(["run"])
        .sh("t", script)
        .stdin(stdin)
        .run_and_keep();
    done.code(0);
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert_eq!(log, "begin a\nend a\nbegin b\nend b\n");
}

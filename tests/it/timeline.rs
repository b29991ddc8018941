//! `pitool timeline`: the events of a run as a picture.

use serde_json::json;

use crate::support::Test;

#[test]
fn the_events_of_a_run_become_a_picture() {
    let (run, folder) = Test::new(["run", "--events", "events.jsonl"])
        .sh("good", "echo 1")
        .sh("bad", "echo \"<wrong>\" >&2; exit 3")
        .calls(&[
            ("a", "good", json!({})),
            ("b", "bad", json!({})),
            ("c", "gone", json!({})),
        ])
        .run_and_keep();
    run.code(1);
    let events = std::fs::read(folder.path().join("events.jsonl")).unwrap();
    let done = Test::new(["timeline"]).stdin(events).run().code(0).quiet();
    assert!(done.stdout.starts_with("<svg xmlns=") && done.stdout.ends_with("</svg>\n"));
    assert!(
        done.stdout.contains("<title>3 calls, 2 errors, "),
        "{}",
        done.stdout
    );
    assert!(
        done.stdout.contains("error: &lt;wrong&gt;"),
        "{}",
        done.stdout
    );
    assert!(done.stdout.contains(">not run</text>"), "{}", done.stdout);
}

#[test]
fn what_is_no_event_is_named() {
    let done = Test::new(["timeline"])
        .stdin("{\"role\":\"toolResult\"}\n{\n")
        .run()
        .code(2);
    assert!(
        done.stderr
            .starts_with("pitool: stdin: line 1: no event\npitool: stdin: line 2 "),
        "{}",
        done.stderr
    );
    assert!(done.stdout.contains("0 calls"), "{}", done.stdout);
}

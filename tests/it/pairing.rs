//! The promise: every call in the input has exactly one paired result in the output, in source order, whatever the
//! tools do.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Test, message};

/// Tools of all kinds, good and bad.
const TOOLS: [(&str, &str); 8] = [
    ("good", "echo good"),
    ("silent", "true"),
    ("failing", "echo out; echo err >&2; exit 3"),
    ("killed", "kill -KILL $$"),
    ("hanging", "exec sleep 60"),
    ("deaf", "trap '' TERM; exec <&-; echo deaf"),
    ("leaky", "sleep 60 & echo leaky"),
    ("loud", "head -c 300000 /dev/zero | tr '\\0' x"),
];

/// What a call asks for: a tool or a name that does not exist, an id that may repeat or be empty, odd arguments.
fn call() -> impl Strategy<Value = (String, String, Value)> {
    let names = TOOLS
        .iter()
        .map(|(name, _)| *name)
        .chain(["picky", "guarded", "garbled", "nobody", ""]);
    let names = prop::sample::select(names.collect::<Vec<_>>());
    let ids = prop::sample::select(vec!["a", "b", "c", "", "call_1"]);
    let arguments = prop::sample::select(vec![
        json!({}),
        json!({"n": 1}),
        json!({"n": "x"}),
        json!([1]),
        json!("{"),
        json!(null),
    ]);
    (ids, names, arguments)
        .prop_map(|(id, name, arguments)| (id.to_owned(), name.to_owned(), arguments))
}

fn check(calls: &[(String, String, Value)], mode: &str, jobs: &str) {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let picky = json!({"name": "picky", "description": "", "parameters": schema, "execute": {"jq": "{content: []}"}});
    let mut test = Test::new([
        "run",
        "--timeout",
        "200ms",
        "--events",
        "events.jsonl",
        "--mode",
        mode,
        "--jobs",
        jobs,
    ])
    .manifest("picky", &picky)
    .sh("guarded", "echo never")
    .tool(
        "garbled",
        &json!({"command": ["echo", "{\"content\": 5"], "output": "items"}),
    )
    .manifest(
        "guard",
        &json!({"hook": "beforeToolCall", "tools": ["guarded"], "run": {"jq": "{block: true}"}}),
    );
    for (name, script) in TOOLS {
        test = test.sh(name, script);
    }
    let borrowed: Vec<_> = calls
        .iter()
        .map(|(id, name, args)| (id.as_str(), name.as_str(), args.clone()))
        .collect();
    let (done, folder) = test.stdin(message(&borrowed).to_string()).run_and_keep();
    let results = done.lines();
    assert_eq!(results.len(), calls.len(), "{done:#?}");
    for ((id, name, _), result) in calls.iter().zip(&results) {
        assert_eq!(result["role"], "toolResult");
        assert_eq!(result["toolName"], name.as_str());
        assert!(
            id.is_empty() || result["toolCallId"] == id.as_str(),
            "{done:#?}"
        );
        assert!(!result["toolCallId"].as_str().unwrap().is_empty());
    }
    let events = std::fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    let count = |kind: &str| {
        events
            .lines()
            .filter(|line| line.starts_with(&format!("{{\"type\":\"{kind}\"")))
            .count()
    };
    for kind in [
        "tool_execution_start",
        "tool_execution_end",
        "message_start",
        "message_end",
    ] {
        assert_eq!(count(kind), calls.len(), "{kind}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_call_is_answered_once_in_order(
        calls in prop::collection::vec(call(), 0..10),
        mode in prop::sample::select(vec!["parallel", "sequential"]),
        jobs in prop::sample::select(vec!["0", "1", "3"]),
    ) {
        check(&calls, mode, jobs);
    }
}

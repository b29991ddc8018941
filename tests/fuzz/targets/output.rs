//! What a tool or a hook prints.

use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;

use pitool::batch::{self, Batch};
use pitool::call::{Options, Runner};
use pitool::event::Silent;
use pitool::json;
use pitool::message::{ToolCall, ToolResult};
use pitool::past::Past;
use pitool::registry::Registry;
use pitool::stop::Stop;
use serde_json::{Value, json};

use crate::harness::{Observed, Target};

pub(crate) const TARGET: Target = Target {
    name: "output",
    beside: &[],
    inputs: 60,
    check,
};

/// The text of a result is never longer than the default limit and the note.
const LONGEST_TEXT: usize = 51_200 * 3 + 400;

thread_local! {
    static PRINTER: OnceCell<Printer> = const { OnceCell::new() };
}

/// Tools and hooks that print the file `printed`.
struct Printer {
    folder: tempfile::TempDir,
    runner: Runner,
    runtime: tokio::runtime::Runtime,
}

const TOOLS: [(&str, &str); 6] = [
    ("text", "text"),
    ("items", "items"),
    ("json", "json"),
    ("image", "image/png"),
    ("guarded", "text"),
    ("rewritten", "text"),
];

impl Printer {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let print = |output: &str| json!({"command": ["cat", "printed"], "cwd": folder.path(), "output": output});
        for (name, output) in TOOLS {
            let tool = json!({"name": name, "description": "", "execute": print(output), "outputSchema": {"type": "object"}});
            write(&folder.path().join(format!("{name}.json")), &tool);
        }
        for (hook, tool) in [
            ("beforeToolCall", "guarded"),
            ("afterToolCall", "rewritten"),
        ] {
            let mut run = print("text");
            run.as_object_mut().unwrap().remove("output");
            write(
                &folder.path().join(format!("{hook}.json")),
                &json!({"hook": hook, "tools": [tool], "run": run}),
            );
        }
        let loaded = Registry::load(&[folder.path().to_owned()]);
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
        Self {
            folder,
            runner: Runner::new(Arc::new(loaded.registry), Options::default()),
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap(),
        }
    }
}

fn write(path: &Path, manifest: &Value) {
    std::fs::write(path, manifest.to_string()).unwrap();
}

fn check(input: &[u8], observed: &mut Observed) {
    PRINTER.with(|printer| print(printer.get_or_init(Printer::new), input, observed));
}

fn print(printer: &Printer, input: &[u8], observed: &mut Observed) {
    std::fs::write(printer.folder.path().join("printed"), input).unwrap();
    let calls = TOOLS.map(|(name, _)| ToolCall {
        id: name.to_owned(),
        name: name.to_owned(),
        arguments: json!({}),
        arguments_error: None,
    });
    let message = json!({"role": "assistant", "content": calls});
    let batch = Batch {
        message: &message,
        calls: &calls,
        stop_reason: None,
        past: Past::None,
    };
    let stop = Stop::never();
    let running = batch::run(&printer.runner, batch, &Silent, &stop);
    let answered = printer.runtime.block_on(running);
    assert_eq!(answered.outcomes.len(), calls.len());
    for (outcome, message) in answered.outcomes.iter().zip(&answered.messages) {
        assert_eq!(message.tool_call_id, outcome.tool_call.id);
        let text = serde_json::to_string(outcome).unwrap();
        assert!(json::parse(text.as_bytes()).is_ok(), "{text}");
        observed.fact((outcome.tool_call.name.clone(), outcome.is_error));
        observe(&outcome.tool_call.name, &outcome.result, input, observed);
        let details = outcome.result.details.as_ref();
        if let Some(path) = details.and_then(|details| details["fullOutputPath"].as_str()) {
            // Only where it is one of ours: a tool may say anything in its details.
            if path.contains("/pitool-output-") {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

fn observe(name: &str, result: &ToolResult, input: &[u8], observed: &mut Observed) {
    let text = result.joined_text();
    match name {
        "text" => {
            assert!(text.len() <= LONGEST_TEXT);
            let printed = String::from_utf8_lossy(input);
            let last = printed.trim_end_matches(['\r', '\n']).chars().next_back();
            let is_cut = text.contains("[Output cut");
            assert!(
                is_cut || last.is_none_or(|last| text.contains(last)),
                "{text}"
            );
        }
        "items" | "json" => observed.sentence(&text),
        _ => {}
    }
}

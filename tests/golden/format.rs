//! Every situation of every provider: what is read from its message, and what goes back to it.
//!
//! A case is a file `format/PROVIDER/SITUATION.json`: `source` (the page that says so, and its date), `input` (what
//! the provider or its user sends), and what pitool makes of it: `turns`, `answers` (to append to the next request) and
//! `transcript` (the input with them in it).

use std::path::{Path, PathBuf};

use pitool::format::{Document, Documents, Format, InputOptions, Keep, Turn, encode};
use pitool::message::{Content, ToolCall, ToolResult, ToolResultMessage};
use serde_json::{Map, Value, json};

#[test]
fn pi() {
    check_all("pi");
}

#[test]
fn anthropic() {
    check_all("anthropic");
}

#[test]
fn openai() {
    check_all("openai");
}

#[test]
fn openai_responses() {
    check_all("openai-responses");
}

#[test]
fn gemini() {
    check_all("gemini");
}

#[test]
fn mcp() {
    check_all("mcp");
}

fn check_all(provider: &str) {
    let format: Format = provider.parse().expect("a folder is named as its format");
    let files = files(&folder().join(provider));
    assert!(
        files.len() >= 10,
        "only {} cases of {provider}",
        files.len()
    );
    let stale: Vec<String> = files
        .iter()
        .filter_map(|file| check(file, format).err())
        .collect();
    assert!(stale.is_empty(), "{}", stale.join("\n"));
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/format")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of a provider can be read")
        .map(|entry| entry.expect("an entry can be read").path())
        .collect();
    files.sort();
    files
}

fn check(file: &Path, format: Format) -> Result<(), String> {
    let text = std::fs::read_to_string(file).expect("a case can be read");
    let case: Value = serde_json::from_str(&text).expect("a case is JSON");
    let source = case["source"].as_str().unwrap_or_default();
    assert!(names_its_page(source), "{}: {source}", file.display());
    let is_recognised = read(&case["input"], None);
    let as_told = read(&case["input"], Some(format));
    assert_eq!(is_recognised, as_told, "{}", file.display());
    let actual = golden(&case, as_told);
    if actual == text {
        return Ok(());
    }
    if std::env::var_os("PITOOL_UPDATE_GOLDEN").is_some() {
        std::fs::write(file, actual).expect("a case can be written");
        return Ok(());
    }
    Err(format!("{} is now\n{actual}", file.display()))
}

/// Whether a source is the address of a page and the day on which it was read.
fn names_its_page(source: &str) -> bool {
    let page_and_day = regex::Regex::new(r"^https://[^ ]+/[^ ]+.*, read 20\d\d-\d\d-\d\d(;|$)");
    page_and_day.expect("a pattern").is_match(source)
}

fn read(input: &Value, from: Option<Format>) -> Document {
    let options = InputOptions {
        from,
        keep: Keep::Documents,
        ..InputOptions::default()
    };
    let text = input.to_string();
    let mut documents = Documents::new(text.as_bytes(), options);
    let document = documents.next().expect("there is a document");
    assert!(documents.next().is_none(), "there is only one document");
    document.expect("the document can be read")
}

fn golden(case: &Value, document: Document) -> String {
    let results: Vec<Vec<ToolResultMessage>> = document.turns.iter().map(run).collect();
    let answers: Vec<Value> = document
        .turns
        .iter()
        .zip(&results)
        .flat_map(|(turn, results)| encode(turn, turn.format, results))
        .collect();
    let mut golden = Map::new();
    golden.insert("source".to_owned(), case["source"].clone());
    golden.insert("input".to_owned(), case["input"].clone());
    golden.insert(
        "turns".to_owned(),
        document.turns.iter().map(shown).collect(),
    );
    golden.insert("answers".to_owned(), answers.into());
    golden.insert("transcript".to_owned(), document.answered(&results).into());
    serde_json::to_string_pretty(&golden).expect("a golden can be printed") + "\n"
}

fn shown(turn: &Turn) -> Value {
    json!({
        "format": turn.format.name(),
        "stopReason": turn.stop_reason,
        "calls": turn.calls,
        "warnings": turn.warnings,
        "message": turn.message,
    })
}

/// Stands for the runner: every situation that a result can be in, without running anything.
fn run(turn: &Turn) -> Vec<ToolResultMessage> {
    turn.calls
        .iter()
        .map(|call| {
            let (result, is_error) = match turn.stop_reason.as_deref() {
                Some(reason @ ("length" | "error" | "aborted")) => not_run(call, reason),
                _ => run_call(call),
            };
            ToolResultMessage {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                content: result.content,
                details: result.details,
                usage: None,
                nested_calls: None,
                is_error,
                duration_ms: None,
                timestamp: 1_796_000_000_500,
            }
        })
        .collect()
}

fn not_run(call: &ToolCall, reason: &str) -> (ToolResult, bool) {
    let text = format!("Tool call \"{}\" was not executed: {reason}", call.name);
    (ToolResult::thrown(text), true)
}

fn run_call(call: &ToolCall) -> (ToolResult, bool) {
    if let Some(error) = &call.arguments_error {
        let text = format!("Invalid arguments for tool \"{}\": {error}", call.name);
        return (ToolResult::thrown(text), true);
    }
    match call.name.as_str() {
        "get_weather" | "天気" => (
            ToolResult::text(format!("18 °C for {}", call.arguments)),
            false,
        ),
        "now" => (ToolResult::text("12:00"), false),
        "quiet" => (ToolResult::default(), false),
        "screenshot" => (with_image("the page:", "image/png"), false),
        "draw" => (with_image("", "image/svg+xml"), false),
        "explode" => (ToolResult::thrown("boom"), true),
        "explode_with_image" => (with_image("boom, see:", "image/jpeg"), true),
        unknown => (
            ToolResult::thrown(format!("Tool {unknown} not found")),
            true,
        ),
    }
}

/// A text, which may be empty, and an image.
fn with_image(text: &str, mime_type: &str) -> ToolResult {
    let image = Content::Image {
        data: "aW1hZ2U=".to_owned(),
        mime_type: mime_type.to_owned(),
    };
    ToolResult {
        content: vec![Content::text(text), image],
        ..ToolResult::default()
    }
}

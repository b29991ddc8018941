//! The README's console blocks, run as they stand: what they print is what the README says.

use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{Test, project};

/// `$ command` lines and what is printed below each, block by block.
fn blocks(markdown: &str) -> Vec<Vec<(String, String)>> {
    let mut blocks = Vec::new();
    for block in markdown.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let mut commands: Vec<(String, String)> = Vec::new();
        for line in block.lines() {
            match line.strip_prefix("$ ") {
                Some(command) => commands.push((command.to_owned(), String::new())),
                None => writeln!(commands.last_mut().unwrap().1, "{line}").unwrap(),
            }
        }
        blocks.push(commands);
    }
    blocks
}

/// What changes from run to run, made the same.
fn normalised(text: &str) -> String {
    let volatile = regex::Regex::new(r#""(durationMs|timestamp|atMs)":\d+"#).unwrap();
    let text = volatile.replace_all(text, "\"$1\":0");
    let duration = regex::Regex::new(r" +\d+(\.\d+)?m?s\b").unwrap();
    duration.replace_all(&text, " 0ms").into_owned()
}

fn run(folder: &Path, command: &str) -> String {
    let command = command.replace("cargo run --release --", "pitool");
    let bin = Path::new(env!("CARGO_BIN_EXE_pitool")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", &format!("{{ {command}\n}} 2>&1")])
        .current_dir(folder)
        .env("PATH", path)
        .env_remove("PITOOL_TOOLS")
        .output()
        .unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap();
    match output.status.code() {
        Some(0) => {}
        code => writeln!(text, "[exit {}]", code.unwrap()).unwrap(),
    }
    text
}

#[test]
fn console_blocks_print_what_the_readme_says() {
    let readme = std::fs::read_to_string(project().join("README.md")).unwrap();
    let blocks = blocks(&readme);
    assert!(!blocks.is_empty());
    for block in blocks {
        let folder = tempfile::tempdir().unwrap();
        for name in ["samples", "tools.d"] {
            symlink(project().join(name), folder.path().join(name)).unwrap();
        }
        for (command, expected) in block {
            assert_eq!(
                normalised(&run(folder.path(), &command)),
                normalised(&expected),
                "$ {command}"
            );
        }
    }
}

/// The texts of the blocks in that language.
fn blocks_in<'m>(markdown: &'m str, language: &str) -> Vec<&'m str> {
    let fence = format!("```{language}\n");
    let blocks = markdown.split(fence.as_str()).skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap())
        .collect()
}

/// Starts `pitool` as a client's configuration would, with nobody behind it, where the sample folders are.
#[track_caller]
fn serves(arguments: &Value) {
    let mut arguments: Vec<String> = serde_json::from_value(arguments.clone()).unwrap();
    for argument in &mut arguments {
        if argument.ends_with("tools.d") {
            "tools.d".clone_into(argument);
        }
    }
    let mut test = Test::new(arguments);
    test.command().current_dir(project());
    test.run().code(0).quiet();
}

#[test]
fn configurations_of_mcp_clients_start_a_server() {
    let readme = std::fs::read_to_string(project().join("README.md")).unwrap();
    let configurations = blocks_in(&readme, "json");
    let servers: Vec<Value> = configurations
        .iter()
        .filter_map(|block| serde_json::from_str(block).ok())
        .filter(|block: &Value| block["mcpServers"].is_object())
        .collect();
    assert_eq!(servers.len(), 4);
    for file in servers {
        // All are files that pitool itself understands, but for the one field that is an adapter's own.
        Test::new(["check"]).manifest("s", &file).run().code(0);
        for entry in file["mcpServers"].as_object().unwrap().values() {
            if entry["command"] == "pitool" {
                serves(&entry["args"]);
            }
        }
    }
    let codex = blocks_in(&readme, "toml");
    let arguments = codex[0]
        .lines()
        .find_map(|line| line.strip_prefix("args = "));
    serves(&serde_json::from_str(arguments.unwrap()).unwrap());
}

/// Every whole manifest and every whole case that is shown can be used as it stands.
#[test]
fn manifests_and_cases_are_right() {
    let readme = std::fs::read_to_string(project().join("README.md")).unwrap();
    let blocks = blocks_in(&readme, "json");
    let examples: Vec<Value> = blocks
        .iter()
        .map(|block| serde_json::from_str(block).unwrap())
        .collect();
    let whole = |field: &'static str| examples.iter().filter(move |it| !it[field].is_null());
    let manifests: Vec<&Value> = whole("name").chain(whole("hook")).collect();
    assert_eq!(manifests.len(), 2);
    for manifest in manifests {
        let test = Test::new(["check"]).manifest("example", manifest);
        test.run().code(0);
    }
    let cases: Vec<&Value> = whole("call").collect();
    assert_eq!(cases.len(), 1);
    for case in cases {
        let test = Test::new(["test", "case.json"]).file("case.json", case.to_string());
        test.shipped_tools().run().code(0);
    }
}

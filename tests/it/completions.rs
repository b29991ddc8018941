//! The command line completes in the shell, and nothing is started for it.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::support::{Done, Test};

/// What a shell gets that asks about the last word of a line.
fn asked(test: Test, line: &[&str]) -> Done {
    let index = line.len() - 1;
    test.env("PITOOL_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", index.to_string())
        .env("_CLAP_IFS", "\n")
        .args(["--"])
        .args(line)
        .run()
}

fn tools() -> Test {
    let search = json!({"name": "search", "description": "Search\nfor text", "execute": {"jq": "."},
        "parameters": {"properties": {"query": {}, "limit": {}, "quiet": {}}}});
    Test::new([] as [&str; 0])
        .manifest("search", &search)
        .tool("send", &json!({"jq": "."}))
        .tool("echo", &json!({"jq": "."}))
}

#[track_caller]
fn case(line: &[&str], expected: &[&str]) {
    let done = asked(tools(), line);
    let words: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(words, expected, "{line:?}");
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{line:?}");
}

#[test]
fn names_of_tools_complete_wherever_one_is_asked_for() {
    case(&["pitool", "call", "se"], &["search", "send"]);
    case(&["pitool", "show", "e"], &["echo"]);
    case(&["pitool", "validate", "--tool", "se"], &["search", "send"]);
    for option in ["--only", "--allow", "--deny", "--confirm"] {
        case(&["pitool", "run", option, "ec"], &["echo"]);
    }
}

#[test]
fn arguments_of_the_tool_complete() {
    case(&["pitool", "call", "search", "qu"], &["query=", "quiet="]);
    case(&["pitool", "call", "search", "query=a", "l"], &["limit="]);
    case(&["pitool", "call", "nothing", "qu"], &[]);
}

#[test]
fn commands_options_and_formats_complete() {
    case(&["pitool", "decl"], &["declare"]);
    case(&["pitool", "run", "--dry"], &["--dry-run"]);
    case(
        &["pitool", "declare", "--for", "openai"],
        &["openai", "openai-responses"],
    );
}

#[test]
fn the_folder_of_the_line_is_the_one_that_is_looked_in() {
    let other = json!({"name": "other", "description": "", "execute": {"jq": "."}});
    let test = tools().file("more/other.json", other.to_string());
    let done = asked(test, &["pitool", "--tools", "more", "call", ""]);
    let words: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(words[0], "other");
    assert!(!words.contains(&"echo"));
}

#[test]
fn nothing_is_started_and_nothing_is_said() {
    let servers = json!({"mcpServers": {"s": {"command": "sh", "args": ["-c", "touch started"]}}});
    let test = tools()
        .manifest("servers", &servers)
        .file("tools.d/broken.json", "{")
        .sh("touches", "touch started");
    let folder = test.folder().to_owned();
    let done = asked(test, &["pitool", "call", "t"]);
    assert_eq!(
        (done.stdout.as_str(), done.stderr.as_str()),
        ("touches", "")
    );
    assert!(!folder.join("started").exists());

    let test = tools();
    std::fs::remove_dir_all(test.folder().join("tools.d")).unwrap();
    let done = asked(test, &["pitool", "call", "x"]);
    assert_eq!(
        (done.code, done.stdout.as_str(), done.stderr.as_str()),
        (Some(0), "", "")
    );
}

#[test]
fn a_shell_that_nobody_knows_gets_nothing() {
    let done = tools()
        .env("PITOOL_COMPLETE", "tcsh")
        .args(["--", "pitool", ""])
        .run();
    assert_eq!(
        (done.code, done.stdout.as_str(), done.stderr.as_str()),
        (Some(0), "", "")
    );
}

#[test]
fn there_is_a_script_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let done = Test::new(["completions", shell]).run();
        assert_eq!(done.code, Some(0), "{shell}");
        assert!(
            done.stdout.contains("PITOOL_COMPLETE"),
            "{shell}: {}",
            done.stdout
        );
    }
    let done = Test::new(["completions", "tcsh"]).run();
    assert_eq!(done.code, Some(2));
    assert!(
        done.stderr.contains("bash, elvish, fish, powershell, zsh"),
        "{}",
        done.stderr
    );
}

#[test]
fn a_real_bash_completes() {
    if !Path::new("/bin/bash").exists() {
        return;
    }
    let program = Path::new(env!("CARGO_BIN_EXE_pitool")).parent().unwrap();
    let path = format!(
        "{}:{}",
        program.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let script = "source <(pitool completions bash)
        COMP_WORDS=(pitool call se) COMP_CWORD=2 COMP_TYPE=9
        _clap_complete_pitool pitool se call
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let test = tools();
    let done = Command::new("/bin/bash")
        .args(["--norc", "-c", script])
        .env("PATH", path)
        .env_remove("PITOOL_TOOLS")
        .current_dir(test.folder())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "search\nsend\n");
}

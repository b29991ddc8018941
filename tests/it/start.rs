//! `pitool init` and `pitool new`: from nothing to a tested tool.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::Test;

/// An empty folder, without even the `tools.d` of other tests.
fn empty(arguments: &[&str]) -> Test {
    let test = Test::new(arguments);
    fs::remove_dir(test.folder().join("tools.d")).unwrap();
    test
}

/// The indented lines: what a person is told to type.
fn commands(told: &str) -> Vec<&str> {
    told.lines()
        .filter_map(|line| line.strip_prefix("  "))
        .collect()
}

/// Types lines into one shell; what it says and its exit code.
fn type_in(folder: &Path, lines: &[&str]) -> (String, Option<i32>) {
    let bin = Path::new(env!("CARGO_BIN_EXE_pitool")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-ec", &lines.join("\n")])
        .current_dir(folder)
        .env("PATH", path)
        .env_remove("PITOOL_TOOLS")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8(text).unwrap(), output.status.code())
}

#[test]
fn init_prints_two_commands_that_work() {
    for arguments in [&["init"][..], &["init", "my tools"]] {
        let (done, folder) = empty(arguments).run_and_keep();
        let done = done.code(0).quiet();
        let next = commands(&done.stdout);
        assert_eq!(next.len(), 2, "{done:#?}");
        let (told, code) = type_in(folder.path(), &next);
        assert_eq!(code, Some(0), "{told}");
        assert!(
            told.contains("│  Hello, Ada!\n") && told.contains("│  apple\n│  pear\n"),
            "{told}"
        );
        assert!(told.contains("3 cases: 3 passed"), "{told}");
    }
}

/// What is told leads from an empty folder to a tested tool of one's own, whatever kind it is.
#[test]
fn init_and_what_it_names_lead_to_a_tested_tool() {
    for kind in ["--jq", "--command"] {
        let (init, folder) = empty(&["init"]).run_and_keep();
        let own = init.code(0).stdout.lines().last().unwrap().to_owned();
        assert!(
            own.contains("`pitool new NAME --jq`") && own.contains(kind),
            "{own}"
        );
        let begin = format!("pitool new shorten {kind}");
        let (told, _) = type_in(folder.path(), &[&begin]);
        let edit = "sed -i.old 's/ascii_upcase/.[:2]/; s/\"tr\", .*\"A-Z\"/\"head\", \"-c\", \"2\"/' tools.d/shorten.json";
        let (answer, code) = type_in(folder.path(), &[edit, commands(&told)[0]]);
        assert!(answer.contains("\"text\":\"he\""), "{answer}");
        assert_eq!(code, Some(0));
        let lines = [commands(&told)[1], "pitool test"];
        let (told, code) = type_in(folder.path(), &lines);
        assert_eq!(code, Some(0), "{told}");
        assert!(
            told.contains("\"HELLO\"") && told.contains("4 cases: 4 passed"),
            "{told}"
        );
    }
}

#[test]
fn init_writes_tools_without_findings_and_an_editor_setting() {
    let (_, folder) = empty(&["init"]).run_and_keep();
    let settings = fs::read(folder.path().join(".vscode/settings.json")).unwrap();
    let settings: Value = serde_json::from_slice(&settings).unwrap();
    let schema = settings["json.schemas"][0]["url"].as_str().unwrap();
    let schema: Value =
        serde_json::from_slice(&fs::read(folder.path().join(schema)).unwrap()).unwrap();
    assert_eq!(schema["title"], "pitool manifest");
    let done = Test::again(folder, ["check"]).run().code(0).quiet();
    assert!(
        done.stdout
            .contains("2 tools, 1 hook: 0 errors, 0 warnings"),
        "{done:#?}"
    );
}

#[test]
fn init_says_that_other_folders_are_used() {
    let done = empty(&["init"]).env("PITOOL_TOOLS", "/elsewhere").run();
    assert_eq!(
        done.code(0).stderr,
        "pitool: warning: PITOOL_TOOLS names other folders; unset it to use these tools\n"
    );
}

#[test]
fn init_never_overwrites() {
    let done = Test::new(["init"]).run().code(2);
    assert_eq!(
        done.stderr,
        "pitool: tools.d is there already; nothing was written\n\
         hint: `pitool new NAME --jq` adds a tool to those that are there\n"
    );
    let (done, folder) = empty(&["init"]).file("sample.json", "mine").run_and_keep();
    let done = done.code(2);
    assert!(
        done.stderr
            .starts_with("pitool: sample.json is there already; nothing was written\n"),
        "{done:#?}"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let (done, folder) = empty(&["init"])
        .file(".vscode/settings.json", "{}")
        .run_and_keep();
    let done = done.code(0);
    assert_eq!(
        fs::read_to_string(folder.path().join(".vscode/settings.json")).unwrap(),
        "{}"
    );
    assert!(
        done.stdout
            .contains(".vscode/settings.json is there already"),
        "{done:#?}"
    );
}

#[test]
fn new_writes_a_tool_that_works_and_is_tested() {
    let (_, mut folder) = empty(&["init"]).run_and_keep();
    for (name, kind) in [("shout", "--jq"), ("loud", "--command")] {
        let (done, kept) = Test::again(folder, ["new", name, kind]).run_and_keep();
        folder = kept;
        let done = done.code(0).quiet();
        let next = commands(&done.stdout);
        assert_eq!(next.len(), 2, "{done:#?}");
        let (told, code) = type_in(folder.path(), &["pitool test", next[0]]);
        assert_eq!(code, Some(0), "{told}");
        assert!(told.contains("\"text\":\"HELLO\""), "{told}");
        let (told, code) = type_in(folder.path(), &[next[1]]);
        assert_eq!(code, Some(0), "{told}");
        assert!(
            !told.contains("UPDATE") && !told.contains("RECORD"),
            "{told}"
        );
    }
}

#[test]
fn new_takes_a_description() {
    let arguments = ["new", "declare", "--jq", "--description", "Say \"it\""];
    let (done, folder) = Test::new(arguments).run_and_keep();
    done.code(0).quiet();
    let manifest = fs::read(folder.path().join("tools.d/declare.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["description"], "Say \"it\"");
    let done = Test::again(folder, ["test"]).run().code(0).quiet();
    assert!(done.stdout.contains("2 cases: 2 passed"), "{done:#?}");
}

#[test]
fn new_refuses_names_that_are_taken_or_no_names() {
    let told = |test: Test| test.run().code(2).stderr;
    let taken = Test::new(["new", "t", "--jq"]).sh("t", "true");
    assert_eq!(
        told(taken),
        "pitool: a tool \"t\" is already defined in tools.d/t.json; nothing was written\nhint: choose another name\n"
    );
    let taken = Test::new(["new", "t", "--jq"]).file("tools.d/cases/t.json", "mine");
    assert!(
        told(taken)
            .starts_with("pitool: tools.d/cases/t.json is there already; nothing was written\n")
    );
    for name in ["a b", ".hidden", "../x", ""] {
        assert!(
            told(Test::new(["new", name, "--jq"])).starts_with("pitool: a tool cannot be named "),
            "{name}"
        );
    }
    assert_eq!(
        told(empty(&["new", "t", "--command"])),
        "pitool: tools.d: there is no such folder\nhint: `pitool init` begins with one\n"
    );
    assert!(told(Test::new(["new", "t"])).contains("<--jq|--command>"));
}

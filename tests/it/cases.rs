//! `pitool test`: recorded cases run again, what differs is told, and recorded on demand.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Done, Test, project};

fn echo() -> Value {
    json!({"name": "echo", "description": "Echo one value",
        "parameters": {"type": "object", "properties": {"value": {"type": "string"}}},
        "execute": {"jq": "{content: [{type: \"text\", text: .value}]}"}})
}

fn case(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap() + "\n"
}

fn echo_case() -> Value {
    json!({"call": {"name": "echo", "arguments": {"value": "Pi"}},
        "results": [{"$includes": {"content": [{"text": "Pi"}], "isError": false}}]})
}

/// A folder with `echo`, its declaration recorded, and these cases.
fn test(arguments: &[&str], cases: &[(&str, Value)]) -> Test {
    let declared = json!([{"name": "echo", "description": "Echo one value", "parameters": echo()["parameters"]}]);
    let mut test = Test::new([&["test"], arguments].concat())
        .manifest("echo", &echo())
        .file("tools.d/cases/declare.json", declared.to_string());
    for (name, value) in cases {
        test = test.file(&format!("tools.d/cases/{name}"), case(value));
    }
    test
}

/// stdout without times.
fn told(done: &Done) -> String {
    let time = regex::Regex::new(r" +\d+(\.\d+)?m?s\b").unwrap();
    time.replace_all(&done.stdout, " TIME").into_owned()
}

fn statuses(done: &Done) -> Vec<(String, String)> {
    let text = |line: &Value, field: &str| line[field].as_str().unwrap().to_owned();
    let lines = done.lines();
    let pairs = lines
        .iter()
        .map(|line| (text(line, "name"), text(line, "status")));
    pairs.collect()
}

#[test]
fn what_is_as_recorded_passes() {
    let done = test(&[], &[("echo.json", echo_case())])
        .run()
        .code(0)
        .quiet();
    assert_eq!(
        told(&done),
        "PASS TIME  declare\nPASS TIME  echo\n\n2 cases: 2 passed, TIME\n"
    );
}

#[test]
fn what_differs_is_told_with_its_place() {
    let wrong = json!({"title": "wrong", "call": {"name": "echo", "arguments": {"value": "1\n2\n3"}},
        "results": [{"$includes": {"content": [{"type": "text", "text": "1\ntwo\n3"}]}}]});
    let done = test(&[], &[("a.json", wrong), ("echo.json", echo_case())])
        .run()
        .code(1)
        .quiet();
    assert_eq!(
        told(&done),
        "PASS TIME  declare\n\
         FAIL TIME  a: wrong\n  \
           tools.d/cases/a.json\n  \
           results.0.$includes.content.0.text\n      \
               1\n    \
             - two\n    \
             + 2\n      \
               3\n\
         PASS TIME  echo\n\n\
         3 cases: 2 passed, 1 failed, TIME\n\
         hint: if this is what the tools should answer, record it: pitool test --update\n"
    );
}

#[test]
fn what_failed_among_many_is_named_again_at_the_end() {
    let line = |expected: &str| {
        json!({"name": "echo", "arguments": {"value": "x"},
        "results": [{"$includes": {"content": [{"text": expected}]}}]})
    };
    let lines: String = (0..25)
        .map(|n| format!("{}\n", line(if n == 6 { "y" } else { "x" })))
        .collect();
    let done = test(&[], &[])
        .file("tools.d/cases/many.jsonl", lines)
        .run()
        .code(1);
    let told = told(&done);
    let (_, end) = told.split_once("\n\n").unwrap();
    assert_eq!(
        end,
        "26 cases: 25 passed, 1 failed, TIME\n\
         FAIL   many:7  tools.d/cases/many.jsonl:7\n\
         hint: if this is what the tools should answer, record it: pitool test --update\n"
    );
}

#[test]
fn update_records_only_what_changed() {
    let old = json!({"call": {"name": "echo", "arguments": {"value": "new"}},
        "results": [{"role": {"$matches": "^tool"}, "toolCallId": "call_1", "toolName": "echo",
            "content": [{"type": "text", "text": "old"}], "isError": false, "durationMs": 5, "timestamp": 7}]});
    let cases = [
        ("a.json", old),
        ("b.json", json!({"name": "echo"})),
        ("c.json", echo_case()),
    ];
    let (done, folder) = test(&["--update"], &cases).run_and_keep();
    let done = done.code(0).quiet();
    assert!(
        told(&done).contains("4 cases: 2 passed, 1 updated, 1 recorded, TIME"),
        "{done:#?}"
    );
    let read =
        |name: &str| fs::read_to_string(folder.path().join("tools.d/cases").join(name)).unwrap();
    let recorded: Value = serde_json::from_str(&read("a.json")).unwrap();
    assert_eq!(
        recorded["results"],
        json!([{"role": {"$matches": "^tool"}, "toolCallId": "call_1", "toolName": "echo",
            "content": [{"type": "text", "text": "new"}], "isError": false, "durationMs": 0}])
    );
    assert_eq!(read("c.json"), case(&echo_case()));
    let done = Test::again(folder, ["test"]).run().code(0).quiet();
    assert!(told(&done).contains("4 cases: 4 passed, TIME"), "{done:#?}");
}

#[test]
fn a_changed_tool_surface_fails_until_it_is_recorded() {
    let mut changed = echo();
    changed["description"] = "Repeat a value".into();
    let (done, folder) = test(&[], &[("echo.json", echo_case())])
        .manifest("echo", &changed)
        .run_and_keep();
    let done = done.code(1).quiet();
    assert!(
        done.stdout.contains("    -     \"description\": \"Echo one value\",\n    +     \"description\": \"Repeat a value\","),
        "{done:#?}"
    );
    let (done, folder) = Test::again(folder, ["test", "--update"]).run_and_keep();
    done.code(0).quiet();
    Test::again(folder, ["test"]).run().code(0).quiet();
}

#[test]
fn a_case_has_its_own_files_and_tells_what_became_of_them() {
    let script =
        "cat in/a.txt; echo changed > in/a.txt; rm gone; echo \"$TMPDIR $PWD $TZ $MODE\" > out";
    let tool = json!({"name": "t", "description": "", "execute": {
        "command": ["sh", "-c", script], "env": {"MODE": "${MODE:-unset}"}}});
    let files = json!({"call": {"name": "t"}, "env": {"MODE": "fast"},
        "files": {"in": {"from": "data"}, "gone": ""},
        "results": [{"$includes": {"content": [{"text": "kept"}]}}],
        "changes": {"gone": null, "in/a.txt": "changed\n", "out": "<tmp> <folder> UTC fast\n"}});
    let (done, folder) = Test::new(["test", "files"])
        .manifest("t", &tool)
        .file("tools.d/cases/data/a.txt", "kept\n")
        .file("tools.d/cases/files.json", case(&files))
        .run_and_keep();
    done.code(0).quiet();
    let source = folder.path().join("tools.d/cases/data/a.txt");
    assert_eq!(fs::read_to_string(source).unwrap(), "kept\n");
    let entries: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
}

#[test]
fn many_cases_run_at_once_and_are_told_in_order() {
    // Each waits for the other's file, so they end only if they run at the same time.
    let script = "touch \"$SHARED/$1\"; while [ ! -e \"$SHARED/$2\" ]; do sleep 0.02; done";
    let wait = json!({"name": "wait", "description": "",
        "parameters": {"properties": {"own": {}, "other": {}}},
        "execute": {"command": ["sh", "-c", script, "_", "{own}", "{other}"], "env": {"SHARED": "${SHARED}"}}});
    let shared = tempfile::tempdir().unwrap();
    let line = |own: &str, other: &str| {
        json!({"name": "wait", "arguments": {"own": own, "other": other},
        "results": [{"$includes": {"isError": false}}]})
    };
    let lines = format!(
        "{}\n{}\n{}\n",
        line("a", "b"),
        line("b", "c"),
        line("c", "a")
    );
    let done = Test::new(["test", "-j", "3", "--report", "jsonl", "lines"])
        .manifest("wait", &wait)
        .env("SHARED", shared.path())
        .file("tools.d/cases/lines.jsonl", lines)
        .run()
        .code(0);
    let names: Vec<String> = statuses(&done).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["lines:1", "lines:2", "lines:3"]);
}

#[test]
fn events_are_expected_whatever_order_calls_end_in() {
    let start = |id: &str| json!({"$includes": {"type": "tool_execution_start", "toolCallId": id}});
    let end = |id: &str| json!({"$includes": {"type": "tool_execution_end", "toolCallId": id}});
    let message = crate::support::message(&[
        ("a", "echo", json!({"value": "1"})),
        ("b", "echo", json!({"value": "2"})),
    ]);
    let events = json!({"message": message, "results": [{"$valid": true}, {"$valid": true}],
        "events": [start("a"), end("a"), start("b"), end("b")]});
    let turned = json!({"message": message, "results": [{"$valid": true}, {"$valid": true}],
        "events": [end("a"), start("a")]});
    let done = test(
        &["--report", "jsonl", "events"],
        &[("events1.json", events), ("events2.json", turned)],
    )
    .run()
    .code(1);
    let expected = [("events1", "passed"), ("events2", "failed")];
    assert_eq!(
        statuses(&done),
        expected.map(|(name, status)| (name.to_owned(), status.to_owned()))
    );
}

#[test]
fn a_result_that_breaks_its_schema_is_an_error() {
    let tool = json!({"name": "t", "description": "", "outputSchema": {"type": "object", "required": ["a"]},
        "execute": {"jq": "{content: [], structuredContent: {}}"}});
    let done = Test::new(["test", "t"])
        .manifest("t", &tool)
        .file(
            "tools.d/cases/t.json",
            case(&json!({"name": "t", "results": [{"$includes": {"isError": true}}]})),
        )
        .run();
    done.code(0).quiet();
}

#[test]
fn files_and_parts_of_names_choose_cases() {
    let cases = [("one.json", echo_case()), ("two.json", echo_case())];
    let chosen = |arguments: &[&str]| {
        let done = test(&[&["--report", "jsonl"], arguments].concat(), &cases)
            .file("elsewhere/x.json", case(&echo_case()))
            .run()
            .code(0);
        statuses(&done)
            .into_iter()
            .map(|(name, _)| name)
            .collect::<Vec<_>>()
    };
    assert_eq!(chosen(&[]), ["declare", "one", "two"]);
    assert_eq!(chosen(&["tw", "on"]), ["one", "two"]);
    assert_eq!(chosen(&["elsewhere/x.json"]), ["x"]);
    assert_eq!(
        chosen(&["elsewhere", "tools.d/cases/one.json"]),
        ["x", "one"]
    );
    assert_eq!(chosen(&["tools.d/cases/declare.json"]), ["declare"]);
    assert_eq!(chosen(&["tools.d", "one"]), ["one"]);
}

#[test]
fn a_case_runs_with_the_tools_of_the_folder_it_belongs_to() {
    let done = Test::new(["test", "other/cases/echo.json"])
        .file("other/echo.json", echo().to_string())
        .file("other/cases/echo.json", case(&echo_case()))
        .run();
    done.code(0).quiet();
    // A folder of messages is no tools folder.
    let done = test(&["samples/cases/echo.json"], &[])
        .file(
            "samples/message.json",
            "{\"role\": \"assistant\", \"content\": []}",
        )
        .file("samples/cases/echo.json", case(&echo_case()))
        .run();
    done.code(0).quiet();
    let mut inside = test(&["a.json"], &[("a.json", echo_case())]);
    let cases = inside.folder().join("tools.d/cases");
    inside.command().current_dir(cases);
    inside.run().code(0).quiet();
}

#[test]
fn no_cases_is_an_error_that_says_what_to_do() {
    let done = Test::new(["test"]).manifest("echo", &echo()).run().code(2);
    assert_eq!(
        done.stderr,
        "pitool: no cases found in tools.d/cases\n\
         hint: write tools.d/cases/NAME.json with {\"call\": {\"name\": \"TOOL\", \"arguments\": {…}}}, then `pitool test \
         --update` records what the tool answers\n"
    );
    let done = test(&["ecko"], &[("echo.json", echo_case())]).run().code(2);
    assert_eq!(
        done.stderr,
        "pitool: there is no file \"ecko\" and no case with that in its name\nhint: cases are declare, echo\n"
    );
}

#[test]
fn what_is_no_case_is_told_and_the_others_run() {
    let cases = [
        ("a.json", json!({"call": {"name": "echo"}, "result": []})),
        ("echo.json", echo_case()),
    ];
    let done = test(&[], &cases).run().code(2);
    assert_eq!(
        done.stderr,
        "pitool: error: tools.d/cases/a.json:5:3: unknown field \"result\"\nhint: did you mean \"results\"?\n"
    );
    assert!(
        told(&done).ends_with("2 cases: 2 passed, others not understood, TIME\n"),
        "{done:#?}"
    );
}

#[test]
fn tools_that_do_not_load_run_no_case() {
    let done = test(&[], &[("echo.json", echo_case())])
        .file("tools.d/guard.json", "{")
        .run()
        .code(2);
    assert!(done.stdout.is_empty(), "{done:#?}");
    assert!(
        done.stderr
            .contains("tools.d/guard.json could not be loaded"),
        "{done:#?}"
    );
}

#[test]
fn a_case_that_hangs_ends_at_its_time_limit() {
    let hangs = json!({"name": "t", "results": [{"$includes": {"isError": true,
        "content": [{"text": {"$includes": "Operation aborted"}}]}}]});
    let done = Test::new(["test", "--timeout", "100ms", "t"])
        .sh("t", "exec sleep 1000")
        .file("tools.d/cases/t.json", case(&hangs))
        .run();
    done.code(0).quiet();
}

#[test]
fn ctrl_c_ends_the_tools_of_all_cases() {
    let shared = tempfile::tempdir().unwrap();
    let pid = shared.path().join("pid");
    let script = "echo $$ > \"$SHARED/new\"; mv \"$SHARED/new\" \"$SHARED/pid\"; exec sleep 1000";
    let tool = json!({"name": "t", "description": "",
        "execute": {"command": ["sh", "-c", script], "env": {"SHARED": "${SHARED}"}}});
    let mut test = Test::new(["test", "t"])
        .manifest("t", &tool)
        .env("SHARED", shared.path())
        .file("tools.d/cases/t.json", case(&json!({"name": "t"})));
    let child = test.spawn();
    while !pid.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let parent = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(parent, rustix::process::Signal::INT).unwrap();
    let done = Done::of(child).code(130);
    assert_eq!(done.stdout, "");
    let stat = format!("/proc/{}/stat", fs::read_to_string(&pid).unwrap().trim());
    // Who watches over the tools ends them a moment after pitool has ended.
    while fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn junit_tells_failures_in_xml() {
    let wrong =
        json!({"call": {"name": "echo", "arguments": {"value": "<&\u{1b}>"}}, "results": []});
    let done = test(
        &["--report", "junit"],
        &[("a.json", wrong), ("b.json", echo_case())],
    )
    .run()
    .code(1)
    .quiet();
    let time = regex::Regex::new("time=\"[0-9.]+\"").unwrap();
    let xml = time.replace_all(&done.stdout, "time=\"0\"");
    assert!(
        xml.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"pitool\" tests=\"3\" failures=\"1\" errors=\"0\" time=\"0\">\n"),
        "{xml}"
    );
    assert!(xml.contains("&quot;&lt;&amp;\\u001b&gt;&quot;"), "{xml}");
    assert!(
        xml.contains("<testcase name=\"b\" classname=\"tools.d/cases\" file=\"tools.d/cases/b.json\" time=\"0\"/>"),
        "{xml}"
    );
    assert!(!xml.contains('\u{1b}'));
}

#[test]
fn what_tools_say_never_drives_the_terminal() {
    let bad = json!({"title": "\u{1b}[2J", "call": {"name": "echo", "arguments": {"value": "\u{1b}]0;x\u{7}\n\u{9b}2J\u{202e}"}},
        "results": [{"$includes": {"content": [{"text": "a\nb"}]}}]});
    let done = test(&["--color", "never"], &[("a.json", bad)])
        .run()
        .code(1);
    let is_bad =
        |character: char| character.is_control() && character != '\n' || character == '\u{202e}';
    assert!(!done.stdout.contains(is_bad), "{done:#?}");
}

/// The names of the cases of a folder of the project, all of which hold.
#[track_caller]
fn project_cases(cases: &str) -> Vec<String> {
    let mut test = Test::new(["test", "--report", "jsonl", cases]);
    test.command().current_dir(project());
    let done = test.run().code(0).quiet();
    statuses(&done).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn every_shipped_tool_answers_as_recorded() {
    let names = project_cases("tools.d");
    for manifest in fs::read_dir(project().join("tools.d")).unwrap() {
        let manifest = manifest.unwrap().file_name().into_string().unwrap();
        let Some(tool) = manifest.strip_suffix(".json") else {
            continue;
        };
        let tool = tool.trim_start_matches(|character: char| !character.is_alphabetic());
        assert!(
            names.iter().any(|name| name.starts_with(tool)),
            "no case of {tool} in {names:?}"
        );
    }
    assert_eq!(names[0], "declare");
}

#[test]
fn every_sample_is_answered_as_recorded() {
    let samples = |folder: &str| {
        let files = fs::read_dir(project().join(folder)).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut samples: Vec<String> = names
            .filter_map(|name| Some(name.split_once(".json")?.0.to_owned()))
            .collect();
        samples.sort();
        samples
    };
    assert_eq!(project_cases("samples/cases"), samples("samples"));
    let course = project_cases("samples/course/tools.d");
    assert_eq!(course[1..], samples("samples/course"));
}

#[test]
fn every_case_of_the_project_fits_the_schema_for_editors() {
    let printed = Test::new(["schema", "--cases"]).run().code(0).quiet();
    let schema: Value = serde_json::from_str(&printed.stdout).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let mut cases = 0;
    for folder in [
        "tools.d/cases",
        "samples/cases",
        "samples/course/tools.d/cases",
        "src/cli/init/files",
    ] {
        for entry in fs::read_dir(project().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let found = pitool::cases::read_cases(&path);
            let is_case =
                found.cases.len() == 1 && path.extension().is_some_and(|ending| ending == "json");
            if is_case {
                let value: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
                let refusals: Vec<_> = schema.iter_errors(&value).collect();
                assert!(refusals.is_empty(), "{}: {refusals:?}", path.display());
                cases += 1;
            }
        }
    }
    assert!(cases > 20, "{cases}");
    assert!(!schema.is_valid(&json!({"name": "t", "reslts": []})));
    assert!(!schema.is_valid(&json!({"call": {"nmae": "t"}})));
}

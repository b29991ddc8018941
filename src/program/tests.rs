//! Programs at work: what they are told, what their output means, and how they end.

use std::sync::Mutex;

use serde_json::json;

use super::*;
use crate::message::Content;
use crate::still_time::StillTime;
use crate::stop::{StopLevel, Stopper};

/// Longer than anything takes on a busy machine, and far shorter than what the programs would wait.
const LONG: Duration = Duration::from_mins(1);

/// What came of one run.
#[derive(Debug)]
struct Ran {
    result: Result<ToolResult, Throw>,
    updates: Vec<Value>,
    notices: Vec<Notice>,
}

impl Ran {
    #[track_caller]
    fn text(&self) -> &str {
        match self.result.as_ref().map(|result| result.content.as_slice()) {
            Ok([Content::Text { text }]) => text,
            other => panic!("no text: {other:?}"),
        }
    }

    #[track_caller]
    fn thrown(&self) -> &str {
        &self.result.as_ref().expect_err("it should throw").0
    }

    fn update_texts(&self) -> Vec<&str> {
        let texts = self.updates.iter();
        texts
            .filter_map(|update| update["content"][0]["text"].as_str())
            .collect()
    }

    fn warnings(&self) -> Vec<&str> {
        let warnings = self.notices.iter().filter_map(|notice| match notice {
            Notice::Warning(text) => Some(text.as_str()),
            Notice::ToolStderr { .. } | Notice::ServerLine { .. } => None,
        });
        warnings.collect()
    }

    fn stderr_lines(&self) -> Vec<&str> {
        let texts = self.notices.iter().filter_map(|notice| match notice {
            Notice::ToolStderr { lines, .. } => Some(lines),
            Notice::Warning(_) | Notice::ServerLine { .. } => None,
        });
        texts.flat_map(|text| text.lines()).collect()
    }
}

fn manifest(manifest: Value) -> ProgramManifest {
    serde_json::from_value(manifest).unwrap()
}

fn tool(program: Value) -> Program {
    let parameters = json!({"properties": {"q": {}, "t": {}}, "required": ["q"]}).into();
    let role = Role::Tool {
        parameters: &parameters,
    };
    Program::new(&manifest(program), Path::new("."), role).unwrap()
}

fn sh(script: &str) -> Value {
    json!({"command": ["sh", "-c", script]})
}

/// A manifest with one more field.
fn with(mut program: Value, field: &str, value: Value) -> Value {
    program[field] = value;
    program
}

/// A call that nobody hears of.
pub(super) fn invocation(stop: &Stop) -> Invocation<'_> {
    Invocation {
        tool_call_id: "call-1",
        tool_name: "tool",
        timeout: None,
        socket: None,
        sandbox: None,
        stop,
        probe: None,
        notice: &|_| {},
    }
}

pub(super) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

async fn run_until(program: &Program, arguments: &Value, stop: &Stop) -> Ran {
    let updates = Mutex::new(Vec::new());
    let notices = Mutex::new(Vec::new());
    let notice = |notice| notices.lock().unwrap().push(notice);
    let invocation = Invocation {
        notice: &notice,
        ..invocation(stop)
    };
    let update = |update| updates.lock().unwrap().push(update);
    let result = program.execute(arguments, &invocation, &update).await;
    Ran {
        result,
        updates: updates.into_inner().unwrap(),
        notices: notices.into_inner().unwrap(),
    }
}

fn run(program: Value, arguments: &Value) -> Ran {
    runtime().block_on(run_until(&tool(program), arguments, &Stop::never()))
}

fn answer(program: Value, input: &Value) -> Result<Option<Value>, Throw> {
    let program = Program::new(&manifest(program), Path::new("."), Role::Answer).unwrap();
    let stop = Stop::never();
    let invocation = invocation(&stop);
    runtime().block_on(program.answer(input, &invocation))
}

#[track_caller]
fn text(program: Value, arguments: &Value, expected: &str) {
    assert_eq!(run(program, arguments).text(), expected);
}

#[track_caller]
fn throws(program: Value, expected: &str) {
    assert_eq!(run(program, &json!({"q": "x"})).thrown(), expected);
}

#[track_caller]
fn wrong(program: Value, pointer: &str, message: &str) {
    let parameters = json!({"properties": {"q": {}}}).into();
    let role = Role::Tool {
        parameters: &parameters,
    };
    let error = Program::new(&manifest(program), Path::new("."), role).unwrap_err();
    assert_eq!(error.pointer, pointer, "{error:?}");
    assert!(error.message.contains(message), "{error:?}");
}

#[test]
fn wrong_manifests_name_their_place() {
    wrong(json!({}), "", "needs \"command\" or \"jq\"");
    wrong(json!({"command": ["true"], "jq": "."}), "/jq", "not both");
    wrong(
        json!({"command": ["true"], "timeoutMs": 0}),
        "/timeoutMs",
        "one millisecond",
    );
    wrong(
        json!({"command": ["true"], "output": "video/mp4"}),
        "/output",
        "image/png",
    );
    wrong(
        json!({"command": ["true"], "okExitCodes": [0, 256]}),
        "/okExitCodes/1",
        "0 to 255",
    );
    wrong(
        json!({"command": ["true"], "maxOutputBytes": 0}),
        "/maxOutputBytes",
        "one byte",
    );
    wrong(json!({"command": ["true"], "cwd": ""}), "/cwd", "no path");
    wrong(
        json!({"command": ["true"], "env": {"PITOOL_X": ""}}),
        "/env/PITOOL_X",
        "pitool alone",
    );
    wrong(
        json!({"command": ["true"], "stdin": {"text": "{other}"}}),
        "/stdin/text",
        "not declared",
    );
    wrong(
        json!({"jq": ".", "cwd": "x"}),
        "/cwd",
        "belongs to a command",
    );
    wrong(
        json!({"jq": ".", "output": "image/png"}),
        "/output",
        "no image",
    );
}

#[test]
fn stdin_is_what_the_manifest_says() {
    let cat = || json!({"command": ["cat"]});
    text(
        cat(),
        &json!({"q": 18_446_744_073_709_551_615_u64}),
        r#"{"q":18446744073709551615}"#,
    );
    text(
        with(cat(), "stdin", json!("call")),
        &json!({"q": 1}),
        r#"{"toolCallId":"call-1","toolName":"tool","arguments":{"q":1}}"#,
    );
    text(
        with(cat(), "stdin", json!("none")),
        &json!({"q": 1}),
        "(no output)",
    );
    text(
        with(cat(), "stdin", json!({"text": "<{q}>"})),
        &json!({"q": "a\nb"}),
        "<a\nb>",
    );
}

#[test]
fn arguments_reach_the_process_as_they_are() {
    text(
        json!({"command": ["printf", "%s|", "{q}", "--t={t}", "end"]}),
        &json!({"q": "a'; touch PWNED; '\"$(id)", "t": ["x", "y z"]}),
        "a'; touch PWNED; '\"$(id)|--t=x|--t=y z|end|",
    );
}

#[test]
fn text_loses_one_line_break() {
    text(sh("printf 'a\\n\\n'"), &json!({}), "a\n");
    text(sh("printf a"), &json!({}), "a");
    text(sh("printf 'a\\r\\n'"), &json!({}), "a");
    text(sh("true"), &json!({}), "(no output)");
}

#[test]
fn json_becomes_structured_content() {
    let ran = run(
        with(sh("echo '{ \"n\": 1 }'"), "output", json!("json")),
        &json!({}),
    );
    assert_eq!(
        ran.result,
        Ok(ToolResult {
            structured_content: Some(json!({"n": 1})),
            ..ToolResult::text("{\"n\":1}")
        })
    );
    let json = |script| with(sh(script), "output", json!("json"));
    throws(json("true"), "Command printed no JSON value");
    assert!(
        run(json("echo '{} {}'"), &json!({}))
            .thrown()
            .contains("not one JSON value")
    );
    throws(json("echo ignored; echo why >&2; exit 2"), "why");
    throws(json("exit 2"), "Command exited with code 2");
}

#[test]
fn bytes_become_an_image() {
    let ran = run(
        with(sh("printf 'a\\377'"), "output", json!("image/png")),
        &json!({}),
    );
    assert_eq!(
        ran.result.unwrap().content,
        [Content::Image {
            data: "Yf8=".into(),
            mime_type: "image/png".into()
        }]
    );
    throws(
        with(sh("true"), "output", json!("image/png")),
        "Command printed no image",
    );
}

fn items(script: &str) -> Value {
    with(sh(script), "output", json!("items"))
}

#[test]
fn items_are_updates_and_one_result() {
    let script = r#"echo '{"type":"update","content":[],"details":{"n":1}}'
        echo; printf '{"content":[{"type":"text","text":"one"}],"isError":true}\n[1]\n{"content":[]}'"#;
    let ran = run(items(script), &json!({}));
    assert_eq!(ran.updates, [json!({"content": [], "details": {"n": 1}})]);
    let result = ran.result.unwrap();
    assert_eq!(result.is_error, Some(true));
    assert_eq!(result.joined_text(), "one");
}

#[test]
fn items_fail_in_their_own_words() {
    throws(items("true"), "Command gave no result");
    throws(items("exit 3"), "Command exited with code 3");
    throws(items("echo ' why '  >&2; exit 3"), "why");
    throws(
        items(r#"echo '{"content":[{"type":"text","text":"half"}]}'; echo why >&2; exit 3"#),
        "half\n\nwhy",
    );
    throws(
        items("printf '{\"content\":['"),
        "Command printed something that is no item: line 1 column 13: unexpected end of the text: {\"content\":[",
    );
    assert!(
        run(items("echo 7"), &json!({}))
            .thrown()
            .contains("no item: an item is a JSON object: 7")
    );
    let deep = items(
        r#"printf '{"details":%s1%s}' "$(yes '[' | head -n 2000 | tr -d '\n')" "$(yes ']' | head -n 2000 | tr -d '\n')""#,
    );
    assert!(
        run(deep, &json!({}))
            .thrown()
            .contains("nested more than 512 levels deep")
    );
}

#[test]
fn exits_are_told_in_one_sentence() {
    throws(sh("exit 1"), "Command exited with code 1");
    throws(
        sh("echo out; exit 126"),
        "out\n\nCommand exited with code 126",
    );
    throws(
        sh("echo err >&2; exit 127"),
        "err\n\nCommand exited with code 127",
    );
    throws(
        sh("echo out; echo err >&2; exit 255"),
        "out\nerr\n\nCommand exited with code 255",
    );
    throws(sh("kill -SEGV $$"), "Command was killed by SIGSEGV");
    throws(
        sh("echo out; kill -KILL $$"),
        "out\n\nCommand was killed by SIGKILL",
    );
    text(
        with(sh("echo none; exit 1"), "okExitCodes", json!([0, 1])),
        &json!({}),
        "none",
    );
}

#[test]
fn programs_that_cannot_start_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("plain"), "x").unwrap();
    std::fs::write(at("script"), "#!/nonexistent/interpreter\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(at("script"), mode).unwrap();
    let case = |program: &str, reason: &str| {
        throws(
            json!({"command": [program]}),
            &format!("Cannot start \"{program}\": {reason}"),
        );
    };
    case("pitool-no-such-program", "it is not on the PATH");
    case(
        "pitool no-such",
        "it is not on the PATH; each word of a command is an element of its own",
    );
    case(&at("none"), "No such file or directory");
    case(&at("plain"), "Permission denied");
    case(
        &at("script"),
        "its interpreter /nonexistent/interpreter does not exist",
    );
    case(&at(""), "it is a directory");
    throws(
        json!({"command": ["true"], "cwd": at("none")}),
        &format!(
            "Cannot start \"true\": its working directory {} does not exist",
            at("none")
        ),
    );
}

#[test]
fn program_with_a_slash_is_in_the_folder_of_the_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("hello");
    std::fs::write(&script, "#!/bin/sh\npwd\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    let role = Role::Tool {
        parameters: &json!({}).into(),
    };
    let program = manifest(json!({"command": ["./hello"], "cwd": "/"}));
    let program = Program::new(&program, folder.path(), role).unwrap();
    let ran = runtime().block_on(run_until(&program, &json!({}), &Stop::never()));
    assert_eq!(ran.text(), "/");
}

#[test]
fn environment_is_short() {
    let ran = run(
        with(
            sh("env | cut -d= -f1 | sort"),
            "env",
            json!({"OWN": "${HOME:-x}/y"}),
        ),
        &json!({}),
    );
    let names: Vec<&str> = ran.text().lines().collect();
    assert!(names.contains(&"OWN") && names.contains(&"PITOOL_TOOL_CALL_ID"));
    assert!(!names.contains(&"CARGO_PKG_NAME"), "{names:?}");
    let all = with(sh("echo $CARGO_PKG_NAME"), "inheritEnv", json!(true));
    text(all, &json!({}), "pitool");
    throws(
        with(sh("true"), "env", json!({"X": "${PITOOL_TEST_UNSET}"})),
        "Environment variable PITOOL_TEST_UNSET is not set; the tool's X is made from it",
    );
}

#[test]
fn stderr_is_passed_on_when_all_is_well() {
    let ran = run(sh("echo one >&2; echo two >&2; echo out"), &json!({}));
    assert_eq!(ran.text(), "out");
    assert_eq!(ran.stderr_lines(), ["one", "two"]);
}

#[test]
fn hooks_answer_with_one_value_or_none() {
    assert_eq!(
        answer(json!({"command": ["cat"]}), &json!({"a": 1})),
        Ok(Some(json!({"a": 1})))
    );
    assert_eq!(answer(sh("cat >/dev/null"), &json!({})), Ok(None));
    assert_eq!(
        answer(sh("echo no >&2; exit 1"), &json!({})),
        Err(Throw("no".into()))
    );
    assert!(answer(sh("echo nothing JSON"), &json!({})).is_err());
    assert_eq!(
        answer(json!({"jq": ".a"}), &json!({"a": 1})),
        Ok(Some(json!(1)))
    );
    assert_eq!(answer(json!({"jq": "empty"}), &json!({})), Ok(None));
    assert_eq!(
        answer(json!({"jq": "error(\"no\")"}), &json!({})),
        Err(Throw("no".into()))
    );
}

/// Runs a script with a timeout of 0.3 seconds, which are over as soon as it says `ready`.
fn run_out_of_time(script: &str, program: fn(&str) -> Value) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let script = script.replace("ready", &format!(">{}", ready.display()));
    let program = tool(with(program(&script), "timeoutMs", json!(300)));
    let time_is_over = async {
        let time = StillTime::begin();
        while !ready.exists() {
            tokio::task::yield_now().await;
        }
        time.pass(Duration::from_secs(1)).await;
    };
    runtime().block_on(async {
        let (arguments, stop) = (json!({"q": "x"}), Stop::never());
        tokio::join!(time_is_over, run_until(&program, &arguments, &stop)).1
    })
}

#[test]
fn timeout_ends_the_whole_group() {
    let ran = run_out_of_time("echo out; ready; sleep 300 & wait", sh);
    assert_eq!(ran.thrown(), "out\n\nCommand timed out after 0.3 seconds");
    assert_eq!(ran.update_texts(), ["out"]);
}

#[test]
fn result_before_the_timeout_is_told_but_does_not_count() {
    let early = r#"echo '{"content":[{"type":"text","text":"early"}]}'; ready; exec sleep 300"#;
    let ran = run_out_of_time(early, items);
    assert_eq!(ran.thrown(), "early\n\nCommand timed out after 0.3 seconds");
}

/// Stops a program as soon as it has reported something.
fn run_and_stop(program: Value, level: StopLevel) -> Ran {
    let program = tool(program);
    let stopper = Stopper::new();
    let stop = stopper.stop();
    let updates = Mutex::new(Vec::new());
    let invocation = invocation(&stop);
    let update = |update| {
        updates.lock().unwrap().push(update);
        stopper.raise(level);
    };
    let result = runtime().block_on(program.execute(&json!({}), &invocation, &update));
    Ran {
        result,
        updates: updates.into_inner().unwrap(),
        notices: Vec::new(),
    }
}

#[test]
fn stopped_tool_has_time_for_its_result() {
    let ran = run_and_stop(
        sh("trap 'echo saved; exit 0' TERM; echo begun; sleep 300 & wait"),
        StopLevel::Stopping,
    );
    assert_eq!(ran.text(), "begun\nsaved");
    let ran = run_and_stop(sh("echo begun; exec sleep 300"), StopLevel::Stopping);
    assert_eq!(ran.thrown(), "begun\n\nOperation aborted");
    let ran = run_and_stop(
        items(
            r#"trap 'echo "{\"details\":1}"; exit 9' TERM; echo '{"type":"update"}'; sleep 300 & wait"#,
        ),
        StopLevel::Stopping,
    );
    assert_eq!(ran.result.unwrap().details, Some(json!(1)));
}

#[test]
fn second_stop_leaves_no_time() {
    let begin = std::time::Instant::now();
    let ran = run_and_stop(
        sh("trap '' TERM; echo begun; sleep 300 & wait"),
        StopLevel::Now,
    );
    assert_eq!(ran.thrown(), "begun\n\nOperation aborted");
    assert!(begin.elapsed() < process::GRACE);
}

#[test]
fn jq_gives_items() {
    let ran = run(
        json!({"jq": "{type: \"update\", details: 1}, {details: $call, content: [{type: \"text\", text: .q}]}, error(\"late\")"}),
        &json!({"q": "hi"}),
    );
    assert_eq!(ran.updates, [json!({"content": [], "details": 1})]);
    assert_eq!(
        ran.result,
        Ok(ToolResult {
            details: Some(json!({"toolCallId": "call-1", "toolName": "tool"})),
            ..ToolResult::text("hi")
        })
    );
}

#[test]
fn invalid_bytes_are_replaced_and_people_are_told() {
    let ran = run(sh("printf 'a\\377\\360b\\n'"), &json!({}));
    assert_eq!(ran.text(), "a\u{fffd}\u{fffd}b");
    assert_eq!(
        ran.warnings(),
        ["tool call-1: its output is not UTF-8; bytes that are no characters became U+FFFD"]
    );
    text(sh("printf 'a\\000b'"), &json!({}), "a\0b");
    text(
        sh("printf '\\342\\202'; printf '\\254\\n'"),
        &json!({}),
        "€",
    );
}

#[test]
fn child_that_holds_the_output_does_not_hold_the_call() {
    let begin = std::time::Instant::now();
    let ran = run(sh("echo done; sleep 300 & exit 0"), &json!({}));
    assert_eq!(ran.text(), "done");
    assert!(begin.elapsed() < LONG);
    assert_eq!(
        ran.warnings(),
        ["tool call-1: a process that it left running was stopped"]
    );
}

/// Arguments that no pipe takes at once.
fn large() -> Value {
    json!({"q": "x".repeat(300_000)})
}

#[test]
fn large_arguments_hurt_no_tool_that_does_not_read() {
    text(sh("echo ok"), &large(), "ok");
    text(sh("exec <&-; echo ok"), &large(), "ok");
    text(sh("head -c 5 >/dev/null; echo ok"), &large(), "ok");
}

#[test]
fn large_arguments_arrive_late_and_whole() {
    let script = "head -c 1000000 /dev/zero | tr '\\0' 'x'; echo; wc -c";
    let ran = run(sh(script), &large());
    let expected = "300009\n\n[Output cut: the first 1000001 of 1000008 bytes are not shown.";
    assert!(ran.text().starts_with(expected), "{}", ran.text());
    let details = ran.result.as_ref().unwrap().details.as_ref().unwrap();
    std::fs::remove_file(details["fullOutputPath"].as_str().unwrap()).unwrap();
}

#[test]
fn tool_that_ignores_sigterm_is_killed() {
    let begin = std::time::Instant::now();
    let ran = run_out_of_time("trap '' TERM; echo out; ready; sleep 300 & wait; wait", sh);
    assert_eq!(ran.thrown(), "out\n\nCommand timed out after 0.3 seconds");
    let elapsed = begin.elapsed();
    assert!(
        elapsed >= process::GRACE && elapsed < process::GRACE + LONG,
        "{elapsed:?}"
    );
}

/// Runs a script that prints the ids of the processes it leaves behind, and waits until all of them are gone.
#[track_caller]
fn leaves_nothing(script: &str) {
    let ran = run(sh(script), &json!({}));
    let begin = std::time::Instant::now();
    for id in ran.text().lines() {
        let id = id.parse().expect("an id");
        while procfs::Process::find(id).is_some_and(|process| !process.has_ended) {
            assert!(begin.elapsed() < LONG, "{id} still runs");
            std::thread::yield_now();
        }
    }
}

#[test]
fn nothing_of_the_group_outlives_the_call() {
    leaves_nothing("sleep 300 >/dev/null 2>&1 & echo $!");
    leaves_nothing("(sleep 300 >/dev/null 2>&1 & echo $!) &");
    leaves_nothing(
        "i=0; while [ $i -lt 1000 ]; do sleep 300 >/dev/null 2>&1 & i=$((i+1)); done; echo $!",
    );
    leaves_nothing("sh -c 'trap \"\" TERM; while :; do sleep 1; done' >/dev/null 2>&1 & echo $!");
}

#[test]
fn process_that_leaves_its_group_is_named_and_stopped() {
    orphan::adopt();
    let notices = Mutex::new(Vec::new());
    let notice = |notice| notices.lock().unwrap().push(notice);
    let stop = Stop::never();
    let invocation = Invocation {
        tool_call_id: "leaves",
        tool_name: "its-group",
        notice: &notice,
        ..invocation(&stop)
    };
    // The shell goes on when the process, in a session of its own by then, has let go of its stdout; it keeps stderr.
    let program = tool(sh("echo $(setsid sh -c 'echo $$; exec sleep 300 >&2' &)"));
    let result = runtime().block_on(program.execute(&json!({}), &invocation, &|_| {}));
    let id = result.unwrap().joined_text();
    assert!(procfs::Process::find(id.parse().unwrap()).is_none_or(|process| process.has_ended));
    // Whether the shell has become sleep already when it is found is a matter of time.
    let named = |name: &str| {
        Notice::Warning(format!(
            "its-group leaves: a process that left its group was stopped: {name} ({id})"
        ))
    };
    let notices = notices.into_inner().unwrap();
    assert!(notices.contains(&named("sleep")) || notices.contains(&named("sh")));
}

#[test]
fn abandoned_call_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("id");
    let program = tool(sh(&format!("echo $$ >{}; exec sleep 300", file.display())));
    let id: i32 = runtime().block_on(async {
        let stop = Stop::never();
        let arguments = json!({});
        let mut call = std::pin::pin!(run_until(&program, &arguments, &stop));
        loop {
            tokio::select! {
                _ = &mut call => panic!("it should not end"),
                () = tokio::time::sleep(Duration::from_millis(5)) => {}
            }
            if let Ok(id) = std::fs::read_to_string(&file)
                .unwrap_or_default()
                .trim()
                .parse()
            {
                return id;
            }
        }
    });
    let begin = std::time::Instant::now();
    while procfs::Process::find(id).is_some_and(|process| !process.has_ended) {
        assert!(begin.elapsed() < LONG);
        std::thread::yield_now();
    }
}

#[test]
fn one_line_of_fifty_megabytes() {
    let script = "head -c 50000000 /dev/zero | tr '\\0' 'x'";
    let ran = run(sh(script), &json!({}));
    let text = ran.text();
    assert!(text.starts_with(&"x".repeat(capture::DEFAULT_BYTES)));
    assert!(text.len() < capture::DEFAULT_BYTES + 300);
    let details = ran.result.as_ref().unwrap().details.clone().unwrap();
    let path = details["fullOutputPath"].as_str().unwrap();
    assert!(text.ends_with(&format!(
        "\n\n[Output cut: the first 49948800 of 50000000 bytes are not shown. Full output: {path}]"
    )));
    assert_eq!(std::fs::metadata(path).unwrap().len(), 50_000_000);
    std::fs::remove_file(path).unwrap();
    throws(items(script), "Command printed a line of more than 32 MiB");
    throws(
        with(sh(script), "output", json!("json")),
        "Command printed more than 32 MiB",
    );
}

#[test]
fn flood_of_updates_arrives_whole() {
    let script = r#"yes '{"type":"update","details":1}' | head -n 100000; echo '{"details":2}'"#;
    let ran = run(items(script), &json!({}));
    assert_eq!(ran.updates.len(), 100_000);
    assert_eq!(ran.result.unwrap().details, Some(json!(2)));
}

#[test]
fn text_updates_do_not_flood() {
    let begin = std::time::Instant::now();
    let ran = run(
        sh("i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done"),
        &json!({}),
    );
    let most = 2 + begin.elapsed().as_millis() / 100;
    assert!(
        ran.updates.len() as u128 <= most,
        "{} > {most}",
        ran.updates.len()
    );
    assert!(ran.update_texts()[0].starts_with('0'));
    let details = ran.result.as_ref().unwrap().details.as_ref().unwrap();
    std::fs::remove_file(details["fullOutputPath"].as_str().unwrap()).unwrap();
}

#[test]
fn first_update_does_not_wait() {
    // The tool waits for what the update causes.
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let script = format!(
        "echo one; until [ -e {} ]; do sleep 0.01; done; echo two",
        go.display()
    );
    let program = tool(with(sh(&script), "timeoutMs", json!(60_000)));
    let stop = Stop::never();
    let invocation = invocation(&stop);
    let update = |_| std::fs::write(&go, "").unwrap();
    let result = runtime().block_on(program.execute(&json!({}), &invocation, &update));
    assert_eq!(result, Ok(ToolResult::text("one\ntwo")));
}

#[test]
fn deleted_working_directory_is_the_tools_own_trouble() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    text(
        with(sh(&format!("rm -r {path}; echo gone")), "cwd", json!(path)),
        &json!({}),
        "gone",
    );
}

#[test]
fn much_stderr_is_passed_on_whole() {
    let ran = run(sh("seq 60000 >&2"), &json!({}));
    assert_eq!(ran.text(), "(no output)");
    let lines = ran.stderr_lines();
    assert_eq!(lines.len(), 60_000);
    assert_eq!(lines[59_999], "60000");
}

#[test]
fn a_filter_whose_values_are_no_items_is_told_what_to_say() {
    throws(
        json!({"jq": ".q"}),
        "The filter gave something that is no item: an item is a JSON object: \"x\" \
         (for values that are none its manifest says \"output\": \"text\" or \"json\")",
    );
}

//! The worst tools: whatever they do, their call ends in time with one result, and nothing is left behind.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{Done, LEAVES_ITS_GROUP, Test, message, peak_memory, text};

/// Longer than any of these calls takes on a busy machine; a call that hangs says so in its result.
const LIMIT: &str = "30s";

fn sh(script: &str) -> Value {
    json!({"command": ["sh", "-c", script]})
}

/// A program with one more field.
fn with(mut program: Value, field: &str, value: Value) -> Value {
    program[field] = value;
    program
}

fn items(script: &str) -> Value {
    with(sh(script), "output", json!("items"))
}

/// `pitool run` with one tool `t` and one call of it.
fn one_call(execute: &Value, arguments: Value) -> Test {
    Test::new(["run", "--timeout", LIMIT])
        .tool("t", execute)
        .calls(&[("c", "t", arguments)])
}

fn run(execute: &Value) -> Done {
    one_call(execute, json!({})).run()
}

/// The call is answered with this text, and people hear nothing.
#[track_caller]
fn gives(execute: &Value, expected: &str) {
    let done = run(execute).quiet().code(0);
    assert_eq!(done.texts(), [expected]);
}

/// The call is answered with this error.
#[track_caller]
fn fails(execute: &Value, expected: &str) {
    let done = run(execute).code(1);
    assert_eq!(done.texts(), [format!("error: {expected}")]);
}

fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// None of these processes runs, or soon does not any more.
#[track_caller]
fn end_soon(pids: &str) {
    assert!(!pids.is_empty());
    let begin = Instant::now();
    for pid in pids.split_whitespace() {
        while is_running(pid) {
            assert!(begin.elapsed() < Duration::from_secs(10), "{pid} is left");
            std::thread::yield_now();
        }
    }
}

/// 300 KB, more than any pipe takes at once.
fn large() -> Value {
    json!({"text": "x".repeat(300_000)})
}

#[test]
fn tool_that_never_reads_its_stdin() {
    let done = one_call(&sh("echo ok"), large()).run().quiet().code(0);
    assert_eq!(done.texts(), ["ok"]);
}

#[test]
fn tool_that_closes_its_stdin() {
    let done = one_call(&sh("exec <&-; echo ok"), large())
        .run()
        .quiet()
        .code(0);
    assert_eq!(done.texts(), ["ok"]);
}

#[test]
fn tool_that_writes_much_before_it_reads() {
    let script = "head -c 1000000 /dev/zero >&2; wc -c";
    let done = one_call(&sh(script), large()).run().code(0);
    assert_eq!(done.texts(), ["300012"]);
}

#[test]
fn tool_that_reads_to_the_end_while_our_stdin_stays_open() {
    let mut test = Test::new(["run"]).tool("t", &sh("cat"));
    let command = test.command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let call = message(&[("c", "t", json!({"a": 1}))]);
    writeln!(stdin, "{call}").unwrap();
    let mut answer = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut answer)
        .unwrap();
    assert_eq!(text(&serde_json::from_str(&answer).unwrap()), r#"{"a":1}"#);
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn tool_that_ignores_sigterm() {
    let script = "trap '' TERM; echo $$; while :; do sleep 1; done";
    let done = run(&with(sh(script), "timeoutMs", json!(2000))).code(1);
    let text = &done.texts()[0];
    let (pid, rest) = text["error: ".len()..].split_once('\n').unwrap();
    assert_eq!(rest, "\nCommand timed out after 2 seconds");
    assert!(!is_running(pid));
}

#[test]
fn background_child_that_keeps_stdout_open() {
    let begin = Instant::now();
    let done = run(&sh("sleep 300 & echo $!")).code(0);
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert!(!is_running(&done.texts()[0]));
    assert_eq!(
        done.stderr,
        "pitool: warning: t c: a process that it left running was stopped\n"
    );
}

#[test]
fn child_in_a_session_of_its_own() {
    let done = run(&sh(LEAVES_ITS_GROUP)).code(0);
    let pid = &done.texts()[0];
    assert!(!is_running(pid));
    // Whether the shell has become sleep already when it is found is a matter of time.
    let told = |name: &str| {
        format!("pitool: warning: t c: a process that left its group was stopped: {name} ({pid})\n")
    };
    assert!(
        [told("sleep"), told("sh")].contains(&done.stderr),
        "{done:?}"
    );
}

/// In a container the session and the group of whoever started it may lie outside its namespace; the system calls then
/// answer 0.
#[test]
fn leftovers_are_stopped_in_a_namespace_of_its_own() {
    let unshare = [
        "unshare",
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--mount-proc",
    ];
    let probe = std::process::Command::new(unshare[0])
        .args(&unshare[1..])
        .arg("true")
        .output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        return; // No right to make namespaces: nothing can be shown here.
    }
    let done = one_call(
        &sh(&format!(
            "(setsid true &); {LEAVES_ITS_GROUP} >&2; echo gone"
        )),
        json!({}),
    )
    .under(unshare)
    .run()
    .code(0);
    assert_eq!(done.texts(), ["gone"]);
    assert!(
        done.stderr
            .contains("a process that left its group was stopped"),
        "{}",
        done.stderr
    );
}

#[test]
fn child_that_forks_twice() {
    let done = run(&sh("(setsid sh -c 'sleep 300 & echo $!' & ) ; sleep 0.2")).code(0);
    end_soon(&done.texts()[0]);
    assert!(
        done.stderr
            .contains("a process that left its group was stopped: sleep")
    );
}

#[test]
fn every_exit_is_named() {
    for code in [1, 126, 127, 255] {
        fails(
            &sh(&format!("exit {code}")),
            &format!("Command exited with code {code}"),
        );
    }
    fails(&sh("kill -SEGV $$"), "Command was killed by SIGSEGV");
    fails(
        &sh("echo out; kill -KILL $$"),
        "out\n\nCommand was killed by SIGKILL",
    );
}

#[test]
fn programs_that_cannot_be_started() {
    let done = Test::new(["run"])
        .file("tools.d/plain", "")
        .file("tools.d/script", "#!/nonexistent/interpreter\n")
        .file("tools.d/folder/file", "")
        .tool("plain", &json!({"command": ["./plain"]}))
        .tool("script", &json!({"command": ["./script"]}))
        .tool("folder", &json!({"command": ["./folder"]}))
        .tool("none", &json!({"command": ["pitool-no-such-program"]}))
        .executable("tools.d/script")
        .calls(&[
            ("1", "plain", json!({})),
            ("2", "script", json!({})),
            ("3", "folder", json!({})),
            ("4", "none", json!({})),
        ])
        .run()
        .code(1);
    assert_eq!(
        done.texts(),
        [
            "error: Cannot start \"./plain\": Permission denied",
            "error: Cannot start \"./script\": its interpreter /nonexistent/interpreter does not exist",
            "error: Cannot start \"./folder\": it is a directory",
            "error: Cannot start \"pitool-no-such-program\": it is not on the PATH",
        ]
    );
}

#[test]
fn three_hundred_megabytes_stay_out_of_memory() {
    let mut test = one_call(&sh("sleep 0.2"), json!({}));
    let empty = peak_memory(&mut test.spawn());
    let print = |bytes| format!("head -c {bytes} /dev/zero | tr '\\0' 'x'");
    // Every byte of stderr is looked at before it reaches a terminal, which takes its time in a debug build.
    let script = format!("{}; {} >&2", print(300_000_000), print(100_000_000));
    let mut test =
        one_call(&with(sh(&script), "timeoutMs", json!(300_000)), json!({})).env("TMPDIR", ".");
    let mut child = test.spawn();
    let mut stderr = child.stderr.take().unwrap();
    let reader = std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
    let full = peak_memory(&mut child);
    assert!(reader.join().unwrap().unwrap() > 100_000_000);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(full < empty + 20_000, "{full} kB instead of {empty} kB");
}

/// 300 MB of short lines on stderr: they are told to people in bursts, and memory stays flat.
#[test]
fn three_hundred_megabytes_of_short_lines_on_stderr() {
    let mut test = one_call(&sh("sleep 0.2"), json!({}));
    let empty = peak_memory(&mut test.spawn());
    let script = "yes 'a line of a tool that says too much' | head -c 300000000 >&2";
    let mut test = one_call(&with(sh(script), "timeoutMs", json!(300_000)), json!({}));
    let mut child = test.spawn();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let reader = std::thread::spawn(move || stderr.lines().map_while(Result::ok).last());
    let full = peak_memory(&mut child);
    let last = reader.join().unwrap().unwrap();
    assert!(
        "t c: a line of a tool that says too much".starts_with(&last),
        "{last}"
    );
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(full < empty + 20_000, "{full} kB instead of {empty} kB");
}

#[test]
fn one_line_of_fifty_megabytes() {
    let script = "head -c 50000000 /dev/zero | tr '\\0' 'x'";
    let (done, folder) = one_call(&sh(script), json!({}))
        .env("TMPDIR", ".")
        .run_and_keep();
    let message = &done.code(0).lines()[0];
    let path = message["details"]["fullOutputPath"].as_str().unwrap();
    let note = format!(
        "\n\n[Output cut: the first 49948800 of 50000000 bytes are not shown. Full output: {path}]"
    );
    assert_eq!(text(message), "x".repeat(51_200) + &note);
    assert_eq!(
        std::fs::metadata(folder.path().join(path)).unwrap().len(),
        50_000_000
    );
    fails(&items(script), "Command printed a line of more than 32 MiB");
}

#[test]
fn full_output_that_cannot_be_kept_is_told() {
    let done = one_call(&sh("seq 3000"), json!({}))
        .env("TMPDIR", "/nonexistent")
        .run()
        .code(0);
    let text = &done.texts()[0];
    assert!(text.starts_with("1001\n1002\n"), "{text}");
    assert!(text.ends_with(
        "\n3000\n\n[Output cut: the first 3893 of 13893 bytes are not shown. \
         The full output could not be kept: No such file or directory]"
    ));
}

#[test]
fn the_path_of_the_full_output_holds_everywhere() {
    let test = one_call(&sh("seq 3000"), json!({})).file("here/kept", "");
    let (done, folder) = test.env("TMPDIR", "here").run_and_keep();
    let path = &done.lines()[0]["details"]["fullOutputPath"];
    let path = Path::new(path.as_str().unwrap());
    let real = folder.path().canonicalize().unwrap().join("here");
    assert_eq!(path.parent().unwrap(), real);
    assert!(path.exists());
}

#[test]
fn output_over_the_limit_of_files_loses_no_result() {
    let done = one_call(&sh("seq 3000"), json!({}))
        .under(["sh", "-c", "ulimit -f 1; exec \"$@\"", "sh"])
        .run()
        .code(0);
    let text = &done.texts()[0];
    assert!(text.starts_with("1001\n1002\n"), "{text}");
    assert!(
        text.ends_with("The full output could not be kept: File too large]"),
        "{text}"
    );
}

#[test]
fn bytes_of_all_kinds() {
    gives(&sh("printf 'no newline'"), "no newline");
    gives(
        &sh("printf '\\342\\202'; sleep 0.1; printf '\\254\\n'"),
        "€",
    );
    gives(&sh("printf 'a\\000b\\033[31m'"), "a\0b\u{1b}[31m");
    gives(&sh("printf '\\357\\273\\277bom'"), "\u{feff}bom");
    gives(&items("printf '\\357\\273\\277{\"details\":1}'"), "");
    let done = run(&sh("printf 'a\\377\\360b\\n'")).code(0);
    assert_eq!(done.texts(), ["a\u{fffd}\u{fffd}b"]);
    assert!(done.stderr.contains("its output is not UTF-8"));
}

#[test]
fn output_that_is_no_result() {
    let late =
        r#"echo '{"content":[{"type":"text","text":"one"}]}'; echo '{"content":[]}'; echo junk"#;
    gives(&items(late), "one");
    fails(
        &items("printf '{\"content\":['"),
        "Command printed something that is no item: \
         line 1 column 13: unexpected end of the text: {\"content\":[",
    );
    fails(
        &items("echo '[1]'"),
        "Command printed something that is no item: an item is a JSON object: [1]",
    );
    fails(
        &items("echo 7"),
        "Command printed something that is no item: an item is a JSON object: 7",
    );
    let brackets = |bracket: char| format!("head -c 2000 /dev/zero | tr '\\0' '{bracket}'");
    let deep = format!(
        "printf '{{\"details\":'; {}; {}; echo '}}'",
        brackets('['),
        brackets(']')
    );
    let done = run(&items(&deep)).code(1);
    assert!(done.texts()[0].contains("it is nested more than 512 levels deep"));
}

#[test]
fn flood_of_updates() {
    let script = r#"yes '{"type":"update","details":1}' | head -n 100000; echo '{"details":2}'"#;
    let done = Test::new(["run", "--timeout", LIMIT, "--output", "events"])
        .tool("t", &items(script))
        .calls(&[("c", "t", json!({}))])
        .run()
        .code(0);
    let updates = done.stdout.matches("\"tool_execution_update\"").count();
    assert_eq!(updates, 100_000);
}

#[test]
fn result_before_the_timeout() {
    let script = r#"echo '{"content":[{"type":"text","text":"early"}]}'; exec sleep 300"#;
    fails(
        &with(items(script), "timeoutMs", json!(2000)),
        "early\n\nCommand timed out after 2 seconds",
    );
}

/// A filter that needs more than there is ends its own call, not pitool: the one beside it is answered.
#[track_caller]
fn filter_fails_alone(filter: &str, field: &str, value: Value, expected: &str) {
    let program = with(json!({"jq": filter, "output": "json"}), field, value);
    let done = Test::new(["run"])
        .tool("t", &program)
        .tool("other", &json!({"jq": "1 + 1", "output": "json"}))
        .calls(&[("1", "t", json!({})), ("2", "other", json!({}))])
        .run()
        .quiet()
        .code(1);
    assert_eq!(
        done.texts(),
        [&format!("error: {expected}"), "2"],
        "{filter}"
    );
}

#[test]
fn filters_that_recurse_without_end() {
    let deep = "The filter recursed too deeply";
    filter_fails_alone("def f: 1 + f; f", "timeoutMs", json!(60_000), deep);
    filter_fails_alone("def f: [f]; f", "timeoutMs", json!(60_000), deep);
    let late = "The filter timed out after 0.2 seconds";
    filter_fails_alone("def f: f; f", "timeoutMs", json!(200), late);
}

#[test]
fn filter_that_nests_as_deep_as_its_input_is_long() {
    let program = with(
        json!({"jq": "reduce .n[] as $x (0; [.]) | 1", "output": "json"}),
        "timeoutMs",
        json!(60_000),
    );
    let done = Test::new(["run"])
        .tool("t", &program)
        .calls(&[
            ("1", "t", json!({"n": vec![1; 3_000_000]})),
            ("2", "t", json!({"n": [1, 2]})),
        ])
        .run()
        .quiet();
    assert_eq!(done.texts()[1], "1");
}

#[test]
fn filters_that_take_memory_without_end() {
    let memory = "The filter needs more than 1024 MiB of memory";
    for filter in [
        "[range(1000000000000)] | length",
        "[repeat(\"x\" * 1000000)] | length",
        "\"x\" * 10000000000 | length",
        "[range(100000000)] | combinations",
    ] {
        filter_fails_alone(filter, "timeoutMs", json!(60_000), memory);
    }
}

#[test]
fn hooks_and_preparations_that_take_memory_without_end() {
    let endless = json!({"jq": "[repeat(\"x\" * 1000000)]", "timeoutMs": 60_000});
    let done = Test::new(["run"])
        .manifest("t", &json!({"name": "t", "description": "", "execute": {"jq": "{content: []}"}, "prepareArguments": endless}))
        .tool("guarded", &json!({"jq": "{content: []}"}))
        .manifest("guard", &json!({"hook": "beforeToolCall", "tools": ["guarded"], "run": endless}))
        .calls(&[("1", "t", json!({})), ("2", "guarded", json!({}))])
        .run()
        .code(1);
    let memory = "error: The filter needs more than 1024 MiB of memory";
    assert_eq!(done.texts(), [memory, memory]);
}

#[test]
fn filters_with_loops_say_what_others_say() {
    let run = |filter: &str, output: &str| {
        let done = one_call(&json!({"jq": filter, "output": output}), json!({"n": 3}));
        done.args(["--output", "outcomes"]).run()
    };
    let items = "{type: \"update\", details: range(2)}, {content: [], details: ([range(.n)] + [18446744073709551615, 0.1, $call.toolCallId])}";
    let outcome = &run(items, "items").code(0).lines()[0];
    let details = json!([0, 1, 2, 18_446_744_073_709_551_615_u64, 0.1, "c"]);
    assert_eq!(
        outcome["result"],
        json!({"content": [], "details": details})
    );
    let done = run("range(2)", "json").code(1);
    assert_eq!(
        done.lines()[0]["result"]["content"][0]["text"],
        "The filter gave more than one value"
    );
    let done = run("range(0)", "json").code(1);
    assert_eq!(
        done.lines()[0]["result"]["content"][0]["text"],
        "The filter gave no result"
    );
    let done = run("error(\"why\") | range(2)", "json").code(1);
    assert_eq!(done.lines()[0]["result"]["content"][0]["text"], "why");
    let done = run("range(", "json").code(1);
    let text = done.lines()[0]["result"]["content"][0]["text"].to_string();
    assert!(text.starts_with("\"The filter is wrong: line 1"), "{text}");
}

#[test]
fn filter_nested_without_end_is_refused_or_told() {
    for filter in ["[".repeat(60_000), format!(".{}", "|.".repeat(30_000))] {
        let test = Test::new(["check"]).tool("t", &json!({"jq": filter})).run();
        assert!(
            matches!(test.code, Some(0 | 1)),
            "{:?} {}",
            test.code,
            test.stderr
        );
    }
    let done = run(&json!({"jq": ".".repeat(70_000)})).code(1);
    assert_eq!(
        done.texts(),
        ["error: The filter is wrong: it is longer than 64 KiB"]
    );
}

#[test]
fn thousand_children() {
    let script = "i=0; while [ $i -lt 1000 ]; do sleep 300 & i=$((i+1)); done; echo $!";
    let done = run(&sh(script)).code(0);
    end_soon(&done.texts()[0]);
}

#[test]
fn tool_that_changes_its_manifest_and_deletes_its_folder() {
    let script = "echo '{' > ../tools.d/t.json; rm -r ../work; echo done";
    let execute = with(sh(script), "cwd", json!("work"));
    let done = Test::new(["run"])
        .file("work/file", "")
        .tool("t", &execute)
        .calls(&[("1", "t", json!({})), ("2", "other", json!({}))])
        .run()
        .code(1);
    assert_eq!(done.texts(), ["done", "error: Tool other not found"]);
}

/// The process ids that a tool writes to a file, once they are there.
fn pids(folder: &Path) -> String {
    let begin = Instant::now();
    loop {
        let pids = std::fs::read_to_string(folder.join("pids")).unwrap_or_default();
        if pids.ends_with('\n') {
            return pids;
        }
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "it does not start"
        );
        std::thread::yield_now();
    }
}

#[test]
fn death_of_pitool_is_the_end_of_its_tools() {
    let script = "trap '' TERM HUP; sleep 300 & echo $$ $! >pids; echo ready; wait; wait";
    let mut test = one_call(&sh(script), json!({})).args(["--output", "events"]);
    let mut child = test.spawn();
    // The update proves that pitool is past the start of the tool. The pipe stays open: its end would stop the tool too.
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut lines = stdout.by_ref().lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("tool_execution_update")));
    let pids = pids(test.folder());
    let pitool = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pitool, Signal::KILL).unwrap();
    child.wait().unwrap();
    end_soon(&pids);
}

/// The folder of nested calls, the `TMPDIR` of a sandbox and the beginning of a long output go with a killed pitool.
#[test]
fn death_of_pitool_leaves_no_temporary_files() {
    let script = "head -c 400000 /dev/zero | tr '\\0' x; echo $$ >pids; exec sleep 300";
    let manifest =
        json!({"name": "t", "description": "", "callsTools": true, "execute": sh(script)});
    let mut test = Test::new(["run"])
        .file("temporary/kept.txt", "")
        .manifest("t", &manifest)
        .calls(&[("c", "t", json!({}))]);
    let temporary = test.folder().join("temporary");
    test.command().env("TMPDIR", &temporary);
    let mut child = test.spawn();
    let pids = pids(test.folder());
    let names = || -> Vec<String> {
        let entries = std::fs::read_dir(&temporary).unwrap().flatten();
        entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect()
    };
    let begin = Instant::now();
    let wait_for = |is_there: &dyn Fn(&[String]) -> bool| {
        while !is_there(&names()) {
            assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", names());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    // The folder of nested calls may be elsewhere, where the path of this one is too long for a socket.
    let is_output =
        |name: &String| name.starts_with("pitool-output-") && name.ends_with(".partial");
    wait_for(&|names| names.iter().any(is_output));
    let pitool = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pitool, Signal::KILL).unwrap();
    child.wait().unwrap();
    end_soon(&pids);
    wait_for(&|names| names == ["kept.txt"]);
    let of_pitool = format!("-{}-", pitool.as_raw_pid());
    let entries = std::fs::read_dir("/tmp").unwrap().flatten();
    let left: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("pitool-call-") && name.contains(&of_pitool))
        .collect();
    assert_eq!(left, [""; 0]);
}

/// Pitool may die between the start of a tool and the word to its watcher: the start was announced, and the watcher looks
/// for a process of that call which has a new parent, the same as its own. Here that is this test.
#[test]
fn tool_whose_group_was_never_named_ends_with_pitool() {
    let (id, name) = ("announced and never named", "t");
    let mut tool = Command::new("sleep")
        .arg("300")
        .env("PITOOL_TOOL_CALL_ID", id)
        .env("PITOOL_TOOL_NAME", name)
        .process_group(0)
        .spawn()
        .unwrap();
    let mut hasher = DefaultHasher::new();
    (id.as_bytes(), name.as_bytes()).hash(&mut hasher);
    // The register: one slot, in which a start is announced.
    let announcement = (1_u128 << 64) | u128::from(hasher.finish());
    let mut register = tempfile::tempfile().unwrap();
    register.write_all(&announcement.to_ne_bytes()).unwrap();
    let mut watcher = Command::new(env!("CARGO_BIN_EXE_pitool"))
        .arg("--watch-tools")
        .stdin(Stdio::piped())
        .stdout(register)
        .spawn()
        .unwrap();
    let pipe = watcher.stdin.take().unwrap();
    assert_eq!(tool.try_wait().unwrap(), None);
    drop(pipe);
    assert_eq!(tool.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
    assert!(watcher.wait().unwrap().success());
}

#[test]
fn tool_that_reads_the_terminal_is_not_stopped() {
    // What would stop a process in the background of a terminal is ignored: its read gets an error.
    let done = run(&sh("sed -n 's/^SigIgn:[[:space:]]*//p' /proc/self/status")).code(0);
    let ignored = u64::from_str_radix(&done.texts()[0], 16).unwrap();
    for signal in [Signal::TTIN, Signal::TTOU] {
        assert_ne!(ignored & (1 << (signal.as_raw() - 1)), 0, "{signal:?}");
    }
}

#[test]
fn values_become_neither_options_nor_commands() {
    let parameters = json!({"properties": {"q": {"type": "string"}}, "required": ["q"]});
    let manifest = |command: Value| json!({"name": "t", "description": "", "parameters": parameters, "execute": {"command": command}});
    let call = |command: Value, value: &str| {
        let (done, folder) = Test::new(["run"])
            .manifest("t", &manifest(command))
            .calls(&[(
                "c",
                "t",
                json!({"q": value, "x;touch PWNED;#": 1, "PATH": "/nonexistent"}),
            )])
            .run_and_keep();
        assert!(!Path::new(&folder.path().join("PWNED")).exists());
        done.texts().remove(0)
    };
    let echo = json!(["printf", "%s", "{q}"]);
    assert_eq!(
        call(echo.clone(), "a'; touch PWNED; '"),
        "a'; touch PWNED; '"
    );
    assert_eq!(call(echo.clone(), "$(touch PWNED)"), "$(touch PWNED)");
    assert_eq!(
        call(echo, "-v"),
        "error: The argument \"q\" must not start with \"-\" here: \"-v\" would be read as an option"
    );
    let script = json!(["sh", "-c", "printf %s \"$1\"", "_", "--", "{q}"]);
    assert!(call(script, "-c").starts_with("error: The argument \"q\" must not start"));
    assert_eq!(
        call(json!(["grep", "-c", "-e", "x", "--", "{q}"]), "-f")
            .split(':')
            .next(),
        Some("error")
    );
}

#[test]
fn no_secret_of_ours_reaches_a_tool() {
    let secret = |execute: &Value| {
        let test = one_call(execute, json!({}));
        test.env("PITOOL_TEST_SECRET", "s3cret")
            .env("LC_TEST", "yes")
            .run()
            .texts()
            .remove(0)
    };
    let script =
        "echo ${PITOOL_TEST_SECRET-unset} ${LC_TEST-unset} $PITOOL_TOOL_CALL_ID $PITOOL_TOOL_NAME";
    assert_eq!(secret(&sh(script)), "unset yes c t");
    assert_eq!(
        secret(&with(sh(script), "inheritEnv", json!(true))),
        "s3cret yes c t"
    );
    let asked = with(
        sh("echo $KEY"),
        "env",
        json!({"KEY": "${PITOOL_TEST_SECRET}"}),
    );
    assert_eq!(secret(&asked), "s3cret");
}

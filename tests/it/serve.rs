//! `tools.d` as an MCP server on stdin and stdout.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::Test;

/// A running `pitool serve` and its client.
struct Served {
    folder: TempDir,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// What the server said before what is being waited for.
    heard: Vec<Value>,
    last_id: u64,
}

/// Serves the manifests, given by name.
fn serve(arguments: &[&str], manifests: &[(&str, Value)]) -> Served {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("tools.d")).unwrap();
    for (name, manifest) in manifests {
        write(folder.path(), name, manifest);
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_pitool"))
        .arg("serve")
        .args(arguments)
        .current_dir(folder.path())
        .env_remove("PITOOL_TOOLS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(folder.path().join("stderr")).unwrap())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let mut served = Served {
        folder,
        child,
        stdin,
        stdout,
        heard: Vec::new(),
        last_id: 0,
    };
    let answer = served.ask(
        "initialize",
        &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}),
    );
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(answer["result"]["serverInfo"]["name"], "pitool");
    served.say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    served
}

fn write(folder: &Path, name: &str, manifest: &Value) {
    std::fs::write(
        folder.join(format!("tools.d/{name}.json")),
        manifest.to_string(),
    )
    .unwrap();
}

fn sh(name: &str, script: &str) -> (String, Value) {
    let manifest =
        json!({"name": name, "description": "", "execute": {"command": ["sh", "-c", script]}});
    (name.to_owned(), manifest)
}

fn serve_sh(tools: &[(&str, &str)]) -> Served {
    let tools: Vec<(String, Value)> = tools
        .iter()
        .map(|(name, script)| sh(name, script))
        .collect();
    let tools: Vec<(&str, Value)> = tools
        .iter()
        .map(|(name, tool)| (name.as_str(), tool.clone()))
        .collect();
    serve(&[], &tools)
}

impl Served {
    fn say(&mut self, message: impl std::fmt::Display) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("no JSON: {line:?}, {}", self.stderr()))
    }

    /// Sends a request; its id.
    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.say(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Waits for the answer to a request; what comes before it is kept.
    fn answer(&mut self, id: u64) -> Value {
        if let Some(at) = self.heard.iter().position(|message| message["id"] == id) {
            return self.heard.remove(at);
        }
        loop {
            let message = self.hear();
            if message["id"] == id {
                return message;
            }
            self.heard.push(message);
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    fn call(&mut self, name: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": name, "arguments": arguments}))
    }

    fn stderr(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("stderr")).unwrap()
    }

    /// Ends stdin; the exit code.
    fn end(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.child.wait().unwrap().code()
    }

    fn wait_for_file(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        loop {
            match std::fs::read_to_string(&path) {
                Ok(text) if !text.is_empty() => return text,
                _ => std::thread::yield_now(),
            }
        }
    }

    fn names(&mut self) -> Vec<String> {
        let answer = self.ask("tools/list", &json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

#[test]
fn tools_are_declared_with_their_schemas() {
    let tool = json!({"name": "echo", "label": "Echo", "description": "Echo one value",
        "parameters": {"properties": {"value": {"type": "string"}}}, "replay": "safe",
        "outputSchema": {"type": "object", "properties": {"value": {"type": "string"}}},
        "execute": {"jq": ".", "output": "json"}});
    let mut served = serve(&[], &[("echo", tool)]);
    let answer = served.ask("tools/list", &json!({}));
    assert_eq!(
        answer["result"],
        json!({"tools": [{"name": "echo", "title": "Echo", "description": "Echo one value",
            "inputSchema": {"properties": {"value": {"type": "string"}}, "type": "object"},
            "outputSchema": {"type": "object", "properties": {"value": {"type": "string"}}},
            "annotations": {"idempotentHint": true}}]})
    );
    assert_eq!(served.end(), Some(0));
}

#[test]
fn a_call_is_coerced_run_and_answered() {
    let tool = json!({"name": "double", "description": "", "execute": {"jq": "{n: (.n * 2)}", "output": "json"},
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}});
    let mut served = serve(&[], &[("double", tool)]);
    assert_eq!(
        served.call("double", &json!({"n": "21"}))["result"],
        json!({"content": [{"type": "text", "text": "{\"n\":42}"}], "structuredContent": {"n": 42}, "isError": false})
    );
    let wrong = served.call("double", &json!({"n": "x"}));
    assert_eq!(wrong["result"]["isError"], true);
    let text = wrong["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("Validation failed for tool \"double\":\n  - n: expected integer"),
        "{text}"
    );
    let no_object = served.call("double", &json!([1]));
    let text = no_object["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("root: expected object, got array"), "{text}");
    assert_eq!(served.end(), Some(0));
}

#[test]
fn errors_of_the_protocol_are_errors_of_json_rpc() {
    let mut served = serve_sh(&[("a", "echo a")]);
    let unknown = served.call("b", &json!({}));
    assert_eq!(
        unknown["error"],
        json!({"code": -32602, "message": "Unknown tool: b"})
    );
    assert_eq!(served.ask("no/such", &json!({}))["error"]["code"], -32601);
    served.say("{\"jsonrpc\":");
    let broken = served.hear();
    assert_eq!(
        (&broken["id"], &broken["error"]["code"]),
        (&Value::Null, &json!(-32700))
    );
    served.say("{\"id\": 7}");
    let strange = served.hear();
    assert_eq!(
        (&strange["id"], &strange["error"]["code"]),
        (&json!(7), &json!(-32600))
    );
    let deep = format!("{}1{}", "[".repeat(600), "]".repeat(600));
    served.say(format!(r#"{{"jsonrpc":"2.0","id":"deep","method":"tools/call","params":{{"name":"a","arguments":{{"x":{deep}}}}}}}"#));
    let deep = served.hear();
    assert_eq!(
        (&deep["id"], &deep["error"]["code"]),
        (&json!("deep"), &json!(-32602))
    );
    // A lone surrogate breaks nothing.
    served.say(r#"{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"a","arguments":{"x":"\ud800"}}}"#);
    assert_eq!(served.hear()["result"]["content"][0]["text"], "a");
    assert_eq!(served.end(), Some(0));
}

#[test]
fn arguments_that_are_no_object_are_judged_as_in_a_message() {
    let parameters = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let tool = json!({"name": "a", "description": "", "parameters": parameters, "execute": {"command": ["cat"]}});
    let mut served = serve(&[], &[("a", tool)]);
    let mut case = |arguments: Value, text: &str, is_error: bool| {
        assert_eq!(
            served.call("a", &arguments)["result"],
            json!({"content": [{"type": "text", "text": text}], "isError": is_error})
        );
    };
    case(json!(r#"{"n": "5"}"#), r#"{"n":5}"#, false);
    case(json!(" "), "{}", false);
    case(
        json!("[1]"),
        "Invalid arguments for tool \"a\": Tool arguments must be a JSON object\n\nReceived arguments:\n[1]",
        true,
    );
    case(
        json!([1]),
        "Validation failed for tool \"a\":\n  - root: expected object, got array\n\nReceived arguments:\n[\n  1\n]",
        true,
    );
}

#[test]
fn a_tool_that_fails_is_a_result() {
    let mut served = serve_sh(&[("fail", "echo half; echo why >&2; exit 3")]);
    assert_eq!(
        served.call("fail", &json!({}))["result"],
        json!({"content": [{"type": "text", "text": "half\nwhy\n\nCommand exited with code 3"}], "isError": true})
    );
    assert_eq!(served.end(), Some(0));
}

#[test]
fn updates_are_progress_and_logs_where_they_are_wanted() {
    let script = r#"item() { printf '%s\n' "$1"; }
        for n in 1 2; do item '{"type":"update","content":[{"type":"text","text":"at\nstep '$n'"}]}'; done
        item '{"type":"update","details":{"progress":7,"total":9}}'; item '{"content":[]}'"#;
    let tool = json!({"name": "work", "description": "", "execute": {"command": ["sh", "-c", script], "output": "items"}});
    let mut served = serve(&[], &[("work", tool)]);
    let call =
        |token: &Value| json!({"name": "work", "arguments": {}, "_meta": {"progressToken": token}});
    served.ask("tools/call", &call(&json!("t")));
    let progress: Vec<Value> = served
        .heard
        .drain(..)
        .map(|message| message["params"].clone())
        .collect();
    assert_eq!(
        progress,
        [
            json!({"progressToken": "t", "progress": 1, "message": "step 1"}),
            json!({"progressToken": "t", "progress": 2, "message": "step 2"}),
            json!({"progressToken": "t", "progress": 7, "total": 9}),
        ]
        .map(|mut params| {
            // The SDK writes numbers of progress with a fraction.
            for name in ["progress", "total"] {
                if let Some(number) = params.get(name).and_then(Value::as_f64) {
                    params[name] = json!(number);
                }
            }
            params
        })
    );
    served.ask("tools/call", &json!({"name": "work"}));
    assert_eq!(served.heard, [json!(null); 0]);
    served.ask("logging/setLevel", &json!({"level": "info"}));
    served.ask("tools/call", &json!({"name": "work"}));
    assert_eq!(
        served.heard[0]["params"],
        json!({"level": "info", "logger": "work", "data": "step 1"})
    );
    assert_eq!(served.end(), Some(0));
}

#[test]
fn calls_run_at_the_same_time_and_keep_their_ids() {
    // Each waits for the file of the other.
    let mut served = serve_sh(&[
        ("a", "touch a; until [ -e b ]; do :; done; echo from a"),
        ("b", "touch b; until [ -e a ]; do :; done; echo from b"),
    ]);
    let a = served.send("tools/call", &json!({"name": "a"}));
    let b = served.send("tools/call", &json!({"name": "b"}));
    assert_eq!(served.answer(b)["result"]["content"][0]["text"], "from b");
    assert_eq!(served.answer(a)["result"]["content"][0]["text"], "from a");
    assert_eq!(served.end(), Some(0));
}

#[test]
fn calls_that_change_one_file_follow_each_other() {
    let tool = json!({"name": "append", "description": "", "mutates": ["path"],
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "n": {"type": "integer"}}},
        "execute": {"command": ["sh", "-c",
            "[ -e busy ] && echo overlap >> log; touch busy; sleep 0.05; echo \"$2\" >> \"$1\"; rm busy",
            "_", "{path}", "{n}"]}});
    let mut served = serve(&[], &[("append", tool)]);
    let calls: Vec<u64> = (0..5)
        .map(|n| {
            served.send(
                "tools/call",
                &json!({"name": "append", "arguments": {"path": "log", "n": n}}),
            )
        })
        .collect();
    for call in calls {
        assert_eq!(served.answer(call)["result"]["isError"], false);
    }
    assert_eq!(served.wait_for_file("log"), "0\n1\n2\n3\n4\n");
    assert_eq!(served.end(), Some(0));
}

#[test]
fn a_sequential_tool_runs_alone() {
    let alone = json!({"name": "alone", "description": "", "executionMode": "sequential",
        "execute": {"command": ["sh", "-c", "echo alone >> log"]}});
    let (_, first) = sh(
        "first",
        "touch started; until [ -e go ]; do :; done; echo first >> log",
    );
    let (_, later) = sh("later", "echo later >> log");
    let mut served = serve(&[], &[("alone", alone), ("first", first), ("later", later)]);
    let first = served.send("tools/call", &json!({"name": "first"}));
    let alone = served.send("tools/call", &json!({"name": "alone"}));
    let later = served.send("tools/call", &json!({"name": "later"}));
    while !served.folder.path().join("started").exists() {
        std::thread::yield_now();
    }
    // The list is answered, so the calls before it have arrived.
    served.ask("tools/list", &json!({}));
    std::fs::write(served.folder.path().join("go"), "").unwrap();
    for id in [first, alone, later] {
        served.answer(id);
    }
    assert_eq!(served.wait_for_file("log"), "first\nalone\nlater\n");
    assert_eq!(served.end(), Some(0));
}

#[test]
fn cancelling_a_call_stops_its_processes() {
    let mut served = serve_sh(&[
        ("slow", "echo $$ > pid; sleep 60 & wait"),
        ("quick", "echo quick"),
    ]);
    let id = served.send("tools/call", &json!({"name": "slow"}));
    let pid = served.wait_for_file("pid");
    served.say(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
    );
    while Path::new(&format!("/proc/{}", pid.trim())).exists() {
        std::thread::yield_now();
    }
    assert_eq!(
        served.call("quick", &json!({}))["result"]["content"][0]["text"],
        "quick"
    );
    // A cancelled call is not answered.
    assert_eq!(served.heard, [json!(null); 0]);
    assert_eq!(served.end(), Some(0));
}

#[test]
fn changed_tools_are_announced_and_a_broken_set_is_not_taken() {
    let mut served = serve_sh(&[("a", "echo a")]);
    assert_eq!(served.names(), ["a"]);
    write(served.folder.path(), "b", &sh("b", "echo b").1);
    assert_eq!(served.hear()["method"], "notifications/tools/list_changed");
    assert_eq!(served.names(), ["a", "b"]);
    let guard = json!({"hook": "beforeToolCall", "run": {"jq": "{block: true"}, "tols": []});
    write(served.folder.path(), "guard", &guard);
    while !served.stderr().contains("the tools stay as they were") {
        std::thread::yield_now();
    }
    assert!(
        served.stderr().contains("guard.json"),
        "{}",
        served.stderr()
    );
    assert_eq!(served.names(), ["a", "b"]);
    assert_eq!(
        served.call("b", &json!({}))["result"]["content"][0]["text"],
        "b"
    );
    std::fs::remove_file(served.folder.path().join("tools.d/guard.json")).unwrap();
    std::fs::remove_file(served.folder.path().join("tools.d/a.json")).unwrap();
    assert_eq!(served.hear()["method"], "notifications/tools/list_changed");
    assert_eq!(served.names(), ["b"]);
    assert_eq!(served.end(), Some(0));
}

#[test]
fn tools_of_servers_are_served_too() {
    let pitool = env!("CARGO_BIN_EXE_pitool");
    let strict = json!({"name": "strict", "description": "", "label": "Strict", "execute": {"jq": "{n: .n}", "output": "json"},
        "coerce": "off", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}});
    let inner = tempfile::tempdir().unwrap();
    std::fs::write(inner.path().join("strict.json"), strict.to_string()).unwrap();
    let servers = json!({"mcpServers": {
        "inner": {"command": pitool, "args": ["serve", "--tools", inner.path()]}, "broken": {"command": "no-such-program"}}});
    let mut served = serve(&[], &[("servers", servers)]);
    assert_eq!(served.names(), ["mcp__inner__strict"]);
    assert!(
        served
            .stderr()
            .contains("MCP server \"broken\" did not start"),
        "{}",
        served.stderr()
    );
    // Coerced here, where the server itself would refuse it.
    let answer = served.call("mcp__inner__strict", &json!({"n": "5"}));
    assert_eq!(answer["result"]["structuredContent"], json!({"n": 5}));
    assert_eq!(served.end(), Some(0));
}

#[test]
fn the_end_of_stdin_ends_it_after_the_answers() {
    let requests = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
            "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "late"}}),
    ];
    let requests: Vec<String> = requests.iter().map(ToString::to_string).collect();
    let done = Test::new(["serve"])
        .sh("late", "sleep 0.2; echo late")
        .stdin(requests.join("\n"))
        .run()
        .code(0)
        .quiet();
    assert_eq!(done.lines()[1]["result"]["content"][0]["text"], "late");
    Test::new(["serve"]).run().code(0).quiet();
}

#[test]
fn a_client_that_does_not_read_any_more_ends_it_with_all_its_processes() {
    let mut served = serve_sh(&[("slow", "echo $$ > pid; sleep 60 & wait")]);
    served.send("tools/call", &json!({"name": "slow"}));
    let pid = served.wait_for_file("pid");
    drop(served.stdout);
    assert_eq!(served.child.wait().unwrap().code(), Some(141));
    assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists());
}

#[test]
fn a_signal_ends_it_with_all_its_processes() {
    let mut served = serve_sh(&[("slow", "echo $$ > pid; sleep 60 & wait")]);
    served.send("tools/call", &json!({"name": "slow"}));
    let pid = served.wait_for_file("pid");
    let server = rustix::process::Pid::from_raw(i32::try_from(served.child.id()).unwrap()).unwrap();
    rustix::process::kill_process(server, rustix::process::Signal::TERM).unwrap();
    assert_eq!(served.child.wait().unwrap().code(), Some(143));
    assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists());
}

#[test]
fn a_broken_set_is_not_served_at_all() {
    let done = Test::new(["serve"])
        .file("tools.d/a.json", "{")
        .run()
        .code(2);
    assert!(done.stderr.contains("tools.d/a.json:1:"), "{}", done.stderr);
    assert_eq!(done.stdout, "");
}

#[test]
fn calls_are_recorded_and_open_ones_told_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let arguments = ["--journal", journal.to_str().unwrap()];
    let tools = [
        sh("quick", "echo done"),
        sh("slow", "echo yes > ready; sleep 30"),
    ];
    let tools: Vec<(&str, Value)> = tools
        .iter()
        .map(|(name, tool)| (name.as_str(), tool.clone()))
        .collect();
    let mut first = serve(&arguments, &tools);
    first.call("quick", &json!({}));
    first.send("tools/call", &json!({"name": "slow", "arguments": {}}));
    first.wait_for_file("ready");
    first.child.kill().unwrap();
    first.child.wait().unwrap();

    let mut second = serve(&arguments, &tools);
    let answer = second.call("quick", &json!({}));
    assert_eq!(answer["result"]["content"][0]["text"], "done");
    let told = second.stderr();
    assert!(
        told.contains("of tool \"slow\" was started before an interruption"),
        "{told}"
    );
    assert!(!told.contains("\"quick\""), "{told}");
    let recorded = std::fs::read_to_string(&journal).unwrap();
    assert_eq!(recorded.matches("\"type\":\"outcome\"").count(), 2);
}

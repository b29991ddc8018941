//! `tools.d` as an MCP server over streamable HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::Test;

/// A running `pitool serve --http`.
struct Served {
    folder: TempDir,
    child: Child,
    address: String,
}

/// An answer as it came.
struct Answer {
    status: u16,
    head: String,
    body: BufReader<TcpStream>,
}

/// A client with a session.
struct Client<'a> {
    server: &'a Served,
    session: String,
}

fn serve(arguments: &[&str], tools: &[(&str, &str)]) -> Served {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("tools.d")).unwrap();
    for (name, script) in tools {
        write_sh(folder.path(), name, script);
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_pitool"))
        .args(["serve", "--http", "0"])
        .args(arguments)
        .current_dir(folder.path())
        .env_remove("PITOOL_TOOLS")
        .env("PITOOL_TEST_TOKEN", "s3cret")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut told).unwrap();
    // It must not block for want of a reader.
    std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
    let address = told
        .trim_end()
        .strip_prefix("pitool: serving MCP on http://")
        .and_then(|rest| rest.strip_suffix("/mcp"))
        .unwrap_or_else(|| panic!("{told:?}"));
    Served {
        address: address.to_owned(),
        folder,
        child,
    }
}

fn write_sh(folder: &Path, name: &str, script: &str) {
    let manifest =
        json!({"name": name, "description": "", "execute": {"command": ["sh", "-c", script]}});
    let file = folder.join(format!("tools.d/{name}.json"));
    std::fs::write(file, manifest.to_string()).unwrap();
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}})
}

impl Served {
    /// Sends a request; `headers` are whole lines that end with a line break.
    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let host = if headers.contains("Host:") {
            String::new()
        } else {
            format!("Host: {}\r\n", self.address)
        };
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\n{host}Accept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut body = BufReader::new(stream);
        let mut head = String::new();
        loop {
            let mut line = String::new();
            body.read_line(&mut line).unwrap();
            if line.trim_end().is_empty() {
                break;
            }
            head.push_str(&line);
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, body }
    }

    fn post(&self, headers: &str, body: &Value) -> Answer {
        self.send("POST", "/mcp", headers, &body.to_string())
    }

    fn client(&self) -> Client<'_> {
        let answer = self.post("", &initialize());
        assert_eq!(answer.status, 200, "{}", answer.head);
        let session = answer.header("mcp-session-id").unwrap();
        let client = Client {
            server: self,
            session,
        };
        let done = client.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(done.status, 202);
        client
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    fn wait_for_file(&self, name: &str) -> String {
        loop {
            let text = std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
            if text.ends_with('\n') {
                return text;
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client<'_> {
    fn headers(&self) -> String {
        format!(
            "Mcp-Session-Id: {}\r\nMCP-Protocol-Version: 2025-06-18\r\n",
            self.session
        )
    }

    fn post(&self, message: &Value) -> Answer {
        self.server.post(&self.headers(), message)
    }

    fn call(&self, id: u64, name: &str) -> Answer {
        self.post(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": name, "arguments": {}, "_meta": {"progressToken": id}}}))
    }
}

impl Answer {
    fn header(&self, name: &str) -> Option<String> {
        let found = self.head.lines().filter_map(|line| line.split_once(':'));
        let mut found = found.filter(|(own, _)| own.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim().to_owned())
    }

    /// The next message of an event stream; `None` at its end.
    fn event(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.body.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // Chunk sizes, ids and empty events are of no interest here.
            if let Some(data) = line.strip_prefix("data:")
                && let Ok(message) = serde_json::from_str(data.trim())
            {
                return Some(message);
            }
        }
    }

    /// The answer of a call, behind whatever comes before it.
    fn answer(&mut self) -> Value {
        loop {
            let message = self.event().expect("an answer");
            if message.get("id").is_some() {
                return message;
            }
        }
    }

    fn text(mut self) -> String {
        let mut text = String::new();
        self.body.read_to_string(&mut text).unwrap();
        text
    }
}

#[test]
fn many_clients_are_served_at_once() {
    // Each waits for the other.
    let served = serve(
        &[],
        &[
            ("a", "touch a; until [ -e b ]; do :; done; echo a"),
            ("b", "touch b; until [ -e a ]; do :; done; echo b"),
        ],
    );
    let (one, two) = (served.client(), served.client());
    assert_ne!(one.session, two.session);
    // Both count their requests alike.
    let (mut a, mut b) = (one.call(1, "a"), two.call(1, "b"));
    assert_eq!(a.answer()["result"]["content"][0]["text"], "a");
    assert_eq!(b.answer()["result"]["content"][0]["text"], "b");
}

#[test]
fn progress_comes_before_the_answer() {
    // The second line waits until the first was heard.
    let script = "echo one; until [ -e heard ]; do sleep 0.01; done; echo two";
    let served = serve(&[], &[("steps", script)]);
    let mut answer = served.client().call(7, "steps");
    let progress = answer.event().unwrap();
    std::fs::write(served.folder.path().join("heard"), "").unwrap();
    assert_eq!(progress["method"], "notifications/progress");
    assert_eq!(progress["params"]["progressToken"], 7);
    assert_eq!(answer.answer()["id"], 7);
    assert_eq!(answer.event(), None);
}

#[test]
fn changed_tools_are_announced_to_all_sessions() {
    let served = serve(&[], &[("a", "echo a")]);
    let (one, two) = (served.client(), served.client());
    let listening = [&one, &two].map(|client| served.send("GET", "/mcp", &client.headers(), ""));
    write_sh(served.folder.path(), "b", "echo b");
    for mut stream in listening {
        let message = stream.event().unwrap();
        assert_eq!(message["method"], "notifications/tools/list_changed");
    }
}

#[test]
fn only_this_machine_may_ask_and_no_strange_page() {
    let served = serve(&[], &[]);
    let status = |headers: &str| served.post(headers, &initialize()).status;
    assert_eq!(status(""), 200);
    assert_eq!(status("Host: localhost\r\n"), 200);
    assert_eq!(status("Host: evil.example\r\n"), 403);
    assert_eq!(status("Origin: http://evil.example\r\n"), 403);
    assert_eq!(status("Origin: null\r\n"), 403);
    assert_eq!(status("Origin: http://localhost:6274\r\n"), 200);
}

#[test]
fn with_a_token_only_who_knows_it_comes_in() {
    let served = serve(&["--token-env", "PITOOL_TEST_TOKEN"], &[]);
    let answer = served.post("", &initialize());
    assert_eq!(
        (answer.status, answer.header("www-authenticate").as_deref()),
        (401, Some("Bearer realm=\"pitool\""))
    );
    let answer = served.post("Authorization: Bearer wrong\r\n", &initialize());
    assert_eq!(answer.status, 401);
    let answer = served.post("Authorization: Bearer s3cret\r\n", &initialize());
    assert_eq!(answer.status, 200);
    // Also for what is no call, and whatever the path.
    assert_eq!(served.send("GET", "/mcp", "", "").status, 401);
    assert_eq!(served.send("DELETE", "/mcp", "", "").status, 401);
}

#[test]
fn beyond_loopback_nobody_listens_without_a_token() {
    let refused = |arguments: &[&str]| Test::new(arguments).run().code(2).stderr;
    let told = refused(&["serve", "--http", "0.0.0.0:0"]);
    assert!(
        told.starts_with("pitool: 0.0.0.0:0 is not on loopback") && told.contains("--token-env"),
        "{told}"
    );
    let told = refused(&["serve", "--http", "0", "--token-env", "PITOOL_TEST_UNSET"]);
    assert!(
        told.starts_with("pitool: environment variable PITOOL_TEST_UNSET holds no token"),
        "{told}"
    );
    let told = refused(&["serve", "--http", "no port"]);
    assert!(
        told.starts_with("pitool: cannot listen on no port: "),
        "{told}"
    );
    let told = refused(&["serve", "--token-env", "X"]);
    assert!(told.contains("--http"), "{told}");
}

#[test]
fn what_is_no_message_gets_an_error_of_the_protocol() {
    let served = serve(&[], &[]);
    let case = |body: &str, status: u16, code: i64, id: &Value| {
        let answer = served.send("POST", "/mcp", "", body);
        assert_eq!(answer.status, status, "{}", answer.head);
        let error: Value = serde_json::from_str(&answer.text()).unwrap();
        assert_eq!((&error["error"]["code"], &error["id"]), (&json!(code), id));
    };
    case("{", 400, -32700, &Value::Null);
    case("[]", 400, -32600, &Value::Null);
    case(
        r#"{"jsonrpc":"1.0","id":5,"method":"ping"}"#,
        400,
        -32600,
        &json!(5),
    );
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{{"name":"x","arguments":{{"a":{deep}}}}}}}"#
    );
    case(&deep, 400, -32602, &json!(6));
    case(&" ".repeat((32 << 20) + 1), 413, -32600, &Value::Null);
    assert_eq!(served.send("POST", "/", "", "{}").status, 404);
    let lost = "Mcp-Session-Id: none\r\n";
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(served.post(lost, &ping).status, 404);
}

#[test]
fn a_signal_answers_the_calls_that_run_and_leaves_no_process() {
    let mut served = serve(
        &["--journal", "journal"],
        &[("slow", "echo $$ > pid; echo begun; sleep 60 & wait")],
    );
    let client = served.client();
    let mut listening = served.send("GET", "/mcp", &client.headers(), "");
    let mut answer = client.call(1, "slow");
    let pid = served.wait_for_file("pid");
    served.signal(rustix::process::Signal::TERM);
    let answered = answer.answer();
    let text = answered["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.ends_with("Operation aborted"), "{text}");
    assert_eq!(answered["result"]["isError"], true);
    assert_eq!(listening.event(), None);
    assert_eq!(served.child.wait().unwrap().code(), Some(143));
    assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists());
    let journal = std::fs::read_to_string(served.folder.path().join("journal")).unwrap();
    assert!(journal.contains("\"1.1\""), "{journal}");
}

#[test]
fn a_cancelled_call_ends_its_processes() {
    let served = serve(&[], &[("slow", "echo $$ > pid; sleep 60 & wait")]);
    let client = served.client();
    let call = client.call(1, "slow");
    let pid = served.wait_for_file("pid");
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(client.post(&cancel).status, 202);
    while Path::new(&format!("/proc/{}", pid.trim())).exists() {
        std::thread::yield_now();
    }
    drop(call);
}

#[test]
fn a_session_that_is_ended_ends_its_calls() {
    let served = serve(&[], &[("slow", "echo $$ > pid; sleep 60 & wait")]);
    let client = served.client();
    let _call = client.call(1, "slow");
    let pid = served.wait_for_file("pid");
    let ended = served.send("DELETE", "/mcp", &client.headers(), "");
    assert!((200..300).contains(&ended.status), "{}", ended.head);
    while Path::new(&format!("/proc/{}", pid.trim())).exists() {
        std::thread::yield_now();
    }
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    assert_eq!(client.post(&ping).status, 404);
}

#[test]
fn calls_that_change_one_file_queue_up_across_sessions() {
    let served = serve(&[], &[]);
    // Fails if another one is between its two lines.
    let script = "mkdir lock && sleep 0.1 && rmdir lock && echo done";
    let manifest = json!({"name": "change", "description": "", "mutates": ["path"],
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        "execute": {"command": ["sh", "-c", script]}});
    let client = served.client();
    let mut listening = served.send("GET", "/mcp", &client.headers(), "");
    let file = served.folder.path().join("tools.d/change.json");
    std::fs::write(file, manifest.to_string()).unwrap();
    listening.event().unwrap();
    let clients: Vec<Client<'_>> = (0..3).map(|_| served.client()).collect();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "change", "arguments": {"path": "f"}}});
    let answers: Vec<Answer> = clients.iter().map(|client| client.post(&call)).collect();
    for mut answer in answers {
        assert_eq!(answer.answer()["result"]["content"][0]["text"], "done");
    }
}

#[test]
fn pitool_calls_pitool_over_http() {
    let served = serve(
        &["--token-env", "PITOOL_TEST_TOKEN"],
        &[("hello", "echo progress; sleep 0.2; echo hello")],
    );
    let url = format!("http://{}/mcp", served.address);
    let entry = json!({"url": url, "headers": {"Authorization": "Bearer ${TOKEN}"}});
    let calls: Vec<String> = (0..20).map(|n| format!("c{n}")).collect();
    let calls: Vec<_> = calls
        .iter()
        .map(|id| (id.as_str(), "mcp__far__hello", json!({})))
        .collect();
    let done = Test::new(["run"])
        .env("TOKEN", "s3cret")
        .manifest("far", &json!({"mcpServers": {"far": entry}}))
        .calls(&calls)
        .run()
        .code(0);
    assert_eq!(done.texts(), vec!["progress\nhello"; 20]);
    let done = Test::new(["run"])
        .env("TOKEN", "wrong")
        .manifest("far", &json!({"mcpServers": {"far": entry}}))
        .calls(&calls[..1])
        .run()
        .code(1);
    assert!(
        done.texts()[0]
            .contains("answered HTTP 401 Unauthorized (it wants: Bearer realm=\"pitool\""),
        "{done:?}"
    );
}

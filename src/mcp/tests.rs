//! Clients of small servers written in sh.

use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::event::Notice;
use crate::message::{Content, ToolResult};
use crate::program::{Invocation, Throw};
use crate::still_time::StillTime;
use crate::stop::{Stop, StopLevel, Stopper};

use super::client::Client;
use super::manifest::ServersManifest;
use super::notices::Notices;

/// A server with the tools `one`, `two` and whatever `list` adds; `call` is the sh that answers a call with `$id`.
fn script(call: &str) -> String {
    format!(
        r#"
tools='{{"tools":[{{"name":"one","inputSchema":{{"type":"object"}}}},{{"name":"two","title":"Two"}}]}}'
answer() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$1"; }}
text() {{ answer '{{"content":[{{"type":"text","text":"'"$1"'"}}]}}'; }}
progress() {{ token=${{line#*progressToken\":}}; token=${{token%%[,\}}]*}}
  printf '{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":%s,%s}}}}\n' "$token" "$1"; }}
while read -r line; do
  id=${{line#*\"id\":}}; id=${{id%%[,\}}]*}}
  case $line in
    *'"method":"initialize"'*) answer '{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"fake","version":"1"}}}}' ;;
    *'"method":"tools/list"'*) answer "$tools" ;;
    *'"method":"tools/call"'*) {call} ;;
  esac
done
"#
    )
}

struct Fake {
    _script: Option<NamedTempFile>,
    client: Arc<Client>,
    notices: Arc<Mutex<Vec<Notice>>>,
}

fn fake_with(entry: &Value) -> Fake {
    let text = json!({"mcpServers": {"fake": entry}}).to_string();
    let manifest: ServersManifest = serde_json::from_str(&text).unwrap();
    let mut servers = manifest
        .into_servers(Path::new("s.json"), Path::new("/"))
        .unwrap();
    let notices = Notices::default();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hear = Arc::clone(&heard);
    notices.hear(Arc::new(move |notice| hear.lock().unwrap().push(notice)));
    Fake {
        _script: None,
        client: Client::new(servers.remove(0), notices),
        notices: heard,
    }
}

/// A server whose script is in a file, as `${…}` of sh is none of ours.
fn fake_script(script: &str, mut entry: Value) -> Fake {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(script.as_bytes()).unwrap();
    entry["command"] = json!("sh");
    entry["args"] = json!([file.path()]);
    Fake {
        _script: Some(file),
        ..fake_with(&entry)
    }
}

fn fake(call: &str) -> Fake {
    fake_script(&script(call), json!({}))
}

impl Fake {
    async fn call_hearing(
        &self,
        stop: &Stop,
        arguments: Value,
        update: &(dyn Fn(Value) + Send + Sync),
    ) -> Result<ToolResult, Throw> {
        let invocation = Invocation {
            tool_call_id: "c",
            tool_name: "mcp__fake__one",
            timeout: None,
            socket: None,
            sandbox: None,
            stop,
            probe: None,
            notice: &|_| {},
        };
        self.client
            .call("one", &arguments, &invocation, update)
            .await
    }

    /// Calls, and does something after each update, which are counted from 1.
    async fn call_and(
        &self,
        arguments: Value,
        hear: impl AsyncFn(usize),
    ) -> Result<ToolResult, Throw> {
        let (sender, mut updates) = tokio::sync::mpsc::unbounded_channel();
        let update = |update| sender.send(update).unwrap();
        let stop = Stop::never();
        let hearing = async {
            for number in 1.. {
                updates.recv().await;
                hear(number).await;
            }
        };
        tokio::select! {
            biased;
            () = hearing => unreachable!("updates are waited for as long as the call takes"),
            result = self.call_hearing(&stop, arguments, &update) => result,
        }
    }

    async fn call(&self, arguments: Value) -> Result<ToolResult, Throw> {
        self.call_hearing(&Stop::never(), arguments, &|_| {}).await
    }

    fn lines(&self) -> Vec<String> {
        let line = |notice: &Notice| match notice {
            Notice::ServerLine { server, line } => format!("{server}: {line}"),
            other => format!("{other:?}"),
        };
        self.notices.lock().unwrap().iter().map(line).collect()
    }
}

#[track_caller]
fn throws(result: &Result<ToolResult, Throw>, expected: &str) {
    assert_eq!(result, &Err(Throw(expected.to_owned())));
}

#[tokio::test]
async fn tools_are_listed_under_their_full_names() {
    let fake = fake("text hi");
    let tools = fake.client.tools().await.unwrap();
    let names: Vec<_> = tools
        .iter()
        .map(|tool| (tool.full_name.as_str(), tool.title.as_deref()))
        .collect();
    assert_eq!(
        names,
        [("mcp__fake__one", None), ("mcp__fake__two", Some("Two"))]
    );
    fake.client.close().await;
}

#[tokio::test]
async fn pages_are_followed_and_strange_tools_are_told_and_left_out() {
    let list = r#"case $line in *cursor*) tools='{"tools":[{"name":"a"},{"name":"a.b"},{"name":"a-b"}]}' ;;
        *) tools='{"tools":[{"name":"a","outputSchema":true},7],"nextCursor":"p2"}' ;; esac"#;
    let script = script("text hi").replace("answer \"$tools", &format!("{list}; answer \"$tools"));
    let fake = fake_script(&script, json!({}));
    let tools = fake.client.tools().await.unwrap();
    assert_eq!(tools.len(), 3);
    assert_eq!(tools[0].output_schema, Some(json!(true)));
    assert!(
        tools[1].full_name.starts_with("mcp__fake__a_b_")
            && tools[1].full_name != tools[2].full_name
    );
    assert_eq!(fake.lines().len(), 2, "{:?}", fake.lines());
    fake.client.close().await;
}

#[tokio::test]
async fn logs_on_stdout_and_unknown_ids_do_no_harm() {
    let fake = fake(
        r#"echo starting; echo; echo '{"level":"info"}'; (id=999; text wrong)
        echo '{"jsonrpc":"2.0","id":"x","error":{"code":-1,"message":"whose?"}}'
        echo '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"a log"}}'; text right"#,
    );
    assert_eq!(fake.call(json!({})).await, Ok(ToolResult::text("right")));
    assert_eq!(
        fake.lines(),
        [
            "fake: starting",
            "fake: {\"level\":\"info\"}",
            "fake: a log"
        ]
    );
    fake.client.close().await;
}

#[tokio::test]
async fn progress_comes_before_the_answer() {
    let fake = fake(
        r#"progress '"progress":1,"total":2,"message":"half"'; progress '"progress":1.5'; text done"#,
    );
    let updates = Mutex::new(Vec::new());
    let update = |update| updates.lock().unwrap().push(update);
    let result = fake.call_hearing(&Stop::never(), json!({}), &update).await;
    assert_eq!(result, Ok(ToolResult::text("done")));
    assert_eq!(
        updates.into_inner().unwrap(),
        [
            json!({"content": [{"type": "text", "text": "half"}], "details": {"progress": 1, "total": 2}}),
            json!({"content": [], "details": {"progress": 1.5}}),
        ]
    );
    fake.client.close().await;
}

#[tokio::test]
async fn numbers_keep_every_digit_in_both_directions() {
    let fake =
        fake(r#"n=${line#*\"n\":}; n=${n%%[,\}]*}; answer '{"structuredContent":{"n":'$n'}}'"#);
    let result = fake
        .call(json!({"n": 18_446_744_073_709_551_615_u64}))
        .await
        .unwrap();
    assert_eq!(
        result.content,
        [Content::text(r#"{"n":18446744073709551615}"#)]
    );
    assert_eq!(
        result.structured_content,
        Some(json!({"n": 18_446_744_073_709_551_615_u64}))
    );
    fake.client.close().await;
}

#[tokio::test]
async fn protocol_errors_are_throws() {
    let fake = fake(
        r#"printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no such tool","data":{"a":1}}}\n' "$id""#,
    );
    throws(
        &fake.call(json!({})).await,
        "MCP error -32602: no such tool\n{\"a\":1}",
    );
    fake.client.close().await;
}

#[tokio::test]
async fn a_server_that_dies_says_why_and_is_not_started_again() {
    let fake = fake("echo 'out of luck' >&2; exit 3");
    let text = "MCP server \"fake\" exited with code 3 before it answered\n\nLast lines of its stderr:\nout of luck";
    throws(&fake.call(json!({})).await, text);
    throws(&fake.call(json!({})).await, text);
    fake.client.close().await;
}

#[tokio::test]
async fn a_server_that_does_not_start_says_why() {
    let fake = fake_with(&json!({"command": "sh", "args": ["-c", "echo broken >&2; exit 1"]}));
    let text = "MCP server \"fake\" did not start: it exited with code 1\n\nLast lines of its stderr:\nbroken";
    throws(&fake.call(json!({})).await, text);
    let fake = fake_with(&json!({"command": "/no/such/program"}));
    let text =
        "MCP server \"fake\" did not start: Cannot start \"/no/such/program\": it was not found";
    throws(&fake.call(json!({})).await, text);
}

#[tokio::test]
async fn a_server_that_hangs_in_the_handshake_hits_the_limit_of_the_start() {
    let fake = fake_with(&json!({"command": "sleep", "args": ["60"], "startTimeoutMs": 50}));
    let text = "MCP server \"fake\" did not start: it was not ready after 0.05 seconds; \
                \"startTimeoutMs\" in its entry sets this limit";
    throws(&fake.call(json!({})).await, text);
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled() {
    let script = script(r#"case $line in *slow*) progress '"progress":1,"message":"so far"' ;; *) text "$seen" ;; esac"#)
        .replace("  case $line in\n", "  case $line in *notifications/cancelled*) seen=cancelled ;; esac\n  case $line in\n");
    let fake = fake_script(&script, json!({"timeout": 0.3}));
    fake.client.tools().await.unwrap();
    let time = StillTime::begin();
    let hear = async |number| {
        assert_eq!(number, 1);
        time.pass(Duration::from_secs(1)).await;
    };
    let result = fake.call_and(json!({"slow": true}), hear).await;
    let text = "so far\n\nTool of MCP server \"fake\" timed out after 0.3 seconds";
    throws(&result, text);
    assert_eq!(
        fake.call(json!({})).await,
        Ok(ToolResult::text("cancelled"))
    );
    drop(time);
    fake.client.close().await;
}

#[tokio::test]
async fn progress_extends_the_time_of_a_call_but_not_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let heard = |number: usize| folder.path().join(number.to_string());
    let script = script(&format!(
        r#"i=0; while [ $i -lt 30 ]; do i=$((i+1)); progress '"progress":'$i
           case $line in *short*) [ $i = 5 ] && break ;; esac
           until [ -e {}/$i ]; do sleep 0.01; done; done; text done"#,
        folder.path().display()
    ));
    let fake = fake_script(&script, json!({"timeout": 0.2}));
    fake.client.tools().await.unwrap();
    let time = StillTime::begin();
    // Nearly all of its time passes before the server may go on.
    let hear = async |number| {
        time.pass(Duration::from_millis(150)).await;
        std::fs::write(heard(number), "").unwrap();
    };
    let result = fake.call_and(json!({"short": 1}), hear).await;
    assert_eq!(result, Ok(ToolResult::text("done")));
    std::fs::remove_dir_all(folder.path()).unwrap();
    std::fs::create_dir(folder.path()).unwrap();
    let result = fake.call_and(json!({}), hear).await;
    throws(
        &result,
        "Tool of MCP server \"fake\" timed out after 0.2 seconds",
    );
    assert!(heard(12).exists() && !heard(15).exists());
    drop(time);
    fake.client.close().await;
}

#[tokio::test]
async fn a_stop_ends_the_call() {
    let fake = fake(r#"progress '"progress":1,"message":"so far"'"#);
    let stopper = Stopper::new();
    let updated = |_| stopper.raise(StopLevel::Stopping);
    let result = fake
        .call_hearing(&stopper.stop(), json!({}), &updated)
        .await;
    throws(&result, "so far\n\nOperation aborted");
    fake.client.close().await;
}

#[tokio::test]
async fn a_hundred_calls_at_once_keep_their_answers() {
    // Answered in pairs, the later one first.
    let fake = fake(
        r#"n=${line#*\"n\":}; n=${n%%[,\}]*}
        if [ -n "$held" ]; then text "$n"; id=$held; text "$held_n"; held=; else held=$id; held_n=$n; fi"#,
    );
    let calls = (0..100).map(|n| fake.call(json!({"n": n})));
    let results = join_all(calls).await;
    let expected: Vec<_> = (0..100)
        .map(|n| Ok(ToolResult::text(n.to_string())))
        .collect();
    assert_eq!(results, expected);
    fake.client.close().await;
}

#[tokio::test]
async fn a_server_killed_in_the_middle_leaves_every_call_an_answer() {
    let fake = fake("count=$((count+1)); if [ $count -gt 50 ]; then kill -KILL $$; fi; text ok");
    let results = join_all((0..100).map(|n| fake.call(json!({"n": n})))).await;
    let died = Err(Throw(
        "MCP server \"fake\" was killed by SIGKILL before it answered".to_owned(),
    ));
    let ok = results
        .iter()
        .filter(|result| **result == Ok(ToolResult::text("ok")))
        .count();
    let dead = results.iter().filter(|result| **result == died).count();
    assert_eq!(ok + dead, 100, "{results:?}");
    assert!(dead >= 50, "{dead}");
    fake.client.close().await;
}

#[tokio::test]
async fn a_changed_list_is_asked_for_again() {
    let fake = fake(
        r#"tools='{"tools":[{"name":"new"}]}'
        echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'; text hi"#,
    );
    assert_eq!(fake.client.tools().await.unwrap().len(), 2);
    let mut changes = fake.client.changes();
    fake.call(json!({})).await.unwrap();
    changes.wait_for(|changes| *changes == 1).await.unwrap();
    let tools = fake.client.tools().await.unwrap();
    assert_eq!(tools[0].full_name, "mcp__fake__new");
    fake.client.close().await;
}

#[tokio::test]
async fn closing_ends_the_whole_group() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let stubborn = format!(
        "trap '' TERM; sleep 60 & echo $! > {}; {}",
        file.display(),
        script("text hi")
    );
    let fake = fake_script(&stubborn, json!({}));
    fake.client.tools().await.unwrap();
    let pid: i32 = std::fs::read_to_string(file)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let sleeping = rustix::process::Pid::from_raw(pid).unwrap();
    assert!(rustix::process::test_kill_process(sleeping).is_ok());
    fake.client.close().await;
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(status.is_empty() || status.contains(") Z "), "{status}");
    throws(
        &fake.call(json!({})).await,
        "MCP server \"fake\" was closed",
    );
}

//! Tools of MCP servers behind a `url`: as those of servers that are processes, and what only HTTP can do to them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use serde_json::{Value, json};

use crate::fake_http::{FakeHttp, Reply, Request, handshake};
use crate::support::{Done, Test, text};

fn run(url: &str, mut entry: Value) -> Test {
    entry["url"] = json!(url);
    let mut test = Test::new(["run"]).manifest("servers", &json!({"mcpServers": {"fake": entry}}));
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        test.command().env_remove(name);
    }
    test
}

fn one_call(url: &str) -> Test {
    run(url, json!({})).calls(&[("a", "mcp__fake__say", json!({"n": 1}))])
}

/// The text of the one call of this server, which fails.
#[track_caller]
fn fails(fake: &FakeHttp, expected: &str) {
    let done = one_call(&fake.url()).run().code(1);
    let expected = expected.replace("URL", &fake.url());
    assert_eq!(done.texts(), [format!("error: {expected}")]);
}

fn id(request: &Request) -> &Value {
    &request.body["id"]
}

#[test]
fn answers_come_as_json_or_as_events() {
    let fake = FakeHttp::mcp(|request, reply| {
        let arguments = &request.body["params"]["arguments"];
        if arguments["n"] == 1 {
            return reply.text(id(request), "as json");
        }
        let token = &request.body["params"]["_meta"]["progressToken"];
        reply.events();
        reply.write(": a comment\n\nevent: ping\ndata: 1\n\ndata: a log\n\n");
        reply.event(
            &json!({"jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": token, "progress": 1, "total": 2, "message": "half"}}),
        );
        reply.event(&json!({"jsonrpc": "2.0", "id": 4711, "result": {"content": []}}));
        let result = json!({"content": [{"type": "hologram", "beam": 1}],
            "structuredContent": {"n": 18_446_744_073_709_551_615_u64}});
        reply.event(&json!({"jsonrpc": "2.0", "id": id(request), "result": result}));
    });
    let done = run(&fake.url(), json!({}))
        .args(["--output", "events"])
        .calls(&[
            ("a", "mcp__fake__say", json!({"n": "1"})),
            ("b", "mcp__fake__say", json!({"n": 2})),
        ])
        .run()
        .code(0);
    let lines = done.lines();
    let of = |kind: &str, id: &str| {
        let is_it = |line: &&Value| line["type"] == kind && line["toolCallId"] == id;
        lines.iter().find(is_it).unwrap().clone()
    };
    assert_eq!(
        of("tool_execution_end", "a")["result"]["content"][0]["text"],
        "as json"
    );
    let b = of("tool_execution_end", "b");
    assert_eq!(
        b["result"]["structuredContent"]["n"],
        json!(18_446_744_073_709_551_615_u64)
    );
    assert_eq!(
        b["result"]["content"][0]["text"],
        r#"{"type":"hologram","beam":1}"#
    );
    let update = of("tool_execution_update", "b");
    assert_eq!(
        update["partialResult"],
        json!({"content": [{"type": "text", "text": "half"}], "details": {"progress": 1, "total": 2}})
    );
    assert!(done.stderr.contains("fake: a log"), "{}", done.stderr);
    assert_eq!(
        fake.seen()
            .iter()
            .filter(|seen| seen.rpc() == "initialize")
            .count(),
        1
    );
}

#[test]
fn headers_are_filled_in_and_never_shown() {
    let fake = FakeHttp::mcp(|request, reply| {
        let told = format!(
            "{} {} {}",
            request.header("authorization").unwrap(),
            request.header("mcp-protocol-version").unwrap(),
            request.target
        );
        reply.text(id(request), &told);
    });
    let url = format!("{}?key=${{PITOOL_TEST_KEY}}", fake.url());
    let entry =
        json!({"type": "http", "headers": {"Authorization": "Bearer ${PITOOL_TEST_TOKEN}"}});
    let call = [("a", "mcp__fake__say", json!({}))];
    let done = run(&url, entry.clone())
        .env("PITOOL_TEST_TOKEN", "s3cret")
        .env("PITOOL_TEST_KEY", "k")
        .calls(&call)
        .run()
        .code(0);
    assert_eq!(done.texts(), ["Bearer s3cret 2025-06-18 /mcp?key=k"]);
    let done = run(&url, entry)
        .env("PITOOL_TEST_KEY", "k")
        .calls(&call)
        .run()
        .code(1);
    assert_eq!(
        done.texts(),
        [
            "error: MCP server \"fake\" did not start: Environment variable PITOOL_TEST_TOKEN is not set; \
             the server's header authorization is made from it"
        ]
    );
}

#[test]
fn a_hundred_calls_at_once_keep_their_answers() {
    // None is answered before all are there.
    let all = Arc::new(Barrier::new(100));
    let fake = FakeHttp::mcp(move |request, reply| {
        all.wait();
        reply.text(
            id(request),
            &request.body["params"]["arguments"]["n"].to_string(),
        );
    });
    let calls: Vec<(String, Value)> = (0..100)
        .map(|n| (format!("c{n}"), json!({"n": n})))
        .collect();
    let calls: Vec<_> = calls
        .iter()
        .map(|(id, arguments)| (id.as_str(), "mcp__fake__say", arguments.clone()))
        .collect();
    let done = run(&fake.url(), json!({}))
        .args(["--jobs", "0"])
        .calls(&calls)
        .run()
        .code(0);
    let expected: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    assert_eq!(done.texts(), expected);
}

#[test]
fn a_server_that_is_not_there_is_named_without_secrets() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let done = one_call(&format!("http://me:s3cret@127.0.0.1:{port}/mcp?key=s3cret"))
        .run()
        .code(1);
    let texts = done.texts();
    let expected = format!(
        "error: MCP server \"fake\" did not start: cannot connect to http://127.0.0.1:{port}/mcp: Connection refused"
    );
    assert!(texts[0].starts_with(&expected), "{texts:?}");
    assert!(!format!("{done:?}").contains("s3cret"), "{done:?}");
}

#[test]
fn a_refusal_names_the_status_and_what_is_wanted() {
    let fake = FakeHttp::start(|_, reply| {
        let www = "WWW-Authenticate: Bearer realm=\"x\"\r\nContent-Length: 2\r\n";
        reply.head("401 Unauthorized", www);
        reply.write("no");
    });
    fails(
        &fake,
        "MCP server \"fake\" did not start: URL answered HTTP 401 Unauthorized (it wants: Bearer realm=\"x\"): no; \
         what it asks for belongs into \"headers\" of its entry",
    );
    let fake =
        FakeHttp::start(|_, reply| reply.whole("404 Not Found", "text/html", "<h1>none</h1>"));
    fails(
        &fake,
        "MCP server \"fake\" did not start: URL answered HTTP 404 Not Found: <h1>none</h1>",
    );
    let fake =
        FakeHttp::mcp(|_, reply| reply.whole("503 Service Unavailable", "text/plain", "later"));
    fails(
        &fake,
        "MCP server \"fake\": URL answered HTTP 503 Service Unavailable: later",
    );
}

#[test]
fn errors_of_the_protocol_are_told_with_any_status() {
    let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"no such tool"}}"#;
    for status in ["200 OK", "400 Bad Request"] {
        let fake = FakeHttp::mcp(move |_, reply| reply.whole(status, "application/json", error));
        fails(&fake, "MCP error -32602: no such tool");
    }
}

#[test]
fn answers_that_are_none_end_the_call() {
    let case = |answer: fn(&Request, &mut Reply<'_>), expected: &str| {
        fails(
            &FakeHttp::mcp(answer),
            &format!("MCP server \"fake\"{expected}"),
        );
    };
    case(
        |_, reply| reply.whole("200 OK", "text/html", "hello"),
        ": URL answered HTTP 200 OK with the content type \"text/html\", neither JSON nor an event stream",
    );
    case(
        |_, reply| reply.whole("202 Accepted", "application/json", ""),
        ": URL answered with JSON that is no answer",
    );
    case(
        |_, reply| reply.head("204 No Content", ""),
        ": URL answered HTTP 204 No Content with no content type, neither JSON nor an event stream",
    );
    case(
        |_, reply| reply.text(&json!(4711), "whose?"),
        ": URL answered another request than the one it got",
    );
    case(
        |_, reply| reply.events(),
        " closed the connection before it answered",
    );
    case(
        |_, reply| {
            reply.head(
                "200 OK",
                "Content-Type: application/json\r\nContent-Length: 100\r\n",
            );
            reply.write("{");
        },
        ": URL: end of file before message length reached",
    );
}

#[test]
fn an_answer_that_is_too_large_ends_the_call() {
    let large = || "x".repeat(33 << 20);
    let fake = FakeHttp::mcp(move |request, reply| reply.text(id(request), &large()));
    fails(
        &fake,
        "MCP server \"fake\": URL gave an answer larger than 32 MiB",
    );
    let fake = FakeHttp::mcp(move |_, reply| {
        reply.events();
        reply.write(&format!("data: {}\n\n", large()));
    });
    fails(
        &fake,
        "MCP server \"fake\": URL gave an event larger than 32 MiB",
    );
}

#[test]
fn redirects_within_the_server_are_followed_with_the_request() {
    let fake = FakeHttp::start(|request, reply| {
        if request.target == "/mcp" {
            return reply.head(
                "307 Temporary Redirect",
                "Location: /mcp/\r\nContent-Length: 0\r\n",
            );
        }
        handshake(request, reply, None, &|request, reply| {
            reply.text(id(request), "there");
        });
    });
    assert_eq!(one_call(&fake.url()).run().code(0).texts(), ["there"]);
}

#[test]
fn redirects_to_elsewhere_are_told_and_not_followed() {
    let other = FakeHttp::mcp(|request, reply| reply.text(id(request), "stolen"));
    let to = other.url();
    let fake = FakeHttp::start(move |_, reply| {
        let location = format!("Location: {to}?token=1\r\nContent-Length: 0\r\n");
        reply.head("307 Temporary Redirect", &location);
    });
    fails(
        &fake,
        &format!(
            "MCP server \"fake\" did not start: URL answered HTTP 307 Temporary Redirect, a redirect to {}; it is not \
             followed, so that no header goes astray: if it is right, make it the \"url\"",
            other.url()
        ),
    );
    assert!(other.seen().is_empty());
}

#[test]
fn a_lost_session_begins_anew_and_a_call_is_never_made_twice() {
    let sessions = Arc::new(AtomicUsize::new(0));
    let calls = Arc::new(AtomicUsize::new(0));
    let made = Arc::clone(&calls);
    let fake = FakeHttp::start(move |request, reply| {
        if request.rpc() == "initialize" {
            sessions.fetch_add(1, Ordering::SeqCst);
        }
        let session = format!("s{}", sessions.load(Ordering::SeqCst));
        let calls = Arc::clone(&made);
        handshake(request, reply, Some(&session), &move |request, reply| {
            // The first session is lost when the first call comes.
            if request.header("mcp-session-id") == Some("s1") {
                return reply.whole("404 Not Found", "text/plain", "");
            }
            calls.fetch_add(1, Ordering::SeqCst);
            reply.text(id(request), request.header("mcp-session-id").unwrap());
        });
    });
    assert_eq!(one_call(&fake.url()).run().code(0).texts(), ["s2"]);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    // It is ended like any other.
    let ended: Vec<_> = fake
        .seen()
        .into_iter()
        .filter(|seen| seen.method == "DELETE")
        .collect();
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0].header("mcp-session-id"), Some("s2"));
}

#[test]
fn a_server_that_is_slow_in_the_handshake_hits_the_limit_of_the_start() {
    let fake = FakeHttp::start(|_, _| std::thread::park());
    let done = run(&fake.url(), json!({"startTimeoutMs": 50}))
        .calls(&[("a", "mcp__fake__say", json!({}))])
        .run()
        .code(1);
    assert_eq!(
        done.texts(),
        [
            "error: MCP server \"fake\" did not start: it was not ready after 0.05 seconds; \"startTimeoutMs\" in its \
             entry sets this limit"
        ]
    );
}

#[test]
fn a_call_that_takes_too_long_is_cancelled() {
    let fake = FakeHttp::mcp(|_, _| std::thread::park());
    let done = run(&fake.url(), json!({"timeout": 0.2}))
        .calls(&[("a", "mcp__fake__say", json!({}))])
        .run()
        .code(1);
    assert_eq!(
        done.texts(),
        ["error: Tool of MCP server \"fake\" timed out after 0.2 seconds"]
    );
    assert!(
        fake.seen()
            .iter()
            .any(|seen| seen.rpc() == "notifications/cancelled")
    );
}

#[test]
fn a_stop_cancels_the_call() {
    let fake = FakeHttp::mcp(|_, reply| {
        reply.events();
        std::thread::park();
    });
    let mut test = one_call(&fake.url());
    let child = test.spawn();
    while !fake.seen().iter().any(|seen| seen.rpc() == "tools/call") {
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let done = Done::of(child).code(143);
    assert_eq!(done.texts(), ["error: Operation aborted"]);
    let seen = fake.seen();
    let call = seen.iter().find(|seen| seen.rpc() == "tools/call").unwrap();
    let cancelled = seen
        .iter()
        .find(|seen| seen.rpc() == "notifications/cancelled")
        .unwrap();
    assert_eq!(cancelled.body["params"]["requestId"], *id(call));
}

#[test]
fn a_server_that_goes_away_leaves_every_call_an_answer() {
    let count = AtomicUsize::new(0);
    let fake = FakeHttp::mcp(move |request, reply| {
        match count.fetch_add(1, Ordering::SeqCst) {
            n if n < 50 => reply.text(id(request), "ok"),
            // The connection breaks, before or within the answer.
            n if n % 2 == 0 => {}
            _ => {
                reply.events();
                reply.write("data: {\"jsonrpc\"");
            }
        }
    });
    let names: Vec<String> = (0..100).map(|n| format!("c{n}")).collect();
    let calls: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), "mcp__fake__say", json!({})))
        .collect();
    let done = run(&fake.url(), json!({}))
        .args(["--jobs", "0"])
        .calls(&calls)
        .run()
        .code(1);
    let lines = done.lines();
    let ids: Vec<&str> = lines
        .iter()
        .map(|line| line["toolCallId"].as_str().unwrap())
        .collect();
    assert_eq!(ids, names);
    let ok = lines.iter().filter(|line| text(line) == "ok").count();
    assert_eq!(ok, 50);
    let told = lines.iter().map(text).filter(|text| text != "ok");
    for text in told {
        assert!(text.starts_with("error: MCP server \"fake\""), "{text}");
    }
}

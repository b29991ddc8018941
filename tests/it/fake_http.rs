//! A small HTTP server of a test's own: every request is handed to a closure that writes the answer.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// `POST`, `GET`, `DELETE`.
    pub(crate) method: String,
    /// The path with its query.
    pub(crate) target: String,
    headers: Vec<(String, String)>,
    /// The JSON of the body, `null` if there is none.
    pub(crate) body: Value,
}

impl Request {
    /// A header, named in lowercase.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The method of the message in the body.
    pub(crate) fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// Where an answer is written to.
pub(crate) struct Reply<'a>(&'a mut TcpStream);

impl Reply<'_> {
    /// The head of an answer; its body is what is written until the connection ends.
    pub(crate) fn head(&mut self, status: &str, headers: &str) {
        self.write(&format!(
            "HTTP/1.1 {status}\r\nConnection: close\r\n{headers}\r\n"
        ));
    }

    /// Bytes as they are; a client that is gone is no failure of the server.
    pub(crate) fn write(&mut self, text: &str) {
        let _ = self.0.write_all(text.as_bytes());
        let _ = self.0.flush();
    }

    /// A whole answer.
    pub(crate) fn whole(&mut self, status: &str, kind: &str, body: &str) {
        self.head(
            status,
            &format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len()),
        );
        self.write(body);
    }

    /// A JSON-RPC result.
    pub(crate) fn result(&mut self, id: &Value, result: &Value) {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.whole("200 OK", "application/json", &answer.to_string());
    }

    /// The result of a call: one text.
    pub(crate) fn text(&mut self, id: &Value, text: &str) {
        self.result(id, &json!({"content": [{"type": "text", "text": text}]}));
    }

    /// The beginning of an event stream.
    pub(crate) fn events(&mut self) {
        self.head("200 OK", "Content-Type: text/event-stream\r\n");
    }

    /// One event of it.
    pub(crate) fn event(&mut self, message: &Value) {
        self.write(&format!("event: message\ndata: {message}\n\n"));
    }
}

/// A server that runs as long as the test process.
pub(crate) struct FakeHttp {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl FakeHttp {
    /// Answers every request with `answer`, many at once.
    pub(crate) fn start(answer: impl Fn(&Request, &mut Reply<'_>) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (answer, requests) = (Arc::new(answer), Arc::clone(&seen));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (answer, requests) = (Arc::clone(&answer), Arc::clone(&requests));
                std::thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    let Some(request) = read(&stream) else { return };
                    requests.lock().unwrap().push(request.clone());
                    answer(&request, &mut Reply(&mut stream));
                });
            }
        });
        Self { address, seen }
    }

    /// An MCP server without sessions: the handshake, the tool `say`, and `call` for calls.
    pub(crate) fn mcp(call: impl Fn(&Request, &mut Reply<'_>) + Send + Sync + 'static) -> Self {
        Self::start(move |request, reply| handshake(request, reply, None, &call))
    }

    /// Its address.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The requests so far.
    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

/// Answers everything but calls as a server with the tool `say` does; with a session if one is given.
pub(crate) fn handshake(
    request: &Request,
    reply: &mut Reply<'_>,
    session: Option<&str>,
    call: &dyn Fn(&Request, &mut Reply<'_>),
) {
    let id = &request.body["id"];
    match (request.method.as_str(), request.rpc()) {
        ("POST", "initialize") => {
            let result = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "fake", "version": "1"}});
            let body = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
            let session = session
                .map(|session| format!("Mcp-Session-Id: {session}\r\n"))
                .unwrap_or_default();
            let length = body.len();
            reply.head(
                "200 OK",
                &format!("Content-Type: application/json\r\nContent-Length: {length}\r\n{session}"),
            );
            reply.write(&body);
        }
        ("POST", "tools/list") => reply.result(
            id,
            &json!({"tools": [{"name": "say", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}]}),
        ),
        ("POST", "tools/call") => call(request, reply),
        ("POST", _) => reply.head("202 Accepted", "Content-Length: 0\r\n"),
        _ => reply.head("405 Method Not Allowed", "Content-Length: 0\r\n"),
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request {
        method,
        target,
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

//! Round trips of `tools/call` through `pitool serve`, one after the other over its stdin and stdout.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::Context as _;
use serde_json::{Value, json};

/// A client that has shaken hands.
struct Client {
    server: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    answer: String,
}

impl Client {
    fn start(pitool: &Path, tools: &Path) -> anyhow::Result<Self> {
        let mut server = Command::new(pitool)
            .args(["serve", "--tools"])
            .arg(tools)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start pitool serve")?;
        let mut client = Self {
            requests: server.stdin.take().context("no stdin")?,
            answers: BufReader::new(server.stdout.take().context("no stdout")?),
            server,
            answer: String::new(),
        };
        client.request(
            &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"},
            }}),
        )?;
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(client)
    }

    fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        let mut line = message.to_string();
        line.push('\n');
        Ok(self.requests.write_all(line.as_bytes())?)
    }

    /// Sends a request and waits for its answer; what is no answer is passed over.
    fn request(&mut self, request: &Value) -> anyhow::Result<()> {
        self.send(request)?;
        loop {
            self.answer.clear();
            let length = self.answers.read_line(&mut self.answer)?;
            anyhow::ensure!(length > 0, "pitool serve ended");
            let answer: Value = serde_json::from_str(&self.answer)?;
            if answer.get("id") == request.get("id") {
                anyhow::ensure!(answer.get("result").is_some(), "refused: {answer}");
                return Ok(());
            }
        }
    }
}

/// The times of that many calls in microseconds, after some that do not count.
pub(crate) fn round_trips(pitool: &Path, tools: &Path, count: usize) -> anyhow::Result<Vec<f64>> {
    const WARM_UP: usize = 100;
    let mut client = Client::start(pitool, tools)?;
    let mut times = Vec::with_capacity(count);
    for number in 1..=WARM_UP + count {
        let request = json!({"jsonrpc": "2.0", "id": number, "method": "tools/call",
                             "params": {"name": "echo", "arguments": {"value": "Pi"}}});
        let begin = Instant::now();
        client.request(&request)?;
        if number > WARM_UP {
            times.push(begin.elapsed().as_secs_f64() * 1e6);
        }
    }
    let Client {
        mut server,
        requests,
        ..
    } = client;
    drop(requests);
    server.wait()?;
    Ok(times)
}

//! The stdio transport: one JSON-RPC message per line, among whatever else a server prints.
//!
//! The SDK's own transport answers a line of JSON that is no message with an error, and reads results by trying one
//! type after the other. Servers print logs on stdout, and a result must keep every field: so lines that are no
//! messages are only told of, and results are passed on as the JSON they are.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use rmcp::model::{
    CustomResult, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
    ServerResult,
};
use rmcp::service::{RoleClient, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Mutex;

use crate::json;

/// The longest line that is read as a message; as much as a program may give in one piece.
pub(super) const MAX_LINE: usize = 32 * 1024 * 1024;
/// How much of a line that is too long is kept, to find out whose answer it is.
const HEAD: usize = 256;
/// How many characters of a skipped line are told.
const SHOWN: usize = 500;

/// Hears a line that is no message, shortened.
pub(crate) type Skipped = Arc<dyn Fn(String) + Send + Sync>;

/// The stdout and stdin of a server.
pub(crate) struct LineTransport<R, W> {
    lines: Lines<R>,
    stdin: Arc<Mutex<Option<W>>>,
    messages: VecDeque<ServerJsonRpcMessage>,
    skipped: Skipped,
}

impl<R, W> LineTransport<R, W> {
    pub(crate) fn new(stdout: R, stdin: W, skipped: Skipped) -> Self {
        Self {
            lines: Lines::new(stdout, MAX_LINE),
            stdin: Arc::new(Mutex::new(Some(stdin))),
            messages: VecDeque::new(),
            skipped,
        }
    }
}

impl<R, W> Transport<RoleClient> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let stdin = Arc::clone(&self.stdin);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut stdin = stdin.lock().await;
            let stdin = stdin.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            stdin.write_all(&line).await?;
            stdin.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.messages.pop_front() {
                return Some(message);
            }
            // An error of the pipe is its end: there is nobody else to ask.
            let line = self.lines.next().await.ok()??;
            self.take(&line);
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // A message that the server does not read must not keep its stdin open.
        if let Ok(mut stdin) = self.stdin.try_lock() {
            stdin.take();
        }
        Ok(())
    }
}

impl<R, W> LineTransport<R, W> {
    fn take(&mut self, line: &Line) {
        match line {
            Line::Whole(bytes) => match messages(bytes) {
                Some((log, messages)) => {
                    self.skip(log, log.len());
                    self.messages.extend(messages);
                }
                None => self.skip(bytes, bytes.len()),
            },
            Line::TooLong { head, length } => match answered_id(head) {
                Some(id) => self.messages.push_back(unusable(
                    id,
                    format!("the answer is larger than {} MiB", MAX_LINE >> 20),
                )),
                None => self.skip(head, *length),
            },
        }
    }

    fn skip(&self, bytes: &[u8], length: usize) {
        tell(&self.skipped, bytes, length);
    }
}

/// Tells of bytes that are no message, of `length` in all.
pub(super) fn tell(skipped: &Skipped, bytes: &[u8], length: usize) {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim();
    if text.is_empty() {
        return;
    }
    let shown = match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}… ({length} bytes)", &text[..end]),
        None => text.to_owned(),
    };
    skipped(shown);
}

/// The messages of a line and what stands before them; `None` if there are none.
///
/// A log without a line break at its end stands before the message that follows it.
fn messages(line: &[u8]) -> Option<(&[u8], Vec<ServerJsonRpcMessage>)> {
    const START: &[u8] = b"{\"jsonrpc\"";
    if let Some(messages) = whole(line) {
        return Some((&[], messages));
    }
    let mut from = 0;
    while let Some(found) = find(&line[from..], START) {
        let start = from + found;
        if let Some(messages) = whole(&line[start..]) {
            return Some((&line[..start], messages));
        }
        from = start + 1;
    }
    None
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

/// The messages that the whole line is: one, or a batch of the protocol's second version.
pub(super) fn whole(line: &[u8]) -> Option<Vec<ServerJsonRpcMessage>> {
    let first = line.iter().find(|byte| !byte.is_ascii_whitespace())?;
    // A BOM too is left to the reader.
    if !matches!(first, b'{' | b'[' | 0xef) {
        return None;
    }
    match json::parse(line).ok()? {
        Value::Array(batch) if !batch.is_empty() => batch.into_iter().map(message).collect(),
        one => Some(vec![message(one)?]),
    }
}

/// A JSON value as a message, if it is one.
fn message(value: Value) -> Option<ServerJsonRpcMessage> {
    if value.get("jsonrpc")? != "2.0" {
        return None;
    }
    let is_answer = value.get("method").is_none();
    let id = value
        .get("id")
        .cloned()
        .and_then(|id| serde_json::from_value(id).ok());
    if let (true, Some(id)) = (is_answer, &id)
        && json::depth(&value) > json::MAX_DEPTH
    {
        let reason = format!(
            "the answer is nested deeper than {} levels",
            json::MAX_DEPTH
        );
        return Some(unusable(RequestId::clone(id), reason));
    }
    match (is_answer, id, value.get("result")) {
        (true, Some(id), Some(result)) if result.get("protocolVersion").is_none() => {
            let Value::Object(mut fields) = value else {
                return None;
            };
            let result = fields.remove("result")?;
            let result = ServerResult::CustomResult(CustomResult::new(result));
            Some(JsonRpcMessage::response(result, id))
        }
        _ => serde_json::from_value(value).ok(),
    }
}

/// The answer to a call whose real answer cannot be used.
fn unusable(id: RequestId, reason: String) -> ServerJsonRpcMessage {
    JsonRpcMessage::error(
        ErrorData::new(ErrorCode::INTERNAL_ERROR, reason, None),
        Some(id),
    )
}

/// The id of the request that the beginning of a line answers: most servers write it before the result.
fn answered_id(head: &[u8]) -> Option<RequestId> {
    let head = String::from_utf8_lossy(head);
    let before_result = &head[..head.find("\"result\"")?];
    let rest = before_result
        .split_once("\"id\"")?
        .1
        .trim_start()
        .strip_prefix(':')?;
    let id = rest.split([',', '}']).next()?;
    serde_json::from_str(id.trim()).ok()
}

/// A line, without its break.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    TooLong { head: Vec<u8>, length: usize },
}

/// Reads lines of bounded length. Reading may be given up at any await and taken up again.
pub(super) struct Lines<R> {
    input: R,
    limit: usize,
    buffer: Vec<u8>,
    /// How much of the buffer was given as lines already.
    given: usize,
    /// How much of the buffer, from its start, holds no further line break.
    searched: usize,
    /// How long the current line was when it became too long, and its beginning.
    too_long: Option<(Vec<u8>, usize)>,
    has_ended: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.line() {
                return Ok(Some(line));
            }
            if self.has_ended {
                return Ok(None);
            }
            self.buffer.drain(..self.given);
            self.searched -= self.given;
            self.given = 0;
            self.buffer.reserve(64 * 1024);
            if self.input.read_buf(&mut self.buffer).await? == 0 {
                self.has_ended = true;
                if !self.buffer.is_empty() || self.too_long.is_some() {
                    // The last line needs no break.
                    self.buffer.push(b'\n');
                }
            }
        }
    }
}

impl<R> Lines<R> {
    pub(super) fn new(input: R, limit: usize) -> Self {
        Self {
            input,
            limit,
            buffer: Vec::new(),
            given: 0,
            searched: 0,
            too_long: None,
            has_ended: false,
        }
    }

    fn line(&mut self) -> Option<Line> {
        let rest = &self.buffer[self.searched..];
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            self.forget_too_long();
            return None;
        };
        let end = self.searched + end;
        let line = &self.buffer[self.given..end];
        let length = line.len();
        let line = match self.too_long.take() {
            Some((head, before)) => Line::TooLong {
                head,
                length: before + length,
            },
            None if length > self.limit => Line::TooLong {
                head: line[..HEAD.min(length)].to_vec(),
                length,
            },
            None => Line::Whole(line.to_vec()),
        };
        self.given = end + 1;
        self.searched = end + 1;
        Some(line)
    }

    /// Drops what was read of a line that is too long already.
    fn forget_too_long(&mut self) {
        let unfinished = &self.buffer[self.given..];
        if let Some((_, length)) = &mut self.too_long {
            *length += unfinished.len();
        } else if unfinished.len() > self.limit {
            let head = unfinished[..HEAD.min(unfinished.len())].to_vec();
            self.too_long = Some((head, unfinished.len()));
        } else {
            return;
        }
        self.buffer.clear();
        self.given = 0;
        self.searched = 0;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// All that a server's stdout gives: the messages, as JSON, and the lines that were skipped.
    async fn received(stdout: &[u8]) -> (Vec<Value>, Vec<String>) {
        let skipped = Arc::new(std::sync::Mutex::new(Vec::new()));
        let hear = Arc::clone(&skipped);
        let hear: Skipped = Arc::new(move |line| hear.lock().unwrap().push(line));
        let mut transport = LineTransport::new(stdout, tokio::io::sink(), hear);
        let mut messages = Vec::new();
        while let Some(message) = transport.receive().await {
            messages.push(serde_json::to_value(message).unwrap());
        }
        let skipped = skipped.lock().unwrap().clone();
        (messages, skipped)
    }

    const PONG: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#;

    fn pong() -> Value {
        serde_json::from_str(PONG).unwrap()
    }

    #[tokio::test]
    async fn lines_that_are_no_messages_are_skipped() {
        let stdout = format!("starting…\r\n\n{{\"level\":\"info\"}}\n[1]\n{PONG}\n");
        let (messages, skipped) = received(stdout.as_bytes()).await;
        assert_eq!(messages, [pong()]);
        assert_eq!(skipped, ["starting…", "{\"level\":\"info\"}", "[1]"]);
    }

    #[tokio::test]
    async fn a_log_of_a_megabyte_without_a_line_break_hides_no_message() {
        let stdout = format!("{}{PONG}\n", "x".repeat(1 << 20));
        let (messages, skipped) = received(stdout.as_bytes()).await;
        assert_eq!(messages, [pong()]);
        assert_eq!(skipped, [format!("{}… (1048576 bytes)", "x".repeat(500))]);
    }

    #[tokio::test]
    async fn the_last_line_needs_no_break_and_a_batch_is_several_messages() {
        let (messages, skipped) = received(format!("[{PONG},{PONG}]\n{PONG}").as_bytes()).await;
        assert_eq!(messages, [pong(), pong(), pong()]);
        assert_eq!(skipped, [""; 0]);
    }

    #[tokio::test]
    async fn results_keep_every_digit_and_every_field() {
        let result =
            r#"{"jsonrpc":"2.0","id":"a","result":{"tools":7,"big":18446744073709551615}}"#;
        let (messages, _) = received(result.as_bytes()).await;
        assert_eq!(serde_json::to_string(&messages[0]).unwrap(), result);
    }

    #[tokio::test]
    async fn an_answer_that_is_too_deep_is_an_error_of_its_call() {
        let deep = format!("{}{}", "[".repeat(600), "]".repeat(600));
        let (messages, _) =
            received(format!(r#"{{"jsonrpc":"2.0","id":3,"result":{deep}}}"#).as_bytes()).await;
        let text = "the answer is nested deeper than 512 levels";
        assert_eq!(
            messages,
            [json!({"jsonrpc": "2.0", "id": 3, "error": {"code": -32603, "message": text}})]
        );
    }

    #[tokio::test]
    async fn an_answer_that_is_too_long_is_an_error_of_its_call() {
        let mut stdout = br#"{"result":0,"jsonrpc":"2.0","id":1}"#.to_vec();
        stdout.resize(MAX_LINE + 1, b' ');
        stdout.extend_from_slice(b"\n{\"jsonrpc\":\"2.0\",\"id\": 4,\"result\":\"");
        stdout.resize(2 * MAX_LINE + 100, b'x');
        stdout.extend_from_slice(format!("\"}}\n{PONG}\n").as_bytes());
        let (messages, skipped) = received(&stdout).await;
        assert_eq!(messages.len(), 2);
        assert_eq!(messages[0]["id"], 4);
        assert_eq!(
            messages[0]["error"]["message"],
            "the answer is larger than 32 MiB"
        );
        assert_eq!(messages[1], pong());
        assert_eq!(skipped.len(), 1);
    }

    #[tokio::test]
    async fn long_lines_are_not_kept() {
        let mut lines = Lines::new(&b"abcdefgh\nij\n"[..], 4);
        let long = Line::TooLong {
            head: b"abcdefgh".to_vec(),
            length: 8,
        };
        assert_eq!(lines.next().await.unwrap(), Some(long));
        assert_eq!(
            lines.next().await.unwrap(),
            Some(Line::Whole(b"ij".to_vec()))
        );
        assert_eq!(lines.next().await.unwrap(), None);
    }
}

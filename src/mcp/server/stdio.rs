//! The server's end of stdio: one JSON-RPC message per line.
//!
//! The SDK's own transport drops a line that it cannot read, and the client waits for ever; here such a line gets an
//! error, and arguments may be as deep and as strange as everywhere else.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, RequestId};
use rmcp::serve_server;
use rmcp::service::{RoleServer, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Mutex;

use crate::json;
use crate::mcp::lines::{Line, Lines, MAX_LINE};

use super::Serving;
use super::message;
use super::session::Session;

/// Serves one client until its input ends or the server is stopped, and waits for what still runs.
pub async fn serve_stdio<R, W>(serving: &Serving, input: R, output: W) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let transport = LineTransport::new(input, output);
    let session = Session::new(serving.clone());
    let stop = serving.0.stop.clone();
    let served = async {
        match serve_server(session, transport).await {
            Ok(running) => {
                let end = running.cancellation_token();
                tokio::select! {
                    _ = running.waiting() => {}
                    () = async { stop.stopped().await; serving.idle().await } => end.cancel(),
                }
                Ok(())
            }
            // A client that only came to look: nothing was asked.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(io::Error::other(error)),
        }
    };
    let stopped_before = async {
        stop.stopped().await;
        serving.idle().await;
    };
    let result = tokio::select! {
        result = served => result,
        () = stopped_before => Ok(()),
    };
    serving.idle().await;
    result
}

/// Lines in, lines out.
struct LineTransport<R, W> {
    lines: Lines<R>,
    output: Arc<Mutex<W>>,
    messages: VecDeque<Read>,
}

/// What a line is.
#[derive(Debug)]
enum Read {
    Message(Box<ClientJsonRpcMessage>),
    /// Something to be answered with this error.
    Wrong(Value),
}

impl<R, W> LineTransport<R, W> {
    fn new(input: R, output: W) -> Self {
        Self {
            lines: Lines::new(input, MAX_LINE),
            output: Arc::new(Mutex::new(output)),
            messages: VecDeque::new(),
        }
    }
}

async fn write<W: AsyncWrite + Unpin>(output: &Mutex<W>, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = Arc::clone(&self.output);
        async move { write(&output, serde_json::to_vec(&message)?).await }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            match self.messages.pop_front() {
                Some(Read::Message(message)) => return Some(*message),
                Some(Read::Wrong(error)) => {
                    let output = Arc::clone(&self.output);
                    // On its own, so that giving up this read does not tear the line. It ends with the write.
                    tokio::spawn(async move {
                        write(&output, json::compact(&error).into_bytes()).await
                    });
                }
                None => {
                    let line = self.lines.next().await.ok()??;
                    self.messages.extend(read(&line));
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.lock().await.shutdown().await
    }
}

fn wrong(id: Option<&RequestId>, code: ErrorCode, message: &str) -> Read {
    let error = ErrorData::new(code, message.to_owned(), None);
    Read::Wrong(json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

fn read(line: &Line) -> Vec<Read> {
    let bytes = match line {
        Line::Whole(bytes) if bytes.trim_ascii().is_empty() => return Vec::new(),
        Line::Whole(bytes) => bytes,
        Line::TooLong { .. } => {
            let text = format!("the message is larger than {} MiB", MAX_LINE >> 20);
            return vec![wrong(None, ErrorCode::INVALID_REQUEST, &text)];
        }
    };
    match json::parse(bytes) {
        // A batch of the protocol's second version.
        Ok(Value::Array(batch)) if !batch.is_empty() => batch.into_iter().map(message).collect(),
        Ok(value) => vec![message(value)],
        Err(error) => vec![wrong(
            None,
            ErrorCode::PARSE_ERROR,
            &format!("not JSON: {}", error.message),
        )],
    }
}

fn message(value: Value) -> Read {
    let id = message::id(&value);
    if json::depth(&value) > json::MAX_DEPTH {
        let text = format!(
            "the message is nested deeper than {} levels",
            json::MAX_DEPTH
        );
        return wrong(id.as_ref(), ErrorCode::INVALID_PARAMS, &text);
    }
    match message::read(value) {
        Some(message) => Read::Message(Box::new(message)),
        None => wrong(
            id.as_ref(),
            ErrorCode::INVALID_REQUEST,
            message::NOT_A_MESSAGE,
        ),
    }
}

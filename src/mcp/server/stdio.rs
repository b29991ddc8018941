//! The server's end of stdio: one JSON-RPC message per line.
//!
//! The SDK's own transport drops a line that it cannot read, and the client waits for ever; here such a line gets an
//! error, and arguments may be as deep and as strange as everywhere else. The SDK also gives up calls that run longer than
//! a few seconds after the end of the input; here the end is told once all that was asked is answered.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, ErrorCode, JsonRpcMessage, RequestId};
use rmcp::serve_server;
use rmcp::service::{RoleServer, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Mutex, watch};

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
    unanswered: Unanswered,
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
            unanswered: Unanswered::default(),
        }
    }
}

/// The requests that were read and wait for their answers. Cheap to clone; all clones are one.
#[derive(Clone, Default)]
struct Unanswered(Arc<watch::Sender<HashSet<RequestId>>>);

impl Unanswered {
    /// A message came in. A request that the client takes back is never answered.
    fn note(&self, message: &ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => self.0.send_modify(|ids| {
                ids.insert(request.id.clone());
            }),
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    fn remove(&self, id: &RequestId) {
        self.0.send_modify(|ids| {
            ids.remove(id);
        });
    }

    /// Waits until there are none.
    async fn gone(&self) {
        let mut ids = self.0.subscribe();
        let _ = ids.wait_for(HashSet::is_empty).await;
    }
}

/// The request that a message answers.
fn answered(message: &TxJsonRpcMessage<RoleServer>) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
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
        let (output, unanswered) = (Arc::clone(&self.output), self.unanswered.clone());
        async move {
            let written = write(&output, serde_json::to_vec(&message)?).await;
            if let Some(id) = answered(&message) {
                unanswered.remove(id);
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            match self.messages.pop_front() {
                Some(Read::Message(message)) => {
                    self.unanswered.note(&message);
                    return Some(*message);
                }
                Some(Read::Wrong(error)) => {
                    let output = Arc::clone(&self.output);
                    // On its own, so that giving up this read does not tear the line. It ends with the write.
                    tokio::spawn(async move {
                        write(&output, json::compact(&error).into_bytes()).await
                    });
                }
                None => {
                    let Ok(Some(line)) = self.lines.next().await else {
                        self.unanswered.gone().await;
                        return None;
                    };
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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use rmcp::model::ServerResult;

    use super::*;

    #[tokio::test]
    async fn the_end_is_told_when_all_is_answered_that_was_not_taken_back() {
        let requests = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}
{"jsonrpc":"2.0","id":2,"method":"ping"}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#;
        let mut transport = LineTransport::new(&requests[..], Vec::new());
        for _ in 0..3 {
            assert!(transport.receive().await.is_some());
        }
        assert!(transport.receive().now_or_never().is_none(), "1 is open");
        let answer = JsonRpcMessage::response(ServerResult::empty(()), RequestId::Number(1));
        transport.send(answer).await.unwrap();
        assert!(transport.receive().await.is_none());
    }
}

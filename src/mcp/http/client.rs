//! One request and its answer.

use std::collections::HashMap;
use std::error::Error as _;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use reqwest::{RequestBuilder, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    StreamableHttpResponseLimits,
};
use sse_stream::{Sse, SseStream};

use super::super::lines::{self, Skipped};
use super::fault::{Fault, Faults};
use super::{seal, shown};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
/// How much of the body of a refusal is read, and how many characters of it are told.
const REFUSAL_BYTES: usize = 64 * 1024;
const REFUSAL_SHOWN: usize = 300;

/// Makes the requests of one server.
#[derive(Clone)]
pub(super) struct HttpClient {
    pub(super) inner: reqwest::Client,
    pub(super) shown: Arc<str>,
    pub(super) skipped: Skipped,
    pub(super) faults: Faults,
}

type Failure = StreamableHttpError<Fault>;
type Headers = HashMap<HeaderName, HeaderValue>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

impl StreamableHttpClient for HttpClient {
    type Error = Fault;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            limits,
        )
        .await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let has_session = session_id.is_some();
        let request = self
            .inner
            .post(&*uri)
            .header(ACCEPT, format!("{JSON}, {EVENTS}"))
            .json(&message);
        let response = self.send(request, session_id, custom_headers).await?;
        if response.status() == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session = response
            .headers()
            .get(SESSION)
            .and_then(|id| id.to_str().ok())
            .map(str::to_owned);
        let awaited = match message {
            JsonRpcMessage::Request(request) => Some(request.id),
            _ => None,
        };
        if !response.status().is_success() {
            let error = self.refused(response, awaited).await?;
            return Ok(StreamableHttpPostResponse::Json(error, session));
        }
        let Some(id) = awaited else {
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        match kind(&response) {
            Some(kind) if kind == EVENTS => {
                let events = self.events(response, limits.max_sse_event_size, Some(id));
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            Some(kind) if kind == JSON => {
                let answer = self
                    .answer(response, id, limits.max_json_response_size)
                    .await?;
                Ok(StreamableHttpPostResponse::Json(answer, session))
            }
            // The answer comes on the stream of the session, if there is one.
            _ if response.status() == StatusCode::ACCEPTED && has_session => {
                Ok(StreamableHttpPostResponse::Accepted)
            }
            other => Err(self.fault(&format!(
                "answered HTTP {} with {}, neither JSON nor an event stream",
                response.status(),
                other.map_or("no content type".to_owned(), |kind| format!(
                    "the content type \"{kind}\""
                ))
            ))),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), Failure> {
        let request = self.inner.delete(&*uri);
        // A server may not know how to end a session; nothing depends on it.
        self.send(request, Some(session_id), custom_headers)
            .await
            .map(|_| ())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<Events, Failure> {
        let limit = StreamableHttpResponseLimits::default().max_sse_event_size;
        self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            limit,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: Headers,
        max_sse_event_size: usize,
    ) -> Result<Events, Failure> {
        let mut request = self.inner.get(&*uri).header(ACCEPT, EVENTS);
        if let Some(last) = last_event_id {
            request = request.header(LAST_EVENT, last);
        }
        let response = self.send(request, session_id, custom_headers).await?;
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if !response.status().is_success() {
            return Err(self.fault(&format!("answered HTTP {}", response.status())));
        }
        if kind(&response).as_deref() != Some(EVENTS) {
            return Err(self.fault("answered with no event stream"));
        }
        Ok(self.events(response, max_sse_event_size, None))
    }
}

impl HttpClient {
    async fn send(
        &self,
        mut request: RequestBuilder,
        session_id: Option<Arc<str>>,
        headers: Headers,
    ) -> Result<Response, Failure> {
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(session_id) = session_id {
            request = request.header(SESSION, &*session_id);
        }
        request.send().await.map_err(|error| self.broken(error))
    }

    fn fault(&self, what: &str) -> Failure {
        let fault = Fault(format!("{} {what}", self.shown));
        StreamableHttpError::Client(self.faults.note(fault))
    }

    /// A request that found no way, or whose answer broke off.
    fn broken(&self, error: reqwest::Error) -> Failure {
        let is_connect = error.is_connect();
        let reason = innermost(&error.without_url());
        let fault = if is_connect {
            Fault(format!("cannot connect to {}: {reason}", self.shown))
        } else {
            Fault(format!("{}: {reason}", self.shown))
        };
        StreamableHttpError::Client(self.faults.note(fault))
    }

    /// A status that is no success: an error of the protocol if the body is one, else a fault.
    async fn refused(
        &self,
        mut response: Response,
        awaited: Option<RequestId>,
    ) -> Result<ServerJsonRpcMessage, Failure> {
        let status = response.status();
        if status.is_redirection() {
            let to = response.headers().get(LOCATION);
            let to = to
                .and_then(|to| to.to_str().ok())
                .map_or("nowhere".to_owned(), shown);
            let what = format!(
                "answered HTTP {status}, a redirect to {to}; it is not followed, so that no header goes astray: if it is \
                 right, make it the \"url\""
            );
            return Err(self.fault(&what));
        }
        let is_about_access = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let wanted = response.headers().get(WWW_AUTHENTICATE);
        let wanted = wanted
            .and_then(|wanted| wanted.to_str().ok())
            .map(str::to_owned);
        let body = self.body(&mut response, REFUSAL_BYTES).await;
        let body = match &body {
            Ok(body) => body.as_slice(),
            Err(_) => &[],
        };
        if !is_about_access
            && let Some(id) = awaited
            && let Some(JsonRpcMessage::Error(mut error)) =
                seal::sealed(body).and_then(|mut all| all.pop())
        {
            error.id = Some(id);
            return Ok(JsonRpcMessage::Error(error));
        }
        let mut what = format!("answered HTTP {status}");
        if let Some(wanted) = wanted {
            what.push_str(&format!(" (it wants: {wanted})"));
        }
        let text = String::from_utf8_lossy(body);
        let text = text.trim();
        if !text.is_empty() {
            what.push_str(": ");
            what.extend(text.chars().take(REFUSAL_SHOWN));
        }
        if is_about_access {
            what.push_str("; what it asks for belongs into \"headers\" of its entry");
        }
        Err(self.fault(&what))
    }

    /// The answer to the request `id`, given as JSON.
    async fn answer(
        &self,
        mut response: Response,
        id: RequestId,
        limit: usize,
    ) -> Result<ServerJsonRpcMessage, Failure> {
        let body = self.body(&mut response, limit).await?;
        let messages = seal::sealed(&body).unwrap_or_default();
        let mut answers = messages.into_iter().filter(|message| {
            matches!(
                message,
                JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)
            )
        });
        match answers.next() {
            Some(JsonRpcMessage::Response(response)) if is_same(&response.id, &id) => {
                Ok(JsonRpcMessage::Response(response))
            }
            // An error that does not say of what can only be of this.
            Some(JsonRpcMessage::Error(mut error))
                if error.id.as_ref().is_none_or(|other| is_same(other, &id)) =>
            {
                error.id = Some(id);
                Ok(JsonRpcMessage::Error(error))
            }
            Some(_) => Err(self.fault("answered another request than the one it got")),
            None => Err(self.fault("answered with JSON that is no answer")),
        }
    }

    async fn body(&self, response: &mut Response, limit: usize) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > limit => {
                    return Err(
                        self.fault(&format!("gave an answer larger than {} MiB", limit >> 20))
                    );
                }
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return Ok(body),
                Err(error) => return Err(self.broken(error)),
            }
        }
    }

    /// The events of an answer to the request `awaited`, or of a stream on which anything may come.
    fn events(&self, response: Response, limit: usize, awaited: Option<RequestId>) -> Events {
        let mut size = EventSize {
            limit,
            ..EventSize::default()
        };
        let client = self.clone();
        let bytes = response.bytes_stream().map(move |chunk| match chunk {
            Ok(chunk) if size.allows(&chunk) => Ok(chunk),
            Ok(_) => {
                let what = format!(
                    "{} gave an event larger than {} MiB",
                    client.shown,
                    limit >> 20
                );
                Err(client.faults.note(Fault(what)))
            }
            Err(error) => match client.broken(error) {
                StreamableHttpError::Client(fault) => Err(fault),
                other => Err(Fault::from(other)),
            },
        });
        let skipped = Arc::clone(&self.skipped);
        SseStream::from_bytes_stream(bytes)
            .flat_map(move |event| stream::iter(split(event, awaited.as_ref(), &skipped)))
            .boxed()
    }
}

/// An event as events of one message each, sealed.
///
/// The SDK ends a stream at the first answer on it: so answers to something else are left out.
fn split(
    event: Result<Sse, SseError>,
    awaited: Option<&RequestId>,
    skipped: &Skipped,
) -> Vec<Result<Sse, SseError>> {
    let mut event = match event {
        Ok(event) => event,
        Err(error) => return vec![Err(error)],
    };
    let is_message = matches!(event.event.as_deref(), None | Some("" | "message"));
    let Some(data) = event
        .data
        .take_if(|data| is_message && !data.trim().is_empty())
    else {
        return vec![Ok(event)];
    };
    let Some(messages) = seal::sealed(data.as_bytes()) else {
        lines::tell(skipped, data.as_bytes(), data.len());
        return vec![Ok(event)];
    };
    let is_wanted = |message: &&ServerJsonRpcMessage| match (answered(message), awaited) {
        (Some(answered), Some(awaited)) => is_same(answered, awaited),
        _ => true,
    };
    let texts = messages.iter().filter(is_wanted).map(serde_json::to_string);
    let mut texts: Vec<String> = texts.filter_map(Result::ok).collect();
    // The last one bears the id: only then is all of it read.
    event.data = texts.pop();
    let before = texts.into_iter().map(|data| Ok(Sse::default().data(data)));
    before.chain([Ok(event)]).collect()
}

/// Which request a message answers.
fn answered(message: &ServerJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

/// Some servers write the number of a request as text.
fn is_same(answered: &RequestId, asked: &RequestId) -> bool {
    answered == asked || answered.to_string() == asked.to_string()
}

/// The media type of an answer, without parameters.
fn kind(response: &Response) -> Option<String> {
    let kind = response.headers().get(CONTENT_TYPE)?;
    let kind = String::from_utf8_lossy(kind.as_bytes());
    let kind = kind.split(';').next().unwrap_or_default();
    Some(kind.trim().to_ascii_lowercase())
}

/// The reason behind all wrappers.
fn innermost(error: &reqwest::Error) -> String {
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        reason = inner.to_string();
        source = inner.source();
    }
    reason
}

/// Counts the bytes of an event until the empty line that ends it.
#[derive(Debug, Default)]
struct EventSize {
    limit: usize,
    bytes: usize,
    is_at_line_start: bool,
}

impl EventSize {
    /// Whether no event has become too large with these bytes.
    fn allows(&mut self, bytes: &[u8]) -> bool {
        for &byte in bytes {
            self.bytes += 1;
            match byte {
                b'\n' if self.is_at_line_start => self.bytes = 0,
                b'\n' => self.is_at_line_start = true,
                b'\r' => {}
                _ => self.is_at_line_start = false,
            }
            if self.bytes > self.limit {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_ends_with_an_empty_line() {
        let mut size = EventSize {
            limit: 10,
            ..EventSize::default()
        };
        assert!(size.allows(b"data: a\n\ndata: b\r\n\r\ndata: c"));
        assert!(!size.allows(b"ccccc"));
    }

    #[test]
    fn what_is_no_message_is_told_and_leaves_its_id() {
        let told = Arc::new(std::sync::Mutex::new(Vec::new()));
        let hears = Arc::clone(&told);
        let skipped: Skipped = Arc::new(move |line| hears.lock().unwrap().push(line));
        let event = Sse::default().data("a log").id("7");
        let mut split = split(Ok(event), None, &skipped);
        let event = split.remove(0).unwrap();
        assert_eq!((event.data, event.id), (None, Some("7".to_owned())));
        assert_eq!(*told.lock().unwrap(), ["a log"]);
    }

    #[test]
    fn a_batch_becomes_an_event_each() {
        let skipped: Skipped = Arc::new(|line| panic!("{line}"));
        let one = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let event = Sse::default().data(format!("[{one},{one}]")).id("7");
        let ids: Vec<_> = split(Ok(event), None, &skipped)
            .into_iter()
            .map(|event| event.unwrap().id)
            .collect();
        assert_eq!(ids, [None, Some("7".to_owned())]);
    }
}

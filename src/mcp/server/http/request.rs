//! The body of a request, read and judged before the SDK gets it: its own answer to what is no message is a plain text,
//! which clients cannot tell from a broken server.

use std::future::poll_fn;
use std::pin::Pin;

use hyper::body::{Body as _, Incoming};
use hyper::{Request, StatusCode};
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde_json::{Value, json};

use crate::json;
use crate::mcp::lines::MAX_LINE;
use crate::mcp::server::message;

use super::body::{self, Refusal, Whole};

/// The largest body that is read; as much as a line of stdio.
pub(super) const MAX_BODY: usize = MAX_LINE;
/// How deep a message may be nested: the SDK's reader gives up a little later.
const MAX_DEPTH: usize = 100;

/// The request with its whole body, or the answer to what cannot be used.
pub(super) async fn read(request: Request<Incoming>) -> Result<Request<Whole>, Refusal> {
    let (head, mut incoming) = request.into_parts();
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut incoming).poll_frame(context)).await {
        let frame = frame.map_err(|_| {
            // Nobody reads this: the connection is broken.
            Box::new(body::text(
                StatusCode::BAD_REQUEST,
                "the body broke off\n".to_owned(),
            ))
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if bytes.len() + data.len() > MAX_BODY {
            let text = format!("the message is larger than {} MiB", MAX_BODY >> 20);
            return Err(wrong(
                StatusCode::PAYLOAD_TOO_LARGE,
                None,
                ErrorCode::INVALID_REQUEST,
                &text,
            ));
        }
        bytes.extend_from_slice(&data);
    }
    judge(&bytes)?;
    Ok(Request::from_parts(head, Whole::new(bytes)))
}

fn judge(bytes: &[u8]) -> Result<(), Refusal> {
    let bad = |id: Option<&RequestId>, code, text: &str| {
        Err(wrong(StatusCode::BAD_REQUEST, id, code, text))
    };
    let value = match json::parse(bytes) {
        Ok(value) => value,
        Err(error) => {
            let text = format!("not JSON: {}", error.message);
            return bad(None, ErrorCode::PARSE_ERROR, &text);
        }
    };
    if value.is_array() {
        let text = "a request holds one message; batches are no part of the protocol any more";
        return bad(None, ErrorCode::INVALID_REQUEST, text);
    }
    let id = message::id(&value);
    if json::depth(&value) > MAX_DEPTH {
        let text = format!("the message is nested deeper than {MAX_DEPTH} levels");
        return bad(id.as_ref(), ErrorCode::INVALID_PARAMS, &text);
    }
    match message::read(value) {
        Some(_) => Ok(()),
        None => bad(
            id.as_ref(),
            ErrorCode::INVALID_REQUEST,
            message::NOT_A_MESSAGE,
        ),
    }
}

fn wrong(status: StatusCode, id: Option<&RequestId>, code: ErrorCode, text: &str) -> Refusal {
    let error = ErrorData::new(code, text.to_owned(), None);
    let value: Value = json!({"jsonrpc": "2.0", "id": id, "error": error});
    Box::new(body::json(status, json::compact(&value)))
}

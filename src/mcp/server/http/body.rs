//! Bodies of answers, and how many are still on their way.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::sync::watch;

/// The body of an answer: all at once, or as it comes from the SDK.
pub(super) struct Answer {
    body: Pin<Box<dyn Body<Data = Bytes, Error = Infallible> + Send>>,
    _counted: Option<Counted>,
}

impl Answer {
    pub(super) fn stream(
        body: impl Body<Data = Bytes, Error = Infallible> + Send + 'static,
    ) -> Self {
        Self {
            body: Box::pin(body),
            _counted: None,
        }
    }

    /// The same, counted as open until it is over.
    pub(super) fn counted(self, counted: Counted) -> Self {
        Self {
            _counted: Some(counted),
            ..self
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.body.as_mut().poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Bytes that are there already.
pub(super) struct Whole(Option<Bytes>);

impl Whole {
    pub(super) fn new(bytes: impl Into<Bytes>) -> Self {
        Self(Some(bytes.into()))
    }
}

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let length = self.0.as_ref().map_or(0, Bytes::len);
        SizeHint::with_exact(length as u64)
    }
}

/// The answer to a request that goes no further; boxed, as it is the rare case.
pub(super) type Refusal = Box<Response<Answer>>;

/// An answer for people.
pub(super) fn text(status: StatusCode, text: String) -> Response<Answer> {
    whole(status, "text/plain; charset=utf-8", text)
}

/// An answer for programs.
pub(super) fn json(status: StatusCode, json: String) -> Response<Answer> {
    whole(status, "application/json", json)
}

fn whole(status: StatusCode, kind: &'static str, text: String) -> Response<Answer> {
    let mut response = Response::new(Answer::stream(Whole::new(text)));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// How many requests are not answered to the end.
#[derive(Debug, Default)]
pub(super) struct Open(watch::Sender<usize>);

/// One of them, as long as this lives.
#[derive(Debug)]
pub(super) struct Counted(watch::Sender<usize>);

impl Open {
    pub(super) fn one_more(&self) -> Counted {
        self.0.send_modify(|open| *open += 1);
        Counted(self.0.clone())
    }

    /// Waits until there is none.
    pub(super) async fn none(&self) {
        let _ = self.0.subscribe().wait_for(|open| *open == 0).await;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

//! Signs of progress of a call: what they tell, and the time that they give it.

use std::time::Duration;

use rmcp::model::ProgressNotificationParam;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::json;

/// By how much signs of progress may stretch the time of a call, all together.
const PROGRESS_CAP: u32 = 10;

/// How long a call may still take: every sign of progress renews its time, up to [`PROGRESS_CAP`] times all together.
pub(super) struct Patience {
    timeout: Option<Duration>,
    deadline: Option<Instant>,
    last: Option<Instant>,
}

impl Patience {
    pub(super) fn new(timeout: Option<Duration>) -> Self {
        let from_now = |time: Duration| Instant::now().checked_add(time);
        Self {
            timeout,
            deadline: timeout.and_then(from_now),
            last: timeout
                .and_then(|timeout| timeout.checked_mul(PROGRESS_CAP))
                .and_then(from_now),
        }
    }

    pub(super) fn renew(&mut self) {
        let renewed = self
            .timeout
            .and_then(|timeout| Instant::now().checked_add(timeout));
        self.deadline = match (renewed, self.last) {
            (Some(renewed), Some(last)) => Some(renewed.min(last)),
            (renewed, _) => renewed,
        };
    }

    /// Waits until the time is over; gives what it was.
    pub(super) async fn end(&self) -> Duration {
        match (self.deadline, self.timeout) {
            (Some(deadline), Some(timeout)) => {
                tokio::time::sleep_until(deadline).await;
                timeout
            }
            _ => std::future::pending().await,
        }
    }
}

/// Progress as a partial result; `details` are what a progress bar is made of.
pub(super) fn as_update(progress: &ProgressNotificationParam) -> Value {
    let content: Vec<Value> = progress
        .message
        .iter()
        .map(|message| json!({"type": "text", "text": message}))
        .collect();
    let mut details = json!({"progress": number(progress.progress)});
    if let Some(total) = progress.total {
        details["total"] = number(total);
    }
    json!({"content": content, "details": details})
}

/// A whole number is written as one.
fn number(number: f64) -> Value {
    let text = json::number_text(&serde_json::Number::from_f64(number).unwrap_or_else(|| 0.into()));
    serde_json::from_str(&text).unwrap_or_else(|_| number.into())
}

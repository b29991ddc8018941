//! One `tools/call`: a batch of one, its updates as notifications, its outcome as a result.

use std::sync::Mutex;

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::batch::{self, Batch};
use crate::call::Outcome;
use crate::event::{Event, Listener, Notice};
use crate::json;
use crate::mcp::content::mcp_blocks;
use crate::message::{ToolCall, ToolResult};
use crate::past::Past;
use crate::stop::{Stop, StopLevel, Stopper};
use crate::tool::ExecutionMode;

use super::Serving;
use super::session::LogLevel;

/// How much of an update's last line a client is told.
const MESSAGE_CHARS: usize = 200;

/// Runs a call to its result. Only a tool that does not exist is an error of the protocol.
pub(super) async fn run(
    serving: &Serving,
    call: &ToolCall,
    log_level: Option<LogLevel>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let runner = serving.runner();
    let found = tokio::select! {
        found = runner.registry.find(&call.name) => found,
        () = context.ct.cancelled() => return Ok(failed("Operation aborted")),
    };
    let tool = match found {
        Ok(Some(tool)) => tool,
        Ok(None) => {
            return Err(ErrorData::invalid_params(
                format!("Unknown tool: {}", call.name),
                None,
            ));
        }
        Err(reason) => return Ok(failed(reason)),
    };
    let message = json!({"role": "assistant", "content": [call], "stopReason": "toolUse"});
    let (reports, reported) = unbounded_channel();
    let listener = CallListener::new(&*serving.0.listener, reports);
    let stopper = Stopper::new();
    let stop = stopper.stop();
    let answer = async {
        let journal = runner.journal.as_ref();
        let recorded = journal.map(|journal| journal.new_batch(std::slice::from_ref(call)));
        let batch = Batch {
            message: &message,
            calls: std::slice::from_ref(call),
            stop_reason: Some("toolUse"),
            past: recorded.as_ref().map_or(Past::None, Past::Journal),
        };
        // On the heap: what is around it is moved from hand to hand.
        let run = Box::pin(batch::run(&runner, batch, &listener, &stop));
        let mut answered = run.await;
        // The last report has been made: whoever passes them on may end.
        drop(listener);
        answered.outcomes.pop().expect("every call has an outcome")
    };
    let client = Client {
        peer: &context.peer,
        token: context.meta.get_progress_token(),
        log_level,
        tool_name: tool.name(),
    };
    let passing_on = client.pass_on(reported);
    let alone = tool.execution_mode == Some(ExecutionMode::Sequential);
    let run = serving.in_turn(alone, async { tokio::join!(answer, passing_on) });
    let outcome = tokio::select! {
        (outcome, ()) = run => outcome,
        () = stopping(&stopper, context, &serving.0.stop) => unreachable!("stopping never ends"),
    };
    Ok(result(&outcome))
}

/// Passes on every reason to stop.
async fn stopping(stopper: &Stopper, context: &RequestContext<RoleServer>, stop: &Stop) {
    let cancelled = async {
        context.ct.cancelled().await;
        stopper.raise(StopLevel::Stopping);
    };
    let stopped = async {
        stop.stopped().await;
        stopper.raise(StopLevel::Stopping);
        stop.stopped_now().await;
        stopper.raise(StopLevel::Now);
    };
    tokio::join!(cancelled, stopped);
    std::future::pending::<()>().await;
}

/// A result whose text says why there is none.
fn failed(reason: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(reason)])
}

/// An outcome as the protocol's result.
fn result(outcome: &Outcome) -> CallToolResult {
    let content = content(&outcome.result);
    let mut result = if outcome.is_error {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    };
    // The protocol knows only objects; of anything else the text stays.
    let structured_content = outcome.result.structured_content.as_ref();
    result.structured_content = structured_content
        .filter(|value| value.is_object())
        .cloned();
    result
}

fn content(result: &ToolResult) -> Vec<ContentBlock> {
    let block = |block: Value| {
        let text = json::compact(&block);
        serde_json::from_value(block).unwrap_or_else(|_| ContentBlock::text(text))
    };
    mcp_blocks(result).into_iter().map(block).collect()
}

/// Something to tell the client of a call.
enum Report {
    Update(Progress),
    Log { is_warning: bool, text: String },
}

/// Where a call is.
#[derive(Debug, Clone, PartialEq)]
struct Progress {
    done: f64,
    total: Option<f64>,
    message: Option<String>,
}

/// Hears a call on behalf of its client, and lets the server's own listener hear it too.
struct CallListener<'a> {
    server: &'a dyn Listener,
    reports: UnboundedSender<Report>,
    counter: Mutex<Counter>,
}

impl<'a> CallListener<'a> {
    fn new(server: &'a dyn Listener, reports: UnboundedSender<Report>) -> Self {
        Self {
            server,
            reports,
            counter: Mutex::default(),
        }
    }

    fn report(&self, report: Report) {
        // Nobody passes it on once the call is over.
        let _ = self.reports.send(report);
    }
}

impl Listener for CallListener<'_> {
    fn event(&self, event: Event<'_>) {
        self.server.event(event);
        if let Event::Update { partial_result, .. } = event {
            let mut counter = self
                .counter
                .lock()
                .expect("nothing panics while it is held");
            if let Some(progress) = counter.next(partial_result) {
                self.report(Report::Update(progress));
            }
        }
    }

    fn notice(&self, notice: Notice) {
        let (is_warning, text) = match &notice {
            Notice::ToolStderr { lines, .. } => (false, lines),
            Notice::ServerLine { line, .. } => (false, line),
            Notice::Warning(sentence) => (true, sentence),
        };
        for line in text.lines() {
            self.report(Report::Log {
                is_warning,
                text: line.to_owned(),
            });
        }
        self.server.notice(notice);
    }
}

/// Makes progress of updates: numbers where the tool gives them, else the count. It only rises, as the protocol wants.
#[derive(Debug, Default)]
struct Counter {
    last: Option<f64>,
}

impl Counter {
    fn next(&mut self, update: &Value) -> Option<Progress> {
        let number = |name: &str| {
            update
                .pointer(&format!("/details/{name}"))
                .and_then(Value::as_f64)
        };
        let given = number("progress");
        let progress = given.unwrap_or(self.last.unwrap_or_default() + 1.0);
        if self.last.is_some_and(|last| progress <= last) {
            return None;
        }
        self.last = Some(progress);
        Some(Progress {
            done: progress,
            total: given.and(number("total")),
            message: last_line(update),
        })
    }
}

/// The last line with text in an update, shortened.
fn last_line(update: &Value) -> Option<String> {
    let blocks = update.get("content")?.as_array()?;
    let texts = blocks
        .iter()
        .rev()
        .filter_map(|block| block.get("text")?.as_str());
    let line = texts
        .flat_map(|text| text.lines().rev())
        .find(|line| !line.trim().is_empty())?;
    Some(line.chars().take(MESSAGE_CHARS).collect())
}

/// The client of a call and what it wants to hear. That it is gone is told by the transport, not here.
struct Client<'a> {
    peer: &'a Peer<RoleServer>,
    token: Option<ProgressToken>,
    log_level: Option<LogLevel>,
    tool_name: &'a str,
}

impl Client<'_> {
    /// Tells the client everything until the call has nothing more to report.
    async fn pass_on(&self, mut reports: UnboundedReceiver<Report>) {
        while let Some(report) = reports.recv().await {
            match report {
                Report::Update(progress) => self.progress(progress).await,
                Report::Log { is_warning, text } => self.log(is_warning, text).await,
            }
        }
    }

    async fn progress(&self, progress: Progress) {
        if let Some(token) = &self.token {
            let mut params = ProgressNotificationParam::new(token.clone(), progress.done);
            params.total = progress.total;
            params.message.clone_from(&progress.message);
            let _ = self.peer.notify_progress(params).await;
        }
        if let Some(message) = progress.message {
            self.log(false, message).await;
        }
    }

    #[expect(
        deprecated,
        reason = "the SDK marks what the newest protocol drops; today's clients ask for logs"
    )]
    async fn log(&self, is_warning: bool, text: String) {
        let level = if is_warning {
            LogLevel::Warning
        } else {
            LogLevel::Info
        };
        let is_wanted = self
            .log_level
            .is_some_and(|wanted| level as u8 >= wanted as u8);
        if is_wanted {
            let params = rmcp::model::LoggingMessageNotificationParam::new(level, text.into())
                .with_logger(self.tool_name);
            let _ = self.peer.notify_logging_message(params).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(text: &str, details: &Value) -> Value {
        json!({"content": [{"type": "text", "text": text}], "details": details})
    }

    #[track_caller]
    fn next(
        counter: &mut Counter,
        update: &Value,
        expected: Option<(f64, Option<f64>, Option<&str>)>,
    ) {
        let expected = expected.map(|(done, total, message)| Progress {
            done,
            total,
            message: message.map(str::to_owned),
        });
        assert_eq!(counter.next(update), expected);
    }

    #[test]
    fn progress_is_what_the_tool_says_else_a_count() {
        let mut counter = Counter::default();
        next(
            &mut counter,
            &update("a\nb\n\n", &Value::Null),
            Some((1.0, None, Some("b"))),
        );
        next(&mut counter, &json!({}), Some((2.0, None, None)));
        let numbers = json!({"progress": 30, "total": 40});
        next(
            &mut counter,
            &update("", &numbers),
            Some((30.0, Some(40.0), None)),
        );
        // The protocol wants it to rise.
        next(&mut counter, &update("again", &numbers), None);
        next(
            &mut counter,
            &update("x", &json!({"total": 40})),
            Some((31.0, None, Some("x"))),
        );
    }

    #[test]
    fn progress_may_begin_at_zero() {
        let mut counter = Counter::default();
        let begun = update("", &json!({"progress": 0, "total": 100}));
        next(&mut counter, &begun, Some((0.0, Some(100.0), None)));
        next(&mut counter, &begun, None);
    }

    #[test]
    fn messages_are_short() {
        let message = last_line(&update(&"é".repeat(300), &Value::Null)).unwrap();
        assert_eq!(message.chars().count(), 200);
    }
}

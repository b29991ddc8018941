//! All calls of one assistant message: one outcome and one message per call, in source order, whatever happens.
//!
//! A group is prepared call by call in order (no tool has started when the last before hook answers), then all that may
//! run run at the same time. *Sequential* is a row of groups of one, *parallel* is one group. Everything concurrent
//! lives on the task that polls the batch; nothing is spawned.

use std::ops::Range;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::call::{self, CallError, Mode, Options, Outcome, Ready, Runner, Scope};
use crate::event::{Event, Listener};
use crate::execute::{self, Standing};
use crate::format::Turn;
use crate::message::{ToolCall, ToolResultMessage};
use crate::nested::Slot;
use crate::past::Past;
use crate::queue::Ticket;
use crate::stop::Stop;
use crate::tool::{CallsTools, ExecutionMode};

/// The calls of one assistant message.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// The assistant message in pi form, as hooks and `turn_end` see it.
    pub message: &'a Value,
    /// Its calls, in source order.
    pub calls: &'a [ToolCall],
    /// Why the model stopped, in pi's words (`toolUse`, `length`, `error`, `aborted`, …).
    pub stop_reason: Option<&'a str>,
    /// What earlier runs know of it, and where this one is recorded.
    pub past: Past<'a>,
}

impl<'a> Batch<'a> {
    /// The calls of a turn that was read; nothing is known of them and nothing recorded.
    pub fn of(turn: &'a Turn) -> Self {
        Self {
            message: &turn.message,
            calls: &turn.calls,
            stop_reason: turn.stop_reason.as_deref(),
            past: Past::None,
        }
    }
}

/// A batch with all its answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// One per call, in source order.
    pub outcomes: Vec<Outcome>,
    /// One per call, in source order.
    pub messages: Vec<ToolResultMessage>,
    /// Whether there are calls and every one asked to terminate.
    pub terminate: bool,
}

/// Runs a batch to its answers. Never fails: what goes wrong with a call is its result.
///
/// Must be polled in a tokio runtime with time and I/O. Dropping it ends what runs.
///
/// ```
/// use std::sync::Arc;
///
/// use pitool::batch::{self, Batch};
/// use pitool::call::{Options, Runner};
/// use pitool::event::Silent;
/// use pitool::message::ToolCall;
/// use pitool::past::Past;
/// use pitool::registry::Registry;
/// use pitool::stop::Stop;
/// use serde_json::json;
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// let runner = Runner::new(Arc::new(Registry::new()), Options::default());
/// let calls = [ToolCall::new("call-1", "nobody", json!({}))];
/// let batch = Batch {
///     message: &json!({"role": "assistant", "content": calls}),
///     calls: &calls,
///     stop_reason: Some("toolUse"),
///     past: Past::None,
/// };
/// let answered = batch::run(&runner, batch, &Silent, &Stop::never()).await;
/// assert_eq!(answered.messages.len(), 1);
/// assert_eq!(answered.messages[0].tool_call_id, "call-1");
/// assert!(answered.messages[0].is_error);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn run(
    runner: &Runner,
    batch: Batch<'_>,
    listener: &dyn Listener,
    stop: &Stop,
) -> Answered {
    let scope = Scope {
        runner,
        assistant_message: batch.message,
        listener,
        stop,
    };
    let mut answers = Answers::new(listener);
    let refusal = || batch.past.refusal().map(CallError::NotExecuted);
    if let Some(error) = withheld(&runner.options, batch.stop_reason).or_else(refusal) {
        for tool_call in batch.calls {
            listener.event(Event::Start {
                call: tool_call,
                replayed: false,
            });
            let outcome = Outcome::refused(runner, tool_call, error.clone());
            emit_end(listener, &outcome);
            answers.add(vec![outcome]);
        }
    } else {
        let group_size = match mode(runner, batch.calls) {
            Mode::Parallel => batch.calls.len().max(1),
            Mode::Sequential => 1,
        };
        for first in (0..batch.calls.len()).step_by(group_size) {
            let group = first..batch.calls.len().min(first + group_size);
            answers.add(run_group(scope, batch, group).await);
        }
    }
    answers.finish(batch.message)
}

/// Why nothing of a message with this stop reason may run, if so.
pub fn withheld(options: &Options, stop_reason: Option<&str>) -> Option<CallError> {
    if let Some(reason) = &options.withheld {
        return Some(CallError::NotLoaded(reason.clone()));
    }
    let reason = match stop_reason? {
        "length" => "the response hit the output token limit, so its arguments may be truncated. \
                     Re-issue the tool call with complete arguments."
            .to_owned(),
        reason @ ("error" | "aborted") => {
            format!("the response ended with stop reason \"{reason}\".")
        }
        _ => return None,
    };
    Some(CallError::NotExecuted(reason))
}

/// One call to a tool that insists on sequence makes the whole batch sequential.
fn mode(runner: &Runner, calls: &[ToolCall]) -> Mode {
    let insists = |tool_call: &ToolCall| {
        let tool = runner.registry.get(&tool_call.name);
        tool.is_some_and(|tool| tool.execution_mode == Some(ExecutionMode::Sequential))
    };
    if calls.iter().any(insists) {
        Mode::Sequential
    } else {
        runner.options.mode
    }
}

/// Prepares the calls of a group in order, then runs all that may run at the same time.
async fn run_group(scope: Scope<'_>, batch: Batch<'_>, group: Range<usize>) -> Vec<Outcome> {
    if matches!(batch.past, Past::None) {
        // With a past, a call may be answered without its server.
        let calls = batch.calls[group.clone()].iter();
        let names = calls.map(|tool_call| tool_call.name.as_str());
        scope.runner.registry.expect(names);
    }
    let first = group.start;
    let mut outcomes: Vec<Option<Outcome>> = Vec::with_capacity(group.len());
    let mut ready = Vec::new();
    for position in group {
        match prepare(scope, batch, position).await {
            Ok(prepared) => {
                ready.push((position, prepared));
                outcomes.push(None);
            }
            Err(outcome) => {
                emit_end(scope.listener, &outcome);
                outcomes.push(Some(*outcome));
            }
        }
    }
    let slots = scope
        .runner
        .options
        .jobs
        .map(|jobs| Arc::new(Semaphore::new(jobs.get())));
    let mut running: FuturesUnordered<_> = ready
        .into_iter()
        .map(|(position, ready)| {
            // Taken here, in source order; waited for in the future.
            let ticket = ticket(scope, &ready);
            let slots = slots.clone();
            async move {
                let outcome = run_one(scope, batch, position, ready, ticket, slots).await;
                (position, outcome)
            }
        })
        .collect();
    while let Some((position, outcome)) = running.next().await {
        emit_end(scope.listener, &outcome);
        outcomes[position - first] = Some(outcome);
    }
    let every = outcomes
        .into_iter()
        .map(|outcome| outcome.expect("every call is finished exactly once"));
    every.collect()
}

/// Starts one call: answered by the past, or ready to run, or ended by a step before `execute`.
async fn prepare(
    scope: Scope<'_>,
    batch: Batch<'_>,
    position: usize,
) -> Result<Ready, Box<Outcome>> {
    let tool_call = &batch.calls[position];
    let answer = batch.past.answer(scope.runner, position, tool_call);
    scope.listener.event(Event::Start {
        call: tool_call,
        replayed: answer.as_ref().is_some_and(|outcome| outcome.replayed),
    });
    match answer {
        Some(outcome) => Err(Box::new(outcome)),
        None => call::prepare(scope, tool_call).await,
    }
}

/// The place in the file queue of a call that changes files or may make calls that do.
fn ticket(scope: Scope<'_>, ready: &Ready) -> Option<Ticket> {
    let files = call::files(ready);
    let is_needed = !files.is_empty() || ready.tool.calls_tools != CallsTools::None;
    is_needed.then(|| {
        let ticket = scope.runner.files.take(files, None);
        ticket.expect("only a nested call can close a circle")
    })
}

/// Waits for the files, then for a slot, then runs the call.
async fn run_one(
    scope: Scope<'_>,
    batch: Batch<'_>,
    position: usize,
    ready: Ready,
    ticket: Option<Ticket>,
    slots: Option<Arc<Semaphore>>,
) -> Outcome {
    let tool_call = &batch.calls[position];
    let turn = async {
        if let Some(ticket) = &ticket {
            ticket.ready().await;
        }
        Slot::take(slots).await
    };
    let slot = tokio::select! {
        biased;
        () = scope.stop.stopped() => return call::aborted(scope, tool_call, ready),
        slot = turn => slot,
    };
    let standing = Standing {
        depth: 0,
        slot: &slot,
        journal: batch.past.journal(),
        position,
    };
    // Boxed here, so that thousands of calls that wait for a slot are small.
    Box::pin(execute::execute(scope, tool_call, ready, ticket, standing)).await
}

fn emit_end(listener: &dyn Listener, outcome: &Outcome) {
    listener.event(Event::End {
        call: &outcome.tool_call,
        result: &outcome.result,
        is_error: outcome.is_error,
        duration_ms: outcome.duration_ms,
        replayed: outcome.replayed,
    });
}

/// The answers so far; their message events are sent as they come in.
struct Answers<'a> {
    listener: &'a dyn Listener,
    outcomes: Vec<Outcome>,
    messages: Vec<ToolResultMessage>,
}

impl<'a> Answers<'a> {
    fn new(listener: &'a dyn Listener) -> Self {
        Self {
            listener,
            outcomes: Vec::new(),
            messages: Vec::new(),
        }
    }

    fn add(&mut self, outcomes: Vec<Outcome>) {
        for outcome in outcomes {
            let message = outcome.message();
            self.listener
                .event(Event::MessageStart { message: &message });
            self.listener.event(Event::MessageEnd { message: &message });
            self.messages.push(message);
            self.outcomes.push(outcome);
        }
    }

    fn finish(self, message: &Value) -> Answered {
        let Self {
            listener,
            outcomes,
            messages,
        } = self;
        let terminate = !outcomes.is_empty()
            && outcomes
                .iter()
                .all(|outcome| outcome.result.terminate == Some(true));
        listener.event(Event::TurnEnd {
            message,
            tool_results: &messages,
            terminate,
        });
        Answered {
            outcomes,
            messages,
            terminate,
        }
    }
}

//! Calls that a running tool makes, by `pitool call` inside it.
//!
//! They take the same steps as calls of a model, hooks included, but send no events and no messages: the parent's
//! message lists them. A nested call runs in its parent's slot and does not wait for files that its ancestors hold.
//! It ends with its parent at the latest.

pub mod client;
mod door;
mod request;
mod slot;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use crate::call::{self, CallError, Executed, Outcome, Ready, Scope};
use crate::event::{Event, Listener, Notice};
use crate::execute::{self, Standing};
use crate::message::{NestedCall, NestedCalls, NestedStatus, ToolCall};
use crate::program::sandbox::Sandbox;
use crate::queue::{Deadlock, Ticket};
use crate::stop::{Stop, StopLevel, Stopper};
use crate::tool::{CallsTools, Executor, Tool};

use door::{Door, Reach, Visitor};
pub(crate) use slot::Slot;

/// How many calls may stand above a nested one.
const MAX_DEPTH: usize = 8;

/// What serves the calls of one running tool.
pub(crate) struct Host {
    door: Door,
}

impl Host {
    /// Opens the door of a program that may call tools; `None` for all other tools.
    pub(crate) fn open(tool: &Tool) -> std::io::Result<Option<Self>> {
        let is_program = matches!(tool.executor, Executor::Program(_));
        if !is_program || tool.calls_tools == CallsTools::None {
            return Ok(None);
        }
        let has_sockets = tool.sandbox.as_ref().is_none_or(Sandbox::has_network);
        let reach = if has_sockets {
            Reach::Socket
        } else {
            Reach::PipesOnly
        };
        let door = Door::open(reach)?;
        Ok(Some(Self { door }))
    }

    /// Runs the tool and answers its calls meanwhile. When the tool has ended, those still running are stopped.
    pub(crate) async fn run(mut self, parent: Parent<'_>) -> Executed {
        let calls = Calls::default();
        let ended = Stopper::new();
        let socket = self.door.socket().to_path_buf();
        let executed = call::run(parent.scope, parent.call, parent.ready, Some(&socket));
        tokio::pin!(executed);
        let mut running = FuturesUnordered::new();
        let mut executed = loop {
            tokio::select! {
                biased;
                Some(()) = running.next(), if !running.is_empty() => {}
                executed = &mut executed => break executed,
                visitor = self.door.next() => {
                    running.push(parent.answer(visitor, &calls, ended.stop()));
                }
            }
        };
        // Listed as they are now: what a call comes to after its parent's end, its parent never knew.
        executed.nested_calls = calls.list();
        ended.raise(StopLevel::Now);
        while running.next().await.is_some() {}
        executed
    }
}

/// The call that runs, as its nested calls see it.
#[derive(Clone, Copy)]
pub(crate) struct Parent<'a> {
    pub(crate) scope: Scope<'a>,
    pub(crate) call: &'a ToolCall,
    pub(crate) ready: &'a Ready,
    pub(crate) ticket: Option<&'a Ticket>,
    pub(crate) standing: Standing<'a>,
}

impl Parent<'_> {
    /// Answers one visitor. It is stopped with its parent, and when the visitor hangs up.
    async fn answer(self, mut visitor: Visitor, calls: &Calls, ended: Stop) {
        let stopper = Stopper::new();
        let stop = stopper.stop();
        let parents = async {
            tokio::join!(stopper.follow(self.scope.stop), stopper.follow(&ended));
        };
        tokio::pin!(parents);
        let request = tokio::select! {
            request = visitor.request() => request,
            () = ended.stopped() => return,
        };
        let Some(request) = request else {
            return;
        };
        let (index, call) = calls.add(&self.call.id, request.name, request.arguments);
        let has_left = AtomicBool::new(false);
        let outcome = {
            let hangs_up = async {
                visitor.left().await;
                has_left.store(true, Ordering::Relaxed);
                stopper.raise(StopLevel::Stopping);
                std::future::pending::<()>().await;
            };
            // Boxed: a nested call may hold nested calls.
            let outcome = Box::pin(self.run(&call, &stop));
            tokio::select! {
                biased;
                outcome = outcome => outcome,
                () = parents => unreachable!("a stop is followed for ever"),
                () = hangs_up => unreachable!("hanging up is never over"),
            }
        };
        // A tool that ended, or hung up, never learned what its call came to.
        if !ended.is_stopping() && !has_left.into_inner() {
            calls.finish(index, &outcome);
        }
        let line = serde_json::to_vec(&outcome).expect("an outcome has only string keys");
        tokio::select! {
            () = visitor.answer(line) => {}
            // Nobody is left to read it.
            () = ended.stopped() => {}
        }
    }

    async fn run(self, call: &ToolCall, stop: &Stop) -> Outcome {
        let listener = NoticesOnly(self.scope.listener);
        let scope = Scope {
            listener: &listener,
            stop,
            ..self.scope
        };
        if let Err(error) = self.admit(call) {
            return Outcome::refused(scope.runner, call, error);
        }
        let ready = match call::prepare(scope, call).await {
            Ok(ready) => ready,
            Err(outcome) => return *outcome,
        };
        let files = call::files(&ready);
        let ticket = match scope.runner.files.take(files, self.ticket) {
            Ok(ticket) => ticket,
            Err(Deadlock { file }) => {
                let error = CallError::Deadlock(file.display().to_string());
                return Outcome::refused(scope.runner, call, error);
            }
        };
        tokio::select! {
            biased;
            () = stop.stopped() => return call::aborted(scope, call, ready),
            () = self.standing.slot.lend_while(ticket.ready()) => {}
        }
        execute::execute(scope, call, ready, Some(ticket), self.standing.nested()).await
    }

    fn admit(self, call: &ToolCall) -> Result<(), CallError> {
        let tool = &self.ready.tool;
        if !tool.calls_tools.allows(&call.name) {
            return Err(CallError::MayNotCall(tool.name().to_owned()));
        }
        if self.standing.depth >= MAX_DEPTH {
            return Err(CallError::TooDeep(MAX_DEPTH));
        }
        Ok(())
    }
}

/// The calls that a tool made so far.
#[derive(Default)]
struct Calls(Mutex<Vec<NestedCall>>);

impl Calls {
    /// Gives the next call its id, `PARENT/N`.
    fn add(&self, parent: &str, name: String, arguments: serde_json::Value) -> (usize, ToolCall) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = calls.len();
        let id = format!("{parent}/{}", index + 1);
        calls.push(NestedCall {
            id: id.clone(),
            name: name.clone(),
            arguments: Some(arguments.clone()),
            status: NestedStatus::Unfinished,
            duration_ms: None,
            error: None,
        });
        let call = ToolCall {
            id,
            name,
            arguments,
            arguments_error: None,
        };
        (index, call)
    }

    fn finish(&self, index: usize, outcome: &Outcome) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let call = &mut calls[index];
        call.duration_ms = outcome.duration_ms;
        if outcome.is_error {
            call.status = NestedStatus::Error;
            call.error = Some(outcome.result.joined_text());
        } else {
            call.status = NestedStatus::Ok;
        }
    }

    /// What the parent's message lists; `None` if there was none.
    fn list(&self) -> Option<NestedCalls> {
        let calls = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let is_finished = |call: &NestedCall| call.status != NestedStatus::Unfinished;
        (!calls.is_empty()).then(|| NestedCalls {
            complete: calls.iter().all(is_finished),
            calls,
        })
    }
}

/// Nested calls are no events of the batch; what a person should know passes.
struct NoticesOnly<'a>(&'a dyn Listener);

impl Listener for NoticesOnly<'_> {
    fn event(&self, _event: Event<'_>) {}

    fn notice(&self, notice: Notice) {
        self.0.notice(notice);
    }
}

//! One call, from what the model asked to its outcome: lookup, `prepareArguments`, coercion and validation,
//! `beforeToolCall`, `execute`, `afterToolCall`, in this order, always.
//!
//! A step before `execute` that fails ends the call with a [`CallError`]; nothing after it runs. Once `execute` has
//! started, `afterToolCall` runs, also after a throw, a timeout or a stop. A call never fails as a Rust error: whatever
//! happens becomes its [`Outcome`]. Which calls run when is the business of [`crate::batch`].

mod course;
mod error;
mod hooks;
mod options;
mod output;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;

pub use error::CallError;
pub use options::{Gate, Mode, Options, OutputCheck, Profile, Runner, Verdict};
pub(crate) use output::output_errors;

use crate::event::{Event, Listener, Notice};
use crate::json;
use crate::message::{NestedCalls, ToolCall, ToolResult, ToolResultMessage, unix_millis};
use crate::program::{Invocation, Probe, Throw};
use crate::queue::Files;
use crate::schema::{self, AcceptOptions, Rejected, Step, Violation};
use crate::stop::Stop;
use crate::tool::{Execution, Executor, Prepare, Tool, Updates};

/// What one call came to.
///
/// Wire shape: `{"toolCall":{…},"result":{…},"isError":false,"durationMs":3,"coercion":[…],"outputErrors":[…]}`;
/// empty and absent parts are absent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// The call as the model sent it.
    pub tool_call: ToolCall,
    /// The final result.
    pub result: ToolResult,
    /// Whether the call failed, in whatever way.
    pub is_error: bool,
    /// Monotonic milliseconds of `execute` alone; absent when it did not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// What coercion did to the arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub coercion: Vec<Step>,
    /// Where `structuredContent` does not keep what `outputSchema` promises.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub output_errors: Vec<Violation>,
    /// Answered from a journal.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// Calls that the tool made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nested_calls: Option<NestedCalls>,
    /// Unix milliseconds of its message, if a journal has it.
    #[serde(skip)]
    pub recorded_at: Option<u64>,
}

impl Outcome {
    /// The message that answers the call, stamped now or when it was recorded.
    pub fn message(&self) -> ToolResultMessage {
        ToolResultMessage {
            tool_call_id: self.tool_call.id.clone(),
            tool_name: self.tool_call.name.clone(),
            content: self.result.content.clone(),
            details: self.result.details.clone(),
            usage: self.result.usage.clone(),
            nested_calls: self.nested_calls.clone(),
            is_error: self.is_error,
            duration_ms: self.duration_ms,
            timestamp: self.recorded_at.unwrap_or_else(unix_millis),
        }
    }

    /// The outcome of a call that ends before `execute`.
    pub(crate) fn refused(runner: &Runner, call: &ToolCall, error: CallError) -> Self {
        let coercion = match &error {
            CallError::Rejected { steps, .. } => steps.clone(),
            _ => Vec::new(),
        };
        let message = match runner.options.profile {
            Profile::Pi => error.text(&call.name),
            Profile::Course => course::message(runner, call, &error),
        };
        let failure = thrown(runner, call, &message);
        let result = error.into_result(failure);
        Self {
            tool_call: call.clone(),
            result,
            is_error: true,
            duration_ms: None,
            coercion,
            output_errors: Vec::new(),
            replayed: false,
            nested_calls: None,
            recorded_at: None,
        }
    }
}

/// What a throw becomes, in the shape of the profile.
fn thrown(runner: &Runner, call: &ToolCall, message: &str) -> ToolResult {
    match runner.options.profile {
        Profile::Pi => ToolResult::thrown(message),
        Profile::Course => course::failure(&call.name, message),
    }
}

/// What all calls of a batch share.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) runner: &'a Runner,
    /// The assistant message in pi form, as hooks see it.
    pub(crate) assistant_message: &'a Value,
    pub(crate) listener: &'a dyn Listener,
    pub(crate) stop: &'a Stop,
}

/// A call that may run.
pub(crate) struct Ready {
    pub(crate) tool: Arc<Tool>,
    pub(crate) arguments: Value,
    coercion: Vec<Step>,
}

/// Judges `arguments` for `tool`: coerced and valid, or why not.
///
/// `arguments_error` is the call's own (see [`ToolCall::arguments_error`]). Runs nothing.
pub fn accept<'v>(
    tool: &Tool,
    arguments_error: Option<&str>,
    arguments: &'v Value,
    options: &AcceptOptions,
) -> Result<schema::Accepted<'v>, CallError> {
    if let Some(reason) = arguments_error {
        return Err(CallError::ArgumentsText(reason.to_owned()));
    }
    if !arguments.is_object() {
        return Err(CallError::Rejected {
            violations: vec![Violation {
                path: String::new(),
                keyword: "type".into(),
                message: format!("expected object, got {}", json::kind(arguments)),
            }],
            received: arguments.clone(),
            steps: Vec::new(),
        });
    }
    let schema = tool
        .schema()
        .map_err(|error| CallError::SchemaBroken(error.to_string()))?;
    schema
        .accept(arguments, options)
        .map_err(|Rejected { violations, steps }| CallError::Rejected {
            violations,
            received: arguments.clone(),
            steps,
        })
}

/// Brings a call to the point where it may run: everything before `execute`.
pub(crate) async fn prepare(scope: Scope<'_>, call: &ToolCall) -> Result<Ready, Box<Outcome>> {
    let prepared = async {
        stopped(scope)?;
        let tool = look_up(scope, call).await?;
        let raw = prepare_arguments(&tool, call, scope.listener, scope.stop).await?;
        let options = scope.runner.accept_options(&tool);
        let accepted = accept(&tool, call.arguments_error.as_deref(), &raw, &options)?;
        let (arguments, coercion) = (accepted.value.into_owned(), accepted.steps);
        pass_gate(scope, call, &arguments).await?;
        hooks::before(scope, call, &arguments).await?;
        Ok(Ready {
            tool,
            arguments,
            coercion,
        })
    };
    prepared
        .await
        .map_err(|error| Box::new(Outcome::refused(scope.runner, call, error)))
}

/// The outcome of a call that is not to run, for `reason`.
pub(crate) fn not_executed(runner: &Runner, call: &ToolCall, reason: &str) -> Outcome {
    Outcome::refused(runner, call, CallError::NotExecuted(reason.to_owned()))
}

/// The outcome of a ready call that never executed.
pub(crate) fn refused(
    scope: Scope<'_>,
    call: &ToolCall,
    ready: Ready,
    error: CallError,
) -> Outcome {
    Outcome {
        coercion: ready.coercion,
        ..Outcome::refused(scope.runner, call, error)
    }
}

/// The outcome of a ready call that never got its turn.
pub(crate) fn aborted(scope: Scope<'_>, call: &ToolCall, ready: Ready) -> Outcome {
    refused(scope, call, ready, CallError::Aborted)
}

fn stopped(scope: Scope<'_>) -> Result<(), CallError> {
    if scope.stop.is_stopping() {
        Err(CallError::Aborted)
    } else {
        Ok(())
    }
}

async fn look_up(scope: Scope<'_>, call: &ToolCall) -> Result<Arc<Tool>, CallError> {
    let found = tokio::select! {
        biased;
        found = scope.runner.registry.find(&call.name) => found,
        () = scope.stop.stopped() => return Err(CallError::Aborted),
    };
    if let Some(tool) = found.map_err(CallError::ServerFailed)? {
        return Ok(tool);
    }
    let nearest = scope.runner.registry.nearest(&call.name);
    if !nearest.is_empty() {
        let names = nearest.join(", ");
        scope.listener.notice(Notice::Warning(format!(
            "tool {:?} not found; nearest names: {names}",
            call.name
        )));
    }
    Err(CallError::NotFound)
}

/// The arguments to judge: what `prepareArguments` made of them, else as sent. A stop ends the preparation.
pub async fn prepare_arguments<'c>(
    tool: &Tool,
    call: &'c ToolCall,
    listener: &dyn Listener,
    stop: &Stop,
) -> Result<Cow<'c, Value>, CallError> {
    let answer = match &tool.prepare_arguments {
        None => return Ok(Cow::Borrowed(&call.arguments)),
        Some(Prepare::Native(prepare)) => prepare(call.arguments.clone()).await,
        Some(Prepare::Program(program)) => {
            let notice = |notice| listener.notice(notice);
            let invocation = hook_invocation(call, stop, &notice);
            let answer = program.answer(&call.arguments, &invocation).await;
            if stop.is_stopping() {
                return Err(CallError::Aborted);
            }
            // No answer: the arguments stay as they are.
            answer
                .map(|answer| answer.unwrap_or_else(|| call.arguments.clone()))
                .map_err(|Throw(message)| message)
        }
    };
    answer.map(Cow::Owned).map_err(CallError::PrepareThrew)
}

fn hook_invocation<'a>(
    call: &'a ToolCall,
    stop: &'a Stop,
    notice: &'a (dyn Fn(Notice) + Send + Sync),
) -> Invocation<'a> {
    Invocation {
        tool_call_id: &call.id,
        tool_name: &call.name,
        timeout: None,
        socket: None,
        sandbox: None,
        stop,
        probe: None,
        notice,
    }
}

async fn pass_gate(scope: Scope<'_>, call: &ToolCall, arguments: &Value) -> Result<(), CallError> {
    let Some(gate) = &scope.runner.options.gate else {
        return Ok(());
    };
    let verdict = tokio::select! {
        verdict = gate(call, arguments) => verdict,
        () = scope.stop.stopped() => return Err(CallError::Aborted),
    };
    match verdict {
        Verdict::Allow => Ok(()),
        Verdict::Block => Err(CallError::Blocked {
            reason: None,
            terminate: false,
        }),
    }
}

/// The files that a ready call changes.
pub(crate) fn files(ready: &Ready) -> Files {
    let names = &ready.tool.mutates;
    if names.is_empty() {
        return Files::default();
    }
    let paths: Vec<&str> = names
        .iter()
        .filter_map(|name| ready.arguments.get(name))
        .flat_map(paths)
        .collect();
    Files::resolve(&cwd(&ready.tool), &paths)
}

/// The folder to which the paths in a tool's arguments are relative.
fn cwd(tool: &Tool) -> PathBuf {
    let own = std::env::current_dir().unwrap_or_default();
    match &tool.executor {
        Executor::Program(program) => program.cwd().map_or(own.clone(), |cwd| own.join(cwd)),
        Executor::Native(_) | Executor::Mcp(_) => own,
    }
}

/// An argument that `mutates` names: a path or a list of paths.
fn paths(argument: &Value) -> Vec<&str> {
    match argument {
        Value::String(path) => vec![path],
        Value::Array(paths) => paths.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// What `execute` came to.
pub(crate) struct Executed {
    result: Result<ToolResult, String>,
    duration: Duration,
    pub(crate) nested_calls: Option<NestedCalls>,
}

/// Runs `execute` of a ready call. `socket` is where it may call tools itself.
pub(crate) async fn run(
    scope: Scope<'_>,
    call: &ToolCall,
    ready: &Ready,
    socket: Option<&Path>,
) -> Executed {
    let started = Instant::now();
    let result = run_executor(scope, call, ready, socket).await;
    Executed {
        result,
        duration: started.elapsed(),
        nested_calls: None,
    }
}

/// Brings an executed call to its outcome: `afterToolCall`, the check of the output.
pub(crate) async fn finish(
    scope: Scope<'_>,
    call: &ToolCall,
    ready: Ready,
    executed: Executed,
) -> Outcome {
    let (mut result, mut is_error) = match executed.result {
        Ok(result) => {
            let is_error = result.is_error == Some(true);
            (result, is_error)
        }
        Err(message) => (thrown(scope.runner, call, &message), true),
    };
    hooks::after(scope, call, &ready.arguments, &mut result, &mut is_error).await;
    let output_errors = output::check(scope, call, &ready.tool, &mut result, &mut is_error);
    Outcome {
        tool_call: call.clone(),
        result,
        is_error,
        duration_ms: match scope.runner.options.profile {
            Profile::Pi => Some(u64::try_from(executed.duration.as_millis()).unwrap_or(u64::MAX)),
            Profile::Course => None,
        },
        coercion: ready.coercion,
        output_errors,
        replayed: false,
        nested_calls: executed.nested_calls,
        recorded_at: None,
    }
}

/// The probe of a run is that of one call of it.
fn probe_of<'a>(scope: Scope<'a>, call: &ToolCall) -> Option<&'a Probe> {
    let probe = scope.runner.options.probe.as_deref();
    probe.filter(|probe| probe.is_of(&call.id))
}

async fn run_executor(
    scope: Scope<'_>,
    call: &ToolCall,
    ready: &Ready,
    socket: Option<&Path>,
) -> Result<ToolResult, String> {
    let Ready {
        tool, arguments, ..
    } = ready;
    let update = |partial_result: Value| {
        scope.listener.event(Event::Update {
            call,
            partial_result: &partial_result,
        });
    };
    let notice = |notice| scope.listener.notice(notice);
    let invocation = Invocation {
        tool_call_id: &call.id,
        tool_name: &call.name,
        timeout: scope.runner.options.timeout,
        socket,
        sandbox: tool.sandbox.as_ref(),
        stop: scope.stop,
        probe: probe_of(scope, call),
        notice: &notice,
    };
    match &tool.executor {
        Executor::Program(program) => {
            let executed = program.execute(arguments, &invocation, &update).await;
            executed.map_err(|Throw(message)| message)
        }
        Executor::Mcp(remote) => {
            let executed = remote.execute(arguments, &invocation, &update).await;
            executed.map_err(|Throw(message)| message)
        }
        Executor::Native(execute) => {
            let (updates, reported) = Updates::channel();
            let execution = Execution {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                arguments: arguments.clone(),
                stop: scope.stop.clone(),
                updates,
            };
            run_native(execute(execution), reported, &update).await
        }
    }
}

/// Awaits a native tool while its updates pass through; what it reports after its result is ignored.
async fn run_native(
    execution: BoxFuture<'static, Result<ToolResult, String>>,
    mut reported: mpsc::UnboundedReceiver<Value>,
    update: &(dyn Fn(Value) + Send + Sync),
) -> Result<ToolResult, String> {
    // A panic of one tool must not take the results of its siblings with it.
    let mut execution = std::panic::AssertUnwindSafe(execution).catch_unwind();
    let executed = loop {
        tokio::select! {
            biased;
            Some(partial) = reported.recv() => update(partial),
            executed = &mut execution => break executed,
        }
    };
    while let Ok(partial) = reported.try_recv() {
        update(partial);
    }
    executed.unwrap_or_else(|panic| Err(format!("Tool panicked: {}", panic_text(&*panic))))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}

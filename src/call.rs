//! One call, from what the model asked to its outcome: lookup, `prepareArguments`, coercion and validation,
//! `beforeToolCall`, `execute`, `afterToolCall`, in this order, always.
//!
//! A step before `execute` that fails ends the call with a [`CallError`]; nothing after it runs. Once `execute` has
//! started, `afterToolCall` runs, also after a throw, a timeout or a stop. A call never fails as a Rust error: whatever
//! happens becomes its [`Outcome`]. Which calls run when is the business of [`crate::batch`].

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::event::{Event, Listener, Notice};
use crate::hook::{AfterAnswer, BeforeAnswer, Hook, Moment};
use crate::json;
use crate::message::{NestedCalls, ToolCall, ToolResult, ToolResultMessage, unix_millis};
use crate::program::{Invocation, Throw};
use crate::queue::{FileQueue, Files};
use crate::registry::Registry;
use crate::schema::{self, AcceptOptions, Coercion, Lossy, Rejected, Step, Violation};
use crate::stop::{Stop, StopLevel, Stopper};
use crate::tool::{Execution, Executor, Prepare, Tool, Updates};

/// How long an after hook may still take once a stop was asked for.
const HOOK_GRACE: Duration = Duration::from_secs(2);

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
    pub(crate) fn refused(call: &ToolCall, error: CallError) -> Self {
        let coercion = match &error {
            CallError::Rejected { steps, .. } => steps.clone(),
            _ => Vec::new(),
        };
        Self {
            tool_call: call.clone(),
            result: error.into_result(&call.name),
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

/// Why a call ended before `execute`, in the words that the model reads.
#[derive(Debug, Clone, PartialEq)]
pub enum CallError {
    /// No such tool; never a guess.
    NotFound,
    /// The MCP server that may have the tool could not be asked, for this reason.
    ServerFailed(String),
    /// `prepareArguments` threw this.
    PrepareThrew(String),
    /// The arguments text was no JSON object, for this reason.
    ArgumentsText(String),
    /// The tool's own `parameters` do not compile.
    SchemaBroken(String),
    /// The arguments do not fit.
    Rejected {
        /// What does not fit, in order.
        violations: Vec<Violation>,
        /// The arguments that were judged, before coercion.
        received: Value,
        /// What coercion did before.
        steps: Vec<Step>,
    },
    /// A hook, or the person in front of the terminal, said no.
    Blocked {
        /// Why; empty counts as not given.
        reason: Option<String>,
        /// The hook's wish to end the run.
        terminate: bool,
    },
    /// A before hook itself failed, which blocks the call.
    HookFailed(String),
    /// The program could not even be started, for this reason.
    CannotStart(String),
    /// The batch was stopped before the call started.
    Aborted,
    /// The call was not to run, for this reason.
    NotExecuted(String),
    /// A wait for this file could never end.
    Deadlock(String),
    /// This tool, which made the call, may not call the one that it names.
    MayNotCall(String),
    /// So many calls stand above this one already.
    TooDeep(usize),
    /// An earlier run started the call, and what came of it is unknown.
    OutcomeUnknown,
    /// The recording that is replayed has no such call.
    NotRecorded,
}

impl CallError {
    /// The sentence for the model (those of pi's agent loop where it has them).
    pub fn text(&self, tool_name: &str) -> Cow<'_, str> {
        match self {
            Self::NotFound => format!("Tool {tool_name} not found").into(),
            Self::PrepareThrew(message)
            | Self::SchemaBroken(message)
            | Self::HookFailed(message)
            | Self::ServerFailed(message)
            | Self::CannotStart(message) => message.into(),
            Self::ArgumentsText(reason) => {
                format!("Invalid arguments for tool \"{tool_name}\": {reason}").into()
            }
            Self::Rejected {
                violations,
                received,
                ..
            } => schema::error_text(tool_name, violations, received).into(),
            Self::Blocked {
                reason: Some(reason),
                ..
            } if !reason.is_empty() => reason.into(),
            Self::Blocked { .. } => "Tool execution was blocked".into(),
            Self::Aborted => "Operation aborted".into(),
            Self::NotExecuted(reason) => {
                format!("Tool call \"{tool_name}\" was not executed: {reason}").into()
            }
            Self::Deadlock(file) => {
                format!("Tool \"{tool_name}\" was not run: waiting for {file} would deadlock")
                    .into()
            }
            Self::MayNotCall(caller) => {
                format!("Tool \"{caller}\" may not call tool \"{tool_name}\"").into()
            }
            Self::TooDeep(depth) => format!(
                "Tool \"{tool_name}\" was not run: tools call each other more than {depth} deep"
            )
            .into(),
            Self::OutcomeUnknown => format!(
                "Tool \"{tool_name}\" was started before an interruption and its outcome is unknown; \
                 it was not run again."
            )
            .into(),
            Self::NotRecorded => format!("No recorded outcome for tool \"{tool_name}\"").into(),
        }
    }

    fn into_result(self, tool_name: &str) -> ToolResult {
        let mut result = ToolResult::thrown(self.text(tool_name));
        if let Self::Blocked {
            terminate: true, ..
        } = self
        {
            result.terminate = Some(true);
        }
        result
    }
}

/// What the gate says of a call whose arguments are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may run.
    Allow,
    /// It is blocked.
    Block,
}

/// Judges calls after validation and before hooks: the place of `--allow`, `--deny` and `--confirm`.
pub type Gate = Arc<dyn Fn(&ToolCall, &Value) -> BoxFuture<'static, Verdict> + Send + Sync>;

/// What a structured result that breaks its `outputSchema` means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputCheck {
    /// A warning; the result is kept.
    #[default]
    Warn,
    /// An error that lists what is wrong.
    Fail,
}

/// How the calls of a batch follow each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Prepared in order, run at the same time.
    #[default]
    Parallel,
    /// Each call goes through all steps before the next starts.
    Sequential,
}

/// How calls run.
#[derive(Clone)]
pub struct Options {
    /// How the calls of a batch follow each other, unless a tool forces them in sequence.
    pub mode: Mode,
    /// How many calls run at once; absent is no bound.
    pub jobs: Option<NonZeroUsize>,
    /// The time of an `execute` whose manifest sets none; absent is no limit.
    pub timeout: Option<Duration>,
    /// Overrides what the manifests say of coercion.
    pub coerce: Option<Coercion>,
    /// Whether a conversion may lose something.
    pub lossy: Lossy,
    /// What a broken promise of `outputSchema` means.
    pub output_check: OutputCheck,
    /// Who else is asked before a call runs.
    pub gate: Option<Gate>,
    /// Why nothing may run at all, if so, such as `guard.json could not be loaded`: each call is answered with it.
    pub withheld: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Parallel,
            jobs: NonZeroUsize::new(64),
            timeout: None,
            coerce: None,
            lossy: Lossy::Allow,
            output_check: OutputCheck::Warn,
            gate: None,
            withheld: None,
        }
    }
}

/// Runs calls: the tools, the options and the file queue that all its batches share. Cheap to clone.
#[derive(Clone)]
pub struct Runner {
    /// The tools and hooks.
    pub registry: Arc<Registry>,
    /// How calls run.
    pub options: Arc<Options>,
    pub(crate) files: FileQueue,
}

impl Runner {
    /// A runner with a file queue of its own.
    pub fn new(registry: Arc<Registry>, options: Options) -> Self {
        Self {
            registry,
            options: Arc::new(options),
            files: FileQueue::default(),
        }
    }

    /// The same file queue with other tools: what a server does when its manifests change.
    #[must_use]
    pub fn with_registry(&self, registry: Arc<Registry>) -> Self {
        Self {
            registry,
            ..self.clone()
        }
    }

    /// How arguments of this tool are judged.
    pub fn accept_options(&self, tool: &Tool) -> AcceptOptions {
        AcceptOptions {
            coercion: self.options.coerce.unwrap_or(tool.coerce),
            unknown_arguments: tool.unknown_arguments,
            lossy: self.options.lossy,
        }
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
        before_hooks(scope, call, &arguments).await?;
        Ok(Ready {
            tool,
            arguments,
            coercion,
        })
    };
    prepared
        .await
        .map_err(|error| Box::new(Outcome::refused(call, error)))
}

/// The outcome of a call that is not to run, for `reason`.
pub(crate) fn not_executed(call: &ToolCall, reason: &str) -> Outcome {
    Outcome::refused(call, CallError::NotExecuted(reason.to_owned()))
}

/// The outcome of a ready call that never executed.
pub(crate) fn refused(call: &ToolCall, ready: Ready, error: CallError) -> Outcome {
    Outcome {
        coercion: ready.coercion,
        ..Outcome::refused(call, error)
    }
}

/// The outcome of a ready call that never got its turn.
pub(crate) fn aborted(call: &ToolCall, ready: Ready) -> Outcome {
    refused(call, ready, CallError::Aborted)
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
            "tool \"{}\" not found; nearest names: {names}",
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

fn hooks<'r>(runner: &'r Runner, moment: Moment, name: &'r str) -> impl Iterator<Item = &'r Hook> {
    let hooks = runner.registry.hooks().iter();
    hooks.filter(move |hook| hook.moment == moment && hook.applies_to(name))
}

/// Asks the before hooks in file order; the first block wins.
async fn before_hooks(
    scope: Scope<'_>,
    call: &ToolCall,
    arguments: &Value,
) -> Result<(), CallError> {
    let mut input = None;
    for hook in hooks(scope.runner, Moment::Before, &call.name) {
        let input = input.get_or_insert_with(|| hook_input(scope, call, arguments));
        let notice = |notice| scope.listener.notice(notice);
        let invocation = hook_invocation(call, scope.stop, &notice);
        let answer = hook.answer(input, &invocation).await;
        stopped(scope)?;
        let answer = answer.and_then(|answer| BeforeAnswer::read(answer, hook));
        let answer = answer.map_err(|Throw(message)| CallError::HookFailed(message))?;
        if answer.block {
            let terminate = answer.terminate;
            return Err(CallError::Blocked {
                reason: answer.reason,
                terminate,
            });
        }
    }
    stopped(scope)
}

fn hook_input(scope: Scope<'_>, call: &ToolCall, arguments: &Value) -> Value {
    let call = serde_json::to_value(call).expect("a call has only string keys");
    json!({"assistantMessage": scope.assistant_message, "toolCall": call, "args": arguments})
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
        Err(message) => (ToolResult::thrown(message), true),
    };
    after_hooks(scope, call, &ready.arguments, &mut result, &mut is_error).await;
    let output_errors = check_output(scope, call, &ready.tool, &mut result, &mut is_error);
    Outcome {
        tool_call: call.clone(),
        result,
        is_error,
        duration_ms: Some(u64::try_from(executed.duration.as_millis()).unwrap_or(u64::MAX)),
        coercion: ready.coercion,
        output_errors,
        replayed: false,
        nested_calls: executed.nested_calls,
        recorded_at: None,
    }
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

/// Lets the after hooks rewrite the result, in file order; one that fails replaces it by its error.
async fn after_hooks(
    scope: Scope<'_>,
    call: &ToolCall,
    arguments: &Value,
    result: &mut ToolResult,
    is_error: &mut bool,
) {
    for hook in hooks(scope.runner, Moment::After, &call.name) {
        let mut input = hook_input(scope, call, arguments);
        input["result"] = serde_json::to_value(&*result).expect("a result has only string keys");
        input["isError"] = Value::Bool(*is_error);
        match after_hook(scope, call, hook, &input).await {
            Ok(answer) => answer.apply(result, is_error),
            Err(Throw(message)) => {
                *result = ToolResult::thrown(message);
                *is_error = true;
            }
        }
    }
}

/// Runs one after hook. A stop does not end it at once: it keeps [`HOOK_GRACE`], so that finished effects are told.
async fn after_hook(
    scope: Scope<'_>,
    call: &ToolCall,
    hook: &Hook,
    input: &Value,
) -> Result<AfterAnswer, Throw> {
    let own_stopper = Stopper::new();
    let own_stop = own_stopper.stop();
    let notice = |notice| scope.listener.notice(notice);
    let invocation = hook_invocation(call, &own_stop, &notice);
    let answer = hook.answer(input, &invocation);
    tokio::pin!(answer);
    let grace_is_over = async {
        scope.stop.stopped().await;
        tokio::select! {
            () = tokio::time::sleep(HOOK_GRACE) => {}
            () = scope.stop.stopped_now() => {}
        }
    };
    let answer = tokio::select! {
        answer = &mut answer => answer,
        () = grace_is_over => {
            own_stopper.raise(StopLevel::Now);
            answer.await
        }
    };
    answer.and_then(|answer| AfterAnswer::read(answer, hook))
}

/// Checks `structuredContent` of a successful result against `outputSchema`.
fn check_output(
    scope: Scope<'_>,
    call: &ToolCall,
    tool: &Tool,
    result: &mut ToolResult,
    is_error: &mut bool,
) -> Vec<Violation> {
    if *is_error {
        return Vec::new();
    }
    let violations = output_errors(tool, result);
    if violations.is_empty() {
        return violations;
    }
    let text = output_error_text(&call.name, &violations, result.structured_content.as_ref());
    match scope.runner.options.output_check {
        OutputCheck::Warn => {
            let first_lines = text.split("\n\n").next().unwrap_or_default();
            scope
                .listener
                .notice(Notice::Warning(first_lines.to_owned()));
        }
        OutputCheck::Fail => {
            *result = ToolResult::thrown(text);
            *is_error = true;
        }
    }
    violations
}

/// Where a successful result does not keep what its tool's `outputSchema` promises.
pub(crate) fn output_errors(tool: &Tool, result: &ToolResult) -> Vec<Violation> {
    match tool.compiled_output_schema() {
        None => Vec::new(),
        Some(Err(error)) => vec![output_violation("outputSchema", &error.to_string())],
        Some(Ok(schema)) => match &result.structured_content {
            Some(value) => schema.violations(value),
            None => vec![output_violation("required", "missing")],
        },
    }
}

fn output_violation(keyword: &str, message: &str) -> Violation {
    Violation {
        path: String::new(),
        keyword: keyword.into(),
        message: message.into(),
    }
}

fn output_error_text(
    tool_name: &str,
    violations: &[Violation],
    received: Option<&Value>,
) -> String {
    let text = schema::error_text(tool_name, violations, received.unwrap_or(&Value::Null));
    let text = text.replacen(
        "Validation failed for tool",
        "Output validation failed for tool",
        1,
    );
    match received {
        Some(_) => text.replacen(
            "\n\nReceived arguments:\n",
            "\n\nReceived structuredContent:\n",
            1,
        ),
        None => text.split("\n\n").next().unwrap_or_default().to_owned(),
    }
}

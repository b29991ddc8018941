//! `pitool run --dry-run`: what would start, call by call, without starting it.
//!
//! Calls are decoded, looked up and validated as in a run; `prepareArguments` and hooks are programs and do not run.
//! A line per call: `{"toolCallId":"call-1","toolName":"grep","arguments":{…},"wouldRun":{"command":["grep","x"]}}`, or
//! `"error": "…"` in place of the last two.

use std::io::{self, IsTerminal as _, Write as _};

use pitool::batch;
use pitool::call::{self, CallError, Runner};
use pitool::format::Turn;
use pitool::json;
use pitool::message::ToolCall;
use pitool::program::{Invocation, Throw};
use pitool::stop::Stop;
use pitool::tool::Executor;
use serde_json::{Value, json};

use crate::report::sanitize;

/// Prints the plan of a message; whether all of its calls would run.
pub(crate) fn print(
    runner: &Runner,
    turn: &Turn,
    is_blocked: impl Fn(&str) -> bool,
) -> io::Result<bool> {
    let withheld = batch::withheld(&runner.options, turn.stop_reason.as_deref());
    let mut stdout = io::stdout().lock();
    let is_terminal = stdout.is_terminal();
    let mut all_would_run = true;
    for tool_call in &turn.calls {
        let planned = match &withheld {
            Some(error) => Err(error.clone()),
            None if is_blocked(&tool_call.name) => Err(CallError::Blocked {
                reason: None,
                terminate: false,
            }),
            None => plan(runner, tool_call),
        };
        all_would_run &= planned.is_ok();
        let line = json::compact(&line(tool_call, planned));
        if is_terminal {
            writeln!(stdout, "{}", sanitize::json(&line))?;
        } else {
            writeln!(stdout, "{line}")?;
        }
    }
    stdout.flush()?;
    Ok(all_would_run)
}

/// The arguments that the tool would get, and what would start.
fn plan(runner: &Runner, tool_call: &ToolCall) -> Result<(Value, Value), CallError> {
    let Some(tool) = runner.registry.get(&tool_call.name) else {
        // Which tools a server has is known only when it runs.
        let server = runner.registry.server_of(&tool_call.name);
        let server = server.ok_or(CallError::NotFound)?;
        return Ok((
            tool_call.arguments.clone(),
            json!({"server": server.config().name}),
        ));
    };
    let options = runner.accept_options(tool);
    let arguments_error = tool_call.arguments_error.as_deref();
    let accepted = call::accept(tool, arguments_error, &tool_call.arguments, &options)?;
    let arguments = accepted.value.into_owned();
    let would_run = match &tool.executor {
        Executor::Native(_) => Value::Null,
        Executor::Mcp(remote) => {
            json!({"server": remote.client().config().name, "tool": remote.name()})
        }
        Executor::Program(program) => {
            let invocation = Invocation {
                tool_call_id: &tool_call.id,
                tool_name: &tool_call.name,
                timeout: None,
                socket: None,
                sandbox: None,
                stop: &Stop::never(),
                probe: None,
                notice: &|_| (),
            };
            let plan = program.plan(&arguments, &invocation);
            let plan = plan.map_err(|Throw(message)| CallError::CannotStart(message))?;
            json!(plan)
        }
    };
    Ok((arguments, would_run))
}

fn line(tool_call: &ToolCall, planned: Result<(Value, Value), CallError>) -> Value {
    let mut line = json!({"toolCallId": tool_call.id, "toolName": tool_call.name});
    match planned {
        Ok((arguments, would_run)) => {
            line["arguments"] = arguments;
            line["wouldRun"] = would_run;
        }
        Err(error) => line["error"] = error.text(&tool_call.name).into(),
    }
    line
}

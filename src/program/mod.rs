//! Programs: everything that a manifest can say "run this" of, a process or a jq filter.
//!
//! One JSON value goes in, a result or an answer comes out; tools, hooks and `prepareArguments` are all programs. What the
//! value means is not known here. Bringing a process to its end is the business of `process`, who may be called is that of
//! [`crate::call`].

mod capture;
mod command;
pub(crate) mod environment;
mod exit;
pub(crate) mod group;
mod interpreter;
mod item;
mod jq;
mod locate;
mod manifest;
#[cfg(target_os = "linux")]
mod orphan;
mod output;
mod placeholder;
mod probe;
mod process;
#[cfg(target_os = "linux")]
mod procfs;
mod register;
pub mod sandbox;
mod spill;
#[cfg(test)]
mod tests;
mod thread;
pub mod watcher;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use self::command::Command;
pub(crate) use self::exit::signal_name;
pub use self::jq::apart;
use self::jq::{Filter, JqOutput};
pub use self::manifest::{ProgramManifest, StdinManifest};
use self::output::Output;
pub use self::probe::{Ending, OutputKind, Printed, Probe, ProbedStdin, Sighting};
use self::sandbox::Sandbox;
use crate::event::Notice;
use crate::message::ToolResult;
use crate::schema::WrittenSchema;
use crate::stop::Stop;

/// What a call's message ends with when it was stopped.
pub(crate) const ABORTED: &str = "Operation aborted";

/// How long a hook or a preparation may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a jq filter may take.
const JQ_TIMEOUT: Duration = Duration::from_secs(10);

/// Something that can run: checked, but nothing is looked up or compiled before it is needed.
#[derive(Debug)]
pub struct Program {
    kind: Kind,
    timeout: Option<Duration>,
}

#[derive(Debug)]
enum Kind {
    Command(Box<Command>),
    Jq(Filter),
}

/// What a program is for.
#[derive(Debug, Clone, Copy)]
pub enum Role<'a> {
    /// It executes a tool with these parameters, whose properties its placeholders may use.
    Tool {
        /// The JSON Schema of the arguments.
        parameters: &'a WrittenSchema,
    },
    /// It answers one JSON value with at most one: a hook or `prepareArguments`.
    Answer,
}

/// Why a manifest's program cannot be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramError {
    /// JSON Pointer of the place, relative to the program's own object.
    pub pointer: String,
    /// What is wrong there, and what to write instead.
    pub message: String,
}

impl ProgramError {
    pub(crate) fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for ProgramError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for ProgramError {}

/// A failure of a program, in words for the model. Whatever else it printed is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Throw(pub String);

/// Who runs a program, and for how long.
pub struct Invocation<'a> {
    /// The id of the call.
    pub tool_call_id: &'a str,
    /// The name of the tool.
    pub tool_name: &'a str,
    /// For [`Program::execute`] of a command that has no `timeoutMs`: how long it may run. For [`Program::answer`]: an
    /// upper bound of the program's own limit.
    pub timeout: Option<Duration>,
    /// Where the process can call tools.
    pub socket: Option<&'a Path>,
    /// What the process may touch; a filter touches nothing anyway.
    pub sandbox: Option<&'a Sandbox>,
    /// Ends the program.
    pub stop: &'a Stop,
    /// Watches the process; a filter has none.
    pub probe: Option<&'a Probe>,
    /// Hears what people should know: lines of stderr, processes that were left behind.
    pub notice: &'a (dyn Fn(Notice) + Send + Sync),
}

impl Invocation<'_> {
    /// Tells people something about this call: a sentence without a subject of its own.
    fn warn(&self, sentence: &str) {
        (self.notice)(Notice::Warning(format!(
            "{} {}: {sentence}",
            self.tool_name,
            // The model's own words must not look like a line of ours.
            self.tool_call_id.escape_debug()
        )));
    }

    fn stderr_lines(&self, lines: String) {
        (self.notice)(Notice::ToolStderr {
            tool_name: self.tool_name.to_owned(),
            tool_call_id: self.tool_call_id.to_owned(),
            lines,
        });
    }
}

/// What a program would start.
///
/// Wire shapes: `{"command":["grep","-n","x"]}` and `{"jq":"."}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Plan<'a> {
    /// A process with this argument vector.
    Command(Vec<String>),
    /// A filter.
    Jq(&'a str),
}

impl Program {
    /// Checks what a manifest says. `home` is the manifest's folder.
    pub fn new(
        manifest: &ProgramManifest,
        home: &Path,
        role: Role<'_>,
    ) -> Result<Self, ProgramError> {
        let timeout = match manifest.timeout_ms {
            Some(0) => {
                let message = "a program needs at least one millisecond";
                return Err(ProgramError::new("/timeoutMs", message));
            }
            timeout => timeout.map(Duration::from_millis),
        };
        let kind = match (&manifest.command, &manifest.jq) {
            (Some(command), None) => {
                Kind::Command(Box::new(Command::new(command, manifest, home, role)?))
            }
            (None, Some(jq)) => Kind::Jq(filter(jq, manifest)?),
            (Some(_), Some(_)) => {
                let message = "a program is either a \"command\" or \"jq\", not both";
                return Err(ProgramError::new("/jq", message));
            }
            (None, None) => {
                let message = "a program needs \"command\" or \"jq\"";
                return Err(ProgramError::new("", message));
            }
        };
        Ok(Self { kind, timeout })
    }

    /// Whether it is a jq filter, which runs in the process itself and touches nothing.
    pub fn is_filter(&self) -> bool {
        matches!(self.kind, Kind::Jq(_))
    }

    /// Looks for what only shows when the program is used: a filter that does not compile, a program that is not there.
    pub fn check(&self) -> Result<(), ProgramError> {
        match &self.kind {
            Kind::Command(command) => command.check(),
            Kind::Jq(filter) => filter
                .check()
                .map_err(|message| ProgramError::new("/jq", message)),
        }
    }

    /// Whether arguments reach its process in the command itself, by placeholders.
    pub fn has_placeholders(&self) -> bool {
        match &self.kind {
            Kind::Command(command) => command.has_placeholders(),
            Kind::Jq(_) => false,
        }
    }

    /// The folder in which its process runs, if the manifest says one; relative to that of pitool.
    pub fn cwd(&self) -> Option<&Path> {
        match &self.kind {
            Kind::Command(command) => command.cwd(),
            Kind::Jq(_) => None,
        }
    }

    /// What [`Program::execute`] would start for these arguments, without starting it; what would keep it from
    /// starting is the error.
    pub fn plan(&self, arguments: &Value, invocation: &Invocation<'_>) -> Result<Plan<'_>, Throw> {
        match &self.kind {
            Kind::Command(command) => Ok(Plan::Command(command.plan(arguments, invocation)?)),
            Kind::Jq(filter) => Ok(Plan::Jq(filter.text())),
        }
    }

    /// Runs the program as a tool. `update` hears partial results, always before this ends.
    pub async fn execute(
        &self,
        arguments: &Value,
        invocation: &Invocation<'_>,
        update: &(dyn Fn(Value) + Send + Sync),
    ) -> Result<ToolResult, Throw> {
        if invocation.stop.is_stopping() {
            return Err(Throw(ABORTED.to_owned()));
        }
        match &self.kind {
            Kind::Command(command) => {
                let timeout = self.timeout.or(invocation.timeout);
                command
                    .execute(arguments, timeout, invocation, update)
                    .await
            }
            Kind::Jq(filter) => {
                let enforceable = invocation.sandbox.map(Sandbox::enforceable_for_filter);
                enforceable.unwrap_or(Ok(())).map_err(Throw)?;
                let timeout = self.timeout.unwrap_or(JQ_TIMEOUT);
                filter.execute(arguments, timeout, invocation, update).await
            }
        }
    }

    /// Runs the program as a hook or a preparation: `None` if it gave nothing.
    pub async fn answer(
        &self,
        input: &Value,
        invocation: &Invocation<'_>,
    ) -> Result<Option<Value>, Throw> {
        if invocation.stop.is_stopping() {
            return Err(Throw(ABORTED.to_owned()));
        }
        let own = self.timeout.unwrap_or(match &self.kind {
            Kind::Command(_) => ANSWER_TIMEOUT,
            Kind::Jq(_) => JQ_TIMEOUT,
        });
        let timeout = invocation.timeout.map_or(own, |bound| own.min(bound));
        match &self.kind {
            Kind::Command(command) => command.answer(input, timeout, invocation).await,
            Kind::Jq(filter) => filter.answer(input, timeout, invocation).await,
        }
    }

    /// The environment that the process will see, sorted by name; nothing for a filter, which sees none.
    pub fn environment(
        &self,
        invocation: &Invocation<'_>,
    ) -> Result<BTreeMap<OsString, OsString>, Throw> {
        match &self.kind {
            Kind::Command(command) => command.environment(invocation),
            Kind::Jq(_) => Ok(BTreeMap::new()),
        }
    }
}

fn filter(jq: &str, manifest: &ProgramManifest) -> Result<Filter, ProgramError> {
    if let Some(field) = manifest.first_command_field() {
        let message = format!("{field} belongs to a command; a filter has none");
        return Err(ProgramError::new(format!("/{field}"), message));
    }
    let output = match manifest.output.as_deref() {
        // What a filter gives are items unless it says otherwise.
        None => JqOutput::Items,
        Some(output) => match Output::new(Some(output))? {
            Output::Items => JqOutput::Items,
            Output::Text => JqOutput::Text,
            Output::Json => JqOutput::Json,
            Output::Image(_) => {
                let message = "a filter gives \"items\", \"text\" or \"json\", no image";
                return Err(ProgramError::new("/output", message));
            }
        },
    };
    Ok(Filter::new(jq.to_owned(), output))
}

/// The system's words for an error, without its number.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

pub(crate) fn timed_out(who: &str, timeout: Duration) -> String {
    format!("{who} timed out after {} seconds", timeout.as_secs_f64())
}

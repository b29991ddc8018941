//! A process as a program: what it is told, and how it is started. What it prints is the business of `output`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

use serde_json::{Value, json as value};

use super::capture::DEFAULT_BYTES;
use super::environment::{CALL_ID, EnvironmentTemplate, Inherit, SOCKET, TOOL_NAME};
use super::locate;
use super::manifest::{ProgramManifest, StdinManifest};
#[cfg(target_os = "linux")]
use super::orphan;
use super::output::{Output, Reader, Terms};
use super::placeholder::{CommandTemplate, Declared, Template};
use super::probe::{Probe, Sighting, Watched};
use super::process::{Ended, Input, Running, Sink};
use super::sandbox::{Confined, Place};
use super::watcher::Announced;
use super::{Invocation, ProgramError, Role, Throw, reason};
use crate::json;
use crate::message::ToolResult;

/// A command that can run.
#[derive(Debug)]
pub(crate) struct Command {
    template: CommandTemplate,
    /// The manifest's folder, from which a program with a `/` is looked for.
    home: PathBuf,
    stdin: Stdin,
    output: Output,
    ok_exit_codes: Vec<i32>,
    cwd: Option<PathBuf>,
    environment: EnvironmentTemplate,
    max_output_bytes: usize,
}

#[derive(Debug)]
enum Stdin {
    Arguments,
    Call,
    Nothing,
    Text(Template),
}

impl Command {
    /// Checks what a manifest says about a command.
    pub(crate) fn new(
        command: &[String],
        manifest: &ProgramManifest,
        home: &Path,
        role: Role<'_>,
    ) -> Result<Self, ProgramError> {
        let declared = Declared::new(match role {
            Role::Tool { parameters } => Some(parameters),
            Role::Answer => None,
        });
        Ok(Self {
            template: CommandTemplate::new(command, &declared)?,
            home: home.to_owned(),
            stdin: Stdin::new(manifest.stdin.as_ref(), &declared, role)?,
            output: Output::new(manifest.output.as_deref())?,
            ok_exit_codes: ok_exit_codes(manifest.ok_exit_codes.as_deref())?,
            cwd: cwd(manifest.cwd.as_deref())?,
            environment: EnvironmentTemplate::new(
                manifest.env.as_ref().unwrap_or(&BTreeMap::new()),
                if manifest.inherit_env == Some(true) {
                    Inherit::All
                } else {
                    Inherit::Short
                },
            )?,
            max_output_bytes: max_output_bytes(manifest.max_output_bytes)?,
        })
    }

    /// Runs a tool.
    pub(crate) async fn execute(
        &self,
        arguments: &Value,
        timeout: Option<Duration>,
        invocation: &Invocation<'_>,
        update: &(dyn Fn(Value) + Send + Sync),
    ) -> Result<ToolResult, Throw> {
        let command = self.command(arguments, invocation)?;
        let stdin = self.stdin.bytes(arguments, invocation);
        let mut reader = Reader::new(self.terms(&self.output, timeout), update, invocation);
        let ended = match invocation.probe {
            None => {
                let stdin = stdin.map_or(Input::Nothing, Input::Bytes);
                let ran = self.run(command, stdin, timeout, invocation, &mut reader);
                ran.await?.0
            }
            Some(probe) => {
                let stdin = probe.stdin(stdin).map_or(Input::Nothing, Input::Watched);
                let ran =
                    self.run_watched(command, stdin, timeout, (invocation, probe), &mut reader);
                ran.await?
            }
        };
        reader.result(&ended)
    }

    /// Runs a hook or a preparation: one JSON value in, at most one out.
    pub(crate) async fn answer(
        &self,
        input: &Value,
        timeout: Duration,
        invocation: &Invocation<'_>,
    ) -> Result<Option<Value>, Throw> {
        let command = self.command(&Value::Null, invocation)?;
        let stdin = Input::Bytes(line(input));
        let timeout = Some(timeout);
        let mut reader = Reader::new(self.terms(&Output::Json, timeout), &|_| {}, invocation);
        let (ended, _) = self
            .run(command, stdin, timeout, invocation, &mut reader)
            .await?;
        reader.answer(&ended)
    }

    /// Runs the process under the eyes of a probe.
    async fn run_watched(
        &self,
        command: process::Command,
        stdin: Input,
        timeout: Option<Duration>,
        (invocation, probe): (&Invocation<'_>, &Probe),
        reader: &mut Reader<'_>,
    ) -> Result<Ended, Throw> {
        let mut watched = Watched::new(reader);
        let ran = self.run(command, stdin, timeout, invocation, &mut watched);
        let (ended, left_group) = ran.await?;
        let printed = watched.printed();
        probe.saw(Sighting::new(
            &ended,
            left_group,
            printed,
            reader.heard(&ended),
        ));
        Ok(ended)
    }

    fn terms<'a>(&'a self, output: &'a Output, timeout: Option<Duration>) -> Terms<'a> {
        Terms {
            output,
            max_output_bytes: self.max_output_bytes,
            ok_exit_codes: &self.ok_exit_codes,
            timeout,
        }
    }

    /// Brings a process to its end; with it come the names of processes that had left its group.
    async fn run(
        &self,
        mut command: process::Command,
        stdin: Input,
        timeout: Option<Duration>,
        invocation: &Invocation<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(Ended, Vec<String>), Throw> {
        let program = PathBuf::from(command.get_program());
        let confined = self.confine(&mut command, &program, invocation)?;
        let announced = Announced::new(
            &without_nul(invocation.tool_call_id),
            &without_nul(invocation.tool_name),
        );
        let running = Running::start(command, stdin, announced).map_err(|error| {
            self.cannot_start(&locate::why(&error, &program, self.cwd.as_deref()))
        })?;
        let ended = running
            .finish(timeout, invocation.stop, sink)
            .await
            .map_err(|error| {
                Throw(format!(
                    "Cannot read the output of the command: {}",
                    reason(&error)
                ))
            })?;
        if ended.left_running {
            invocation.warn("a process that it left running was stopped");
        }
        #[cfg(target_os = "linux")]
        let left_group = orphan::stop(invocation).await;
        #[cfg(not(target_os = "linux"))]
        let left_group = Vec::new();
        if ended.output_held {
            invocation
                .warn("a process outside its group held its output, which was not read to its end");
        }
        if confined.is_some() {
            // Removing what the tool left in its TMPDIR may take long.
            let _ = tokio::task::spawn_blocking(move || drop(confined)).await;
        }
        Ok((ended, left_group))
    }

    /// Whether arguments of the call are among those of the process.
    pub(crate) fn has_placeholders(&self) -> bool {
        self.template.has_placeholders()
    }

    /// The folder in which the process runs, if the manifest says one.
    pub(crate) fn cwd(&self) -> Option<&Path> {
        self.cwd.as_deref()
    }

    /// The argument vector for these arguments, if nothing keeps the process from being started with it.
    pub(crate) fn plan(
        &self,
        arguments: &Value,
        invocation: &Invocation<'_>,
    ) -> Result<Vec<String>, Throw> {
        self.command(arguments, invocation)?;
        let program = std::iter::once(self.template.program().to_owned());
        let elements = self.template.expand(arguments)?.into_iter();
        // They come from JSON, so nothing is lost.
        let elements = elements.map(|element| element.to_string_lossy().into_owned());
        Ok(program.chain(elements).collect())
    }

    /// What the process will see of the environment, sorted by name.
    pub(crate) fn environment(
        &self,
        invocation: &Invocation<'_>,
    ) -> Result<BTreeMap<OsString, OsString>, Throw> {
        let mut own = vec![
            (CALL_ID, without_nul(invocation.tool_call_id)),
            (TOOL_NAME, without_nul(invocation.tool_name)),
        ];
        own.extend(invocation.socket.map(|socket| (SOCKET, socket.into())));
        self.environment.variables(own)
    }

    fn command(
        &self,
        arguments: &Value,
        invocation: &Invocation<'_>,
    ) -> Result<process::Command, Throw> {
        let elements = self.template.expand(arguments)?;
        let environment = self.environment(invocation)?;
        let path = environment.get(OsStr::new("PATH")).map(OsString::as_os_str);
        let program = locate::find(self.template.program(), &self.home, path)
            .map_err(|reason| self.cannot_start(&reason))?;
        let mut command = process::Command::new(program);
        command
            .arg0(self.template.program())
            .args(elements)
            .env_clear()
            .envs(environment);
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        Ok(command)
    }

    /// Puts the sandbox around a command that is ready; what it needs lives as long as the answer.
    fn confine(
        &self,
        command: &mut process::Command,
        program: &Path,
        invocation: &Invocation<'_>,
    ) -> Result<Option<Confined>, Throw> {
        let Some(sandbox) = invocation.sandbox else {
            return Ok(None);
        };
        let place = Place {
            cwd: self.cwd.as_deref().unwrap_or(Path::new(".")),
            program,
            socket: invocation.socket,
        };
        sandbox.confine(command, place).map(Some).map_err(Throw)
    }

    /// Whether the program is there to be started.
    pub(crate) fn check(&self) -> Result<(), ProgramError> {
        let name = self.template.program();
        let path = std::env::var_os("PATH");
        locate::find(name, &self.home, path.as_deref())
            .map_err(|reason| format!("{name}: {reason}"))
            .and_then(|program| locate::check(&program))
            .map_err(|message| ProgramError::new("/command/0", message))
    }

    fn cannot_start(&self, reason: &str) -> Throw {
        Throw(format!(
            "Cannot start \"{}\": {reason}",
            self.template.program()
        ))
    }
}

fn ok_exit_codes(codes: Option<&[i64]>) -> Result<Vec<i32>, ProgramError> {
    let codes = codes.unwrap_or(&[0]);
    let numbered = codes.iter().enumerate();
    numbered
        .map(|(at, &code)| {
            u8::try_from(code).map(i32::from).map_err(|_| {
                ProgramError::new(
                    format!("/okExitCodes/{at}"),
                    "an exit code is a number from 0 to 255",
                )
            })
        })
        .collect()
}

fn cwd(cwd: Option<&str>) -> Result<Option<PathBuf>, ProgramError> {
    match cwd {
        Some(cwd) if cwd.is_empty() || cwd.contains('\0') => {
            Err(ProgramError::new("/cwd", "this is no path of a folder"))
        }
        cwd => Ok(cwd.map(PathBuf::from)),
    }
}

fn max_output_bytes(bytes: Option<u64>) -> Result<usize, ProgramError> {
    match bytes {
        None => Ok(DEFAULT_BYTES),
        Some(0) => Err(ProgramError::new(
            "/maxOutputBytes",
            "at least one byte must be allowed",
        )),
        Some(bytes) => Ok(usize::try_from(bytes).unwrap_or(usize::MAX)),
    }
}

impl Stdin {
    fn new(
        stdin: Option<&StdinManifest>,
        declared: &Declared<'_>,
        role: Role<'_>,
    ) -> Result<Self, ProgramError> {
        match (stdin, role) {
            // A hook reads its input, whatever is written here.
            (_, Role::Answer) | (None | Some(StdinManifest::Arguments), _) => Ok(Self::Arguments),
            (Some(StdinManifest::Call), _) => Ok(Self::Call),
            (Some(StdinManifest::None), _) => Ok(Self::Nothing),
            (Some(StdinManifest::Text(text)), _) => {
                let template = Template::parse(text);
                declared.check(&template, "/stdin/text")?;
                Ok(Self::Text(template))
            }
        }
    }

    fn bytes(&self, arguments: &Value, invocation: &Invocation<'_>) -> Option<Vec<u8>> {
        match self {
            Self::Arguments => Some(line(arguments)),
            Self::Call => Some(line(&value!({
                "toolCallId": invocation.tool_call_id,
                "toolName": invocation.tool_name,
                "arguments": arguments,
            }))),
            Self::Nothing => None,
            Self::Text(template) => Some(template.text(arguments).into_bytes()),
        }
    }
}

/// A value as one JSON line.
fn line(value: &Value) -> Vec<u8> {
    let mut line = json::compact(value).into_bytes();
    line.push(b'\n');
    line
}

/// A variable of the environment ends at a NUL; an id may hold one.
fn without_nul(text: &str) -> OsString {
    text.replace('\0', "\u{fffd}").into()
}

//! A process as a program: arguments in, a result out. What the process is told, and what its output means.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json as value};
use tokio::time::Instant;

use rustix::process::Signal;

use super::capture::{Capture, DEFAULT_BYTES, Lines};
use super::environment::{EnvironmentTemplate, Inherit, SOCKET};
use super::item::{Item, Items};
use super::manifest::{ProgramManifest, StdinManifest};
#[cfg(target_os = "linux")]
use super::orphan;
use super::placeholder::{CommandTemplate, Declared, Template};
use super::process::{Cause, Ended, Flow, Running, Sink};
use super::sandbox::{Confined, Place};
use super::{ABORTED, Invocation, ProgramError, Role, Throw, reason, timed_out};
use crate::json;
use crate::message::{Content, ToolResult};

/// The longest line of items, JSON value or image that is taken.
const MAX_VALUE_BYTES: usize = 32 * 1024 * 1024;

/// The shortest time between two updates of text.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

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

/// What stdout means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Output {
    Text,
    Items,
    Json,
    /// The bytes of an image of this media type.
    Image(String),
}

impl Output {
    pub(crate) fn new(output: Option<&str>) -> Result<Self, ProgramError> {
        match output {
            None | Some("text") => Ok(Self::Text),
            Some("items") => Ok(Self::Items),
            Some("json") => Ok(Self::Json),
            Some(media_type) if media_type.starts_with("image/") && media_type.len() > 6 => {
                Ok(Self::Image(media_type.to_owned()))
            }
            Some(other) => Err(ProgramError::new(
                "/output",
                format!(
                    "{other:?} is not \"text\", \"items\", \"json\" or the media type of an image such as \"image/png\""
                ),
            )),
        }
    }
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
        let stdin = self.stdin.bytes(arguments, invocation);
        let mut reader = Reader::new(&self.output, self.max_output_bytes, update, invocation);
        let ended = self
            .run(arguments, stdin, timeout, invocation, &mut reader)
            .await?;
        reader.result(&ended, &self.ok_exit_codes, timeout)
    }

    /// Runs a hook or a preparation: one JSON value in, at most one out.
    pub(crate) async fn answer(
        &self,
        input: &Value,
        timeout: Duration,
        invocation: &Invocation<'_>,
    ) -> Result<Option<Value>, Throw> {
        let ignore = |_| {};
        let mut reader = Reader::new(&Output::Json, self.max_output_bytes, &ignore, invocation);
        let ended = self
            .run(
                &Value::Null,
                Some(line(input)),
                Some(timeout),
                invocation,
                &mut reader,
            )
            .await?;
        reader.answer(&ended, &self.ok_exit_codes, timeout)
    }

    async fn run(
        &self,
        arguments: &Value,
        stdin: Option<Vec<u8>>,
        timeout: Option<Duration>,
        invocation: &Invocation<'_>,
        reader: &mut Reader<'_>,
    ) -> Result<Ended, Throw> {
        let mut command = self.command(arguments, invocation)?;
        let confined = self.confine(&mut command, invocation)?;
        let running = Running::start(command, stdin).map_err(|error| self.cannot_start(&error))?;
        let ended = running
            .finish(timeout, invocation.stop, reader)
            .await
            .map_err(|error| {
                Throw(format!(
                    "Cannot read the output of the command: {}",
                    reason(&error)
                ))
            })?;
        if confined.is_some() {
            // Removing what the tool left in its TMPDIR may take long.
            let _ = tokio::task::spawn_blocking(move || drop(confined)).await;
        }
        if ended.left_running {
            invocation.warn("a process that it left running was stopped");
        }
        #[cfg(target_os = "linux")]
        orphan::stop(invocation).await;
        if ended.output_held {
            invocation
                .warn("a process outside its group held its output, which was not read to its end");
        }
        Ok(ended)
    }

    /// What the process will see of the environment, sorted by name.
    pub(crate) fn environment(
        &self,
        invocation: &Invocation<'_>,
    ) -> Result<BTreeMap<OsString, OsString>, Throw> {
        let mut own = vec![
            ("PITOOL_TOOL_CALL_ID", without_nul(invocation.tool_call_id)),
            ("PITOOL_TOOL_NAME", without_nul(invocation.tool_name)),
        ];
        own.extend(invocation.socket.map(|socket| (SOCKET, socket.into())));
        self.environment.variables(own)
    }

    fn command(
        &self,
        arguments: &Value,
        invocation: &Invocation<'_>,
    ) -> Result<std::process::Command, Throw> {
        let elements = self.template.expand(arguments)?;
        let environment = self.environment(invocation)?;
        let path = environment.get(OsStr::new("PATH"));
        let program = self
            .program(path.map(OsString::as_os_str))
            .map_err(|error| self.cannot_start(&error))?;
        let mut command = std::process::Command::new(program);
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
        command: &mut std::process::Command,
        invocation: &Invocation<'_>,
    ) -> Result<Option<Confined>, Throw> {
        let Some(sandbox) = invocation.sandbox else {
            return Ok(None);
        };
        let program = PathBuf::from(command.get_program());
        let place = Place {
            cwd: self.cwd.as_deref().unwrap_or(Path::new(".")),
            program: &program,
            socket: invocation.socket,
        };
        sandbox.confine(command, place).map(Some).map_err(Throw)
    }

    /// Where the program is: from the manifest's folder, or on the `PATH` that the process will have.
    pub(crate) fn program(&self, path: Option<&OsStr>) -> io::Result<PathBuf> {
        let name = self.template.program();
        if name.contains('/') {
            return std::path::absolute(self.home.join(name));
        }
        let mut refused = None;
        // Without a PATH the system's own programs are found; an empty part of it is not the working directory.
        let path = path.unwrap_or(OsStr::new("/usr/bin:/bin"));
        for folder in std::env::split_paths(path).filter(|folder| !folder.as_os_str().is_empty()) {
            let candidate = folder.join(name);
            match candidate.metadata() {
                Ok(metadata) if metadata.is_file() => {
                    if metadata.permissions().mode() & 0o111 != 0 {
                        return std::path::absolute(candidate);
                    }
                    refused = Some(io::ErrorKind::PermissionDenied.into());
                }
                _ => {}
            }
        }
        Err(refused.unwrap_or_else(|| io::Error::other("it is not on the PATH")))
    }

    /// Whether the program is there to be started.
    pub(crate) fn check(&self) -> Result<(), ProgramError> {
        let problem = |message: String| Err(ProgramError::new("/command/0", message));
        match self.program(std::env::var_os("PATH").as_deref()) {
            Err(error) => problem(format!(
                "\"{}\": {}",
                self.template.program(),
                reason(&error)
            )),
            Ok(path) => match path.metadata() {
                Err(error) => problem(format!("{}: {}", path.display(), reason(&error))),
                Ok(metadata) if metadata.is_dir() => {
                    problem(format!("{} is a directory", path.display()))
                }
                Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => {
                    problem(format!("{} is not executable", path.display()))
                }
                Ok(_) => Ok(()),
            },
        }
    }

    fn cannot_start(&self, error: &io::Error) -> Throw {
        let name = self.template.program();
        Throw(format!("Cannot start \"{name}\": {}", self.why(error)))
    }

    /// The system has few words for a start that failed: looks for the real reason.
    fn why(&self, error: &io::Error) -> String {
        if let Some(cwd) = &self.cwd
            && !cwd.is_dir()
        {
            return format!("its working directory {} does not exist", cwd.display());
        }
        let Ok(program) = self.program(std::env::var_os("PATH").as_deref()) else {
            return reason(error);
        };
        if program.is_dir() {
            return "it is a directory".to_owned();
        }
        match error.kind() {
            io::ErrorKind::NotFound if program.is_file() => match interpreter(&program) {
                Some(interpreter) => format!("its interpreter {interpreter} does not exist"),
                None => "its interpreter does not exist".to_owned(),
            },
            _ => reason(error),
        }
    }
}

/// The interpreter that the first line of a script names.
fn interpreter(program: &Path) -> Option<String> {
    use std::io::Read;

    let mut start = [0; 256];
    let length = std::fs::File::open(program).ok()?.read(&mut start).ok()?;
    let text = String::from_utf8_lossy(&start[..length]).into_owned();
    let line = text.lines().next()?.strip_prefix("#!")?;
    line.split_whitespace().next().map(str::to_owned)
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

/// Takes what a process prints, by the meaning of its output.
struct Reader<'a> {
    stdout: Stdout<'a>,
    stderr: Lines,
    invocation: &'a Invocation<'a>,
}

enum Stdout<'a> {
    Text(TextUpdates<'a>),
    Items {
        items: Box<Items<'a>>,
        line: Vec<u8>,
    },
    Whole {
        bytes: Vec<u8>,
        output: Output,
        max_output_bytes: usize,
    },
}

/// The text so far, as updates that never come too fast.
struct TextUpdates<'a> {
    capture: Capture,
    update: &'a (dyn Fn(Value) + Send + Sync),
    last: Option<Instant>,
    is_due: bool,
}

impl TextUpdates<'_> {
    fn push(&mut self, bytes: &[u8]) {
        self.capture.push(bytes);
        self.is_due = true;
        if self.next().is_some_and(|next| next <= Instant::now()) {
            self.send();
        }
    }

    fn next(&self) -> Option<Instant> {
        let next = self
            .last
            .map_or_else(Instant::now, |last| last + UPDATE_INTERVAL);
        self.is_due.then_some(next)
    }

    fn send(&mut self) {
        self.is_due = false;
        self.last = Some(Instant::now());
        (self.update)(value!({"content": [{"type": "text", "text": self.capture.text_so_far()}]}));
    }
}

impl Sink for Reader<'_> {
    fn stdout(&mut self, bytes: &[u8]) -> Flow {
        match &mut self.stdout {
            Stdout::Text(text) => text.push(bytes),
            Stdout::Items { items, line } => return take_lines(items, line, bytes),
            Stdout::Whole { bytes: whole, .. } => {
                if whole.len() + bytes.len() > MAX_VALUE_BYTES {
                    whole.clear();
                    return Flow::End;
                }
                whole.extend_from_slice(bytes);
            }
        }
        Flow::GoOn
    }

    fn stderr(&mut self, bytes: &[u8]) {
        let invocation = self.invocation;
        self.stderr
            .push(bytes, &|line| invocation.stderr_line(line));
    }

    fn next_tick(&self) -> Option<Instant> {
        match &self.stdout {
            Stdout::Text(text) => text.next(),
            Stdout::Items { .. } | Stdout::Whole { .. } => None,
        }
    }

    fn tick(&mut self) {
        if let Stdout::Text(text) = &mut self.stdout {
            text.send();
        }
    }
}

/// Splits items at line breaks; the beginning of a line waits for its end.
fn take_lines(items: &mut Items<'_>, line: &mut Vec<u8>, mut bytes: &[u8]) -> Flow {
    while !items.is_settled() {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        if line.len() + piece.len() > MAX_VALUE_BYTES {
            line.clear();
            return Flow::End;
        }
        let Some(end) = end else {
            line.extend_from_slice(piece);
            break;
        };
        if line.is_empty() {
            take_line(items, piece);
        } else {
            line.extend_from_slice(piece);
            take_line(items, line);
            line.clear();
        }
        bytes = &bytes[end + 1..];
    }
    Flow::GoOn
}

/// A line of white space is no item and no fault.
fn take_line(items: &mut Items<'_>, line: &[u8]) {
    if line.trim_ascii().is_empty() {
        return;
    }
    let item = parse(line).and_then(Item::read).map_err(|wrong| {
        format!(
            "Command printed something that is no item: {wrong}: {}",
            excerpt(line)
        )
    });
    items.take(item);
}

/// The beginning of what was printed, for a message.
fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(400)]);
    let mut excerpt: String = text.chars().take(100).collect();
    if excerpt.len() < bytes.len() {
        excerpt.push('…');
    }
    excerpt
}

fn parse(bytes: &[u8]) -> Result<Value, String> {
    let value = json::parse(bytes).map_err(|error| error.to_string())?;
    if json::depth(&value) > json::MAX_DEPTH {
        return Err(format!(
            "it is nested more than {} levels deep",
            json::MAX_DEPTH
        ));
    }
    Ok(value)
}

impl<'a> Reader<'a> {
    fn new(
        output: &Output,
        max_output_bytes: usize,
        update: &'a (dyn Fn(Value) + Send + Sync),
        invocation: &'a Invocation<'a>,
    ) -> Self {
        let stdout = match output {
            Output::Text => Stdout::Text(TextUpdates {
                capture: Capture::new(max_output_bytes),
                update,
                last: None,
                is_due: false,
            }),
            Output::Items => Stdout::Items {
                items: Box::new(Items::new(update)),
                line: Vec::new(),
            },
            Output::Json | Output::Image(_) => Stdout::Whole {
                bytes: Vec::new(),
                output: output.clone(),
                max_output_bytes,
            },
        };
        Self {
            stdout,
            stderr: Lines::default(),
            invocation,
        }
    }

    /// What a tool came to.
    fn result(
        mut self,
        ended: &Ended,
        ok_exit_codes: &[i32],
        timeout: Option<Duration>,
    ) -> Result<ToolResult, Throw> {
        self.end_of_output();
        if let Some(sentence) = self.failure(ended, ok_exit_codes, timeout) {
            return Err(self.throw(ended, &sentence));
        }
        self.pass_on_stderr();
        match self.stdout {
            Stdout::Text(text) => Ok(text_result(text.capture, self.invocation)),
            Stdout::Items { items, .. } => items.finish("Command"),
            Stdout::Whole {
                bytes,
                output: Output::Image(media_type),
                ..
            } => image_result(&bytes, media_type),
            Stdout::Whole {
                bytes,
                max_output_bytes,
                ..
            } => json_result(&bytes, max_output_bytes, self.invocation),
        }
    }

    /// What a hook answered.
    fn answer(
        mut self,
        ended: &Ended,
        ok_exit_codes: &[i32],
        timeout: Duration,
    ) -> Result<Option<Value>, Throw> {
        if let Some(sentence) = self.failure(ended, ok_exit_codes, Some(timeout)) {
            return Err(self.throw(ended, &sentence));
        }
        self.pass_on_stderr();
        match &self.stdout {
            Stdout::Whole { bytes, .. } if !bytes.trim_ascii().is_empty() => {
                json_value(bytes).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The last line may have no line break.
    fn end_of_output(&mut self) {
        if let Stdout::Items { items, line } = &mut self.stdout {
            take_line(items, line);
            line.clear();
        }
    }

    fn pass_on_stderr(&mut self) {
        let invocation = self.invocation;
        self.stderr.drain(&|line| invocation.stderr_line(line));
    }

    /// Why nothing that was printed is a result, if so.
    fn failure(
        &self,
        ended: &Ended,
        ok_exit_codes: &[i32],
        timeout: Option<Duration>,
    ) -> Option<String> {
        let exit = exit_failure(ended.status, ok_exit_codes);
        match ended.cause {
            Cause::Itself => exit,
            Cause::Timeout => Some(timed_out("Command", timeout.unwrap_or_default())),
            Cause::Output => Some(match &self.stdout {
                Stdout::Items { .. } => "Command printed a line of more than 32 MiB".to_owned(),
                Stdout::Text(_) | Stdout::Whole { .. } => {
                    "Command printed more than 32 MiB".to_owned()
                }
            }),
            Cause::Stop => {
                let has_result = match &self.stdout {
                    Stdout::Items { items, .. } => items.has_result(),
                    Stdout::Text(_) => exit.is_none(),
                    Stdout::Whole { bytes, .. } => exit.is_none() && !bytes.is_empty(),
                };
                (!has_result).then(|| ABORTED.to_owned())
            }
        }
    }

    /// The message of a failure: what was printed, and why that is not the result.
    fn throw(self, ended: &Ended, sentence: &str) -> Throw {
        let stderr = self.stderr.trimmed();
        let by_itself = ended.cause == Cause::Itself;
        match self.stdout {
            Stdout::Text(text) => {
                let output = joined(&text.capture.finish().text, "\n", &stderr);
                Throw(joined(&output, "\n\n", sentence))
            }
            Stdout::Items { items, .. } if by_itself => {
                let reason = if stderr.is_empty() { sentence } else { &stderr };
                Throw(joined(&items.result_text(), "\n\n", reason))
            }
            Stdout::Items { items, .. } => {
                let output = joined(&items.text_so_far(), "\n", &stderr);
                Throw(joined(&output, "\n\n", sentence))
            }
            Stdout::Whole { .. } if by_itself && !stderr.is_empty() => Throw(stderr),
            Stdout::Whole { .. } => Throw(joined(&stderr, "\n\n", sentence)),
        }
    }
}

/// Two texts with something between them, if there are two.
fn joined(first: &str, between: &str, second: &str) -> String {
    if first.is_empty() || second.is_empty() {
        return format!("{first}{second}");
    }
    format!("{first}{between}{second}")
}

/// Why an exit is a failure, if it is one.
fn exit_failure(status: ExitStatus, ok_exit_codes: &[i32]) -> Option<String> {
    match status.code() {
        Some(code) if ok_exit_codes.contains(&code) => None,
        Some(code) => Some(format!("Command exited with code {code}")),
        None => Some(format!(
            "Command was killed by {}",
            signal_name(status.signal().unwrap_or_default())
        )),
    }
}

fn signal_name(number: i32) -> String {
    const NAMES: [(Signal, &str); 20] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::VTALARM, "SIGVTALRM"),
        (Signal::PROF, "SIGPROF"),
        (Signal::SYS, "SIGSYS"),
    ];
    NAMES
        .iter()
        .find(|(signal, _)| signal.as_raw() == number)
        .map_or_else(
            || format!("signal {number}"),
            |(_, name)| (*name).to_owned(),
        )
}

fn text_result(capture: Capture, invocation: &Invocation<'_>) -> ToolResult {
    let captured = capture.finish();
    if captured.has_invalid_bytes {
        invocation.warn("its output is not UTF-8; bytes that are no characters became U+FFFD");
    }
    let text = if captured.text.is_empty() {
        "(no output)".to_owned()
    } else {
        captured.text
    };
    ToolResult {
        details: captured
            .full_output
            .map(|path| value!({"fullOutputPath": path})),
        ..ToolResult::text(text)
    }
}

fn image_result(bytes: &[u8], media_type: String) -> Result<ToolResult, Throw> {
    if bytes.is_empty() {
        return Err(Throw("Command printed no image".to_owned()));
    }
    let image = Content::Image {
        data: STANDARD.encode(bytes),
        mime_type: media_type,
    };
    Ok(ToolResult {
        content: vec![image],
        ..ToolResult::default()
    })
}

/// The value is the structured content, and printed it is the text.
fn json_result(
    bytes: &[u8],
    max_output_bytes: usize,
    invocation: &Invocation<'_>,
) -> Result<ToolResult, Throw> {
    if bytes.trim_ascii().is_empty() {
        return Err(Throw("Command printed no JSON value".to_owned()));
    }
    let value = json_value(bytes)?;
    let mut capture = Capture::new(max_output_bytes);
    capture.push(json::compact(&value).as_bytes());
    Ok(ToolResult {
        structured_content: Some(value),
        ..text_result(capture, invocation)
    })
}

fn json_value(bytes: &[u8]) -> Result<Value, Throw> {
    parse(bytes).map_err(|wrong| {
        Throw(format!(
            "Command printed something that is not one JSON value: {wrong}: {}",
            excerpt(bytes)
        ))
    })
}

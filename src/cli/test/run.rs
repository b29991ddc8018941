//! One case, run by a pitool of its own in a folder of its own.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use pitool::cases::{Case, Observed, Snapshot, Volatile};
use pitool::json;
use pitool::private_folder::PrivateFolder;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// What would make a tool answer differently here and there: language, time zone, and pitool's own variables.
const SET: [(&str, &str); 2] = [("LC_ALL", "C.UTF-8"), ("TZ", "UTC")];
const UNSET: [&str; 4] = ["LANG", "LANGUAGE", "PITOOL_SOCKET", "PITOOL_TOOLS"];

/// How cases are run.
pub(super) struct Runs {
    program: PathBuf,
    timeout: Duration,
}

/// What a case came to, and what makes that the same everywhere.
pub(super) struct Ran {
    pub(super) observed: Observed,
    pub(super) volatile: Volatile,
    /// What was said to people.
    pub(super) stderr: String,
}

/// A case that could not be run.
pub(super) struct CannotRun {
    pub(super) reason: String,
    pub(super) stderr: String,
}

impl From<io::Error> for CannotRun {
    fn from(error: io::Error) -> Self {
        Self {
            reason: error.to_string(),
            stderr: String::new(),
        }
    }
}

/// The places of one case.
struct Places {
    root: PrivateFolder,
}

impl Places {
    fn new() -> io::Result<Self> {
        let places = Self {
            root: PrivateFolder::new("test")?,
        };
        fs::create_dir(places.folder())?;
        fs::create_dir(places.temporary())?;
        Ok(places)
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join("folder")
    }

    fn temporary(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    fn events(&self) -> PathBuf {
        self.root.path().join("events.jsonl")
    }
}

impl Runs {
    /// Cases get `timeout` each.
    pub(super) fn new(timeout: Duration) -> io::Result<Self> {
        Ok(Self {
            program: std::env::current_exe()?,
            timeout,
        })
    }

    /// Runs a case with the tools of these folders. What it starts ends with the future at the latest.
    pub(super) async fn run(&self, case: &Case, tools: &[PathBuf]) -> Result<Ran, CannotRun> {
        let places = Places::new()?;
        case.files
            .write(&places.folder())
            .map_err(|error| CannotRun {
                reason: format!("its files cannot be written: {error}"),
                stderr: String::new(),
            })?;
        let before = Snapshot::of(&places.folder())?;
        let output = self.output(case, tools, &places).await?;
        let volatile = Volatile::new(&places.folder(), &places.temporary(), tools);
        let stderr = volatile.text(&String::from_utf8_lossy(&output.stderr));
        let Some(results) = results(&output) else {
            let reason = "pitool run did not understand it".to_owned();
            return Err(CannotRun { reason, stderr });
        };
        let observed = Observed {
            results,
            changes: before.until(&Snapshot::of(&places.folder())?),
            events: events(&places.events())?,
        };
        Ok(Ran {
            observed,
            volatile,
            stderr,
        })
    }

    async fn output(&self, case: &Case, tools: &[PathBuf], places: &Places) -> io::Result<Output> {
        let mut command = Command::new(&self.program);
        command
            .args(self.arguments(case, tools, places))
            .current_dir(places.folder())
            .env("TMPDIR", places.temporary())
            .envs(SET)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        for name in UNSET {
            command.env_remove(name);
        }
        for (name, value) in &case.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let mut child = command.spawn()?;
        let mut stdin = child.stdin.take().expect("stdin is a pipe");
        let write = async move {
            match stdin.write_all(case.input.as_bytes()).await {
                // It ended without reading: what it printed says why.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
                written => written,
            }
        };
        let (written, output) = tokio::join!(write, child.wait_with_output());
        written.and(output)
    }

    fn arguments(&self, case: &Case, tools: &[PathBuf], places: &Places) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["run".into()];
        for folder in tools {
            arguments.extend(["--tools".into(), folder.into()]);
        }
        let gives = |option: &str| {
            let is_it =
                |given: &String| given == option || given.starts_with(&format!("{option}="));
            case.options.iter().any(is_it)
        };
        if !gives("--output") {
            arguments.extend(["--output".into(), "jsonl".into()]);
        }
        if !gives("--timeout-batch") {
            let timeout = format!("{}ms", self.timeout.as_millis());
            arguments.extend(["--timeout-batch".into(), timeout.into()]);
        }
        if !gives("--strict-output") {
            arguments.push("--strict-output".into());
        }
        if case.wants_events() {
            arguments.extend(["--events".into(), places.events().into()]);
        }
        arguments.extend(["--progress".into(), "never".into()]);
        arguments.extend(case.options.iter().map(OsString::from));
        arguments
    }
}

/// What was printed; none if that was refused or is no JSON.
fn results(output: &Output) -> Option<Vec<Value>> {
    if output.status.code().is_none_or(|code| code == 2) {
        return None;
    }
    let parsed = json::Values::new(output.stdout.as_slice()).map(|value| Some(value.ok()?.value));
    parsed.collect()
}

/// The events that were written, if they were.
fn events(file: &Path) -> io::Result<Vec<Value>> {
    match fs::read(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        read => {
            let text = read?;
            let values = json::Values::new(text.as_slice());
            Ok(values.filter_map(|value| Some(value.ok()?.value)).collect())
        }
    }
}

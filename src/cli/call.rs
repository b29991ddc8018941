//! `pitool call`: one call, by hand, or by a running tool to the pitool that runs it.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use pitool::batch::{self, Answered, Batch};
use pitool::call::{self, Runner};
use pitool::json;
use pitool::message::ToolCall;
use pitool::nested::client;
use pitool::past::Past;
use pitool::registry::Loaded;
use serde_json::{Value, json};

use super::arguments::Arguments;
use super::images::Images;
use super::listeners::{Listeners, Listening};
use super::signals::Signals;
use super::{Exit, Global, duration, load};
use crate::report::style::{Styles, When};
use crate::report::{pretty, sanitize};

/// Set by a running pitool for the tools that may call others.
const SOCKET: &str = "PITOOL_SOCKET";

/// Call one tool and print its outcome
///
/// Inside a tool with `callsTools` the call goes to the pitool that runs the tool, and the exit code is 0 whatever
/// comes of it. Anywhere else the tools are loaded as `pitool run` does, with the same exit codes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The tool
    name: String,

    #[command(flatten)]
    arguments: Arguments,

    /// Time limit if the manifest sets none, such as 1500ms, 30s, 2m
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,

    /// Save the images of the result as files in this folder as well, and name them on stderr
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    save_images: Option<PathBuf>,

    /// Show progress on stderr
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    progress: When,
}

/// Runs the command.
pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let arguments = args.arguments.read()?;
    if let Some(socket) = std::env::var_os(SOCKET) {
        if args.save_images.is_some() {
            bail!("--save-images is for calls by hand, not for a tool that calls another");
        }
        return nested(&socket, &args.name, &arguments, global);
    }
    let loaded = load::load(global);
    let runtime = super::runtime()?;
    let exit = runtime.block_on(by_hand(args, global, loaded, arguments));
    runtime.shutdown_background();
    exit
}

fn nested(
    socket: &OsString,
    name: &str,
    arguments: &Value,
    global: &Global,
) -> anyhow::Result<Exit> {
    let outcome = client::call(Path::new(socket), name, arguments)
        .with_context(|| format!("cannot reach the running pitool at {SOCKET}"))?;
    print(&outcome, global.color).context("cannot write to stdout")?;
    Ok(Exit::Ok)
}

async fn by_hand(
    args: &Args,
    global: &Global,
    loaded: Loaded,
    arguments: Value,
) -> anyhow::Result<Exit> {
    let signals = Signals::listen().context("cannot listen for signals")?;
    let withheld = load::withheld(&loaded);
    let is_withheld = withheld.is_some();
    let images = args.save_images.as_deref().map(Images::in_folder);
    let mut images = images.transpose()?;
    let registry = Arc::new(loaded.registry);
    let listening = Listening {
        progress: args.progress,
        color: global.color,
        events_file: None,
        events_to_stdout: false,
    };
    let listeners = Listeners::new(&listening, &registry, signals.stopper())?;
    registry.hear_servers(Listeners::hear(&listeners));
    let options = call::Options {
        timeout: args.timeout,
        withheld,
        ..call::Options::default()
    };
    let runner = Runner::new(registry, options);
    let answered = call_once(&runner, &args.name, arguments, &listeners, &signals).await;
    let outcome = &answered.outcomes[0];
    let mut is_unsaved = false;
    if let Some(images) = &mut images {
        let saved = images.save(&outcome.tool_call.id, &outcome.result);
        listeners.images(&outcome.tool_call.id, &saved, true);
        is_unsaved = !saved.failures.is_empty();
    }
    let line = serde_json::to_string(outcome).expect("an outcome has only string keys");
    let printed = listeners.suspend(|| print(&line, global.color));
    runner.registry.close_servers().await;
    drop(runner);
    let _ = listeners.finish();
    match printed {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Exit::ClosedPipe),
        Err(error) => return Err(error).context("cannot write to stdout"),
    }
    Ok(match signals.received() {
        Some(signal) => Exit::Signal(signal),
        None if is_withheld || is_unsaved => Exit::NotUnderstood,
        None if outcome.is_error => Exit::Errors,
        None => Exit::Ok,
    })
}

/// A message with one call, answered.
async fn call_once(
    runner: &Runner,
    name: &str,
    arguments: Value,
    listeners: &Listeners,
    signals: &Signals,
) -> Answered {
    let tool_call = ToolCall {
        id: "call_1".to_owned(),
        name: name.to_owned(),
        arguments,
        arguments_error: None,
    };
    let message = json!({"role": "assistant", "content": [tool_call], "stopReason": "toolUse"});
    let batch = Batch {
        message: &message,
        calls: std::slice::from_ref(&tool_call),
        stop_reason: None,
        past: Past::None,
    };
    listeners.expect(1);
    batch::run(runner, batch, listeners, &signals.stop()).await
}

/// Prints an outcome: one line, or on a terminal indented, and never so that the terminal obeys it.
fn print(outcome: &str, color: When) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let text = match json::parse(outcome.as_bytes()) {
        Ok(value) if stdout.is_terminal() => {
            pretty::pretty(&value, &Styles::of_stream(color, true))
        }
        _ if stdout.is_terminal() => sanitize::json(outcome).into_owned(),
        _ => outcome.to_owned(),
    };
    writeln!(stdout, "{text}")?;
    stdout.flush()
}

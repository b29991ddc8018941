//! `pitool serve`: the tools as an MCP server.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use pitool::call::{self, OutputCheck, Runner};
use pitool::event::{Listener, Notice};
use pitool::journal::Journal;
use pitool::mcp::Hear;
use pitool::mcp::server::{self, Reload, Serving};
use pitool::pattern::Pattern;
use pitool::registry::Registry;
use pitool::schema::{Coercion, Lossy};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::gate::Permits;
use super::listeners::{Listeners, Listening};
use super::run::Coerce;
use super::signals::Signals;
use super::{Exit, Global, duration, load};
use crate::report::style::When;

/// Serve the tools to an MCP client
///
/// Speaks MCP on stdin and stdout. Each tools/call is a batch of one: validated, coerced, hooked and run as by `run`.
/// Changed manifests are announced to the client; a set that does not load is not taken. Ends when stdin ends.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Serve only the tools whose names match; repeatable, `*` matches anything
    #[arg(long, value_name = "PATTERN")]
    only: Vec<Pattern>,

    /// How many calls run at once, 0 for no bound
    #[arg(long, value_name = "N", default_value_t = 64)]
    jobs: usize,

    /// Time limit of a call whose manifest sets none, such as 1500ms, 30s, 2m
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,

    /// Run only calls to tools whose names match; others are blocked; repeatable
    #[arg(long, value_name = "PATTERN")]
    allow: Vec<Pattern>,

    /// Block calls to tools whose names match; repeatable
    #[arg(long, value_name = "PATTERN")]
    deny: Vec<Pattern>,

    /// How arguments are coerced, whatever the manifests say
    #[arg(long, value_name = "HOW", value_enum)]
    coerce: Option<Coerce>,

    /// Refuse arguments that coercion would make less of, such as 3.7 for an integer
    #[arg(long)]
    deny_lossy: bool,

    /// Make a result that breaks its tool's outputSchema an error
    #[arg(long)]
    strict_output: bool,

    /// Record in this file what starts and what it comes to; nothing is answered from it
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,

    /// Write the events of all calls as JSON lines to this file
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let journal = args.journal.as_deref().map(Journal::open).transpose()?;
    let mut loaded = load::load(global);
    if load::withheld(&loaded).is_some() {
        // What is wrong was told; a guard may be missing, so nothing is served.
        return Ok(Exit::NotUnderstood);
    }
    if !args.only.is_empty() {
        loaded.registry.retain(&args.only);
    }
    let runtime = super::runtime()?;
    let exit = runtime.block_on(serve(args, global, loaded.registry, journal));
    // A thread that still reads stdin must not hold the process.
    runtime.shutdown_background();
    exit
}

async fn serve(
    args: &Args,
    global: &Global,
    registry: Registry,
    journal: Option<Journal>,
) -> anyhow::Result<Exit> {
    let signals = Signals::listen().context("cannot listen for signals")?;
    let registry = Arc::new(registry);
    let listeners = Listeners::new(&args.listening(global), &registry, signals.stopper())?;
    let hear = Listeners::hear(&listeners);
    registry.hear_servers(Arc::clone(&hear));
    let mut runner = Runner::new(registry, args.options(&listeners));
    if let Some(journal) = journal {
        warn_of_open_intents(&journal, &*listeners);
        runner = runner.recording_in(Arc::new(journal));
    }
    let serving = Serving::new(runner, listeners.clone(), signals.stop());
    let folders = load::folders(global);
    let served = tokio::select! {
        served = server::serve_stdio(&serving, input()?, output()?) => served,
        () = server::watch(&serving, &folders, args.reload(global, hear)) => Ok(()),
    };
    serving.registry().close_servers().await;
    drop(serving);
    let (_, events_file) = Listeners::finish(listeners);
    events_file.context("cannot write the events file")?;
    served.context("cannot serve")?;
    Ok(signals.received().map_or(Exit::Ok, Exit::Signal))
}

/// Tells of calls that an earlier server started and never answered: what came of them somebody has to find out.
fn warn_of_open_intents(journal: &Journal, listener: &dyn Listener) {
    for intent in journal.open_intents() {
        listener.notice(Notice::Warning(format!(
            "call \"{}\" of tool \"{}\" was started before an interruption and its outcome is unknown",
            intent.tool_call_id, intent.tool_name
        )));
    }
}

impl Args {
    fn options(&self, listeners: &Arc<Listeners>) -> call::Options {
        let permits = Permits {
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            confirm: Vec::new(),
        };
        call::Options {
            jobs: NonZeroUsize::new(self.jobs),
            timeout: self.timeout,
            coerce: self.coerce.map(Coercion::from),
            lossy: if self.deny_lossy {
                Lossy::Deny
            } else {
                Lossy::Allow
            },
            output_check: if self.strict_output {
                OutputCheck::Fail
            } else {
                OutputCheck::Warn
            },
            gate: permits.gate(listeners),
            ..call::Options::default()
        }
    }

    /// stdout belongs to the protocol, and rows of progress to a person who runs calls: there is none here.
    fn listening<'a>(&'a self, global: &Global) -> Listening<'a> {
        Listening {
            progress: When::Never,
            color: global.color,
            events_file: self.events.as_deref(),
            events_to_stdout: false,
        }
    }

    fn reload(&self, global: &Global, hear: Hear) -> Reload {
        let (folders, only) = (load::folders(global), self.only.clone());
        Box::new(move || {
            let mut loaded = Registry::load(&folders);
            if let Some(file) = loaded.unloadable() {
                let problems = loaded
                    .problems
                    .iter()
                    .filter(|problem| problem.file == file);
                return Err(problems
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("; "));
            }
            if !only.is_empty() {
                loaded.registry.retain(&only);
            }
            loaded.registry.hear_servers(Arc::clone(&hear));
            Ok(loaded.registry)
        })
    }
}

/// stdin without a thread between where it can be: clients give a pipe or a socket.
fn input() -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
    let stdin = io::stdin();
    Ok(match kind(&stdin)? {
        Kind::Pipe => Box::new(pipe::OpenOptions::new().open_receiver("/dev/stdin")?),
        Kind::Socket => Box::new(socket(&stdin)?),
        Kind::Other => Box::new(tokio::io::stdin()),
    })
}

/// stdout, likewise.
fn output() -> io::Result<Box<dyn AsyncWrite + Send + Unpin>> {
    let stdout = io::stdout();
    Ok(match kind(&stdout)? {
        Kind::Pipe => Box::new(pipe::OpenOptions::new().open_sender("/dev/stdout")?),
        Kind::Socket => Box::new(socket(&stdout)?),
        Kind::Other => Box::new(tokio::io::stdout()),
    })
}

/// What a standard stream is.
enum Kind {
    Pipe,
    Socket,
    Other,
}

fn kind(stream: &impl AsFd) -> io::Result<Kind> {
    let kind = File::from(owned(stream)?).metadata()?.file_type();
    Ok(if kind.is_fifo() {
        Kind::Pipe
    } else if kind.is_socket() {
        Kind::Socket
    } else {
        Kind::Other
    })
}

fn owned(stream: &impl AsFd) -> io::Result<OwnedFd> {
    stream.as_fd().try_clone_to_owned()
}

/// A socket is ours alone: whoever gave it holds the other end.
fn socket(stream: &impl AsFd) -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(owned(stream)?);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

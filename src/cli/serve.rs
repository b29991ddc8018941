//! `pitool serve`: the tools as an MCP server.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use anyhow::Context as _;
use pitool::call::Runner;
use pitool::event::{Listener, Notice};
use pitool::journal::Journal;
use pitool::mcp::Hear;
use pitool::mcp::server::{self, Access, Reload, Serving, Token};
use pitool::registry::Registry;
use pitool::stop::{StopLevel, Stopper};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::listeners::{Listeners, Listening};
use super::options::CallOptions;
use super::signals::Signals;
use super::stdout::StdoutWatch;
use super::{Exit, Global, Hinted, complain, load};
use crate::report::style::When;

/// Serve the tools to an MCP client
///
/// Speaks MCP on stdin and stdout, or with --http over streamable HTTP with any number of clients. Each tools/call is a
/// batch of one: validated, coerced, hooked and run as by `run`. Changed manifests are announced to the clients; a set
/// that does not load is not taken. Ends when stdin ends and all is answered, over HTTP with a signal.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Listen at HOST:PORT or PORT instead; port 0 takes any free one
    ///
    /// Beyond loopback only with --token-env.
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,

    /// Admit only clients with the bearer token in this variable
    #[arg(long, value_name = "NAME", requires = "http")]
    token_env: Option<String>,

    #[command(flatten)]
    calls: CallOptions,

    /// Record what starts and what it comes to
    ///
    /// Nothing is answered from it.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,

    /// Write the events of all calls as JSON lines to this file
    #[arg(hide_short_help = true, long, value_name = "FILE")]
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
    args.calls.narrow(&mut loaded.registry);
    let entrance = args.entrance()?;
    let runtime = super::runtime()?;
    let exit = runtime.block_on(serve(args, global, loaded.registry, journal, entrance));
    // A thread that still reads stdin must not hold the process.
    runtime.shutdown_background();
    exit
}

async fn serve(
    args: &Args,
    global: &Global,
    registry: Registry,
    journal: Option<Journal>,
    entrance: Entrance,
) -> anyhow::Result<Exit> {
    let signals = Signals::listen().context("cannot listen for signals")?;
    let registry = Arc::new(registry);
    let listeners = Listeners::new(&args.listening(global), &registry, signals.stopper())?;
    let hear = Listeners::hear(&listeners);
    registry.hear_servers(Arc::clone(&hear));
    let mut runner = Runner::new(registry, args.calls.gated(&listeners));
    if let Some(journal) = journal {
        warn_of_open_intents(&journal, &*listeners);
        runner = runner.recording_in(Arc::new(journal));
    }
    let serving = Serving::new(runner, listeners.clone(), signals.stop());
    let folders = load::folders(global);
    let stopper = signals.stopper();
    let served = tokio::select! {
        served = entrance.serve(&serving, &stopper) => served,
        () = server::watch(&serving, &folders, args.reload(global, hear)) => Ok(()),
    };
    serving.registry().close_servers().await;
    drop(serving);
    let (_, events_file) = listeners.finish();
    events_file.context("cannot write the events file")?;
    match (signals.received(), served) {
        (Some(signal), Ok(())) => Ok(Exit::Signal(signal)),
        (None, Ok(())) => Ok(Exit::Ok),
        (_, Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::ClosedPipe),
        (_, Err(error)) => Err(error).context("cannot serve"),
    }
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
    /// Where clients come in; nobody may beyond loopback without a token.
    fn entrance(&self) -> anyhow::Result<Entrance> {
        let Some(address) = &self.http else {
            return Ok(Entrance::Stdio);
        };
        let token = self.token_env.as_deref().map(token).transpose()?;
        let cannot = || format!("cannot listen on {address}");
        let addresses = addresses(address).with_context(cannot)?;
        let access = match token {
            token if addresses.iter().all(|address| address.ip().is_loopback()) => {
                Access::loopback(token)
            }
            Some(token) => Access::anywhere(token),
            None => {
                let message = format!("{address} is not on loopback: others could run the tools");
                let hint = "set a secret in an environment variable and name it with --token-env, or listen on 127.0.0.1";
                return Err(Hinted::new(message, hint).into());
            }
        };
        let listener = TcpListener::bind(&*addresses).with_context(cannot)?;
        listener.set_nonblocking(true).with_context(cannot)?;
        Ok(Entrance::Http(listener, access))
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
        let (folders, only) = (load::folders(global), self.calls.only.clone());
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

/// Where clients come in.
enum Entrance {
    Stdio,
    Http(TcpListener, Access),
}

impl Entrance {
    async fn serve(self, serving: &Serving, stopper: &Stopper) -> io::Result<()> {
        match self {
            Self::Stdio => serve_stdio(serving, stopper).await,
            Self::Http(listener, access) => {
                let listener = tokio::net::TcpListener::from_std(listener)?;
                let url = server::url(listener.local_addr()?);
                complain(&format!("serving MCP on {url}"));
                server::serve_http(serving, listener, access).await
            }
        }
    }
}

/// Serves the client on stdin and stdout. One that does not read any more is gone: what runs for it is stopped.
async fn serve_stdio(serving: &Serving, stopper: &Stopper) -> io::Result<()> {
    let stdout = StdoutWatch::new();
    let mut served = pin!(server::serve_stdio(serving, input()?, output()?));
    tokio::select! {
        served = &mut served => served,
        () = stdout.closed() => {
            stopper.raise(StopLevel::Now);
            served.await.and(Err(io::ErrorKind::BrokenPipe.into()))
        }
    }
}

/// The token in an environment variable, which must be set: an empty one would admit everybody.
fn token(name: &str) -> anyhow::Result<Token> {
    let value = std::env::var(name).ok().and_then(Token::new);
    value.ok_or_else(|| {
        let message = format!("environment variable {name} holds no token");
        let hint = "a token is printable ASCII without spaces; `openssl rand -hex 32` makes one";
        Hinted::new(message, hint).into()
    })
}

/// What `HOST:PORT` stands for; loopback when only a port is given.
fn addresses(address: &str) -> io::Result<Vec<SocketAddr>> {
    match address.parse::<u16>() {
        Ok(port) => Ok(vec![(Ipv4Addr::LOCALHOST, port).into()]),
        Err(_) => Ok(address.to_socket_addrs()?.collect()),
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

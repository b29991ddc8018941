//! `pitool run`: the calls of the messages on stdin, run, and one result per call on stdout.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use pitool::batch::{self, Answered, Batch};
use pitool::call::{self, Gate, Runner};
use pitool::event::{Listener, Notice};
use pitool::format::{Format, Rerun, Turn};
use pitool::pattern::Pattern;
use pitool::registry::Loaded;
use pitool::stop::{Stop, StopLevel, Stopper};

use super::gate::Permits;
use super::images::{Images, Saved};
use super::ledger::{Entry, Ledger};
use super::listeners::{Listeners, Listening};
use super::options::CallOptions;
use super::output::{Output, Printer};
use super::signals::Signals;
use super::stdin::Read;
use super::stdout::StdoutWatch;
use super::{Exit, Global, duration, load, plan, stdin};
use crate::report::sanitize;
use crate::report::style::When;

/// Run the calls of the messages on stdin
///
/// Reads assistant messages from stdin, runs their tool calls and prints one paired toolResult message per call, in
/// source order, whatever happens to the tools.
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Exit codes: 0 all well; 1 some result is an error; 2 the command line, a manifest or an input \
                        could not be understood; 128 + signal when stopped; 141 when stdout was closed early."
)]
pub(crate) struct Args {
    #[command(flatten)]
    calls: CallOptions,

    /// How the calls of a message follow each other
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    mode: Mode,

    /// Format of the input [default: recognised]
    #[arg(long, value_name = "FORMAT")]
    from: Option<Format>,

    /// Format of the results [default: that of the input]
    #[arg(long, value_name = "FORMAT")]
    to: Option<Format>,

    /// What to print [default: pretty on a terminal, else jsonl]
    #[arg(long, value_name = "WHAT", value_enum)]
    output: Option<Output>,

    /// Save the images of results as files in this folder as well, and name them on stderr or in the cards of text
    #[arg(hide_short_help = true, long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    save_images: Option<PathBuf>,

    /// Write the events as JSON lines to this file as well
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    events: Option<PathBuf>,

    /// Time limit of all calls of one message together
    #[arg(hide_short_help = true, long, value_name = "TIME", value_parser = duration::parse)]
    timeout_batch: Option<Duration>,

    /// Record what starts and what it comes to; go on after an interruption
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,

    /// Answer the calls from this journal and run nothing
    #[arg(long, value_name = "FILE", conflicts_with = "journal")]
    replay: Option<PathBuf>,

    /// Ask on the terminal before calls to tools whose names match; repeatable
    #[arg(hide_short_help = true, long, value_name = "PATTERN")]
    confirm: Vec<Pattern>,

    /// Whose rules hold: pi's, or those of a strict teaching executor
    #[arg(
        hide_short_help = true,
        long,
        value_name = "WHOSE",
        value_enum,
        default_value_t
    )]
    profile: Profile,

    /// Print what would start and run nothing
    #[arg(long, conflicts_with_all = ["events", "output", "to", "journal", "replay", "save_images"])]
    dry_run: bool,

    /// In arrays and session files run calls that have a result too
    #[arg(hide_short_help = true, long)]
    rerun: bool,

    /// Stop reading at the first input that cannot be understood
    #[arg(hide_short_help = true, long)]
    fail_fast: bool,

    /// Exit with this code when every call of the last message asked to terminate
    #[arg(hide_short_help = true, long, value_name = "N")]
    terminate_code: Option<u8>,

    /// Show progress on stderr
    #[arg(
        hide_short_help = true,
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t
    )]
    progress: When,
}

/// The option of that name, for [`call::Mode`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Prepare in order, run at the same time
    #[default]
    Parallel,
    /// One after the other
    Sequential,
}

/// The option of that name, for [`call::Profile`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Profile {
    /// Those of the pi agent
    #[default]
    Pi,
    /// No coercion, unknown arguments dropped, every failure in one shape
    Course,
}

impl From<Profile> for call::Profile {
    fn from(profile: Profile) -> Self {
        match profile {
            Profile::Pi => Self::Pi,
            Profile::Course => Self::Course,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    if args.output == Some(Output::Transcript) && args.to.is_some() {
        anyhow::bail!("--output transcript is in the format of the input: leave --to out");
    }
    let ledger = Ledger::open(args.journal.as_deref(), args.replay.as_deref())?;
    let mut loaded = match &ledger {
        // Nothing runs, so there may be no tools at all.
        Ledger::Recording(_) => Loaded::default(),
        Ledger::None | Ledger::Journal(_) => load::load_for(args.profile.into(), global),
    };
    args.calls.narrow(&mut loaded.registry);
    if args.dry_run {
        return dry_run(args, loaded);
    }
    let runtime = super::runtime()?;
    let exit = runtime.block_on(run_all(args, global, loaded, &ledger));
    // A thread that still reads stdin or a terminal must not hold the process.
    runtime.shutdown_background();
    exit
}

async fn run_all(
    args: &Args,
    global: &Global,
    loaded: Loaded,
    ledger: &Ledger,
) -> anyhow::Result<Exit> {
    let signals = Signals::listen().context("cannot listen for signals")?;
    let withheld = load::withheld(&loaded);
    let mut tally = Tally {
        not_understood: withheld.is_some(),
        ..Tally::default()
    };
    let images = args.save_images.as_deref().map(Images::in_folder);
    let images = images.transpose()?;
    let registry = load::for_good(loaded.registry);
    let listeners = Listeners::new(&args.listening(global), &registry, signals.stopper())?;
    registry.hear_servers(Listeners::hear(&listeners));
    let servers = Arc::clone(&registry);
    let mut session = Session {
        printer: Printer::new(args.output, args.to, global.color, &registry),
        runner: Runner::new(
            registry,
            args.options(withheld, args.permits().gate(&listeners)),
        ),
        ledger,
        listeners: &listeners,
        stdout: StdoutWatch::new(),
        timeout_batch: args.timeout_batch,
        images,
        names_images: args.output != Some(Output::Text),
        tally: &mut tally,
    };
    super::await_typed();
    let written = session
        .answer_all(stdin::turns(args.reading()), &signals.stop())
        .await;
    let written = written.and_then(|()| session.printer.finish());
    drop(session);
    servers.close_servers().await;
    let (events, events_file) = listeners.finish();
    match written.and(events) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => tally.closed_pipe = true,
        Err(error) => return Err(error).context("cannot write to stdout"),
    }
    events_file.context("cannot write the events file")?;
    tally.not_understood |= ledger.has_failed();
    Ok(tally.exit(signals.received(), args.terminate_code))
}

/// Needs neither a runtime nor signals: nothing starts, and Ctrl-C may simply end it.
fn dry_run(args: &Args, loaded: Loaded) -> anyhow::Result<Exit> {
    let withheld = load::withheld(&loaded);
    let mut tally = Tally {
        not_understood: withheld.is_some(),
        ..Tally::default()
    };
    let permits = args.permits();
    let runner = Runner::new(
        load::for_good(loaded.registry),
        args.options(withheld, None),
    );
    super::await_typed();
    let mut turns = stdin::turns(args.reading());
    let reads = std::iter::from_fn(|| turns.blocking_recv()).flatten();
    for read in reads {
        match read {
            Read::Document(_) => {}
            Read::Unreadable(error) => {
                tally.not_understood = true;
                eprintln!("pitool: stdin: {}", sanitize::lines(&error.to_string()));
            }
            Read::Turn(turn) => match plan::print(&runner, &turn, |name| permits.denies(name)) {
                Ok(all_would_run) => tally.has_errors |= !all_would_run,
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                    return Ok(Exit::ClosedPipe);
                }
                Err(error) => return Err(error).context("cannot write to stdout"),
            },
        }
    }
    Ok(tally.exit(None, None))
}

impl Args {
    fn options(&self, withheld: Option<String>, gate: Option<Gate>) -> call::Options {
        call::Options {
            mode: match self.mode {
                Mode::Parallel => call::Mode::Parallel,
                Mode::Sequential => call::Mode::Sequential,
            },
            withheld,
            profile: self.profile.into(),
            probe: None,
            gate,
            ..self.calls.of_calls()
        }
    }

    fn permits(&self) -> Permits {
        self.calls.permits(&self.confirm)
    }

    fn reading(&self) -> stdin::Reading {
        stdin::Reading {
            from: self.from,
            rerun: if self.rerun {
                Rerun::All
            } else {
                Rerun::Unanswered
            },
            on_error: if self.fail_fast {
                stdin::OnError::End
            } else {
                stdin::OnError::GoOn
            },
            what: if self.output == Some(Output::Transcript) {
                stdin::What::Documents
            } else {
                stdin::What::Turns
            },
        }
    }

    fn listening<'a>(&'a self, global: &Global) -> Listening<'a> {
        Listening {
            progress: self.progress,
            color: global.color,
            events_file: self.events.as_deref(),
            events_to_stdout: self.output == Some(Output::Events),
        }
    }
}

/// What all messages of one run share.
struct Session<'a> {
    runner: Runner,
    ledger: &'a Ledger,
    listeners: &'a Listeners,
    printer: Printer,
    stdout: StdoutWatch,
    timeout_batch: Option<Duration>,
    images: Option<Images>,
    /// Whether stderr says where they are, as stdout does not.
    names_images: bool,
    tally: &'a mut Tally,
}

impl Session<'_> {
    /// Answers message by message until the input ends, a stop, or a closed stdout.
    ///
    /// After a stop, what was read already is still answered; nothing more is read.
    async fn answer_all(&mut self, mut turns: stdin::Turns, stop: &Stop) -> std::io::Result<()> {
        loop {
            if stop.is_stopping() {
                // Who reads may be faster than who answers, and the input without an end.
                turns.close();
            }
            let read = tokio::select! {
                biased;
                read = turns.recv() => read,
                () = stop.stopped() => turns.try_recv().ok(),
                () = self.stdout.closed() => return Err(std::io::ErrorKind::BrokenPipe.into()),
            };
            let Some(reads) = read else {
                return Ok(());
            };
            for read in reads {
                self.take(read, stop).await?;
            }
        }
    }

    async fn take(&mut self, read: Read, stop: &Stop) -> std::io::Result<()> {
        match read {
            Read::Document(document) => {
                let printer = &mut self.printer;
                self.listeners.suspend(|| printer.begin(*document))
            }
            Read::Turn(turn) => self.answer(&turn, stop).await,
            Read::Unreadable(error) => {
                self.tally.not_understood = true;
                self.listeners.error(&format!("stdin: {error}"));
                Ok(())
            }
        }
    }

    async fn answer(&mut self, turn: &Turn, stop: &Stop) -> std::io::Result<()> {
        self.listeners.expect(turn.calls.len());
        for warning in &turn.warnings {
            self.listeners.notice(Notice::Warning(warning.clone()));
        }
        let entry = self.ledger.entry(turn);
        if let Some(problem) = entry.problem() {
            self.tally.not_understood = true;
            self.listeners.error(problem);
        }
        let answered = self.run_batch(turn, &entry, stop).await;
        self.tally.add(&answered);
        let saved = self.save_images(&answered);
        let printer = &mut self.printer;
        self.listeners
            .suspend(|| printer.print(turn, &answered, &saved))
    }

    /// Saves the images of each call. What cannot be saved is told, and the results are printed all the same.
    fn save_images(&mut self, answered: &Answered) -> Vec<Saved> {
        let Some(images) = &mut self.images else {
            return Vec::new();
        };
        let mut all = Vec::new();
        for outcome in &answered.outcomes {
            let id = &outcome.tool_call.id;
            let saved = images.save(id, &outcome.result);
            self.listeners.images(id, &saved, self.names_images);
            self.tally.not_understood |= !saved.failures.is_empty();
            all.push(saved);
        }
        all
    }

    async fn run_batch(&mut self, turn: &Turn, entry: &Entry<'_>, stop: &Stop) -> Answered {
        let stopper = Stopper::new();
        let batch_stop = stopper.stop();
        let batch = Batch {
            message: &turn.message,
            calls: &turn.calls,
            stop_reason: turn.stop_reason.as_deref(),
            past: entry.past(),
        };
        let interrupts = async {
            tokio::join!(
                stopper.follow(stop),
                expire(self.timeout_batch, &stopper),
                self.closed(&stopper)
            )
        };
        let answered = tokio::select! {
            biased;
            answered = batch::run(&self.runner, batch, self.listeners, &batch_stop) => answered,
            _ = interrupts => unreachable!("a stop is followed for ever"),
        };
        // Not all was well, even if every tool still gave its result.
        self.tally.has_errors |= batch_stop.is_stopping();
        answered
    }

    /// Nobody reads the results any more: no reason to go on, and none for grace.
    async fn closed(&self, stopper: &Stopper) {
        self.stdout.closed().await;
        stopper.raise(StopLevel::Now);
    }
}

async fn expire(timeout: Option<Duration>, stopper: &Stopper) {
    if let Some(timeout) = timeout {
        tokio::time::sleep(timeout).await;
        stopper.raise(StopLevel::Stopping);
    }
}

/// What the exit code depends on.
#[derive(Debug, Default)]
struct Tally {
    has_errors: bool,
    not_understood: bool,
    closed_pipe: bool,
    last_terminated: bool,
}

impl Tally {
    fn add(&mut self, answered: &Answered) {
        self.has_errors |= answered.outcomes.iter().any(|outcome| outcome.is_error);
        self.last_terminated = answered.terminate;
    }

    fn exit(&self, signal: Option<u8>, terminate_code: Option<u8>) -> Exit {
        match (signal, terminate_code) {
            (Some(signal), _) => Exit::Signal(signal),
            _ if self.closed_pipe => Exit::ClosedPipe,
            _ if self.not_understood => Exit::NotUnderstood,
            (None, Some(code)) if self.last_terminated => Exit::Terminated(code),
            _ if self.has_errors => Exit::Errors,
            _ => Exit::Ok,
        }
    }
}

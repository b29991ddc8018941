//! The command line: which command runs, how it ends, and the one place that prints a fatal error.
//!
//! A subcommand is a file of its own with its `Args` and its `run`, a variant of [`Command`] and one match arm.

mod arguments;
mod audit;
mod call;
mod check;
mod complete;
mod completions;
mod connect;
mod declare;
mod duration;
mod fresh;
mod gate;
mod images;
mod init;
mod ledger;
mod list;
mod listeners;
mod load;
mod man;
mod new;
mod options;
mod output;
mod plan;
mod print;
mod run;
mod schema;
mod serve;
mod show;
mod signals;
mod stdin;
mod stdout;
mod test;
mod timeline;
mod transcript;
mod validate;

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args as _, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::report::sanitize;
use crate::report::style::When;

/// Runs the tool calls of an LLM agent from the shell.
#[derive(Debug, Parser)]
#[command(
    name = "pitool",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    // All commands on one screen.
    help_template = "{usage-heading} {usage}\nCommands:\n{subcommands}\nOptions:\n{options}{after-help}",
    after_long_help = "Runs the tool calls of an LLM agent: an assistant message on stdin, one result per call on stdout.\n\
                       Each command explains itself: pitool run --help. To begin: pitool init"
)]
struct Cli {
    #[command(flatten)]
    global: Global,

    #[command(subcommand)]
    command: Command,
}

/// Options that every command understands.
#[derive(Debug, clap::Args)]
pub(crate) struct Global {
    /// Folder of manifests [default: $PITOOL_TOOLS or ./tools.d]
    ///
    /// Repeatable: the folders are read in this order.
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, global = true)]
    pub(crate) tools: Vec<PathBuf>,

    /// Colour the output
    #[arg(
        hide_short_help = true,
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        global = true
    )]
    pub(crate) color: When,
}

#[derive(Debug, Subcommand)]
enum Command {
    Audit(audit::Args),
    Call(call::Args),
    Check(check::Args),
    Completions(completions::Args),
    Declare(declare::Args),
    Init(init::Args),
    List(list::Args),
    Man(man::Args),
    New(new::Args),
    Run(run::Args),
    Schema(schema::Args),
    Serve(serve::Args),
    Show(show::Args),
    Test(test::Args),
    Timeline(timeline::Args),
    Transcript(transcript::Args),
    Validate(validate::Args),
}

/// How the process ends. Precedence when several apply: signal, 2, `--terminate-code`, 1, 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All well.
    Ok,
    /// Some result is an error, or some input invalid.
    Errors,
    /// The command line, a manifest or an input could not be understood; no tools folder; stdout not writable.
    NotUnderstood,
    /// The last batch terminated and `--terminate-code` says what that means.
    Terminated(u8),
    /// Stopped by this signal.
    Signal(u8),
    /// Stdout was closed early.
    ClosedPipe,
}

impl Exit {
    /// This one, unless all is well and the other is worse.
    pub(crate) fn or(self, other: Self) -> Self {
        if self == Self::Ok { other } else { self }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Ok => 0,
            Exit::Errors => 1,
            Exit::NotUnderstood => 2,
            Exit::Terminated(code) => code,
            Exit::Signal(signal) => 128 + signal,
            Exit::ClosedPipe => 141,
        })
    }
}

/// Runs the command that the arguments (program name first) name.
pub(crate) fn main(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    if complete::answer() {
        return Exit::Ok;
    }
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match parse(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout and are no failure; `print` knows which is which.
            let wanted = !error.use_stderr();
            let is_printed = error.print().is_ok();
            if let Some(hint) = stdin::hint(&arguments, &error) {
                // Nobody is left to tell when stderr is gone.
                let _ = writeln!(std::io::stderr(), "hint: {hint}");
            }
            return if is_printed && wanted {
                Exit::Ok
            } else {
                Exit::NotUnderstood
            };
        }
    };
    dispatch(cli).unwrap_or_else(|error| {
        print_error(&error);
        Exit::NotUnderstood
    })
}

fn parse(arguments: &[OsString]) -> clap::error::Result<Cli> {
    let name = arguments.get(1).and_then(|name| name.to_str());
    let mut command = name.and_then(alone).unwrap_or_else(Cli::command);
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// The command line with one command alone, if it is one that runs again and again: to describe the options of all the
/// others takes longer than to run a call.
fn alone(name: &str) -> Option<clap::Command> {
    let (name, add_options): (&'static str, fn(clap::Command) -> clap::Command) = match name {
        "call" => ("call", call::Args::augment_args),
        "run" => ("run", run::Args::augment_args),
        "validate" => ("validate", validate::Args::augment_args),
        _ => return None,
    };
    let command = Global::augment_args(clap::Command::new("pitool"));
    Some(command.subcommand(add_options(clap::Command::new(name))))
}

fn dispatch(cli: Cli) -> anyhow::Result<Exit> {
    stdout::check()?;
    let Cli { global, command } = cli;
    match command {
        Command::Audit(args) => audit::run(&args, &global),
        Command::Call(args) => call::run(&args, &global),
        Command::Check(args) => check::run(&args, &global),
        Command::Completions(args) => completions::run(&args),
        Command::Declare(args) => declare::run(&args, &global),
        Command::Init(args) => init::run(&args, &global),
        Command::List(args) => list::run(&args, &global),
        Command::Man(man::Args {}) => man::run(),
        Command::New(args) => new::run(&args, &global),
        Command::Run(args) => run::run(&args, &global),
        Command::Schema(args) => schema::run(&args, &global),
        Command::Serve(args) => serve::run(&args, &global),
        Command::Show(args) => show::run(&args, &global),
        Command::Test(args) => test::run(&args, &global),
        Command::Timeline(timeline::Args {}) => timeline::run(),
        Command::Transcript(args) => transcript::run(&args, &global),
        Command::Validate(args) => validate::run(&args, &global),
    }
}

/// Tells of something that does not keep the command from going on. The sentence must be safe to show.
fn complain(sentence: &str) {
    // Nobody is left to tell when stderr is gone.
    let _ = writeln!(std::io::stderr(), "pitool: {sentence}");
}

/// Says that input is awaited, where a person has to type it.
fn await_typed() {
    if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        complain("reading from the terminal; Ctrl-D ends the input");
    }
}

/// The one thread that waits for everything a command runs.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")
}

/// A path as a shell takes it, safe to show.
fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    let is_plain = |character: char| character.is_alphanumeric() || "/._-+".contains(character);
    if path.chars().all(is_plain) && !path.starts_with('-') {
        return path.into_owned();
    }
    let path = sanitize::one_line(&path).replace('\'', r"'\''");
    format!("'{path}'")
}

/// ` --tools DIR` for each folder that was named, for a command to type.
fn tools_option(global: &Global) -> String {
    let folders = global.tools.iter();
    folders
        .map(|folder| format!(" --tools {}", quoted(folder)))
        .collect()
}

/// `pitool: outermost: cause`, then the hint of the innermost error that has one. Names of files and tools may hold
/// anything.
fn print_error(error: &anyhow::Error) {
    let mut text = format!("pitool: {}\n", sanitize::lines(&format!("{error:#}")));
    let mut chain = error.chain();
    if let Some(hinted) = chain.find_map(|cause| cause.downcast_ref::<Hinted>()) {
        text.push_str(&format!("hint: {}\n", sanitize::lines(&hinted.hint)));
    }
    // Nobody is left to tell when stderr is gone.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// An error with the advice that belongs to it, printed as a `hint:` line.
#[derive(Debug)]
pub(crate) struct Hinted {
    message: String,
    hint: String,
}

impl Hinted {
    /// An error of that message; `hint` says what to do.
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: hint.into(),
        }
    }
}

impl std::fmt::Display for Hinted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Hinted {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_alone_answers_as_among_all() {
        for line in [
            "run --help",
            "run -h",
            "run --nope",
            "run --tool",
            "run --jobs",
            "run --jobs many",
            "run extra",
            "run --journal a --replay b",
            "run --color blue",
            "validate --only",
            "validate --tool a --schema b",
            "validate --help",
            "call",
            "call --help",
            "call --nope echo",
            "call -V",
        ] {
            let words = || ["pitool"].into_iter().chain(line.split(' '));
            let name = words().nth(1).unwrap();
            let told = |command: clap::Command| {
                let error = command.try_get_matches_from(words()).unwrap_err();
                error.render().to_string()
            };
            assert_eq!(told(alone(name).unwrap()), told(Cli::command()), "{line}");
        }
    }

    #[test]
    fn paths_are_quoted_for_the_shell() {
        assert_eq!(quoted(Path::new("a/b-c_1.d")), "a/b-c_1.d");
        assert_eq!(quoted(Path::new("it's mine")), r"'it'\''s mine'");
    }
}

//! What the shell gets when somebody presses tab: options, and the names of tools, their arguments and formats.
//!
//! The script of `pitool completions` asks by running pitool with [`VARIABLE`] set and the typed words behind `--`.
//! No server and no tool is started, and whatever is wrong there is nothing to offer, without a word: the person is in
//! the middle of a line.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::PathBuf;

use clap::{Arg, Command, CommandFactory as _};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;
use pitool::format::Format;
use pitool::registry::Registry;

use super::{Cli, load};
use crate::report::sanitize;

/// Set by the script to the name of its shell.
pub(crate) const VARIABLE: &str = "PITOOL_COMPLETE";

/// Prints the candidates if a shell asks; false in an ordinary run.
pub(crate) fn answer() -> bool {
    let Some(shell) = std::env::var_os(VARIABLE).filter(|shell| !shell.is_empty()) else {
        return false;
    };
    if let Some(candidates) = candidates(&shell) {
        // A shell that does not listen any more needs no answer.
        let _ = std::io::stdout().write_all(&candidates);
    }
    true
}

fn candidates(shell: &OsStr) -> Option<Vec<u8>> {
    let shells = Shells::builtins();
    let shell = shells.completer(shell.to_str()?)?;
    let mut command = with_names(Cli::command());
    command.build();
    let mut candidates = Vec::new();
    let folder = std::env::current_dir().ok();
    shell
        .write_complete(&mut command, typed(), folder.as_deref(), &mut candidates)
        .ok()?;
    Some(candidates)
}

/// The words of the line so far, `pitool` first.
fn typed() -> Vec<OsString> {
    let words = std::env::args_os().skip_while(|word| word != "--");
    words.skip(1).collect()
}

/// The command line with candidates for what the values of its arguments name. They are added only here, so that an
/// ordinary run has nothing to do with them.
fn with_names(command: Command) -> Command {
    let names_a_new_tool = command.get_name() == "new";
    let command = command.mut_subcommands(with_names);
    if names_a_new_tool {
        return command;
    }
    command.mut_args(with_names_of)
}

fn with_names_of(arg: Arg) -> Arg {
    match arg.get_value_names().unwrap_or_default() {
        [name] if name == "NAME" || name == "PATTERN" => arg.add(ArgValueCandidates::new(tools)),
        [name] if name == "FORMAT" => arg.add(ArgValueCandidates::new(formats)),
        [name] if name == "ARGUMENT" => arg.add(ArgValueCompleter::new(arguments)),
        _ => arg,
    }
}

fn formats() -> Vec<CompletionCandidate> {
    let names = Format::ALL.into_iter().map(Format::name);
    names.map(CompletionCandidate::new).collect()
}

/// The tools of the folders that the line names; those of MCP servers are known only once a server runs.
fn tools() -> Vec<CompletionCandidate> {
    let registry = registry();
    let tools = registry.tools().iter();
    let candidate = |name: &str, description: &str| {
        let help = sanitize::one_line(description.lines().next().unwrap_or_default());
        CompletionCandidate::new(name.to_owned()).help(Some(help.into_owned().into()))
    };
    tools
        .map(|tool| candidate(tool.name(), &tool.declaration.description))
        .collect()
}

/// `key=` for each argument of the tool that `call` names.
fn arguments(current: &OsStr) -> Vec<CompletionCandidate> {
    let (Some(current), registry) = (current.to_str(), registry()) else {
        return Vec::new();
    };
    let words = typed();
    let called = words.iter().skip_while(|word| *word != "call").skip(1);
    let tool = called
        .filter_map(|word| word.to_str())
        .find_map(|word| registry.get(word));
    let parameters = tool.map(|tool| tool.declaration.parameters.read());
    let properties = parameters
        .as_ref()
        .and_then(|schema| schema.get("properties")?.as_object());
    let names = properties.into_iter().flatten().map(|(name, _)| name);
    names
        .filter(|name| name.starts_with(current) && !name.chars().any(char::is_control))
        .map(|name| CompletionCandidate::new(format!("{name}=")))
        .collect()
}

fn registry() -> Registry {
    let folders = match folders(&typed()) {
        folders if folders.is_empty() => load::default_folders(),
        folders => folders,
    };
    Registry::load(&folders).registry
}

/// The folders that `--tools` names among the words; bash makes three words of `--tools=DIR`.
fn folders(words: &[OsString]) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut words = words.iter().filter(|word| *word != "=");
    while let Some(word) = words.next() {
        let folder = match word.to_str() {
            Some("--tools") => words.next().map(PathBuf::from),
            Some(word) => word.strip_prefix("--tools=").map(PathBuf::from),
            None => None,
        };
        folders.extend(folder.map(at_home));
    }
    folders
}

/// The shell has not yet replaced the `~` of a line that is being typed.
fn at_home(folder: PathBuf) -> PathBuf {
    match (folder.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => folder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(line: &str, expected: &[&str]) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
        assert_eq!(folders(&words), expected);
    }

    #[test]
    fn the_folders_of_the_line_are_found() {
        case("pitool call", &[]);
        case("pitool --tools a call --tools=b", &["a", "b"]);
        case("pitool --tools = a call", &["a"]);
        case("pitool --tools", &[]);
    }
}

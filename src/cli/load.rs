//! The tools of a command: from the folders to a registry, telling what is wrong with them.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use pitool::call::Profile;
use pitool::registry::{Loaded, Problem, Registry, Severity};

use super::{Exit, Global};
use crate::report::sanitize;
use crate::report::style::Styles;

/// The folders that are searched: `--tools`, else `PITOOL_TOOLS`, else `./tools.d`.
pub(crate) fn folders(global: &Global) -> Vec<PathBuf> {
    if !global.tools.is_empty() {
        return global.tools.clone();
    }
    default_folders()
}

/// The folders that are searched when the command line names none. An empty element of the list names none either:
/// `$PITOOL_TOOLS:more` begins with one where the variable was not set.
pub(crate) fn default_folders() -> Vec<PathBuf> {
    let list = std::env::var_os("PITOOL_TOOLS").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&list)
        .filter(|folder| !folder.as_os_str().is_empty())
        .collect();
    if folders.is_empty() {
        return vec![PathBuf::from("tools.d")];
    }
    folders
}

/// Loads the folders and tells on stderr what is wrong with them.
pub(crate) fn load(global: &Global) -> Loaded {
    load_for(Profile::Pi, global)
}

/// Loads the folders and tells on stderr, in the words of a profile, what is wrong with them.
pub(crate) fn load_for(profile: Profile, global: &Global) -> Loaded {
    let loaded = Registry::load(&folders(global));
    let mut stderr = std::io::stderr().lock();
    let styles = Styles::of_stream(global.color, stderr.is_terminal());
    for problem in &loaded.problems {
        // Nobody is left to tell when stderr is gone.
        let text = match (profile, &problem.repeats) {
            (Profile::Course, Some(name)) => {
                format!("Tool 已存在：{}\n", sanitize::one_line(name))
            }
            _ => text(problem, &styles),
        };
        let _ = stderr.write_all(text.as_bytes());
    }
    loaded
}

/// The same for a command that does what it can with the tools that are right, and the exit code that the others
/// call for.
pub(crate) fn tolerant(global: &Global) -> (Registry, Exit) {
    let loaded = load(global);
    let exit = match loaded.unloadable() {
        None => Exit::Ok,
        Some(_) => Exit::NotUnderstood,
    };
    (loaded.registry, exit)
}

/// The same for a command that would answer wrongly without all tools.
pub(crate) fn usable(global: &Global) -> anyhow::Result<Registry> {
    let loaded = load(global);
    match withheld(&loaded) {
        None => Ok(loaded.registry),
        Some(reason) => Err(anyhow::anyhow!(reason)),
    }
}

/// `pitool: error: tools.d/search.json:4:3: unknown field "exekute"`, then the hint.
pub(crate) fn text(problem: &Problem, styles: &Styles) -> String {
    let severity = match problem.severity {
        Severity::Error => styles.error.paint("error:"),
        Severity::Warning => styles.warning.paint("warning:"),
    };
    let mut text = format!(
        "pitool: {severity} {}\n",
        sanitize::lines(&problem.to_string())
    );
    if let Some(hint) = &problem.hint {
        text += &format!("hint: {}\n", sanitize::lines(hint));
    }
    text
}

/// Why no call may run: the first file that could not be loaded, which may have been a guard.
pub(crate) fn withheld(loaded: &Loaded) -> Option<String> {
    let file = loaded.unloadable()?;
    Some(format!("{} could not be loaded", file.display()))
}

/// The registry for the rest of the process: to give the memory of thousands of tools back piece by piece would only delay
/// its end.
pub(crate) fn for_good(registry: Registry) -> Arc<Registry> {
    let registry = Arc::new(registry);
    std::mem::forget(Arc::clone(&registry));
    registry
}

//! Where a program is, and why it could not be started: the system has few words for that.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::reason;

/// The folders of the system's own programs, for a process without a `PATH`.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// Finds a program: with a `/` from the manifest's folder `home`, otherwise on `path`. The error says why not.
pub(crate) fn find(name: &str, home: &Path, path: Option<&OsStr>) -> Result<PathBuf, String> {
    if name.contains('/') {
        return std::path::absolute(home.join(name)).map_err(|error| reason(&error));
    }
    let mut refused = None;
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
    // An empty part of a PATH would be the working directory: a file there must not pose as a program.
    for folder in std::env::split_paths(path).filter(|folder| !folder.as_os_str().is_empty()) {
        let candidate = folder.join(name);
        match candidate.metadata() {
            Ok(metadata) if metadata.is_file() && is_executable(&metadata) => {
                return std::path::absolute(candidate).map_err(|error| reason(&error));
            }
            Ok(metadata) if metadata.is_file() => {
                refused = Some(reason(&io::ErrorKind::PermissionDenied.into()));
            }
            Ok(_) | Err(_) => {}
        }
    }
    let advice = advice_on_words(name);
    Err(refused.unwrap_or_else(|| format!("it is not on the PATH{advice}")))
}

/// What to change about a program's name that looks like a whole command line; nothing if it does not.
pub(crate) fn advice_on_words(name: &str) -> &'static str {
    if name.contains(char::is_whitespace) {
        "; each word of a command is an element of its own"
    } else {
        ""
    }
}

/// Looks whether a program that was found could be started.
pub(crate) fn check(program: &Path) -> Result<(), String> {
    let shown = program.display();
    match program.metadata() {
        Err(error) => Err(format!("{shown}: {}", reason(&error))),
        Ok(metadata) if metadata.is_dir() => Err(format!("{shown} is a directory")),
        Ok(metadata) if !is_executable(&metadata) => Err(format!("{shown} is not executable")),
        Ok(_) => Ok(()),
    }
}

fn is_executable(metadata: &Metadata) -> bool {
    metadata.permissions().mode() & 0o111 != 0
}

/// The real reason why a start failed.
pub(crate) fn why(error: &io::Error, program: &Path, cwd: Option<&Path>) -> String {
    if let Some(cwd) = cwd.filter(|cwd| !cwd.is_dir()) {
        return format!("its working directory {} does not exist", cwd.display());
    }
    if program.is_dir() {
        return "it is a directory".to_owned();
    }
    if error.kind() == io::ErrorKind::NotFound && program.is_file() {
        return match interpreter(program) {
            Some(interpreter) => format!("its interpreter {interpreter} does not exist"),
            None => "its interpreter does not exist".to_owned(),
        };
    }
    reason(error)
}

/// The interpreter that the first line of a script names.
fn interpreter(program: &Path) -> Option<String> {
    let mut start = [0; 256];
    let length = File::open(program).ok()?.read(&mut start).ok()?;
    let text = String::from_utf8_lossy(&start[..length]);
    let line = text.lines().next()?.strip_prefix("#!")?;
    line.split_whitespace().next().map(str::to_owned)
}

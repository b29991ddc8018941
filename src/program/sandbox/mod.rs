//! What the process of a tool may touch: files by Landlock, sockets by seccomp, memory and processor time by limits.
//!
//! [`SandboxManifest`] is what a manifest says, [`Sandbox`] what can be enforced. [`Sandbox::confine`] prepares a
//! command so that it is confined before its program starts, or says why this system cannot do that;
//! nothing ever runs less confined than it asked for.
//!
//! What a sandbox is not: it does not hide the command lines of other processes, and with `"network": true` every
//! socket is open, those of other programs on this machine included.

#[cfg(target_os = "linux")]
mod enforce;

use std::fmt;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::Command;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::private_folder::PrivateFolder;

/// The `sandbox` object of a manifest, as written.
///
/// Shape: `{"read": ["."], "write": ["out"], "network": false, "memoryMb": 512, "cpuSeconds": 10}`.
/// What is not named is not allowed; a limit that is not named is not set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Sandbox")]
pub struct SandboxManifest {
    /// Files and folders to read and execute, relative to the tool's working directory.
    #[serde(default)]
    pub read: Vec<PathBuf>,
    /// Files and folders to write, read and execute, relative to the tool's working directory.
    #[serde(default)]
    pub write: Vec<PathBuf>,
    /// Whether the process may have sockets.
    #[serde(default)]
    pub network: bool,
    /// Limit of the memory of each process (RLIMIT_DATA), in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<NonZeroU64>,
    /// Limit of the processor time of each process (RLIMIT_CPU), in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<NonZeroU64>,
}

/// What is wrong with a `sandbox` object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxError {
    /// JSON Pointer inside the `sandbox` object.
    pub pointer: String,
    /// What is wrong, lowercase, no period.
    pub message: String,
}

impl fmt::Display for SandboxError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.pointer, self.message)
    }
}

impl std::error::Error for SandboxError {}

/// A sandbox that can be put around a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    manifest: SandboxManifest,
    home: PathBuf,
}

/// Where a confined program runs and what else it must reach.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The working directory of the process; the sandbox's paths are relative to it.
    pub cwd: &'a Path,
    /// The program's file, as it was found.
    pub program: &'a Path,
    /// Where a tool with `callsTools` reaches the running pitool; its folder is the tool's own.
    pub socket: Option<&'a Path>,
}

/// What a confined process needs for as long as any process of it lives: its private `TMPDIR`, removed on drop.
#[derive(Debug)]
#[must_use = "dropping it removes the TMPDIR of the process"]
pub struct Confined {
    _temporary: PrivateFolder,
}

impl Sandbox {
    /// Checks a manifest's `sandbox`; `home` is the folder of the manifest.
    pub fn new(manifest: SandboxManifest, home: &Path) -> Result<Self, SandboxError> {
        for (field, paths) in [("read", &manifest.read), ("write", &manifest.write)] {
            for (index, path) in paths.iter().enumerate() {
                if let Some(message) = path_problem(path) {
                    return Err(SandboxError {
                        pointer: format!("/{field}/{index}"),
                        message: message.to_owned(),
                    });
                }
            }
        }
        Ok(Self {
            manifest,
            home: home.to_path_buf(),
        })
    }

    /// What the tool's process may touch, as one line for people; no period.
    pub fn describe(&self) -> String {
        let mut parts = vec![
            format!("reads {}", listed(&self.manifest.read)),
            format!("writes {}", listed(&self.manifest.write)),
        ];
        parts.push(
            if self.manifest.network {
                "network"
            } else {
                "no network"
            }
            .to_owned(),
        );
        if let Some(memory) = self.manifest.memory_mb {
            parts.push(format!("{memory} MiB of memory per process"));
        }
        if let Some(seconds) = self.manifest.cpu_seconds {
            parts.push(format!("{seconds} s of processor time per process"));
        }
        parts.join(", ")
    }

    /// Whether the process may have sockets.
    pub fn has_network(&self) -> bool {
        self.manifest.network
    }

    /// Whether this system can enforce the sandbox at all; `Err` says what it cannot.
    pub fn enforceable(&self) -> Result<(), String> {
        enforce::supported(&self.manifest)
    }

    /// Whether a jq filter keeps within the sandbox: it touches nothing anyway, but runs in this process, which has
    /// no limits of a tool.
    pub fn enforceable_for_filter(&self) -> Result<(), String> {
        if self.manifest.memory_mb.is_none() && self.manifest.cpu_seconds.is_none() {
            Ok(())
        } else {
            Err(refusal(
                "a jq filter runs in the process of pitool, which memoryMb and cpuSeconds cannot limit",
            ))
        }
    }

    /// Makes `command` run confined, with a private `TMPDIR` that lives as long as the answer.
    ///
    /// Call it last: a working directory that is set later is not seen. Fails, with a sentence for the call's result,
    /// where the system cannot enforce the sandbox and where a path of it does not exist. If the kernel refuses at
    /// the last moment, starting the command fails.
    pub fn confine(&self, command: &mut Command, place: Place<'_>) -> Result<Confined, String> {
        let temporary = PrivateFolder::new("tmp")
            .map_err(|error| refusal(&format!("no private TMPDIR: {error}")))?;
        enforce::confine(
            command,
            &self.grants(place, temporary.path()),
            &self.manifest,
        )?;
        command.env("TMPDIR", temporary.path());
        Ok(Confined {
            _temporary: temporary,
        })
    }

    fn grants(&self, place: Place<'_>, temporary: &Path) -> Vec<Grant> {
        let mut grants: Vec<Grant> = SYSTEM.iter().map(Grant::optional_read).collect();
        grants.extend(DEVICES.iter().map(Grant::optional_write));
        grants.push(Grant::optional_read("/dev/urandom"));
        grants.push(Grant::optional_read(place.program));
        grants.push(Grant::optional_read(&self.home));
        grants.push(Grant::write(temporary));
        if let Some(folder) = place.socket.and_then(Path::parent) {
            grants.push(Grant::write(folder));
            grants.extend(std::env::current_exe().map(Grant::optional_read));
        }
        grants.extend(
            self.manifest
                .read
                .iter()
                .map(|path| Grant::read(place.cwd.join(path))),
        );
        grants.extend(
            self.manifest
                .write
                .iter()
                .map(|path| Grant::write(place.cwd.join(path))),
        );
        grants
    }
}

fn path_problem(path: &Path) -> Option<&'static str> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.is_empty() {
        Some("empty path")
    } else if bytes.contains(&0) {
        Some("a path cannot hold a NUL")
    } else {
        None
    }
}

fn listed(paths: &[PathBuf]) -> String {
    if paths.is_empty() {
        return "nothing".to_owned();
    }
    let names: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    names.join(" ")
}

fn refusal(reason: &str) -> String {
    format!("The sandbox of this tool cannot be enforced, so it was not run: {reason}")
}

/// The system's programs, libraries and configuration, readable in every sandbox where they exist.
///
/// `/proc` stands for `/proc/self`: Landlock rules name folders, and each process has its own. What is private in the
/// folders of other processes (environment, memory, open files) the kernel keeps closed: it asks whether the reader
/// may trace the process, and Landlock says no for every process outside the sandbox. Root would get around
/// that question, which is one reason why it loses its powers.
const SYSTEM: &[&str] = &[
    "/bin",
    "/sbin",
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/etc/resolv.conf", // often a link to /run
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
    "/proc",
];

/// Devices that every program writes to and reads from.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero"];

/// One path and what may be done below it.
#[derive(Debug)]
struct Grant {
    path: PathBuf,
    access: Access,
    /// Whether a path that does not exist is no error.
    optional: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

impl Grant {
    fn read(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_path_buf(),
            access: Access::Read,
            optional: false,
        }
    }

    fn write(path: impl AsRef<Path>) -> Self {
        Self {
            access: Access::Write,
            ..Self::read(path)
        }
    }

    fn optional_read(path: impl AsRef<Path>) -> Self {
        Self {
            optional: true,
            ..Self::read(path)
        }
    }

    fn optional_write(path: impl AsRef<Path>) -> Self {
        Self {
            optional: true,
            ..Self::write(path)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod enforce {
    use std::process::Command;

    use super::{Grant, SandboxManifest, refusal};

    pub(super) fn supported(_manifest: &SandboxManifest) -> Result<(), String> {
        Err(refusal("sandboxes need Linux"))
    }

    pub(super) fn confine(
        _command: &mut Command,
        _grants: &[Grant],
        manifest: &SandboxManifest,
    ) -> Result<(), String> {
        supported(manifest)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;

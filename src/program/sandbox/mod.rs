//! What the process of a tool may touch: files by Landlock, sockets by seccomp, memory and processor time by limits.
//!
//! [`SandboxManifest`] is what a manifest says, [`Sandbox`] what can be enforced. [`Sandbox::confine`] prepares a
//! command so that it is confined before its program starts, or says why this system cannot do that;
//! nothing ever runs less confined than it asked for.
//!
//! What a sandbox is not: it does not hide the command lines of other processes, and with `"network": true` every
//! socket is open, those of other programs on this machine included.

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

#[cfg(target_os = "linux")]
mod enforce {
    use std::collections::BTreeMap;
    use std::io;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::os::unix::process::CommandExt;
    use std::path::Path;
    use std::process::Command;

    use landlock::{
        ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
        Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, Scope,
    };
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use rustix::thread::{
        CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
    };
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule,
    };

    use super::{Access, Grant, SandboxManifest, refusal};

    /// The first Landlock in which a file that may not be written cannot be truncated either (Linux 6.2).
    const NEEDED: ABI = ABI::V3;
    /// The newest rights that are asked for where the kernel knows them.
    const WANTED: ABI = ABI::V5;

    /// What is put around the process between fork and exec.
    struct Cage {
        ruleset: OwnedFd,
        sockets: Option<BpfProgram>,
        limits: Vec<(Resource, Rlimit)>,
    }

    pub(super) fn supported(manifest: &SandboxManifest) -> Result<(), String> {
        empty_ruleset()?;
        if !manifest.network && !Path::new("/proc/sys/kernel/seccomp/actions_avail").exists() {
            return Err(refusal("this kernel has no seccomp filters"));
        }
        Ok(())
    }

    pub(super) fn confine(
        command: &mut Command,
        grants: &[Grant],
        manifest: &SandboxManifest,
    ) -> Result<(), String> {
        let cage = Cage {
            ruleset: ruleset(grants)?,
            sockets: (!manifest.network).then(no_sockets).transpose()?,
            limits: limits(manifest),
        };
        lock_in(command, cage);
        Ok(())
    }

    #[expect(
        unsafe_code,
        reason = "a process can only confine itself, so this must run in the child between fork and exec; \
                  and Landlock's last system call has no safe form that does not allocate"
    )]
    fn lock_in(command: &mut Command, cage: Cage) {
        let enter = move || -> io::Result<()> {
            for (resource, limit) in &cage.limits {
                setrlimit(*resource, *limit)?;
            }
            set_no_new_privs(true)?;
            drop_powers()?;
            // SAFETY: a system call with two integers; it touches no memory of ours.
            let refused = unsafe {
                libc::syscall(
                    libc::SYS_landlock_restrict_self,
                    cage.ruleset.as_raw_fd(),
                    0,
                )
            };
            if refused != 0 {
                return Err(io::Error::last_os_error());
            }
            if let Some(filter) = &cage.sockets
                && seccompiler::apply_filter(filter).is_err()
            {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        };
        // SAFETY: `enter` only makes system calls on memory that is there already: it takes no lock, allocates nothing
        // and frees nothing, so it is safe in the child of a process with many threads.
        unsafe {
            command.pre_exec(enter);
        }
    }

    /// Leaves root only its powers over files, which Landlock bounds; others have none to lose.
    /// For good, because a process that may get no new privileges gets none back by starting a program.
    fn drop_powers() -> io::Result<()> {
        let kept = CapabilitySet::CHOWN
            | CapabilitySet::DAC_OVERRIDE
            | CapabilitySet::FOWNER
            | CapabilitySet::FSETID
            | CapabilitySet::SETGID
            | CapabilitySet::SETUID
            | CapabilitySet::NET_BIND_SERVICE;
        let held = capabilities(None)?;
        set_capabilities(
            None,
            CapabilitySets {
                effective: held.effective & kept,
                permitted: held.permitted & kept,
                inheritable: held.inheritable & kept,
            },
        )?;
        Ok(())
    }

    fn empty_ruleset() -> Result<RulesetCreated, String> {
        let unsupported = |_| {
            refusal("this kernel cannot confine files (Landlock of Linux 6.2 or newer is needed)")
        };
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(NEEDED))
            .map_err(unsupported)?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(WANTED))
            .map_err(unsupported)?
            .scope(Scope::Signal)
            .map_err(unsupported)?
            .create()
            .map_err(unsupported)
    }

    fn ruleset(grants: &[Grant]) -> Result<OwnedFd, String> {
        let mut ruleset = empty_ruleset()?;
        for grant in grants {
            let Some((file, is_folder)) = open(grant)? else {
                continue;
            };
            let rule = PathBeneath::new(file, rights(grant.access, is_folder));
            ruleset = ruleset
                .add_rule(rule)
                .map_err(|error| refusal(&format!("{}: {error}", grant.path.display())))?;
        }
        Option::<OwnedFd>::from(ruleset).ok_or_else(|| refusal("Landlock is switched off"))
    }

    fn open(grant: &Grant) -> Result<Option<(PathFd, bool)>, String> {
        let metadata = match std::fs::metadata(&grant.path) {
            Ok(metadata) => metadata,
            Err(_) if grant.optional => return Ok(None),
            Err(error) => return Err(refusal(&format!("{}: {error}", grant.path.display()))),
        };
        match PathFd::new(&grant.path) {
            Ok(file) => Ok(Some((file, metadata.is_dir()))),
            Err(_) if grant.optional => Ok(None),
            Err(error) => Err(refusal(&error.to_string())),
        }
    }

    fn rights(access: Access, is_folder: bool) -> BitFlags<AccessFs> {
        let rights = match access {
            Access::Read => AccessFs::from_read(WANTED),
            Access::Write => AccessFs::from_all(WANTED),
        };
        if is_folder {
            rights
        } else {
            rights & AccessFs::from_file(WANTED)
        }
    }

    fn limits(manifest: &SandboxManifest) -> Vec<(Resource, Rlimit)> {
        let mut limits = Vec::new();
        if let Some(megabytes) = manifest.memory_mb {
            let bytes = megabytes.get().saturating_mul(1 << 20);
            limits.push(lowered(Resource::Data, bytes, bytes));
        }
        if let Some(seconds) = manifest.cpu_seconds {
            // SIGXCPU at the limit, which says what happened; SIGKILL a second later for those who ignore it.
            let seconds = seconds.get();
            limits.push(lowered(Resource::Cpu, seconds, seconds.saturating_add(1)));
        }
        limits
    }

    /// The limit that was asked for, or the one that is there already if it is lower: nobody may raise that.
    fn lowered(resource: Resource, current: u64, maximum: u64) -> (Resource, Rlimit) {
        let ceiling = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let limit = Rlimit {
            current: Some(current.min(ceiling)),
            maximum: Some(maximum.min(ceiling)),
        };
        (resource, limit)
    }

    /// A filter that refuses every socket, and io_uring, which makes sockets past any filter.
    ///
    /// Pairs of connected stream sockets stay: they reach nobody, and many programs talk to their own children by them.
    /// Pairs of datagram sockets go, since those can be pointed at somebody else.
    fn no_sockets() -> Result<BpfProgram, String> {
        let unsupported = |error| refusal(&format!("no filter for sockets: {error}"));
        let pair = vec![
            when(0, SeccompCmpOp::Ne, libc::AF_UNIX),
            when(1, SeccompCmpOp::MaskedEq(0xf), libc::SOCK_DGRAM),
            when(1, SeccompCmpOp::MaskedEq(0xf), libc::SOCK_RAW),
        ];
        let mut rules = BTreeMap::from([
            (libc::SYS_socket, Vec::new()),
            (libc::SYS_socketpair, pair),
            (libc::SYS_io_uring_setup, Vec::new()),
        ]);
        if cfg!(target_arch = "x86_64") {
            // The same calls by their x32 numbers, for kernels that have that second door.
            const X32: i64 = 0x4000_0000;
            for call in [
                libc::SYS_socket,
                libc::SYS_socketpair,
                libc::SYS_io_uring_setup,
            ] {
                rules.insert(call | X32, Vec::new());
            }
        }
        let architecture = std::env::consts::ARCH
            .try_into()
            .map_err(|_| refusal("no filter for sockets on this processor"))?;
        SeccompFilter::new(
            rules,
            SeccompAction::Allow,
            SeccompAction::Errno(libc::EPERM.unsigned_abs()),
            architecture,
        )
        .and_then(TryInto::try_into)
        .map_err(unsupported)
    }

    fn when(argument: u8, operator: SeccompCmpOp, value: libc::c_int) -> SeccompRule {
        let value = u64::from(value.unsigned_abs());
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
            .and_then(|condition| SeccompRule::new(vec![condition]))
            .expect("one condition on one of the six arguments is a rule")
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::process::Stdio;

    use serde_json::{Value, json};
    use tempfile::TempDir;

    use super::*;

    /// A folder with a working directory `cwd`, a manifest folder `home`, and files outside both.
    struct World {
        root: TempDir,
    }

    struct Ran {
        stdout: String,
        stderr: String,
        status: std::process::ExitStatus,
    }

    impl World {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            for folder in ["cwd/out", "cwd/in", "home"] {
                fs::create_dir_all(root.path().join(folder)).unwrap();
            }
            for file in ["cwd/in/data", "cwd/other", "home/part", "secret"] {
                fs::write(root.path().join(file), "content").unwrap();
            }
            Self { root }
        }

        fn confined(&self, sandbox: Value, script: &str) -> Result<Ran, String> {
            let sandbox = sandbox_of(sandbox, &self.root.path().join("home"));
            let cwd = self.root.path().join("cwd");
            let mut command = Command::new("/bin/bash");
            command.args(["-c", script]).current_dir(&cwd);
            command.stdin(Stdio::null());
            let place = Place {
                cwd: &cwd,
                program: Path::new("/bin/bash"),
                socket: None,
            };
            let _confined = sandbox.confine(&mut command, place)?;
            let output = command.output().unwrap();
            Ok(Ran {
                stdout: String::from_utf8(output.stdout).unwrap(),
                stderr: String::from_utf8(output.stderr).unwrap(),
                status: output.status,
            })
        }
    }

    fn sandbox_of(sandbox: Value, home: &Path) -> Sandbox {
        Sandbox::new(serde_json::from_value(sandbox).unwrap(), home).unwrap()
    }

    #[track_caller]
    fn prints(sandbox: Value, script: &str, stdout: &str) {
        let ran = World::new().confined(sandbox, script).unwrap();
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), (stdout, ""));
        assert!(ran.status.success());
    }

    #[track_caller]
    fn refused(sandbox: Value, script: &str, reason: &str) {
        let ran = World::new().confined(sandbox, script).unwrap();
        assert!(
            ran.stderr.contains(reason),
            "{script}: {:?} {:?}",
            ran.stdout,
            ran.stderr
        );
        assert!(!ran.status.success(), "{script}");
    }

    const DENIED: &str = "Permission denied";

    #[test]
    fn named_files_can_be_used_as_named() {
        let sandbox = || json!({"read": ["in"], "write": ["out"]});
        prints(sandbox(), "cat in/data; cat ../home/part", "contentcontent");
        prints(sandbox(), "echo x > out/y; mkdir out/z; cat out/y", "x\n");
        prints(sandbox(), "cp /bin/true out/t; out/t && echo ran", "ran\n");
    }

    #[test]
    fn other_files_are_closed() {
        let sandbox = || json!({"read": ["in"], "write": ["out"]});
        refused(sandbox(), "cat other", DENIED);
        refused(sandbox(), "cat ../secret", DENIED);
        refused(sandbox(), "ls ..", DENIED);
        refused(sandbox(), "echo x > in/data", DENIED);
        refused(sandbox(), "truncate -s 0 in/data", DENIED);
        refused(sandbox(), "rm in/data", DENIED);
        refused(
            sandbox(),
            "ln -s ../../secret out/link; cat out/link",
            DENIED,
        );
        refused(sandbox(), "echo x > /etc/pitool-test", DENIED);
    }

    #[test]
    fn every_program_finds_what_it_needs() {
        prints(
            json!({}),
            "cat /dev/null; echo x > /dev/null; head -c 2 /dev/zero | wc -c",
            "2\n",
        );
        prints(
            json!({}),
            "cat /proc/self/comm; head -c 1 /dev/urandom | wc -c",
            "cat\n1\n",
        );
        prints(json!({}), "cat <(echo through a pipe)", "through a pipe\n");
    }

    #[test]
    fn environment_of_other_processes_is_closed() {
        refused(json!({}), "cat /proc/$PPID/environ", DENIED);
        refused(json!({}), "cat /proc/$PPID/maps", DENIED);
        refused(json!({}), "ls /proc/$PPID/cwd/", DENIED);
        refused(json!({}), "cat /proc/$PPID/root/etc/passwd", DENIED);
    }

    #[test]
    fn private_folder_is_writable_and_goes_away() {
        let world = World::new();
        let ran = world
            .confined(
                json!({}),
                "echo x > $TMPDIR/file && cat $TMPDIR/file && echo $TMPDIR",
            )
            .unwrap();
        let (content, folder) = ran.stdout.split_once('\n').unwrap();
        assert_eq!(content, "x");
        assert!(folder.contains("pitool-tmp-"));
        assert!(!Path::new(folder.trim()).exists());
    }

    #[test]
    fn no_network_is_no_socket() {
        let script = r#"python3 -c '
import socket
for kind in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK):
    try:
        socket.socket(kind)
        print("open", kind)
    except PermissionError:
        pass
try:
    socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    print("open datagram pair")
except PermissionError:
    pass
a, b = socket.socketpair()
a.send(b"pair")
print(b.recv(4).decode())
'"#;
        let script = script.replace("python3", "/usr/bin/python3");
        if Path::new("/usr/bin/python3").exists() {
            prints(json!({"network": false}), &script, "pair\n");
        }
    }

    #[test]
    fn connect_is_refused_without_network_and_works_with_it() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
        refused(json!({}), &script, "Operation not permitted");
        prints(json!({"network": true}), &script, "");
    }

    #[test]
    fn memory_limit_holds() {
        let script = "x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo ${#x}";
        refused(json!({"memoryMb": 64}), script, "cannot allocate");
    }

    #[test]
    fn processor_limit_ends_the_process_and_says_so() {
        use std::os::unix::process::ExitStatusExt;
        let ran = World::new()
            .confined(json!({"cpuSeconds": 1}), "while :; do :; done")
            .unwrap();
        assert_eq!(ran.status.signal(), Some(libc::SIGXCPU));
    }

    #[test]
    fn pitool_cannot_be_signalled() {
        refused(json!({}), "kill -0 $PPID", "not permitted");
    }

    #[test]
    fn path_that_does_not_exist_fails_the_call() {
        let error = World::new()
            .confined(json!({"write": ["missing"]}), "true")
            .err()
            .unwrap();
        assert!(
            error.starts_with("The sandbox of this tool cannot be enforced, so it was not run: ")
        );
        assert!(error.ends_with("/cwd/missing: No such file or directory (os error 2)"));
    }

    #[test]
    fn socket_folder_is_open_to_its_tool() {
        let world = World::new();
        let socket = world.root.path().join("cwd/in/socket");
        let sandbox = sandbox_of(json!({}), &world.root.path().join("home"));
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo x > in/request"]);
        command.current_dir(world.root.path().join("cwd"));
        let place = Place {
            cwd: Path::new("."),
            program: Path::new("/bin/sh"),
            socket: Some(&socket),
        };
        let _confined = sandbox.confine(&mut command, place).unwrap();
        assert!(command.status().unwrap().success());
    }

    #[test]
    fn filter_is_confined_but_not_limited() {
        let sandbox = |sandbox| sandbox_of(sandbox, Path::new("/"));
        assert_eq!(
            sandbox(json!({"read": ["."]})).enforceable_for_filter(),
            Ok(())
        );
        let limited = sandbox(json!({"memoryMb": 1})).enforceable_for_filter();
        assert!(limited.unwrap_err().contains("jq filter"));
    }

    #[test]
    fn sandbox_is_described_in_one_line() {
        let sandbox =
            json!({"read": [".", "/srv"], "write": ["out"], "memoryMb": 512, "cpuSeconds": 10});
        assert_eq!(
            sandbox_of(sandbox, Path::new("/")).describe(),
            "reads . /srv, writes out, no network, 512 MiB of memory per process, 10 s of processor time per process"
        );
        assert_eq!(
            sandbox_of(json!({"network": true}), Path::new("/")).describe(),
            "reads nothing, writes nothing, network"
        );
    }

    #[test]
    fn malformed_manifests_are_refused() {
        for wrong in [
            json!({"reads": []}),
            json!({"read": "."}),
            json!({"memoryMb": 0}),
            json!({"cpuSeconds": 1.5}),
            json!({"network": "no"}),
        ] {
            assert!(
                serde_json::from_value::<SandboxManifest>(wrong.clone()).is_err(),
                "{wrong}"
            );
        }
        let empty = SandboxManifest {
            write: vec!["out".into(), "".into()],
            ..SandboxManifest::default()
        };
        assert_eq!(
            Sandbox::new(empty, Path::new("/")).unwrap_err().to_string(),
            "/write/1: empty path"
        );
    }
}

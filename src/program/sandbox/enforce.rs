//! How Linux holds a process to its sandbox: Landlock, seccomp, limits, fewer powers.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, Scope,
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
    let unsupported =
        |_| refusal("this kernel cannot confine files (Landlock of Linux 6.2 or newer is needed)");
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

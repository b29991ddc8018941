//! The limits: programs that do only what no way leads around.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::Context as _;
use serde_json::Value;

/// Parses each line of stdin and prints it again, with one buffer for lines and one for output.
pub(crate) fn print() -> anyhow::Result<()> {
    let mut input = BufReader::with_capacity(128 << 10, io::stdin().lock());
    let mut output = BufWriter::with_capacity(128 << 10, io::stdout().lock());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        let value: Value = serde_json::from_slice(&line)?;
        serde_json::to_writer(&mut output, &value)?;
        output.write_all(b"\n")?;
        line.clear();
    }
    output.flush()?;
    Ok(())
}

/// Starts `/bin/true` `count` times, `jobs` at once, each with pipes for what it prints, which are read to their end.
pub(crate) fn spawn(count: &str, jobs: &str) -> anyhow::Result<()> {
    let count: usize = count.parse().context("COUNT is no number")?;
    let jobs: usize = jobs.parse().context("JOBS is no number")?;
    let next = AtomicUsize::new(0);
    let work = || -> io::Result<()> {
        while next.fetch_add(1, Ordering::Relaxed) < count {
            run_true()?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("no worker panics"))
    })?;
    Ok(())
}

/// Starts `sleep 0.3` `count` times, one right after the other, and then reads and waits for all.
pub(crate) fn sleep(count: &str) -> anyhow::Result<()> {
    let count: usize = count.parse().context("COUNT is no number")?;
    let start = |_| Child::start(&[c"/bin/sleep", c"0.3"]);
    let children: Vec<Child> = (0..count).map(start).collect::<io::Result<_>>()?;
    Ok(children.into_iter().try_for_each(Child::finish)?)
}

fn run_true() -> io::Result<()> {
    Child::start(&[c"/bin/true"])?.finish()
}

/// A process with pipes for what it prints.
struct Child {
    id: libc::pid_t,
    out: OwnedFd,
    err: OwnedFd,
}

impl Child {
    fn start(command: &[&CStr]) -> io::Result<Self> {
        let (out, child_out) = pipe()?;
        let (err, child_err) = pipe()?;
        let id = posix_spawn(command, child_out.as_raw_fd(), child_err.as_raw_fd())?;
        Ok(Self { id, out, err })
    }

    /// Reads all it prints and waits for its end.
    fn finish(self) -> io::Result<()> {
        for end in [self.out, self.err] {
            File::from(end).read_to_end(&mut Vec::new())?;
        }
        wait(self.id)
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader.into(), writer.into()))
}

#[expect(unsafe_code, reason = "posix_spawn itself is what is measured")]
fn posix_spawn(command: &[&CStr], stdout: RawFd, stderr: RawFd) -> io::Result<libc::pid_t> {
    use std::ptr::{null, null_mut};

    let words = command.iter().map(|word| word.as_ptr().cast_mut());
    let arguments: Vec<_> = words.chain([null_mut()]).collect();
    let program = arguments[0];
    let environment = [null_mut()];
    let mut child = 0;
    // SAFETY: all pointers live through the calls, both arrays end with a null pointer, and the actions are
    // initialised before they are used and destroyed once.
    let result = unsafe {
        let mut actions = std::mem::zeroed();
        libc::posix_spawn_file_actions_init(&raw mut actions);
        libc::posix_spawn_file_actions_addopen(
            &raw mut actions,
            0,
            c"/dev/null".as_ptr(),
            libc::O_RDONLY,
            0,
        );
        libc::posix_spawn_file_actions_adddup2(&raw mut actions, stdout, 1);
        libc::posix_spawn_file_actions_adddup2(&raw mut actions, stderr, 2);
        let result = libc::posix_spawn(
            &raw mut child,
            program,
            &raw const actions,
            null(),
            arguments.as_ptr(),
            environment.as_ptr(),
        );
        libc::posix_spawn_file_actions_destroy(&raw mut actions);
        result
    };
    match result {
        0 => Ok(child),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

#[expect(unsafe_code, reason = "the child has no owner that could wait for it")]
fn wait(child: libc::pid_t) -> io::Result<()> {
    // SAFETY: nobody else waits for this child, and no status is asked for.
    match unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

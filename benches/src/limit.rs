//! The limits: programs that do only what no way leads around.

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

fn run_true() -> io::Result<()> {
    let (out, child_out) = pipe()?;
    let (err, child_err) = pipe()?;
    let child = posix_spawn_true(child_out.as_raw_fd(), child_err.as_raw_fd())?;
    drop((child_out, child_err));
    for end in [out, err] {
        std::fs::File::from(end).read_to_end(&mut Vec::new())?;
    }
    wait(child)
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader.into(), writer.into()))
}

#[expect(unsafe_code, reason = "posix_spawn itself is what is measured")]
fn posix_spawn_true(stdout: RawFd, stderr: RawFd) -> io::Result<libc::pid_t> {
    use std::ptr::{null, null_mut};

    let program = c"/bin/true".as_ptr();
    let arguments = [program.cast_mut(), null_mut()];
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

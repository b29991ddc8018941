//! One contender run once, and contenders run in turns.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A command that takes part.
#[derive(Debug, Clone)]
pub(crate) struct Contender {
    pub(crate) name: String,
    program: PathBuf,
    arguments: Vec<String>,
    stdin: Input,
    cores: Cores,
    ok_codes: &'static [i32],
}

/// What a contender reads.
#[derive(Debug, Clone)]
enum Input {
    Nothing,
    File(PathBuf),
    /// A file again and again, through a pipe.
    Repeated(PathBuf, usize),
}

/// Where a contender may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cores {
    All,
    One,
}

impl Contender {
    /// A program with arguments and nothing on stdin.
    pub(crate) fn new(
        name: impl Into<String>,
        program: impl AsRef<Path>,
        arguments: &[&str],
    ) -> Self {
        Self {
            name: name.into(),
            program: program.as_ref().to_owned(),
            arguments: arguments
                .iter()
                .map(|argument| (*argument).to_owned())
                .collect(),
            stdin: Input::Nothing,
            cores: Cores::All,
            ok_codes: &[0],
        }
    }

    /// With this file on stdin.
    pub(crate) fn reading(mut self, file: &Path) -> Self {
        self.stdin = Input::File(file.to_owned());
        self
    }

    /// With this file on stdin that many times, through a pipe.
    pub(crate) fn reading_repeatedly(mut self, file: &Path, times: usize) -> Self {
        self.stdin = Input::Repeated(file.to_owned(), times);
        self
    }

    /// On one core only.
    pub(crate) fn on_one_core(mut self) -> Self {
        self.cores = Cores::One;
        self
    }

    /// Exit code 1 is a fair ending: some of the input is invalid.
    pub(crate) fn may_find_errors(mut self) -> Self {
        self.ok_codes = &[0, 1];
        self
    }

    /// Runs once, what it prints thrown away.
    fn run(&self) -> anyhow::Result<Run> {
        let _pinned = (self.cores == Cores::One)
            .then(Pinned::to_one_core)
            .transpose()?;
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .stdin(self.stdin.open()?)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let begin = Instant::now();
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let stdin = child.stdin.take();
        if let (Input::Repeated(file, times), Some(mut stdin)) = (&self.stdin, stdin) {
            for _ in 0..*times {
                io::copy(&mut File::open(file)?, &mut stdin)?;
            }
        }
        let (status, peak_kib) = wait(child.id())?;
        let run = Run {
            time: begin.elapsed(),
            peak_kib,
        };
        let is_well = status
            .code()
            .is_some_and(|code| self.ok_codes.contains(&code));
        anyhow::ensure!(is_well, "{} ended with {status}", self.name);
        Ok(run)
    }
}

impl Input {
    fn open(&self) -> anyhow::Result<Stdio> {
        Ok(match self {
            Self::Nothing => Stdio::null(),
            Self::Repeated(..) => Stdio::piped(),
            Self::File(path) => File::open(path)
                .with_context(|| format!("cannot open {}", path.display()))?
                .into(),
        })
    }
}

/// What one run came to.
#[derive(Debug, Clone, Copy)]
struct Run {
    time: Duration,
    peak_kib: u64,
}

/// All runs of one contender; the same index is the same round.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) name: String,
    times: Vec<Duration>,
    /// The highest of all runs.
    pub(crate) peak_kib: u64,
}

impl Series {
    /// The median.
    pub(crate) fn median(&self) -> Duration {
        let mut times = self.times.clone();
        times.sort_unstable();
        times[times.len() / 2]
    }

    /// The median of how many times as long as the other this took, round by round: what slows a whole round down
    /// concerns both.
    pub(crate) fn ratio_to(&self, other: &Self) -> f64 {
        let rounds = self.times.iter().zip(&other.times);
        median(
            rounds
                .map(|(time, other)| time.as_secs_f64() / other.as_secs_f64())
                .collect(),
        )
    }
}

/// The middle one of some numbers.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Runs all contenders in turns: a first round that does not count, so that files are in memory, then `rounds` more.
pub(crate) fn in_turns(rounds: usize, contenders: &[Contender]) -> anyhow::Result<Vec<Series>> {
    let mut series: Vec<Series> = contenders
        .iter()
        .map(|contender| Series {
            name: contender.name.clone(),
            times: Vec::with_capacity(rounds),
            peak_kib: 0,
        })
        .collect();
    for round in 0..=rounds {
        for (contender, series) in contenders.iter().zip(&mut series) {
            let run = contender.run()?;
            if round > 0 || rounds == 1 {
                series.times.push(run.time);
                series.peak_kib = series.peak_kib.max(run.peak_kib);
            }
        }
        if rounds == 1 {
            break;
        }
    }
    Ok(series)
}

/// Keeps this process, and so the next one it starts, on one core until dropped.
struct Pinned(CpuSet);

impl Pinned {
    fn to_one_core() -> anyhow::Result<Self> {
        let all = sched_getaffinity(None).context("cannot ask which cores there are")?;
        let last = (0..CpuSet::MAX_CPU)
            .rev()
            .find(|core| all.is_set(*core))
            .context("no core to run on")?;
        let mut one = CpuSet::new();
        one.set(last);
        sched_setaffinity(None, &one).context("cannot stay on one core")?;
        Ok(Self(all))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The rest would only be slower.
        let _ = sched_setaffinity(None, &self.0);
    }
}

/// Waits for a child: how it ended and the most memory it had.
#[expect(unsafe_code, reason = "std does not tell what a child used")]
fn wait(child: u32) -> io::Result<(ExitStatus, u64)> {
    use std::os::unix::process::ExitStatusExt;

    let mut status = 0;
    // SAFETY: all bytes zero is a value of this plain structure of numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both places live through the call, and nobody else waits for this child.
        let waited =
            unsafe { libc::wait4(child.cast_signed(), &raw mut status, 0, &raw mut usage) };
        if waited >= 0 {
            let peak = u64::try_from(usage.ru_maxrss).unwrap_or(0);
            return Ok((ExitStatus::from_raw(status), peak));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

//! Tries inputs on a target until its time is over, and keeps those that made it behave in a new way.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::corpus;
use crate::effort::Effort;
use crate::mutate::mutate;
use crate::random::Random;
use crate::targets::TARGETS;

/// Something that takes bytes from outside.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Files and folders of the project whose content it begins with, beside its corpus.
    pub(crate) beside: &'static [&'static str],
    /// How many mutations a test run tries.
    pub(crate) inputs: u64,
    /// Panics when something is wrong; tells what was observed, so that inputs that lead elsewhere are known.
    pub(crate) check: fn(&[u8], &mut Observed),
}

/// What a check saw: the shape of it, not every detail.
#[derive(Debug, Default)]
pub(crate) struct Observed(Vec<u64>);

impl Observed {
    /// A sentence; words and numbers that come from the input do not count.
    pub(crate) fn sentence(&mut self, sentence: &str) {
        let mut outside_quotes = true;
        let plain = sentence.chars().filter(|character| {
            outside_quotes ^= *character == '"';
            outside_quotes && !character.is_ascii_digit()
        });
        let plain: String = plain.take(80).collect();
        self.fact(&plain);
    }

    pub(crate) fn fact(&mut self, fact: impl Hash) {
        let mut hasher = DefaultHasher::new();
        fact.hash(&mut hasher);
        self.0.push(hasher.finish());
    }

    fn shape(mut self) -> u64 {
        self.0.sort_unstable();
        self.0.dedup();
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }
}

/// One input must not take longer than this, however busy the machine is.
const TOO_LONG: Duration = Duration::from_mins(2);

/// The most inputs that are mutated further.
const MOST_KEPT: usize = 4_000;

pub(crate) fn run(name: &str) {
    let target = TARGETS
        .iter()
        .find(|target| target.name == name)
        .expect("it is in the table");
    let effort = Effort::of(target.inputs, TARGETS.len());
    let mut attempt = Attempt::new(target, effort.seed, effort.is_long());
    let mut inputs = corpus::load(name, target.beside);
    let mut shapes = HashSet::new();
    for input in &inputs {
        shapes.insert(attempt.check(input));
    }
    let mut random = Random::new(effort.seed);
    let (mut done, mut told) = (0, Instant::now());
    while effort.goes_on(done) {
        let input = mutate(&inputs, &mut random);
        if shapes.insert(attempt.check(&input)) && inputs.len() < MOST_KEPT {
            inputs.push(input);
        }
        done += 1;
        if effort.is_long() && told.elapsed() > Duration::from_mins(1) {
            told = Instant::now();
            attempt.tell(done, inputs.len());
        }
    }
    attempt.tell(done, inputs.len());
}

/// The tries of one target.
struct Attempt {
    target: &'static Target,
    seed: u64,
    is_long: bool,
    /// Where the input stands that is tried, or that failed.
    file: PathBuf,
    slowest: Duration,
    watch: Arc<AtomicU64>,
}

impl Attempt {
    fn new(target: &'static Target, seed: u64, is_long: bool) -> Self {
        let file = format!("fuzz-{}-{}", target.name, std::process::id());
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
        let watch = Arc::new(AtomicU64::new(0));
        let attempt = Self {
            target,
            seed,
            is_long,
            file,
            slowest: Duration::ZERO,
            watch,
        };
        attempt.end_what_hangs();
        attempt
    }

    /// The shape of what was observed; a failure is told with all that is needed to see it again.
    fn check(&mut self, input: &[u8]) -> u64 {
        if self.is_long {
            // Nobody is left to write it after an overflow of the stack.
            self.keep(input);
        }
        self.watch.fetch_add(1, Ordering::Relaxed);
        let begin = Instant::now();
        let mut observed = Observed::default();
        let check = AssertUnwindSafe(|| (self.target.check)(input, &mut observed));
        let failed = catch_unwind(check).is_err();
        if failed {
            self.keep(input);
            panic!(
                "{}: seed {}, input in {}: {:.300}",
                self.target.name,
                self.seed,
                self.file.display(),
                String::from_utf8_lossy(input)
            );
        }
        self.slowest = self.slowest.max(begin.elapsed());
        observed.shape()
    }

    fn keep(&self, input: &[u8]) {
        std::fs::write(&self.file, input).expect("the build folder can be written");
    }

    /// Ends the process when one input takes too long; a thread cannot be ended.
    fn end_what_hangs(&self) {
        let (watch, name, file) = (
            Arc::downgrade(&self.watch),
            self.target.name,
            self.file.clone(),
        );
        std::thread::spawn(move || {
            let mut last = 0;
            while let Some(now) = watch.upgrade().map(|watch| watch.load(Ordering::Relaxed)) {
                if now == last && now != 0 {
                    eprintln!(
                        "{name} hangs; in a long run the input is in {}",
                        file.display()
                    );
                    std::process::abort();
                }
                last = now;
                std::thread::sleep(TOO_LONG);
            }
        });
    }

    fn tell(&self, done: u64, kept: usize) {
        println!(
            "{}: seed {}, {done} inputs, {kept} kept, slowest {:?}",
            self.target.name, self.seed, self.slowest
        );
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if self.is_long && !std::thread::panicking() {
            let _ = std::fs::remove_file(&self.file);
        }
    }
}

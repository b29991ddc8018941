//! How much is tried: a fixed number of inputs in a test run, or as long as `PITOOL_FUZZ_SECONDS` says.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Read once per target.
#[derive(Debug)]
pub(crate) struct Effort {
    pub(crate) seed: u64,
    end: End,
}

#[derive(Debug)]
enum End {
    After(u64),
    At(Instant),
}

impl Effort {
    /// `inputs` in a test run; otherwise an equal share of the time for each of the `targets`.
    pub(crate) fn of(inputs: u64, targets: usize) -> Self {
        let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        match number("PITOOL_FUZZ_SECONDS") {
            None => Self {
                seed: number("PITOOL_FUZZ_SEED").unwrap_or(1),
                end: End::After(inputs),
            },
            Some(seconds) => Self {
                seed: number("PITOOL_FUZZ_SEED").unwrap_or_else(now),
                end: End::At(Instant::now() + share(seconds, targets)),
            },
        }
    }

    pub(crate) fn is_long(&self) -> bool {
        matches!(self.end, End::At(_))
    }

    pub(crate) fn goes_on(&self, done: u64) -> bool {
        match self.end {
            End::After(inputs) => done < inputs,
            End::At(end) => Instant::now() < end,
        }
    }
}

fn share(seconds: u64, targets: usize) -> Duration {
    Duration::from_secs(seconds) / u32::try_from(targets).expect("a few")
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(1, |since| since.as_secs())
}

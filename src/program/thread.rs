//! Plain threads for work that cannot be stopped: whoever waits for it can stop waiting.
//!
//! Threads of the runtime would keep the process from exiting until the work is done; these do not. Idle ones are used
//! again. As many run as there are processors; work that had to wait for a thread gets one more.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long work waits for a thread before it gets one of its own.
pub(crate) const PATIENCE: Duration = Duration::from_millis(10);

/// The most threads at a time, abandoned ones not counted.
const MAX_THREADS: usize = 256;

/// Room for deep values; only what is used takes memory.
const STACK: usize = 64 * 1024 * 1024;

/// Work that was handed to a thread.
#[derive(Debug)]
pub(crate) struct Task {
    stage: Arc<AtomicU8>,
    is_done: bool,
}

const WAITING: u8 = 0;
const RUNNING: u8 = 1;
const ABANDONED: u8 = 2;

struct Job {
    stage: Arc<AtomicU8>,
    work: Box<dyn FnOnce() + Send>,
}

/// The threads; the stage of a job changes only under the lock.
struct Pool {
    state: Mutex<State>,
    wake: Condvar,
}

struct State {
    queue: VecDeque<Job>,
    idle: usize,
    /// All threads but those whose work was abandoned.
    threads: usize,
}

static POOL: Pool = Pool {
    state: Mutex::new(State {
        queue: VecDeque::new(),
        idle: 0,
        threads: 0,
    }),
    wake: Condvar::new(),
};

/// Hands work to a thread. It must not panic.
pub(crate) fn hand_over(work: impl FnOnce() + Send + 'static) -> Task {
    let stage = Arc::new(AtomicU8::new(WAITING));
    let mut state = POOL.state();
    state.queue.push_back(Job {
        stage: Arc::clone(&stage),
        work: Box::new(work),
    });
    if state.idle >= state.queue.len() {
        POOL.wake.notify_one();
    } else if state.threads == 0 || state.threads < processors() {
        // How many processors there are is asked for the second thread first: it takes several files to tell.
        state.add_thread();
    }
    Task {
        stage,
        is_done: false,
    }
}

impl Task {
    /// Adds a thread if the work still waits for one.
    pub(crate) fn hurry(&self) {
        let mut state = POOL.state();
        if self.stage.load(Ordering::Relaxed) == WAITING
            && state.idle == 0
            && state.threads < MAX_THREADS
        {
            state.add_thread();
        }
    }

    /// Whether the work waits for a thread.
    pub(crate) fn is_waiting(&self) -> bool {
        self.stage.load(Ordering::Relaxed) == WAITING
    }

    /// Says that the work came to its end. Otherwise it is abandoned when this is dropped.
    pub(crate) fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut state = POOL.state();
        if self.stage.swap(ABANDONED, Ordering::Relaxed) == RUNNING {
            // Its thread does not count any more, and ends when the work does.
            state.threads -= 1;
        }
    }
}

impl Pool {
    fn state(&self) -> MutexGuard<'_, State> {
        // The state is never left half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&self) {
        while let Some(job) = self.next() {
            (job.work)();
            if !self.finish(&job.stage) {
                return;
            }
        }
    }

    /// The next job; `None` if there are threads enough without this one.
    fn next(&self) -> Option<Job> {
        let mut state = self.state();
        loop {
            while let Some(job) = state.queue.pop_front() {
                let started = job.stage.compare_exchange(
                    WAITING,
                    RUNNING,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                if started.is_ok() {
                    return Some(job);
                }
            }
            if state.idle > 0 && state.idle >= processors() {
                state.threads -= 1;
                return None;
            }
            state.idle += 1;
            state = self
                .wake
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    /// Whether this thread still counts.
    fn finish(&self, stage: &AtomicU8) -> bool {
        let _state = self.state();
        stage.load(Ordering::Relaxed) != ABANDONED
    }
}

impl State {
    fn add_thread(&mut self) {
        let started = thread::Builder::new()
            .name("pitool-work".to_owned())
            .stack_size(STACK)
            .spawn(|| POOL.live());
        // Without a thread the work waits for another one, or until its time is over.
        if started.is_ok() {
            self.threads += 1;
        }
    }
}

fn processors() -> usize {
    static COUNT: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *COUNT.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

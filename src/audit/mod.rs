//! How a tool behaves as a process: it is run a few times under observation, and each point of hygiene gets a verdict.
//!
//! Every run is a call like any other: arguments are judged, hooks apply, nested calls are answered, effects happen. The
//! points are a table in `checks`; what is seen of a process comes from a [`Probe`].

mod checks;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

pub use self::checks::CHECKS;
use crate::batch::{self, Batch};
use crate::call::{Options, Outcome, Runner};
use crate::event::Silent;
use crate::message::{Content, ToolCall, ToolResult};
use crate::past::Past;
use crate::program::{Ending, Probe, ProbedStdin, Sighting};
use crate::registry::Registry;
use crate::stop::{Stop, StopLevel, Stopper};
use crate::tool::{Executor, Tool};

/// A shorter run cannot be stopped midway.
const STOPPABLE: Duration = Duration::from_millis(40);

/// One point and what was found.
///
/// Wire shape: `{"check":"stops","verdict":"wrong","seen":"…","advice":"…"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The point, in a word that scripts can rely on.
    pub check: &'static str,
    /// What was found.
    pub verdict: Verdict,
    /// What was seen.
    pub seen: String,
    /// What to do about it; only where something is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<&'static str>,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Something to mend.
    Wrong,
    /// The question does not arise.
    NotApplicable,
}

/// Why there is nothing to judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotAudited {
    /// The call did not get as far as its tool; holds its message.
    NotRun(String),
    /// Somebody asked to stop.
    Stopped,
}

/// What is audited.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The tools, with the one in question, and the hooks.
    pub registry: Arc<Registry>,
    /// The tool.
    pub tool: Arc<Tool>,
    /// What it is called with.
    pub arguments: Value,
    /// How long a run may take.
    pub timeout: Duration,
}

/// What was observed.
#[derive(Debug)]
struct Observations {
    kind: Kind,
    arguments: Value,
    first: Run,
    /// If the first one came to its end.
    second: Option<Run>,
    /// With nothing on its stdin, if anything is given it there.
    without_stdin: Option<Run>,
    /// Told to end midway, if it takes long enough.
    stopped: Option<Run>,
}

/// What runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A process; whether placeholders bring it arguments.
    Process { has_placeholders: bool },
    /// Something without a process of its own: a filter, a function, a tool of a server.
    NoProcess,
}

/// One run.
#[derive(Debug)]
struct Run {
    outcome: Outcome,
    sighting: Option<Sighting>,
    took: Duration,
}

/// Runs the tool up to four times and judges what was seen.
pub async fn run(subject: &Subject, stop: &Stop) -> Result<Vec<Finding>, NotAudited> {
    let observations = observe(subject, stop).await?;
    let judged = CHECKS.iter().map(|check| check.finding(&observations));
    Ok(judged.collect())
}

async fn observe(subject: &Subject, stop: &Stop) -> Result<Observations, NotAudited> {
    let as_usual = Conditions {
        stdin: ProbedStdin::AsUsual,
        stop_after: None,
    };
    let mut observations = Observations {
        kind: kind(&subject.tool),
        arguments: subject.arguments.clone(),
        first: subject.run(as_usual, stop).await?,
        second: None,
        without_stdin: None,
        stopped: None,
    };
    if !observations.ends() {
        // It would take as long again, and was told to end already.
        return Ok(observations);
    }
    observations.second = Some(subject.run(as_usual, stop).await?);
    let first = &observations.first;
    let (seen, took) = (first.sighting.as_ref(), first.took);
    let (is_process, is_fed) = (
        seen.is_some(),
        seen.is_some_and(|seen| seen.input.is_some()),
    );
    if is_fed {
        let empty = Conditions {
            stdin: ProbedStdin::Empty,
            ..as_usual
        };
        observations.without_stdin = Some(subject.run(empty, stop).await?);
    }
    if is_process && took >= STOPPABLE {
        let midway = Conditions {
            stop_after: Some(took / 2),
            ..as_usual
        };
        observations.stopped = Some(subject.run(midway, stop).await?);
    }
    Ok(observations)
}

fn kind(tool: &Tool) -> Kind {
    match &tool.executor {
        Executor::Program(program) if !program.is_filter() => Kind::Process {
            has_placeholders: program.has_placeholders(),
        },
        Executor::Program(_) | Executor::Native(_) | Executor::Mcp(_) => Kind::NoProcess,
    }
}

/// How one run differs from every other.
#[derive(Debug, Clone, Copy)]
struct Conditions {
    stdin: ProbedStdin,
    stop_after: Option<Duration>,
}

impl Subject {
    async fn run(&self, conditions: Conditions, stop: &Stop) -> Result<Run, NotAudited> {
        let call = ToolCall {
            id: "call_1".to_owned(),
            name: self.tool.name().to_owned(),
            arguments: self.arguments.clone(),
            arguments_error: None,
        };
        let probe = Arc::new(Probe::new(&*call.id, conditions.stdin));
        let options = Options {
            timeout: Some(self.timeout),
            probe: Some(Arc::clone(&probe)),
            ..Options::default()
        };
        let runner = Runner::new(Arc::clone(&self.registry), options);
        let begin = Instant::now();
        let outcome = answer(&runner, &call, conditions.stop_after, stop).await;
        let took = begin.elapsed();
        if stop.is_stopping() {
            return Err(NotAudited::Stopped);
        }
        if outcome.duration_ms.is_none() {
            return Err(NotAudited::NotRun(outcome.result.joined_text()));
        }
        Ok(Run {
            outcome: without_full_output(outcome),
            sighting: probe.sighting(),
            took,
        })
    }
}

/// One call, stopped by whoever asks or when its time has come.
async fn answer(
    runner: &Runner,
    call: &ToolCall,
    stop_after: Option<Duration>,
    stop: &Stop,
) -> Outcome {
    let message = json!({"role": "assistant", "content": [call], "stopReason": "toolUse"});
    let stopper = Stopper::new();
    let own_stop = stopper.stop();
    let batch = Batch {
        message: &message,
        calls: std::slice::from_ref(call),
        stop_reason: None,
        past: Past::None,
    };
    let interrupts = async {
        tokio::join!(stopper.follow(stop), async {
            if let Some(time) = stop_after {
                tokio::time::sleep(time).await;
                stopper.raise(StopLevel::Stopping);
            }
        })
    };
    let mut answered = tokio::select! {
        biased;
        answered = batch::run(runner, batch, &Silent, &own_stop) => answered,
        _ = interrupts => unreachable!("a stop is followed for ever"),
    };
    answered.outcomes.remove(0)
}

/// Nobody will look at the file of a long output; without its name two answers can be compared.
fn without_full_output(mut outcome: Outcome) -> Outcome {
    let path = outcome.result.details.as_ref();
    let path = path.and_then(|details| details["fullOutputPath"].as_str());
    let Some(path) = path.map(str::to_owned) else {
        return outcome;
    };
    let _ = std::fs::remove_file(&path);
    let ToolResult {
        content, details, ..
    } = &mut outcome.result;
    *details = None;
    for block in content {
        if let Content::Text { text } = block {
            *text = text.replace(&path, "…");
        }
    }
    outcome
}

impl Observations {
    /// What was seen of all processes.
    fn sightings(&self) -> impl Iterator<Item = &Sighting> {
        let more = [&self.second, &self.without_stdin, &self.stopped];
        let runs = std::iter::once(&self.first).chain(more.into_iter().flatten());
        runs.filter_map(|run| run.sighting.as_ref())
    }

    /// Whether the first run came to its end by itself.
    fn ends(&self) -> bool {
        let seen = self.first.sighting.as_ref();
        seen.is_none_or(|seen| seen.ending != Ending::Timeout)
    }
}

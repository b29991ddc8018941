//! How calls run: the options of a run, and the runner that all its batches share.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::journal::Journal;
use crate::message::ToolCall;
use crate::program::Probe;
use crate::queue::FileQueue;
use crate::registry::Registry;
use crate::schema::{AcceptOptions, Coercion, Lossy, UnknownArguments};
use crate::tool::Tool;

/// What the gate says of a call whose arguments are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may run.
    Allow,
    /// It is blocked.
    Block,
}

/// Judges calls after validation and before hooks: the place of `--allow`, `--deny` and `--confirm`.
pub type Gate = Arc<dyn Fn(&ToolCall, &Value) -> BoxFuture<'static, Verdict> + Send + Sync>;

/// What a structured result that breaks its `outputSchema` means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputCheck {
    /// A warning; the result is kept.
    #[default]
    Warn,
    /// An error that lists what is wrong.
    Fail,
}

/// How the calls of a batch follow each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Prepared in order, run at the same time.
    #[default]
    Parallel,
    /// Each call goes through all steps before the next starts.
    Sequential,
}

/// Whose rules hold where programs differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Profile {
    /// Those of the pi agent.
    #[default]
    Pi,
    /// Those of a strict teaching executor: no coercion, unknown arguments dropped, every failure as
    /// `Tool NAME failed: MESSAGE` with `details: {"error": MESSAGE}`, no `durationMs`.
    Course,
}

/// How calls run.
#[derive(Clone)]
pub struct Options {
    /// How the calls of a batch follow each other, unless a tool forces them in sequence.
    pub mode: Mode,
    /// How many calls run at once; absent is no bound.
    pub jobs: Option<NonZeroUsize>,
    /// The time of an `execute` whose manifest sets none; absent is no limit.
    pub timeout: Option<Duration>,
    /// Overrides what the manifests say of coercion.
    pub coerce: Option<Coercion>,
    /// Whether a conversion may lose something.
    pub lossy: Lossy,
    /// What a broken promise of `outputSchema` means.
    pub output_check: OutputCheck,
    /// Who else is asked before a call runs.
    pub gate: Option<Gate>,
    /// Why nothing may run at all, if so, such as `guard.json could not be loaded`: each call is answered with it.
    pub withheld: Option<String>,
    /// Whose rules hold where programs differ.
    pub profile: Profile,
    /// Watches the process of one call.
    pub probe: Option<Arc<Probe>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Parallel,
            jobs: NonZeroUsize::new(64),
            timeout: None,
            coerce: None,
            lossy: Lossy::Allow,
            output_check: OutputCheck::Warn,
            gate: None,
            withheld: None,
            profile: Profile::Pi,
            probe: None,
        }
    }
}

/// Runs calls: the tools, the options and the file queue that all its batches share. Cheap to clone.
#[derive(Clone)]
pub struct Runner {
    /// The tools and hooks.
    pub registry: Arc<Registry>,
    /// How calls run.
    pub options: Arc<Options>,
    pub(crate) files: FileQueue,
    /// Where a server records its calls. A run says so batch by batch, see [`crate::past::Past`].
    pub(crate) journal: Option<Arc<Journal>>,
}

impl Runner {
    /// A runner with a file queue of its own.
    pub fn new(registry: Arc<Registry>, options: Options) -> Self {
        Self {
            registry,
            options: Arc::new(options),
            files: FileQueue::default(),
            journal: None,
        }
    }

    /// Has a server record its calls, each as a batch of its own that is never answered from there.
    #[must_use]
    pub fn recording_in(self, journal: Arc<Journal>) -> Self {
        Self {
            journal: Some(journal),
            ..self
        }
    }

    /// The same file queue with other tools: what a server does when its manifests change.
    #[must_use]
    pub fn with_registry(&self, registry: Arc<Registry>) -> Self {
        Self {
            registry,
            ..self.clone()
        }
    }

    /// How arguments of this tool are judged.
    pub fn accept_options(&self, tool: &Tool) -> AcceptOptions {
        if self.options.profile == Profile::Course {
            return AcceptOptions {
                coercion: Coercion::Off,
                unknown_arguments: UnknownArguments::Strip,
                lossy: self.options.lossy,
            };
        }
        AcceptOptions {
            coercion: self.options.coerce.unwrap_or(tool.coerce),
            unknown_arguments: tool.unknown_arguments,
            lossy: self.options.lossy,
        }
    }
}

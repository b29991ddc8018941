//! Options that say how calls run, for every command that runs calls of others.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use pitool::call::{self, OutputCheck};
use pitool::pattern::Pattern;
use pitool::registry::Registry;
use pitool::schema::{Coercion, Lossy};

use super::duration;
use super::gate::Permits;
use super::listeners::Listeners;

/// Which tools there are, and how their calls run.
#[derive(Debug, clap::Args)]
pub(crate) struct CallOptions {
    /// Know only tools of such names; repeatable, `*` matches anything
    #[arg(long, value_name = "PATTERN")]
    pub(crate) only: Vec<Pattern>,

    /// How many calls run at once, 0 for no bound
    #[arg(long, value_name = "N", default_value_t = 64)]
    jobs: usize,

    /// Time limit of calls whose manifest sets none
    ///
    /// Such as 1500ms, 30s, 2m; a bare number is seconds.
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,

    /// Run only calls to tools whose names match; others are blocked; repeatable
    #[arg(hide_short_help = true, long, value_name = "PATTERN")]
    allow: Vec<Pattern>,

    /// Block calls to tools whose names match; repeatable
    #[arg(hide_short_help = true, long, value_name = "PATTERN")]
    deny: Vec<Pattern>,

    /// How arguments are coerced, whatever the manifests say
    #[arg(hide_short_help = true, long, value_name = "HOW", value_enum)]
    coerce: Option<Coerce>,

    /// Refuse arguments that coercion would make less of, such as 3.7 for an integer
    #[arg(hide_short_help = true, long)]
    deny_lossy: bool,

    /// Make a result that breaks its tool's outputSchema an error
    #[arg(hide_short_help = true, long)]
    strict_output: bool,
}

/// The option of that name, for [`Coercion`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Coerce {
    /// Repair what the schema allows to repair
    Standard,
    /// Judge arguments as they are
    Off,
    /// Also read JSON text where an object or array is wanted
    Extended,
}

impl From<Coerce> for Coercion {
    fn from(coerce: Coerce) -> Self {
        match coerce {
            Coerce::Standard => Self::Standard,
            Coerce::Off => Self::Off,
            Coerce::Extended => Self::Extended,
        }
    }
}

impl CallOptions {
    /// Leaves only the tools that `--only` names.
    pub(crate) fn narrow(&self, registry: &mut Registry) {
        if !self.only.is_empty() {
            registry.retain(&self.only);
        }
    }

    /// What these options mean for every call; nobody is asked.
    pub(crate) fn of_calls(&self) -> call::Options {
        call::Options {
            jobs: NonZeroUsize::new(self.jobs),
            timeout: self.timeout,
            coerce: self.coerce.map(Coercion::from),
            lossy: if self.deny_lossy {
                Lossy::Deny
            } else {
                Lossy::Allow
            },
            output_check: if self.strict_output {
                OutputCheck::Fail
            } else {
                OutputCheck::Warn
            },
            ..call::Options::default()
        }
    }

    /// What is permitted, with those calls that need a yes.
    pub(crate) fn permits(&self, confirm: &[Pattern]) -> Permits {
        Permits {
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            confirm: confirm.to_vec(),
        }
    }

    /// The same options with the gate that they call for, for a command that asks nobody.
    pub(crate) fn gated(&self, listeners: &Arc<Listeners>) -> call::Options {
        call::Options {
            gate: self.permits(&[]).gate(listeners),
            ..self.of_calls()
        }
    }
}

//! `pitool transcript resolve`: which tools go into the request itself.

use clap::ValueEnum;
use pitool::transcript::{ToolChangeSupport, resolve_tools};

use super::Source;
use crate::cli::{Exit, Global, print};

/// Print which tools go into the request
///
/// And how many system messages that takes care of.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,

    /// What the API can do with tools that change later
    #[arg(long, value_name = "WHAT", value_enum)]
    support: Support,
}

/// The option of that name, for [`ToolChangeSupport`].
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Support {
    /// All tools are in the request
    None,
    /// Tools can be added later
    Additions,
    /// Tools can be added and removed later
    Changes,
}

impl From<Support> for ToolChangeSupport {
    fn from(support: Support) -> Self {
        match support {
            Support::None => Self::None,
            Support::Additions => Self::Additions,
            Support::Changes => Self::Changes,
        }
    }
}

pub(super) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let resolved = resolve_tools(&args.source.messages()?, args.support.into());
    print::document(&resolved, global, Exit::Ok)
}

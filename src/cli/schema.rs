//! `pitool schema`: the JSON Schema of manifests, and of recorded cases.

use pitool::{cases, registry};

use super::{Exit, Global, print};

/// Print the JSON Schema of manifests, for editors
///
/// With it an editor completes the fields of a tool, a hook or MCP servers, shows what they mean and underlines what
/// pitool would refuse. A manifest may name the file in "$schema".
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: pitool schema > manifest.schema.json")]
pub(crate) struct Args {
    /// The schema of recorded cases, as `pitool test` reads them
    #[arg(long)]
    cases: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let schema = if args.cases {
        cases::json_schema()
    } else {
        registry::json_schema()
    };
    print::document(&schema, global, Exit::Ok)
}

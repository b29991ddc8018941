//! `pitool schema`: the JSON Schema of manifests.

use pitool::registry;

use super::{Exit, Global, print};

/// Print the JSON Schema of manifests, for editors
///
/// With it an editor completes the fields of a tool, a hook or MCP servers, shows what they mean and underlines what
/// pitool would refuse. A manifest may name the file in "$schema".
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: pitool schema > manifest.schema.json")]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(global: &Global) -> anyhow::Result<Exit> {
    print::document(&registry::json_schema(), global, Exit::Ok)
}

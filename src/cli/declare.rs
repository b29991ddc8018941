//! `pitool declare`: the tools as an API wants them declared.

use std::io::{IsTerminal as _, Write as _};

use pitool::format::Format;
use pitool::format::declare::{Finding, Severity, Strictness, declare};

use super::connect::Connect;
use super::{Exit, Global, load, print};
use crate::report::sanitize;
use crate::report::style::Styles;

/// Print the tools as a model should be told of them
///
/// Prints the value of the request's `tools` for an API, in the order of the manifests. What the API cannot express is
/// adapted where that keeps the meaning and reported on stderr where it does not.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 all well; 1 the API refuses a tool, or a server did not start; 2 a manifest could not be loaded."
)]
pub(crate) struct Args {
    /// The API: pi, anthropic, openai, openai-responses, gemini or mcp
    #[arg(long = "for", value_name = "FORMAT", default_value = "pi")]
    format: Format,

    /// Make strict schemas for OpenAI or Anthropic where the schema allows it
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    connect: Connect,
}

/// Runs the command.
pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let can_be_strict = matches!(
        args.format,
        Format::Anthropic | Format::Openai | Format::OpenaiResponses
    );
    if args.strict && !can_be_strict {
        anyhow::bail!(
            "--strict is for anthropic, openai and openai-responses, not for {}",
            args.format
        );
    }
    let mut loaded = load::load(global);
    if load::withheld(&loaded).is_some() {
        return Ok(Exit::NotUnderstood);
    }
    let exit = args.connect.look_and_tell(&mut loaded.registry, global)?;
    let strictness = if args.strict {
        Strictness::WherePossible
    } else {
        Strictness::AsDeclared
    };
    let declared = declare(loaded.registry.tools(), args.format, strictness);
    report(&declared.findings, global);
    let is_refused = declared
        .findings
        .iter()
        .any(|finding| finding.severity == Severity::Error);
    print::document(
        &declared.tools,
        global,
        if is_refused { Exit::Errors } else { exit },
    )
}

/// `pitool: error: echo: /properties/a: … [rule]`, a line per finding.
fn report(findings: &[Finding], global: &Global) {
    let mut stderr = std::io::stderr().lock();
    let styles = Styles::of_stream(global.color, stderr.is_terminal());
    for finding in findings {
        let severity = match finding.severity {
            Severity::Error => styles.error.paint("error:"),
            Severity::Note => styles.warning.paint("note:"),
        };
        let place = if finding.path.is_empty() {
            finding.tool.clone()
        } else {
            format!("{}: {}", finding.tool, finding.path)
        };
        // Nobody is left to tell when stderr is gone.
        let _ = writeln!(
            stderr,
            "pitool: {severity} {}: {} [{}]",
            sanitize::one_line(&place),
            sanitize::one_line(&finding.message),
            finding.rule
        );
    }
}

//! `pitool check`: everything that is wrong with the tools, before a model finds it.
//!
//! Loads what every command loads, then also does what others leave until it is needed: compiles schemas and filters,
//! looks for the programs. Starts nothing.

use std::collections::HashMap;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use pitool::format::Format;
use pitool::format::declare::{self, Strictness};
use pitool::hook::{Hook, HookRun};
use pitool::manifest::Fault;
use pitool::mcp::Client;
use pitool::pattern::Pattern;
use pitool::program::Program;
use pitool::program::sandbox::Sandbox;
use pitool::registry::{Loaded, Problem, Registry, Severity};
use pitool::schema::{CompileError, Schema};
use pitool::tool::{Executor, Prepare, Tool};
use serde::Serialize;

use super::connect::Connect;
use super::{Exit, Global, load, print};
use crate::report::style::Styles;
use crate::report::table::{Cell, Table};
use crate::report::{self, sanitize, text};

/// Check the tools
///
/// Reads all manifests, compiles schemas and jq filters, looks for programs, and reports what is wrong and what each
/// tool may touch. Runs nothing, unless --connect starts the MCP servers.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 no errors; 1 some tool cannot work; 2 a manifest could not be understood, so that no \
                  tool runs."
)]
pub(crate) struct Args {
    /// What to print
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    report: Report,

    /// Also find what this API does not take as it is (pi, anthropic, openai, openai-responses, gemini, mcp); repeatable
    #[arg(long = "for", value_name = "FORMAT")]
    formats: Vec<Format>,

    #[command(flatten)]
    connect: Connect,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Report {
    /// A line per finding, a table of what each tool may touch, and a summary
    #[default]
    Text,
    /// One JSON line per finding
    Jsonl,
}

/// Runs the command.
pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let folders = load::folders(global);
    let mut loaded = Registry::load(&folders);
    let unreachable = args.connect.look(&mut loaded.registry)?;
    let mut findings = findings(&loaded, args.connect, &args.formats);
    findings.extend(unreachable.iter().map(|problem| Finding {
        rule: "server",
        ..of_problem(problem)
    }));
    findings.sort_by_key(|finding| finding.order(&folders));
    let stdout = io::stdout();
    let is_terminal = stdout.is_terminal();
    let styles = Styles::of_stream(global.color, is_terminal);
    let text = match args.report {
        Report::Text => words(
            &findings,
            &loaded.registry,
            report::columns(&stdout),
            &styles,
        ),
        Report::Jsonl => lines(&findings, is_terminal),
    };
    print::text_of(&text, exit(&loaded, &findings))
}

fn exit(loaded: &Loaded, findings: &[Finding]) -> Exit {
    let is_error = |finding: &Finding| finding.severity == Level::Error;
    if loaded.unloadable().is_some() {
        Exit::NotUnderstood
    } else if findings.iter().any(is_error) {
        Exit::Errors
    } else {
        Exit::Ok
    }
}

/// Something that a person should know about a manifest.
///
/// Wire shape: `{"rule":"program","severity":"warning","file":"tools.d/a.json","line":4,"column":3,"tool":"a",
/// "message":"…","hint":"…"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Finding {
    rule: &'static str,
    severity: Level,
    file: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Finding {
    /// Folders as they were given, then files by name, then from top to bottom.
    fn order(&self, folders: &[PathBuf]) -> (usize, PathBuf, Option<usize>, Option<usize>) {
        let folder = folders
            .iter()
            .position(|folder| self.file.starts_with(folder));
        (
            folder.unwrap_or(folders.len()),
            self.file.clone(),
            self.line,
            self.column,
        )
    }
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
enum Level {
    /// Calls fail.
    Error,
    /// Calls may fail.
    Warning,
    /// Good to know.
    Note,
}

fn findings(loaded: &Loaded, connect: Connect, formats: &[Format]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = loaded.problems.iter().map(of_problem).collect();
    let mut texts = Texts::default();
    for tool in loaded.registry.tools() {
        Look::at_tool(tool, &mut texts).all(tool, &mut findings);
    }
    for hook in loaded.registry.hooks() {
        of_hook(hook, &loaded.registry, connect, &mut texts, &mut findings);
    }
    for &format in formats {
        of_declarations(&loaded.registry, format, &mut texts, &mut findings);
    }
    findings
}

/// What an API does not take as the manifests say it: what it refuses, and what the model is not told.
fn of_declarations(
    registry: &Registry,
    format: Format,
    texts: &mut Texts,
    findings: &mut Vec<Finding>,
) {
    for found in declare::declare(registry.tools(), format, Strictness::AsDeclared).findings {
        let Some(tool) = registry.get(&found.tool) else {
            continue;
        };
        let pointer = match found.rule {
            "tool-name" => "/name".to_owned(),
            "output-schema" => "/outputSchema".to_owned(),
            "constrained-sampling" => "/constrainedSampling".to_owned(),
            _ => format!("/parameters{}", found.path),
        };
        let severity = match found.severity {
            declare::Severity::Error => Level::Error,
            declare::Severity::Note => Level::Warning,
        };
        let message = format!("for {format}: {}", found.message);
        findings.push(Look::at_tool(tool, texts).finding(found.rule, severity, &pointer, message));
    }
}

fn of_problem(problem: &Problem) -> Finding {
    Finding {
        rule: "manifest",
        severity: match problem.severity {
            Severity::Error => Level::Error,
            Severity::Warning => Level::Warning,
        },
        file: problem.file.clone(),
        line: problem.line,
        column: problem.column,
        tool: None,
        message: problem.message.clone(),
        hint: problem.hint.as_deref().map(str::to_owned),
    }
}

/// The texts of manifests, read again only when there is something to locate in them.
#[derive(Default)]
struct Texts(HashMap<PathBuf, String>);

impl Texts {
    fn of(&mut self, file: &Path) -> &str {
        self.0
            .entry(file.to_owned())
            .or_insert_with(|| fs::read_to_string(file).unwrap_or_default())
    }
}

/// A look at one manifest.
struct Look<'a> {
    file: &'a Path,
    tool: Option<&'a str>,
    texts: &'a mut Texts,
}

impl<'a> Look<'a> {
    fn at_tool(tool: &'a Tool, texts: &'a mut Texts) -> Self {
        Self {
            file: tool.source.as_deref().unwrap_or(Path::new("")),
            tool: Some(tool.name()),
            texts,
        }
    }

    fn all(&mut self, tool: &Tool, findings: &mut Vec<Finding>) {
        self.schema("/parameters", tool.schema(), findings);
        if let Some(schema) = tool.compiled_output_schema() {
            self.schema("/outputSchema", schema, findings);
        }
        if let Executor::Program(program) = &tool.executor {
            self.program("/execute", program, findings);
        }
        if let Some(Prepare::Program(program)) = &tool.prepare_arguments {
            self.program("/prepareArguments", program, findings);
        }
        self.access(tool, findings);
    }

    fn schema(
        &mut self,
        pointer: &str,
        schema: Result<&Schema, &CompileError>,
        findings: &mut Vec<Finding>,
    ) {
        match schema {
            Err(error) => {
                findings.push(self.finding("schema", Level::Error, pointer, error.to_string()));
            }
            Ok(schema) => {
                for found in schema.findings() {
                    let pointer = format!("{pointer}{}", found.pointer);
                    let severity = if found.rule.rejects_all() {
                        Level::Error
                    } else {
                        Level::Warning
                    };
                    findings.push(self.finding(
                        found.rule.name(),
                        severity,
                        &pointer,
                        found.message,
                    ));
                }
            }
        }
    }

    fn program(&mut self, pointer: &str, program: &Program, findings: &mut Vec<Finding>) {
        if let Err(error) = program.check() {
            let (rule, severity, message) = match error.pointer.as_str() {
                "/jq" => (
                    "jq",
                    Level::Error,
                    format!("the filter does not compile: {}", error.message),
                ),
                // It may be there where the tools run.
                _ => ("program", Level::Warning, error.message),
            };
            let pointer = format!("{pointer}{}", error.pointer);
            findings.push(self.finding(rule, severity, &pointer, message));
        }
    }

    /// What the tool's process may touch.
    fn access(&mut self, tool: &Tool, findings: &mut Vec<Finding>) {
        findings.push(self.finding("access", Level::Note, "/execute", access(tool)));
        if let Some(Err(reason)) = tool.sandbox.as_ref().map(Sandbox::enforceable) {
            findings.push(self.finding("sandbox", Level::Warning, "/sandbox", reason));
        }
    }

    fn finding(
        &mut self,
        rule: &'static str,
        severity: Level,
        pointer: &str,
        message: String,
    ) -> Finding {
        let text = self.texts.of(self.file);
        let place = Fault::new(pointer, "").place(text);
        Finding {
            rule,
            severity,
            file: self.file.to_owned(),
            line: Some(place.line),
            column: Some(place.column),
            tool: self.tool.map(str::to_owned),
            message,
            hint: None,
        }
    }
}

/// What a tool may touch, in a few words.
pub(super) fn access(tool: &Tool) -> String {
    match (&tool.sandbox, &tool.executor) {
        (_, Executor::Program(program)) if program.is_filter() => {
            "nothing: a filter has no files, no network and no environment".to_owned()
        }
        (_, Executor::Mcp(_)) => "whatever its MCP server may".to_owned(),
        (Some(sandbox), _) => format!("sandbox: {}", sandbox.describe()),
        (None, Executor::Program(_) | Executor::Native(_)) => {
            "whatever you may: no sandbox".to_owned()
        }
    }
}

fn of_hook(
    hook: &Hook,
    registry: &Registry,
    connect: Connect,
    texts: &mut Texts,
    findings: &mut Vec<Finding>,
) {
    let mut look = Look {
        file: hook.source.as_deref().unwrap_or(Path::new("")),
        tool: None,
        texts,
    };
    if let HookRun::Program(program) = &hook.run {
        look.program("/run", program, findings);
    }
    for (index, pattern) in hook.tools.iter().flatten().enumerate() {
        let mut tools = registry.tools().iter();
        let is_unknown = connect.leaves_out(registry)
            && registry.servers().any(|server| may_name(pattern, server));
        if !is_unknown && !tools.any(|tool| pattern.matches(tool.name())) {
            let pointer = format!("/tools/{index}");
            let message = "no tool has a name like this, so the hook never runs for it".to_owned();
            findings.push(look.finding("hook", Level::Warning, &pointer, message));
        }
    }
}

/// Whether a tool of the server may have such a name.
fn may_name(pattern: &Pattern, server: &Client) -> bool {
    let fixed = pattern.as_str().split('*').next().unwrap_or_default();
    fixed.starts_with(server.prefix())
        || (server.prefix().starts_with(fixed) && fixed != pattern.as_str())
}

fn lines(findings: &[Finding], is_terminal: bool) -> String {
    let line = |finding: &Finding| {
        let line = serde_json::to_string(finding).expect("a finding has only string keys");
        if is_terminal {
            sanitize::json(&line).into_owned() + "\n"
        } else {
            line + "\n"
        }
    };
    findings.iter().map(line).collect()
}

fn words(findings: &[Finding], registry: &Registry, columns: usize, styles: &Styles) -> String {
    let (notes, faults): (Vec<&Finding>, Vec<&Finding>) = findings
        .iter()
        .partition(|finding| finding.severity == Level::Note);
    let mut words: String = faults
        .iter()
        .map(|finding| sentence(finding, styles))
        .collect();
    if !notes.is_empty() {
        let mut table = Table::new(&["TOOL", "MAY TOUCH"]);
        for note in notes {
            let tool = note.tool.as_deref().unwrap_or_default();
            table.row(vec![
                Cell::new(sanitize::one_line(tool), styles.tool),
                Cell::plain(sanitize::one_line(&note.message)),
            ]);
        }
        words.push_str(&table.render(columns, styles));
    }
    words + &summary(findings, registry)
}

fn summary(findings: &[Finding], registry: &Registry) -> String {
    let count = |level| {
        findings
            .iter()
            .filter(|finding| finding.severity == level)
            .count()
    };
    format!(
        "{}, {}: {}, {}\n",
        text::count(registry.tools().len(), "tool"),
        text::count(registry.hooks().len(), "hook"),
        text::count(count(Level::Error), "error"),
        text::count(count(Level::Warning), "warning"),
    )
}

/// `tools.d/a.json:4:3: error: not valid JSON: … [manifest]`
fn sentence(finding: &Finding, styles: &Styles) -> String {
    let place = match (finding.line, finding.column) {
        (Some(line), Some(column)) => format!("{}:{line}:{column}", finding.file.display()),
        _ => finding.file.display().to_string(),
    };
    let severity = match finding.severity {
        Level::Error => styles.error.paint("error:"),
        Level::Warning => styles.warning.paint("warning:"),
        Level::Note => styles.dim.paint("note:"),
    };
    let mut sentence = format!(
        "{}: {severity} {} {}\n",
        sanitize::one_line(&place),
        sanitize::lines(&finding.message),
        styles.dim.paint(format!("[{}]", finding.rule)),
    );
    if let Some(hint) = &finding.hint {
        sentence.push_str(&format!("  hint: {}\n", sanitize::lines(hint)));
    }
    sentence
}

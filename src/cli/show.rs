//! `pitool show`: one tool whole.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;

use anyhow::Context as _;
use pitool::hook::{Hook, Moment};
use pitool::json;
use pitool::pattern::Pattern;
use pitool::program::{Invocation, Throw};
use pitool::registry::Registry;
use pitool::stop::Stop;
use pitool::tool::{CallsTools, Declaration, Executor, RemoteTool, Replay, Tool};
use serde::Serialize;
use serde_json::{Map, Value};

use super::connect::Connect;
use super::{Exit, Global, check, load, print, validate};
use crate::report::style::Styles;
use crate::report::{self, pretty, sanitize, text};

/// Show one tool whole
///
/// What the model sees, what runs, what its process sees and may touch, and which hooks apply.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The tool
    #[arg(value_name = "NAME")]
    name: String,

    /// Print a JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    connect: Connect,
}

/// Runs the command.
pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let (mut registry, exit) = load::tolerant(global);
    if registry.get(&args.name).is_none() && registry.server_of(&args.name).is_some() {
        registry.retain(&[Pattern::new(&args.name)]);
        args.connect.look_and_tell(&mut registry, global)?;
    }
    let Some(tool) = registry.get(&args.name) else {
        return Err(validate::no_such_tool(&args.name, &registry));
    };
    let shown = Shown::new(tool, &registry)?;
    let is_terminal = io::stdout().is_terminal();
    let styles = Styles::of_stream(global.color, is_terminal);
    let text = if args.json {
        pretty::pretty(&shown, &styles) + "\n"
    } else {
        shown.words(report::columns(&io::stdout()), &styles)
    };
    print::text_of(&text, exit)
}

/// All there is to know about a tool.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    declaration: &'a Declaration,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a Path>,
    /// The fields of the manifest that the model does not see, as they are written.
    manifest: Map<String, Value>,
    /// The variables that its process sees; none for a filter, which has no process.
    environment: BTreeMap<String, String>,
    /// Why a call would fail before there is an environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    environment_error: Option<String>,
    access: String,
    #[serde(skip)]
    is_remote: bool,
    hooks: Vec<ShownHook<'a>>,
}

/// A hook that runs around the tool's calls.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownHook<'a> {
    hook: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a Path>,
    run: Value,
}

impl<'a> Shown<'a> {
    fn new(tool: &'a Tool, registry: &'a Registry) -> anyhow::Result<Self> {
        let mut manifest = match &tool.executor {
            Executor::Mcp(remote) => of_server(tool, remote),
            Executor::Program(_) | Executor::Native(_) => manifest(tool.source.as_deref())?,
        };
        for field in [
            "$schema",
            "name",
            "description",
            "parameters",
            "constrainedSampling",
        ] {
            manifest.shift_remove(field);
        }
        let hooks = registry.hooks().iter();
        let hooks = hooks.filter(|hook| hook.applies_to(tool.name()));
        let environment = environment(tool);
        Ok(Self {
            declaration: &tool.declaration,
            file: tool.source.as_deref(),
            manifest,
            environment_error: environment.as_ref().err().cloned(),
            environment: environment.unwrap_or_default(),
            access: check::access(tool),
            is_remote: matches!(tool.executor, Executor::Mcp(_)),
            hooks: hooks.map(ShownHook::new).collect::<Result<_, _>>()?,
        })
    }

    fn words(&self, columns: usize, styles: &Styles) -> String {
        let mut words = format!(
            "{}\n{}\n",
            styles
                .tool
                .paint(sanitize::one_line(&self.declaration.name)),
            sanitize::lines(self.declaration.description.trim_end())
        );
        let mut section = |title: &str, body: &str| {
            words.push_str(&format!(
                "\n{}\n{}\n",
                styles.heading.paint(title),
                body.trim_end()
            ));
        };
        section(
            "Parameters",
            &pretty::pretty(&self.declaration.parameters.read(), styles),
        );
        section("Manifest", &self.manifest_words(styles));
        section(
            "Environment of its process",
            &self.environment_words(styles),
        );
        section("May touch", &sanitize::one_line(&self.access));
        section("Hooks", &self.hook_words(columns, styles));
        words
    }

    fn manifest_words(&self, styles: &Styles) -> String {
        let file = self.file.unwrap_or(Path::new("")).to_string_lossy();
        let fields = pretty::pretty(&self.manifest, styles);
        format!("{}\n{fields}", styles.dim.paint(sanitize::one_line(&file)))
    }

    fn environment_words(&self, styles: &Styles) -> String {
        if let Some(reason) = &self.environment_error {
            let reason = sanitize::lines(reason);
            return format!("{} {reason}", styles.error.paint("calls fail:"));
        }
        if self.is_remote {
            return "that of its server, as the entry says".to_owned();
        }
        if self.environment.is_empty() {
            return "none: a filter runs in pitool itself".to_owned();
        }
        let line = |(name, value): (&String, &String)| {
            let name = sanitize::one_line(name);
            format!("{}={}\n", styles.key.paint(name), sanitize::one_line(value))
        };
        self.environment.iter().map(line).collect()
    }

    /// A line per hook; of a long filter as much as there is room for, the file has it whole.
    fn hook_words(&self, columns: usize, styles: &Styles) -> String {
        if self.hooks.is_empty() {
            return "none".to_owned();
        }
        let hook = |hook: &ShownHook<'_>| {
            let file = hook.file.unwrap_or(Path::new("")).to_string_lossy();
            let (file, run) = (sanitize::one_line(&file), hook.run.to_string());
            let run = sanitize::json(&run);
            let used = text::width(hook.hook) + text::width(&file) + 2;
            let run = text::truncate(&run, columns.saturating_sub(used));
            format!("{} {} {run}\n", hook.hook, styles.dim.paint(file))
        };
        self.hooks.iter().map(hook).collect()
    }
}

/// The variables of the tool's process. What differs from call to call is told in words.
fn environment(tool: &Tool) -> Result<BTreeMap<String, String>, String> {
    let Executor::Program(program) = &tool.executor else {
        return Ok(BTreeMap::new());
    };
    let stop = Stop::never();
    let calls_tools = !matches!(tool.calls_tools, CallsTools::None);
    let invocation = Invocation {
        tool_call_id: "(the id of the call)",
        tool_name: tool.name(),
        timeout: None,
        socket: calls_tools.then_some(Path::new("(a socket of the call's own)")),
        sandbox: tool.sandbox.as_ref(),
        stop: &stop,
        probe: None,
        notice: &|_| (),
    };
    let variables = program.environment(&invocation);
    let variables = variables.map_err(|Throw(reason)| reason)?;
    let mut variables: BTreeMap<String, String> = variables.into_iter().map(readable).collect();
    if tool.sandbox.is_some() && !program.is_filter() {
        variables.insert(
            "TMPDIR".to_owned(),
            "(a folder of the call's own)".to_owned(),
        );
    }
    Ok(variables)
}

fn readable((name, value): (OsString, OsString)) -> (String, String) {
    let text = |text: OsString| text.to_string_lossy().into_owned();
    (text(name), text(value))
}

impl<'a> ShownHook<'a> {
    fn new(hook: &'a Hook) -> anyhow::Result<Self> {
        let mut manifest = manifest(hook.source.as_deref())?;
        Ok(Self {
            hook: match hook.moment {
                Moment::Before => "beforeToolCall",
                Moment::After => "afterToolCall",
            },
            file: hook.source.as_deref(),
            run: manifest.shift_remove("run").unwrap_or_default(),
        })
    }
}

/// What a server says of its tool, and how its entry wants it treated. What it says is not relied on.
fn of_server(tool: &Tool, remote: &RemoteTool) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut field = |name: &str, value: Option<Value>| {
        fields.extend(value.map(|value| (name.to_owned(), value)));
    };
    field("server", Some(remote.client().config().name.clone().into()));
    field("tool", Some(remote.name().into()));
    field("label", tool.label.clone().map(Value::from));
    let output_schema = tool.output_schema.as_ref();
    field(
        "outputSchema",
        output_schema.map(|schema| schema.read().into_owned()),
    );
    field("annotations", tool.annotations.clone());
    let is_safe = tool.replay == Replay::Safe;
    field("replay", is_safe.then(|| "safe".into()));
    fields
}

/// The fields of a manifest as they are written.
fn manifest(file: Option<&Path>) -> anyhow::Result<Map<String, Value>> {
    let Some(file) = file else {
        return Ok(Map::new());
    };
    let text = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    match json::parse(&text).with_context(|| format!("cannot read {}", file.display()))? {
        Value::Object(fields) => Ok(fields),
        _ => Ok(Map::new()),
    }
}

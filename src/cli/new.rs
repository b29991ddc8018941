//! `pitool new`: a tool to begin with, and its first case.

use std::path::Path;

use pitool::cases::{Surface, declared};
use pitool::registry::Registry;
use pitool::tool::is_name;
use serde_json::{Value, json};

use super::fresh::{self, Fresh};
use super::{Exit, Global, Hinted, load, print};

/// Add a tool and its first case to the tools folder
///
/// Writes NAME.json and cases/NAME.json into the (first) tools folder. The tool works as it is written; make it yours.
/// Never overwrites a file.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("kind").required(true))]
pub(crate) struct Args {
    /// The name, as a model will call it
    name: String,

    /// A tool that is a jq filter
    #[arg(long, group = "kind")]
    jq: bool,

    /// A tool that is a command
    #[arg(long, group = "kind")]
    command: bool,

    /// What it does, as a model reads it
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let name = &args.name;
    if !is_name(name) || name.starts_with('.') {
        anyhow::bail!(
            "a tool cannot be named {name:?}: use 1 to 128 of A-Z a-z 0-9 _ . -, not beginning with a dot"
        );
    }
    let folders = load::folders(global);
    let folder = &folders[0];
    if !folder.is_dir() {
        let message = format!("{}: there is no such folder", folder.display());
        return Err(Hinted::new(message, "`pitool init` begins with one").into());
    }
    let registry = load::usable(global)?;
    if let Some(tool) = registry.get(name) {
        let place = tool.source.as_deref().unwrap_or(Path::new("")).display();
        let message =
            format!("a tool \"{name}\" is already defined in {place}; nothing was written");
        return Err(Hinted::new(message, "choose another name").into());
    }
    let surface =
        Surface::read(&folder.join("cases")).map_err(|problem| anyhow::anyhow!("{problem}"))?;
    let was_as_told = is_as_told(&surface, folder);
    let files = [
        Fresh::new(folder.join(format!("{name}.json")), args.manifest()),
        Fresh::new(folder.join("cases").join(case_file(name)), args.case()),
    ];
    fresh::write_all(&files, "choose another name")?;
    if was_as_told {
        // That a model is told of the new tool is no surprise.
        let tools = Registry::load(std::slice::from_ref(folder)).registry;
        surface.write(&declared(&tools))?;
    }
    print::text_of(&told(name, &files, global), Exit::Ok)
}

/// Whether the tools of the folder are declared as it was recorded, or nothing needs to be recorded yet.
fn is_as_told(surface: &Surface, folder: &Path) -> bool {
    let tools = Registry::load(std::slice::from_ref(&folder.to_owned())).registry;
    surface.difference(&declared(&tools)).is_none() || !folder.join("cases").exists()
}

/// A file of that name is no case.
fn case_file(name: &str) -> String {
    match name {
        "declare" => "declare-tool.json".to_owned(),
        name => format!("{name}.json"),
    }
}

impl Args {
    fn manifest(&self) -> String {
        let execute = if self.jq {
            json!({"jq": ".text | ascii_upcase", "output": "text"})
        } else {
            json!({"command": ["tr", "a-z", "A-Z"], "stdin": {"text": "{text}"}})
        };
        let told = "Say a text in capital letters; tell here what the tool does and when to use it";
        let description = self.description.as_deref().unwrap_or(told);
        let manifest = json!({
            "name": self.name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {"text": {"type": "string", "description": "The text"}},
                "required": ["text"],
                "additionalProperties": false
            },
            "execute": execute,
        });
        written(&manifest)
    }

    fn case(&self) -> String {
        written(&json!({
            "call": {"name": self.name, "arguments": {"text": "hello"}},
            "results": [{"$includes": {"content": [{"text": "HELLO"}], "isError": false}}],
        }))
    }
}

/// A member a line, as a person begins to write one.
fn written(value: &Value) -> String {
    let members = value.as_object().into_iter().flatten();
    let lines: Vec<String> = members
        .map(|(name, value)| {
            let value = pitool::json::fitted(value, 1, name.len() + 4);
            format!("  \"{name}\": {value}")
        })
        .collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

fn told(name: &str, files: &[Fresh], global: &Global) -> String {
    let written: String = files
        .iter()
        .map(|file| format!("wrote {}\n", file.path.display()))
        .collect();
    let tools = super::tools_option(global);
    format!(
        "{written}\nMake them yours, then try the tool, and record what it answers:\n\n  \
         pitool call{tools} {name} text=hello\n  pitool test{tools} --update\n"
    )
}

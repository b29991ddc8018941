//! `pitool init`: a folder to begin with.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use pitool::cases::{self, declared};
use pitool::json;
use pitool::registry::{Registry, json_schema};

use super::fresh::{self, Fresh};
use super::{Exit, Global, Hinted, load, print, quoted};
use crate::report::style::Styles;
use crate::report::text;

/// Begin with two tools, a hook, a sample message and recorded cases
///
/// Writes a folder tools.d with a tool that is a jq filter, one that is a command, and a hook; a message of a model that
/// calls them, and what they answered as cases for `pitool test`; and the setting that makes VS Code complete and check
/// manifests. Never overwrites a file.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder; made if it is not there
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath, default_value = ".")]
    folder: PathBuf,
}

/// What is written, with a word for people; and the content of each.
const FILES: [(&str, &str, &str); 6] = [
    (
        "tools.d/greet.json",
        "a tool that is a jq filter",
        include_str!("files/greet.json"),
    ),
    (
        "tools.d/sort_lines.json",
        "a tool that is a command",
        include_str!("files/sort_lines.json"),
    ),
    (
        "tools.d/10-guard.json",
        "a hook that blocks calls",
        include_str!("files/10-guard.json"),
    ),
    (
        "tools.d/cases/sample.json",
        "what the tools answer, recorded",
        include_str!("files/case-sample.json"),
    ),
    (
        "tools.d/cases/guard.json",
        "a call that the hook blocks",
        include_str!("files/case-guard.json"),
    ),
    (
        "sample.json",
        "what a model says that calls both tools",
        include_str!("files/sample.json"),
    ),
];

/// What a model is told of the tools; written once they can be loaded.
const SURFACE: (&str, &str) = ("tools.d/cases/declare.json", "what a model is told of them");

/// The tools folder, and what to do where there is one.
const TOOLS: &str = "tools.d";
const NEW: &str = "`pitool new NAME --jq` adds a tool to those that are there";

/// What comes after the sample.
const OWN: &str = "A tool of your own: `pitool new NAME --jq`, or --command if it is a program.";

/// For editors.
const SETTINGS: &str = ".vscode/settings.json";
const SCHEMAS: [&str; 2] = [
    ".vscode/pitool.schema.json",
    ".vscode/pitool-case.schema.json",
];

/// Runs the command.
pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let folder = &args.folder;
    let tools = inside(folder, TOOLS);
    if tools.exists() {
        let message = format!("{} is there already; nothing was written", tools.display());
        return Err(Hinted::new(message, NEW).into());
    }
    let files = FILES.map(|(name, _, content)| Fresh::new(inside(folder, name), content));
    fresh::write_all(&files, "begin in another folder: pitool init DIR")?;
    let registry = Registry::load(&[tools]).registry;
    let surface = json::fitted(&declared(&registry), 0, 0) + "\n";
    fresh::write_all(
        &[Fresh::new(inside(folder, SURFACE.0), surface)],
        "remove it",
    )?;
    let editor = set_up_editor(folder)?;
    if load::default_folders() != [Path::new(TOOLS)] {
        super::complain("warning: PITOOL_TOOLS names other folders; unset it to use these tools");
    }
    print::text_of(&told(folder, &editor, global), Exit::Ok)
}

/// A path in the folder, as short as a person would write it.
fn inside(folder: &Path, name: &str) -> PathBuf {
    if folder == Path::new(".") {
        name.into()
    } else {
        folder.join(name)
    }
}

/// What became of the editor's setting.
enum Editor {
    Written,
    /// There are settings already.
    ToAdd,
}

fn set_up_editor(folder: &Path) -> anyhow::Result<Editor> {
    let schemas = [json_schema(), cases::json_schema()];
    for (name, schema) in SCHEMAS.into_iter().zip(schemas) {
        let path = inside(folder, name);
        if !path.exists() {
            let content = json::pretty(&schema) + "\n";
            fresh::write_all(&[Fresh::new(path, content)], "remove it")?;
        }
    }
    let settings = inside(folder, SETTINGS);
    if settings.exists() {
        return Ok(Editor::ToAdd);
    }
    let content = include_str!("files/settings.json");
    fresh::write_all(&[Fresh::new(settings, content)], "remove it")?;
    Ok(Editor::Written)
}

/// What was written, and what to type next.
fn told(folder: &Path, editor: &Editor, global: &Global) -> String {
    let styles = Styles::of_stream(global.color, io::stdout().is_terminal());
    let mut lines: Vec<(&str, &str)> = FILES.iter().map(|(name, word, _)| (*name, *word)).collect();
    // In its folder, before the sample.
    lines.insert(FILES.len() - 1, SURFACE);
    lines.push((SCHEMAS[0], "for editors: the fields of manifests"));
    lines.push((SCHEMAS[1], "and those of cases"));
    if matches!(editor, Editor::Written) {
        lines.push((SETTINGS, "VS Code completes and checks them"));
    }
    let columns = lines
        .iter()
        .map(|(name, _)| text::width(name))
        .max()
        .unwrap_or(0);
    let mut told = String::new();
    for (name, word) in lines {
        let name = styles.key.paint(text::pad(name, columns));
        told += &format!("wrote {name}  {}\n", styles.dim.paint(word));
    }
    if matches!(editor, Editor::ToAdd) {
        told += &format!(
            "\n{SETTINGS} is there already; this in it makes VS Code complete and check manifests:\n\n{}",
            indented(include_str!("files/settings.json"))
        );
    }
    let enter = if folder == Path::new(".") {
        String::new()
    } else {
        format!("cd {} && ", quoted(folder))
    };
    told += &format!(
        "\nRun the sample, then test the tools against what is recorded:\n\n  {enter}pitool run --output text < sample.json\n  pitool test\n\n{OWN}\n"
    );
    told
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

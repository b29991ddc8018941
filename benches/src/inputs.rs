//! What the contenders read: recorded calls, messages and folders of tools, written into the work folder.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Value, json};

/// The corpus of calls and the tools they call (`bfcl-calls.jsonl`, `bfcl-tools.jsonl`).
#[derive(Debug, Clone)]
pub(crate) struct Corpus {
    /// A line is `{"name","arguments"}`.
    calls: PathBuf,
    /// A line is `{"name","description","parameters"}`.
    tools: PathBuf,
}

impl Corpus {
    /// The whole corpus if it lies beside the checkout, else the sample of it that belongs to the checkout.
    pub(crate) fn find() -> Self {
        let benches = Path::new(env!("CARGO_MANIFEST_DIR"));
        let whole = benches.join("../../shared/conformance");
        let elsewhere = benches.join("../../../shared/conformance");
        let places = [whole, elsewhere, benches.join("sample")];
        let place = places
            .into_iter()
            .find(|place| place.join("bfcl-calls.jsonl").is_file())
            .unwrap_or_default();
        Self {
            calls: place.join("bfcl-calls.jsonl"),
            tools: place.join("bfcl-tools.jsonl"),
        }
    }

    /// Writes a manifest for each tool.
    pub(crate) fn write_tools(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let folder = fresh(&folder.join("corpus.d"))?;
        for (number, line) in lines(&self.tools)?.enumerate() {
            let mut tool: Value = serde_json::from_str(&line?)?;
            tool["execute"] = json!({"jq": "."});
            fs::write(folder.join(format!("{number:05}.json")), tool.to_string())?;
        }
        Ok(folder)
    }

    /// Writes `count` messages with one call each, the corpus again and again. The text of arguments stays as it is.
    pub(crate) fn write_messages(&self, folder: &Path, count: usize) -> anyhow::Result<PathBuf> {
        let calls: Vec<(String, String)> = lines(&self.calls)?
            .map(|line| call(&line?))
            .collect::<anyhow::Result<_>>()?;
        let path = folder.join(format!("messages-{count}.jsonl"));
        let mut file = BufWriter::new(File::create(&path)?);
        for (number, (name, arguments)) in calls.iter().cycle().take(count).enumerate() {
            writeln!(
                file,
                "{{\"role\":\"assistant\",\"content\":[{{\"type\":\"toolCall\",\"id\":\"call_{number}\",\
                 \"name\":{name},\"arguments\":{arguments}}}],\"stopReason\":\"toolUse\"}}"
            )?;
        }
        file.flush()?;
        Ok(path)
    }
}

/// The texts of a call's name and arguments.
fn call(line: &str) -> anyhow::Result<(String, String)> {
    let call: std::collections::HashMap<String, Box<serde_json::value::RawValue>> =
        serde_json::from_str(line)?;
    let part = |name: &str| -> anyhow::Result<String> {
        let part = call
            .get(name)
            .with_context(|| format!("a call without {name}"))?;
        Ok(part.get().to_owned())
    };
    Ok((part("name")?, part("arguments")?))
}

fn lines(path: &Path) -> anyhow::Result<impl Iterator<Item = std::io::Result<String>> + use<>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    Ok(BufReader::new(file).lines())
}

/// How many lines a file has.
pub(crate) fn count_lines(path: &Path) -> anyhow::Result<usize> {
    let mut count = 0;
    for line in lines(path)? {
        line?;
        count += 1;
    }
    Ok(count)
}

/// A folder with nothing in it.
fn fresh(folder: &Path) -> anyhow::Result<PathBuf> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder.to_owned())
}

/// A folder with these tools, the name of each in its manifest; `copies` more of the last under other names.
pub(crate) fn tools(folder: &Path, manifests: &[Value], copies: usize) -> anyhow::Result<PathBuf> {
    let folder = fresh(folder)?;
    for manifest in manifests {
        let name = manifest["name"].as_str().context("a tool without a name")?;
        fs::write(folder.join(format!("{name}.json")), manifest.to_string())?;
    }
    let mut copy = manifests.last().context("no tools")?.clone();
    for number in 0..copies {
        let name = format!("copy_{number:05}");
        copy["name"] = json!(name);
        fs::write(folder.join(format!("{name}.json")), copy.to_string())?;
    }
    Ok(folder)
}

/// The tool that the start is measured with.
pub(crate) fn echo() -> Value {
    json!({
        "name": "echo", "label": "Echo", "description": "Echo one value",
        "parameters": {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]},
        "execute": {"jq": "{content: [{type: \"text\", text: .value}], details: {source: \"echo\"}}"},
    })
}

/// A tool that runs a program and prints nothing.
pub(crate) fn command(name: &str, command: &[&str]) -> Value {
    json!({
        "name": name, "description": "Run a program",
        "execute": {"command": command, "stdin": "none"},
    })
}

/// A message with that many calls of one tool.
pub(crate) fn message(
    path: &Path,
    tool: &str,
    arguments: &Value,
    calls: usize,
) -> anyhow::Result<PathBuf> {
    // Written call by call: what this process has in memory counts in what it starts, until that has become another program.
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut file = BufWriter::new(file);
    write!(file, "{{\"role\":\"assistant\",\"content\":[")?;
    for number in 0..calls {
        let comma = if number == 0 { "" } else { "," };
        let call = json!({"type": "toolCall", "id": format!("call_{number}"), "name": tool, "arguments": arguments});
        write!(file, "{comma}{call}")?;
    }
    writeln!(file, "],\"stopReason\":\"toolUse\"}}")?;
    file.flush()?;
    Ok(path.to_owned())
}

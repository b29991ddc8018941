//! A tool as its manifest writes it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::manifest::{At, Fault, Part, fields_of, given};
use crate::program::sandbox::{Sandbox, SandboxManifest};
use crate::program::{Program, ProgramManifest, Role};
use crate::schema::{Coercion, UnknownArguments, WrittenSchema};

use super::{CallsTools, Declaration, ExecutionMode, Executor, Prepare, Replay, Tool};

/// What a schema in a manifest is read as: its text, or a value where faults have to be found.
pub(crate) trait AsWritten: Into<WrittenSchema> {
    /// The schema of any object.
    fn any_object() -> Self;
}

impl AsWritten for Value {
    fn any_object() -> Self {
        json!({"type": "object"})
    }
}

impl AsWritten for Box<RawValue> {
    fn any_object() -> Self {
        to_raw_value(&Value::any_object()).expect("a value can be printed")
    }
}

/// A tool that a model can call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    bound = "S: AsWritten + Deserialize<'de>"
)]
#[schemars(rename = "Tool")]
pub(crate) struct ToolManifest<S: AsWritten = Value> {
    /// The JSON Schema of this file, for editors.
    #[serde(rename = "$schema", default)]
    #[schemars(with = "Value")]
    _schema: IgnoredAny,
    /// A remark; nobody reads it.
    #[serde(rename = "$comment", default)]
    #[schemars(with = "Value")]
    _comment: IgnoredAny,
    /// What calls name: 1 to 128 of A-Z a-z 0-9 _ . -
    #[schemars(regex(pattern = "^[A-Za-z0-9_.-]{1,128}$"))]
    name: String,
    /// A name for people; the model does not see it.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String")]
    label: Option<String>,
    /// What the tool does, for the model.
    description: String,
    /// JSON Schema of the arguments (draft 2020-12 or 7), as the model sees it.
    #[serde(default = "S::any_object")]
    parameters: S,
    /// Part of the declaration, passed on as it is.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Value")]
    constrained_sampling: Option<Value>,
    /// JSON Schema of `structuredContent` in successful results.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Value")]
    output_schema: Option<S>,
    /// What runs when the tool is called.
    execute: ProgramManifest,
    /// Makes the arguments to validate from the raw ones, for example from an older shape.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "ProgramManifest")]
    prepare_arguments: Option<ProgramManifest>,
    /// `sequential`: every batch with a call to this tool runs one call after the other.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "ExecutionMode")]
    execution_mode: Option<ExecutionMode>,
    /// Whether a call whose outcome is unknown after an interruption may be run again.
    #[serde(default)]
    replay: Replay,
    /// How arguments that are not valid as they are may be converted.
    #[serde(default)]
    #[schemars(extend("default" = "standard"))]
    coerce: Coercion,
    /// What becomes of arguments that `parameters` does not declare.
    #[serde(default)]
    #[schemars(extend("default" = "schema"))]
    unknown_arguments: UnknownArguments,
    /// Names of arguments that are paths of files the tool changes: such calls queue up per file.
    #[serde(default)]
    mutates: Vec<String>,
    /// The tools that this tool may call while it runs: `true` for all, or name patterns such as `read_*`.
    #[serde(default)]
    #[schemars(extend("default" = false))]
    calls_tools: CallsTools,
    /// What the tool's process may touch (Linux); absent means no confinement.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "SandboxManifest")]
    sandbox: Option<SandboxManifest>,
}

/// Fields that only a recorded case has.
const OF_A_CASE: [&str; 4] = ["call", "message", "results", "changes"];

impl ToolManifest {
    /// Gives faults the hints that only a tool's manifest can have.
    pub(crate) fn explain(faults: &mut [Fault]) {
        let of_a_program: HashSet<&str> = fields_of::<ProgramManifest>().iter().copied().collect();
        for fault in faults {
            let At::Pointer(pointer, Part::Key) = &fault.at else {
                continue;
            };
            let Some(field) = pointer.strip_prefix('/') else {
                continue;
            };
            if of_a_program.contains(field) {
                fault.hint = Some(format!("\"{field}\" belongs in \"execute\""));
            } else if OF_A_CASE.contains(&field) {
                fault.hint = Some("cases of tools stand in the folder \"cases\" below".to_owned());
            }
        }
    }
}

impl<S: AsWritten> ToolManifest<S> {
    /// Makes the tool, or says all that is wrong with it. `home` is the manifest's folder.
    pub(crate) fn into_tool(self, home: &Path) -> Result<Tool, Vec<Fault>> {
        let mut faults = Vec::new();
        faults.extend(name_fault(&self.name));
        let parameters = self.parameters.into();
        faults.extend(undeclared_mutates(&self.mutates, &parameters));
        let role = Role::Tool {
            parameters: &parameters,
        };
        let execute = program(&self.execute, "/execute", home, role, &mut faults);
        let prepare = self.prepare_arguments.as_ref().map(|manifest| {
            program(
                manifest,
                "/prepareArguments",
                home,
                Role::Answer,
                &mut faults,
            )
        });
        let sandbox = match self.sandbox.map(|manifest| Sandbox::new(manifest, home)) {
            Some(Err(error)) => {
                let pointer = format!("/sandbox{}", error.pointer);
                faults.push(Fault::new(pointer, error.message));
                None
            }
            Some(Ok(sandbox)) => Some(sandbox),
            None => None,
        };
        let (Some(execute), true) = (execute, faults.is_empty()) else {
            return Err(faults);
        };
        let declaration = Declaration {
            name: self.name,
            description: self.description,
            parameters,
            constrained_sampling: self.constrained_sampling,
        };
        Ok(Tool {
            label: self.label,
            output_schema: self.output_schema.map(S::into),
            execution_mode: self.execution_mode,
            replay: self.replay,
            coerce: self.coerce,
            unknown_arguments: self.unknown_arguments,
            mutates: self.mutates,
            calls_tools: self.calls_tools,
            sandbox,
            cwd: self.execute.cwd.map(PathBuf::from).unwrap_or_default(),
            prepare_arguments: prepare.flatten().map(Prepare::Program),
            ..Tool::new(declaration, Executor::Program(execute))
        })
    }
}

/// A typing error in `mutates` would silently give up the order of two calls on one file.
fn undeclared_mutates(mutates: &[String], parameters: &WrittenSchema) -> Vec<Fault> {
    if mutates.is_empty() {
        return Vec::new();
    }
    let parameters = parameters.read();
    let properties = parameters.get("properties");
    let is_declared = |name: &str| properties.is_some_and(|all| all.get(name).is_some());
    let names = mutates.iter().enumerate();
    let undeclared = names.filter(|(_, name)| !is_declared(name));
    undeclared
        .map(|(index, name)| {
            let message = format!("\"parameters\" declares no property \"{name}\"");
            Fault::new(format!("/mutates/{index}"), message)
        })
        .collect()
}

/// Whether a tool may have this name: 1 to 128 of `A-Za-z0-9_.-`.
pub fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=128).contains(&name.len()) && name.bytes().all(is_allowed)
}

fn name_fault(name: &str) -> Option<Fault> {
    (!is_name(name)).then(|| {
        let message = format!(
            "a name is 1 to 128 of A-Z a-z 0-9 _ . -, got \"{}\"",
            shortened(name)
        );
        Fault::new("/name", message)
    })
}

fn shortened(name: &str) -> String {
    match name.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

fn program(
    manifest: &ProgramManifest,
    pointer: &str,
    home: &Path,
    role: Role<'_>,
    faults: &mut Vec<Fault>,
) -> Option<Arc<Program>> {
    match Program::new(manifest, home, role) {
        Ok(program) => Some(Arc::new(program)),
        Err(error) => {
            faults.push(Fault::new(
                format!("{pointer}{}", error.pointer),
                error.message,
            ));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_stands_in_a_table_of_the_readme() {
        let readme = include_str!("../../README.md");
        let cells: Vec<&str> = readme
            .lines()
            .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
            .collect();
        let fields = fields_of::<ToolManifest>()
            .iter()
            .chain(fields_of::<ProgramManifest>());
        for field in fields.filter(|field| !field.starts_with('$')) {
            let quoted = format!("`{field}`");
            assert!(cells.iter().any(|cell| cell.contains(&quoted)), "{field}");
        }
    }
}

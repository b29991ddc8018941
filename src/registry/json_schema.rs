//! The JSON Schema of manifests, for editors: made from the types that read them, so that no second list of fields
//! exists. Its descriptions are their doc comments.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use crate::hook::HookManifest;
use crate::mcp::ServersManifest;
use crate::tool::ToolManifest;

/// The JSON Schema (draft 7, which every editor knows) of a file in `tools.d`: a tool, a hook or MCP servers.
///
/// Which of them a file is, is decided as [`Registry::load`](super::Registry::load) decides it. Every manifest that
/// loads is valid; a field that no manifest has is not, except in the files of servers, which other clients read too.
///
/// ```
/// let schema = pitool::registry::json_schema();
/// assert_eq!(schema["definitions"]["Tool"]["required"], serde_json::json!(["name", "description", "execute"]));
/// ```
pub fn json_schema() -> Value {
    let mut generator = settings().into_generator();
    let tool = reference::<ToolManifest>(&mut generator);
    let hook = reference::<HookManifest>(&mut generator);
    let servers = reference::<ServersManifest>(&mut generator);
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "pitool manifest",
        "description": "A tool, a hook or MCP servers for pitool",
        "type": "object",
        "if": {"required": ["mcpServers"]},
        "then": servers,
        "else": {"if": is_hook(), "then": hook, "else": tool},
        "definitions": generator.take_definitions(true),
    })
}

/// How types become schemas.
pub(crate) fn settings() -> SchemaSettings {
    SchemaSettings::draft07().with_transform(RecursiveTransform(no_null_default))
}

fn reference<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

/// A field without a default is absent by default, and `null` is a value like any other.
fn no_null_default(schema: &mut Schema) {
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
}

/// As the loading of files tells a hook from a tool.
fn is_hook() -> Value {
    json!({"anyOf": [
        {"required": ["hook"]},
        {"required": ["run"], "not": {"required": ["name"]}},
    ]})
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use jsonschema::Validator;

    use super::*;
    use crate::registry::Registry;

    fn validator() -> Validator {
        jsonschema::validator_for(&json_schema()).unwrap()
    }

    /// The schema and the loader judge a file alike, and as `expected`.
    #[track_caller]
    fn case(manifest: &Value, expected: bool) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.json"), manifest.to_string()).unwrap();
        let loads = Registry::load(&[folder.path().to_owned()])
            .unloadable()
            .is_none();
        assert_eq!(loads, expected, "loading {manifest}");
        let errors: Vec<String> = validator()
            .iter_errors(manifest)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(errors.is_empty(), expected, "{manifest}: {errors:?}");
    }

    fn tool(field: &str, value: Value) -> Value {
        let mut tool = json!({"name": "a", "description": "", "execute": {"jq": "."},
            "parameters": {"properties": {"x": {}}}});
        tool[field] = value;
        tool
    }

    #[test]
    fn whatever_loads_is_valid() {
        for (field, value) in [
            ("$schema", json!("./schema.json")),
            ("$comment", json!({"any": 1})),
            ("label", json!("A")),
            ("name", json!("a_B.c-9")),
            ("parameters", json!(true)),
            ("parameters", json!({"type": "nonsense"})),
            ("constrainedSampling", json!(null)),
            ("outputSchema", json!({"type": "object"})),
            (
                "prepareArguments",
                json!({"command": ["./a", "-x"], "timeoutMs": 1}),
            ),
            ("executionMode", json!("sequential")),
            ("replay", json!("safe")),
            ("coerce", json!("extended")),
            ("unknownArguments", json!("strip")),
            ("mutates", json!(["x"])),
            ("callsTools", json!(true)),
            ("callsTools", json!(["read_*"])),
            ("sandbox", json!({})),
            (
                "sandbox",
                json!({"read": ["."], "write": ["out"], "network": false, "memoryMb": 1, "cpuSeconds": 1}),
            ),
            ("execute", json!({"jq": ".", "output": "text"})),
            (
                "execute",
                json!({"jq": ".", "command": null, "timeoutMs": null}),
            ),
            (
                "execute",
                json!({"command": ["a"], "output": "image/x-mine", "okExitCodes": [0, 1], "cwd": "/",
                "env": {"A": "${B:-c}"}, "inheritEnv": true, "maxOutputBytes": 1, "stdin": {"text": "{x}"}}),
            ),
            (
                "execute",
                json!({"command": ["a"], "stdin": "none", "output": "items"}),
            ),
        ] {
            case(&tool(field, value), true);
        }
        case(
            &json!({"hook": "beforeToolCall", "run": {"jq": "empty"}}),
            true,
        );
        case(
            &json!({"hook": "afterToolCall", "tools": ["a*"], "run": {"command": ["a"]}}),
            true,
        );
    }

    #[test]
    fn servers_may_have_fields_that_other_clients_read() {
        let servers = json!({"$comment": 1, "theme": "dark", "mcpServers": {
            "a": {"command": "a", "args": ["${B}"], "env": {"A": "1"}, "autoApprove": ["x"], "timeout": 1.5},
            "b": {"url": "https://localhost", "type": "sse", "headers": {"A": "1"}, "disabled": true},
        }});
        case(&servers, true);
        case(&json!({"mcpServers": {"a": {"command": ["a"]}}}), false);
        case(&json!({"mcpServers": []}), false);
    }

    #[test]
    fn what_does_not_load_for_its_shape_is_refused() {
        for (field, value) in [
            ("lable", json!("A")),
            ("label", json!(null)),
            ("name", json!("with space")),
            ("name", json!("")),
            ("description", json!(1)),
            ("replay", json!("always")),
            ("coerce", json!("on")),
            ("mutates", json!("x")),
            ("callsTools", json!("all")),
            ("sandbox", json!({"reads": ["."]})),
            ("sandbox", json!({"memoryMb": 0})),
            ("execute", json!({})),
            ("execute", json!({"jq": ".", "command": ["a"]})),
            ("execute", json!({"command": []})),
            ("execute", json!({"comand": ["a"]})),
            ("execute", json!({"command": "a"})),
            ("execute", json!({"jq": ".", "timeoutMs": 0})),
            ("execute", json!({"command": ["a"], "output": "xml"})),
            ("execute", json!({"command": ["a"], "stdin": "all"})),
            ("run", json!({"jq": "."})),
        ] {
            case(&tool(field, value), false);
        }
        case(&json!({"name": "a", "execute": {"jq": "."}}), false);
        case(&json!({"run": {"jq": "."}}), false);
        case(&json!({"hook": "before", "run": {"jq": "."}}), false);
        case(
            &json!({"hook": "beforeToolCall", "run": {"jq": "."}, "name": "a"}),
            false,
        );
        case(&json!([]), false);
    }

    #[test]
    fn every_shipped_manifest_is_valid() {
        let validator = validator();
        let project = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut count = 0;
        for folder in ["tools.d", "samples/course/tools.d"] {
            for entry in fs::read_dir(project.join(folder)).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|ending| ending == "json") {
                    let manifest = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
                    let errors: Vec<_> = validator.iter_errors(&manifest).collect();
                    assert!(errors.is_empty(), "{}: {errors:?}", path.display());
                    count += 1;
                }
            }
        }
        assert!(count > 10);
    }

    #[test]
    fn every_field_has_a_description() {
        let schema = json_schema();
        for (name, definition) in schema["definitions"].as_object().unwrap() {
            for (field, property) in definition["properties"].as_object().into_iter().flatten() {
                assert!(property["description"].is_string(), "{name}.{field}");
                assert_ne!(
                    property.get("default"),
                    Some(&Value::Null),
                    "{name}.{field}"
                );
            }
        }
    }
}

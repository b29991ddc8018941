//! The JSON Schema that editors get.

use std::path::Path;
use std::sync::LazyLock;

use jsonschema::Validator;
use pitool::registry::{self, Registry};
use serde_json::{Value, json};

use crate::support::Test;

static SCHEMA: LazyLock<Validator> =
    LazyLock::new(|| jsonschema::validator_for(&registry::json_schema()).unwrap());

/// Panics if the manifest at `path` loads and the schema refuses it; every manifest of every test comes by here.
#[track_caller]
pub(crate) fn accepts_if_it_loads(path: &Path) {
    let text = std::fs::read(path).unwrap();
    let Ok(manifest) = serde_json::from_slice::<Value>(&text) else {
        return;
    };
    let alone = tempfile::tempdir().unwrap();
    std::fs::write(alone.path().join("a.json"), &text).unwrap();
    let loaded = Registry::load(&[alone.path().to_owned()]);
    if loaded.unloadable().is_none() {
        let refusals: Vec<_> = SCHEMA.iter_errors(&manifest).collect();
        assert!(refusals.is_empty(), "{}: {refusals:?}", path.display());
    }
}

#[test]
fn the_command_prints_what_the_library_says() {
    let done = Test::new(["schema"]).run();
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
    let printed: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(printed, registry::json_schema());
    assert!(
        done.stdout.starts_with("{\n  \"$schema\": "),
        "for people to read"
    );
}

#[test]
fn no_tools_folder_is_needed() {
    let test = Test::new(["schema"]);
    std::fs::remove_dir(test.folder().join("tools.d")).unwrap();
    assert_eq!(test.run().code, Some(0));
}

#[test]
fn an_unknown_field_is_refused_where_it_stands() {
    let manifest = json!({"name": "a", "description": "", "execute": {"jq": ".", "timeout": 1}});
    let refusal = SCHEMA.iter_errors(&manifest).next().unwrap();
    assert_eq!(refusal.instance_path().to_string(), "/execute");
    assert!(refusal.to_string().contains("'timeout'"), "{refusal}");
}

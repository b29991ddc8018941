//! One case as its file writes it, and whether what was observed is what it expects.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::expectation::Expectation;
use super::files::Files;
use super::volatile::{Volatile, in_order, without_times};
use super::{Difference, Observed, differences};
use crate::json;
use crate::manifest::{self, Fault, given};
use crate::registry::folder;
use crate::registry::json_schema::settings;

/// One call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Call")]
struct CallManifest {
    /// `toolCall`, as in a message; not needed.
    #[serde(rename = "type", default)]
    #[schemars(with = "Value")]
    _type: IgnoredAny,
    /// What its result is paired with; `call_1` if absent.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String")]
    id: Option<String>,
    /// The tool.
    name: String,
    /// Its arguments, as a model would send them; `{}` if absent.
    #[serde(default = "no_arguments")]
    arguments: Value,
    /// Why the arguments text was no JSON object.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String")]
    arguments_error: Option<String>,
}

fn no_arguments() -> Value {
    json!({})
}

/// A recorded case of tools: what goes in, and what is expected to come out.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Case")]
struct CaseManifest {
    /// The JSON Schema of this file, for editors.
    #[serde(rename = "$schema", default)]
    #[schemars(with = "Value")]
    _schema: IgnoredAny,
    /// A remark; nobody reads it.
    #[serde(rename = "$comment", default)]
    #[schemars(with = "Value")]
    _comment: IgnoredAny,
    /// What is shown beside the name of the file.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String")]
    title: Option<String>,
    /// An assistant message of any provider, a list of messages, or the file that holds it: {"from": PATH}.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Value")]
    message: Option<Value>,
    /// One call, in place of a message.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "CallManifest")]
    call: Option<CallManifest>,
    /// The tool of one call, without a "call" around it.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String")]
    name: Option<String>,
    /// The arguments of that call.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Value")]
    arguments: Option<Value>,
    /// Variables to set, null to unset.
    #[serde(default)]
    env: BTreeMap<String, Option<String>>,
    /// What stands in the fresh folder that the case runs in: text, {"base64": TEXT}, or {"from": PATH}, a copy of a
    /// file or folder beside the case.
    #[serde(default)]
    files: Map<String, Value>,
    /// More options of `pitool run`.
    #[serde(default)]
    options: Vec<String>,
    /// The messages that are expected. A pattern is an object with one key: "$includes", "$matches", "$valid" or "$is".
    /// Absent: not recorded yet; `pitool test --update` does it.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Vec<Value>")]
    results: Option<Vec<Value>>,
    /// Files that are new or different afterwards, null for those that are gone; absent: none.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Map<String, Value>")]
    changes: Option<Map<String, Value>>,
    /// Events that happen in this order, others may stand between; [] to have them recorded.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Vec<Value>")]
    events: Option<Vec<Value>>,
}

/// The JSON Schema (draft 7, which every editor knows) of a case file.
pub fn json_schema() -> Value {
    let generator = settings().into_generator();
    generator.into_root_schema_for::<CaseManifest>().to_value()
}

/// Where a case stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// The file, as it was reached.
    pub file: PathBuf,
    /// The line, from 1, in a file of many cases.
    pub line: Option<usize>,
}

/// One recorded case.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The name of its file, the line if there are more in it, and its title.
    pub name: String,
    /// Where it stands.
    pub source: Source,
    /// What `pitool run` reads.
    pub input: String,
    /// Variables to set; `None` unsets.
    pub env: BTreeMap<String, Option<String>>,
    /// What stands in the folder in which it runs.
    pub files: Files,
    /// More options of `pitool run`.
    pub options: Vec<String>,
    /// `results`, `changes` and `events`, as far as they are written.
    expected: Map<String, Value>,
}

impl Case {
    /// Reads a case from its text, which holds the JSON `value`.
    pub(super) fn read(text: &str, value: &Value, source: Source) -> Result<Self, Vec<Fault>> {
        let (read, mut faults) = manifest::read::<CaseManifest>(text, value);
        let Some(manifest) = read else {
            return Err(faults);
        };
        let home = source.file.parent().unwrap_or(Path::new("."));
        let files = Files::read(&manifest.files, home).unwrap_or_else(|more| {
            faults.extend(more);
            Files::default()
        });
        let name = name(&source, manifest.title.as_deref());
        let expected = manifest.expected();
        for (name, value) in &expected {
            faults.extend(Expectation(value).faults(&format!("/{name}")));
        }
        let (env, options) = (manifest.env.clone(), manifest.options.clone());
        let input = manifest.input(home).unwrap_or_else(|fault| {
            faults.push(fault);
            String::new()
        });
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Self {
            name,
            source,
            input,
            env,
            files,
            options,
            expected,
        })
    }

    /// Whether it says what is expected.
    pub fn is_recorded(&self) -> bool {
        self.expected.contains_key("results")
    }

    /// Whether it asks for events.
    pub fn wants_events(&self) -> bool {
        self.expected.contains_key("events")
    }

    /// What it expects: an object of `results`, `changes` and `events`.
    pub fn expected(&self) -> Value {
        self.expected.clone().into()
    }

    /// What it would have to expect of what was observed: where an expectation holds it stays as it is written.
    pub fn updated(&self, observed: &Observed, volatile: &Volatile) -> Value {
        let results = observed.results.iter().map(without_times);
        let results: Value = results.map(|result| volatile.value(&result)).collect();
        let mut actual = Map::new();
        actual.insert("results".into(), results);
        if !observed.changes.is_empty() || self.expected.contains_key("changes") {
            let changes = volatile.value(&Value::Object(observed.changes.clone()));
            actual.insert("changes".into(), changes);
        }
        let mut expected = self.expected.clone();
        let wanted = expected.shift_remove("events");
        // Times that were pasted into an expectation count as little as those of a run.
        if let Some(Value::Array(results)) = expected.get_mut("results") {
            for result in results {
                *result = without_times(result);
            }
        }
        let mut updated = Expectation(&expected.clone().into()).updated(&actual.into());
        if updated == Value::Object(expected) {
            // Nothing of it changes, pasted times included.
            updated = self.expected.clone().into();
        }
        if let (Some(Value::Array(wanted)), Value::Object(updated)) = (wanted, &mut updated) {
            let events = in_order(&observed.events);
            let events: Vec<Value> = events.iter().map(|event| volatile.value(event)).collect();
            updated.insert("events".into(), updated_events(wanted, &events));
        }
        updated
    }

    /// Where what was observed differs from what is expected.
    pub fn differences(&self, updated: &Value) -> Vec<Difference> {
        differences(&self.expected(), updated)
    }
}

impl CaseManifest {
    fn expected(&self) -> Map<String, Value> {
        let results = self.results.clone().map(Value::from);
        let changes = self.changes.clone().map(Value::from);
        let events = self.events.clone().map(Value::from);
        [
            ("results", results),
            ("changes", changes),
            ("events", events),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
    }

    /// What `pitool run` reads; the case stands in `home`.
    fn input(self, home: &Path) -> Result<String, Fault> {
        let bare = self.name.is_some() || self.arguments.is_some();
        let call = match (self.message, self.call, bare) {
            (Some(message), None, false) => return message_text(&message, home),
            (None, Some(call), false) => call,
            (None, None, true) => CallManifest {
                _type: IgnoredAny,
                id: None,
                name: self
                    .name
                    .ok_or_else(|| Fault::new("", "missing field \"name\""))?,
                arguments: self.arguments.unwrap_or_else(no_arguments),
                arguments_error: None,
            },
            (None, None, false) => {
                return Err(Fault::new("", "a case needs a \"message\" or a \"call\""));
            }
            _ => {
                let message = "a case has a \"message\", a \"call\", or the \"name\" and \"arguments\" of one, not \
                               several of them";
                return Err(Fault::new("", message));
            }
        };
        let mut block = json!({"type": "toolCall", "id": call.id.as_deref().unwrap_or("call_1"),
            "name": call.name, "arguments": call.arguments});
        if let Some(error) = call.arguments_error {
            block["argumentsError"] = error.into();
        }
        let message = json!({"role": "assistant", "content": [block], "stopReason": "toolUse"});
        Ok(json::compact(&message))
    }
}

/// A message as it stands, or the text of a file: `{"from": PATH}`.
fn message_text(message: &Value, home: &Path) -> Result<String, Fault> {
    let members = message.as_object().filter(|members| members.len() == 1);
    match members.and_then(|members| members.get("from")) {
        Some(Value::String(path)) => folder::read(&home.join(path))
            .map_err(|problem| Fault::new("/message/from", problem.to_string())),
        _ => Ok(json::compact(message)),
    }
}

fn name(source: &Source, title: Option<&str>) -> String {
    let stem = source
        .file
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy();
    let name = match source.line {
        Some(line) => format!("{stem}:{line}"),
        None => stem.into_owned(),
    };
    match title {
        Some(title) => format!("{name}: {title}"),
        None => name,
    }
}

/// The wanted events, if they happened in their order; else what there is to want.
fn updated_events(wanted: Vec<Value>, events: &[Value]) -> Value {
    let mut rest = events.iter();
    let mut happened = |wanted: &Value| rest.any(|event| Expectation(wanted).holds(event));
    if !wanted.is_empty() && wanted.iter().all(&mut happened) {
        return wanted.into();
    }
    let is_step = |event: &&Value| {
        let kind = event.get("type").and_then(Value::as_str);
        matches!(kind, Some("tool_execution_start" | "tool_execution_end"))
    };
    events.iter().filter(is_step).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &Value) -> Result<Case, Vec<String>> {
        let source = Source {
            file: "cases/echo.json".into(),
            line: None,
        };
        let told = |fault: &Fault| match &fault.hint {
            Some(hint) => format!("{} -> {hint}", fault.full_message()),
            None => fault.full_message(),
        };
        Case::read(&value.to_string(), value, source)
            .map_err(|faults| faults.iter().map(told).collect())
    }

    fn observed(results: Value, changes: Value) -> Observed {
        Observed {
            results: serde_json::from_value(results).unwrap(),
            changes: serde_json::from_value(changes).unwrap(),
            events: Vec::new(),
        }
    }

    fn volatile() -> Volatile {
        Volatile::new(Path::new("/w/folder"), Path::new("/w/tmp"), &[] as &[&Path])
    }

    #[test]
    fn a_message_a_call_and_a_bare_call_are_one() {
        let message = json!({"role": "assistant", "content": [
            {"type": "toolCall", "id": "call_1", "name": "echo", "arguments": {"value": "x"}}], "stopReason": "toolUse"});
        let arguments = json!({"value": "x"});
        for case in [
            json!({"message": message}),
            json!({"call": {"name": "echo", "arguments": arguments}}),
            json!({"call": {"type": "toolCall", "id": "call_1", "name": "echo", "arguments": arguments}}),
            json!({"name": "echo", "arguments": arguments}),
        ] {
            assert_eq!(read(&case).unwrap().input, message.to_string());
        }
        let input = read(&json!({"name": "now"})).unwrap().input;
        assert!(input.contains("\"arguments\":{}"), "{input}");
    }

    #[test]
    fn a_message_may_stand_in_a_file_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("session.jsonl"), "{}\n{}\n").unwrap();
        let read = |from: &str| message_text(&json!({"from": from}), dir.path());
        assert_eq!(read("session.jsonl").unwrap(), "{}\n{}\n");
        let fault = read("none").unwrap_err().full_message();
        assert!(
            fault.starts_with("message.from: ") && fault.contains("cannot be read"),
            "{fault}"
        );
    }

    #[test]
    fn faults_of_a_case_are_all_told() {
        let refused = |case: &Value, faults: &[&str]| assert_eq!(read(case).unwrap_err(), faults);
        refused(&json!({}), &["a case needs a \"message\" or a \"call\""]);
        refused(
            &json!({"call": {"name": "a"}, "message": {}}),
            &[
                "a case has a \"message\", a \"call\", or the \"name\" and \"arguments\" of one, not several of them",
            ],
        );
        refused(
            &json!({"call": {"nmae": "a"}, "reslts": []}),
            &[
                "unknown field \"reslts\" -> did you mean \"results\"?",
                "call: unknown field \"nmae\" -> did you mean \"name\"?",
                "call: missing field \"name\"",
            ],
        );
        refused(
            &json!({"name": "a", "files": {"../x": ""}, "results": [{"$match": ""}]}),
            &[
                "files.../x: expected a relative path that leads into the folder of the case",
                "results.0.$match: there is no pattern \"$match\" -> did you mean \"$matches\"?",
            ],
        );
    }

    #[test]
    fn times_and_folders_do_not_count() {
        let case = read(&json!({"name": "a", "results": [{"text": "<folder>/x", "durationMs": 7, "timestamp": 1}]}))
            .unwrap();
        let seen = observed(
            json!([{"text": "/w/folder/x", "durationMs": 3, "timestamp": 9}]),
            json!({}),
        );
        let updated = case.updated(&seen, &volatile());
        assert_eq!(updated, case.expected());
        assert_eq!(case.differences(&updated), []);
        let seen = observed(json!([{"text": "/w/folder/x"}]), json!({}));
        assert_eq!(
            case.updated(&seen, &volatile()),
            json!({"results": [{"text": "<folder>/x"}]})
        );
    }

    #[test]
    fn changes_that_nobody_expects_are_a_difference() {
        let case = read(&json!({"name": "a", "results": []})).unwrap();
        let updated = case.updated(&observed(json!([]), json!({"log": "x"})), &volatile());
        assert_eq!(updated, json!({"results": [], "changes": {"log": "x"}}));
        let case = read(&json!({"name": "a", "results": [], "changes": {"log": {"$valid": true}}}))
            .unwrap();
        let updated = case.updated(&observed(json!([]), json!({"log": "x"})), &volatile());
        assert_eq!(updated, case.expected());
        let updated = case.updated(&observed(json!([]), json!({})), &volatile());
        assert_eq!(updated, json!({"results": [], "changes": {}}));
    }

    #[test]
    fn wanted_events_happen_in_their_order() {
        let start = json!({"type": "tool_execution_start", "toolCallId": "a"});
        let update = json!({"type": "tool_execution_update", "toolCallId": "a"});
        let end = json!({"type": "tool_execution_end", "toolCallId": "a"});
        let events = [start.clone(), update.clone(), end.clone()];
        let holds = |wanted: &[&Value]| {
            let wanted: Vec<Value> = wanted.iter().copied().cloned().collect();
            updated_events(wanted.clone(), &events) == Value::from(wanted)
        };
        assert!(holds(&[&start, &end]));
        assert!(holds(&[
            &update,
            &json!({"$includes": {"type": "tool_execution_end"}})
        ]));
        assert!(!holds(&[&end, &start]));
        assert_eq!(updated_events(Vec::new(), &events), json!([start, end]));
    }
}

//! What changes from run to run, made the same.

use std::path::Path;

use regex::Regex;
use serde_json::{Map, Value};

/// What is made the same before expectations are compared: times, and the folders of this run.
///
/// `timestamp` and `atMs` go, `durationMs` is 0; paths in the folder of the case begin with `<folder>`, those in a tools
/// folder with `<tools>`, and a path of a temporary file is `<tmp>`.
#[derive(Debug, Clone)]
pub struct Volatile {
    paths: Vec<(Regex, &'static str)>,
}

impl Volatile {
    /// For a case that runs in `folder`, with temporary files in `temporary`, and tools in `tools`.
    pub fn new(folder: &Path, temporary: &Path, tools: &[impl AsRef<Path>]) -> Self {
        let mut paths = Vec::new();
        let mut add = |path: &Path, tail: &str, name| {
            let path = regex::escape(&path.to_string_lossy());
            let expression = format!("{path}{tail}");
            paths.extend(Regex::new(&expression).map(|expression| (expression, name)));
        };
        add(temporary, TEMPORARY_TAIL, "<tmp>");
        // Where a path would be too long for a socket.
        add(Path::new("/tmp/pitool-call-"), TEMPORARY_TAIL, "<tmp>");
        add(folder, END, "<folder>");
        for tools in tools {
            add(tools.as_ref(), END, "<tools>");
        }
        Self { paths }
    }

    /// Makes the text the same.
    pub fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (path, name) in &self.paths {
            if path.is_match(&text) {
                text = path.replace_all(&text, *name).into_owned();
            }
        }
        text
    }

    /// Makes all texts in the value the same.
    pub fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => members
                .iter()
                .map(|(name, member)| (name.clone(), self.value(member)))
                .collect::<Map<_, _>>()
                .into(),
            other => other.clone(),
        }
    }
}

/// The rest of a path, up to what ends one in a sentence.
const TEMPORARY_TAIL: &str = r#"[^\s"'`<>()\[\],;]*"#;

/// A folder's name ends here: `/a/b` is not part of `/a/bc`.
const END: &str = r"\b";

/// A message, an outcome or an event without its times.
pub(super) fn without_times(value: &Value) -> Value {
    let Value::Object(members) = value else {
        return value.clone();
    };
    let mut members = members.clone();
    members.retain(|name, value| {
        !(value.is_number() && matches!(name.as_str(), "timestamp" | "atMs"))
    });
    zero_duration(&mut members);
    if let Some(Value::Array(calls)) = members
        .get_mut("nestedCalls")
        .and_then(|nested| nested.get_mut("calls"))
    {
        calls
            .iter_mut()
            .filter_map(Value::as_object_mut)
            .for_each(zero_duration);
    }
    Value::Object(members)
}

fn zero_duration(members: &mut Map<String, Value>) {
    if let Some(duration @ Value::Number(_)) = members.get_mut("durationMs") {
        *duration = 0.into();
    }
}

/// Events call by call, in the order in which the calls began; those of messages behind them. The times are gone.
pub(super) fn in_order(events: &[Value]) -> Vec<Value> {
    let mut begun: Vec<&str> = Vec::new();
    for id in events.iter().filter_map(call_id) {
        if !begun.contains(&id) {
            begun.push(id);
        }
    }
    let mut ordered: Vec<&Value> = events.iter().collect();
    ordered.sort_by_key(|event| match call_id(event) {
        Some(id) => begun.iter().position(|begun| *begun == id).unwrap_or(0),
        None => begun.len(),
    });
    ordered.into_iter().map(without_times).collect()
}

fn call_id(event: &Value) -> Option<&str> {
    event.get("toolCallId")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn folders_get_names() {
        let volatile = Volatile::new(
            Path::new("/tmp/x/folder"),
            Path::new("/tmp/x/tmp"),
            &["/home/me/tools.d"],
        );
        let case = |text: &str, expected: &str| assert_eq!(volatile.text(text), expected);
        case("in /tmp/x/folder.", "in <folder>.");
        case("/tmp/x/folder/a/b", "<folder>/a/b");
        case("/tmp/x/folders", "/tmp/x/folders");
        case("see /tmp/x/tmp/pitool-output-1-2, or", "see <tmp>, or");
        case("[/tmp/pitool-call-3-0/socket]", "[<tmp>]");
        case(
            "Cannot start \"/home/me/tools.d/bin/x\"",
            "Cannot start \"<tools>/bin/x\"",
        );
        assert_eq!(
            volatile.value(&json!({"a": ["/tmp/x/folder", 1]})),
            json!({"a": ["<folder>", 1]})
        );
    }

    #[test]
    fn only_times_of_messages_are_taken() {
        let message = json!({"timestamp": 1, "durationMs": 5, "details": {"timestamp": 2, "durationMs": 6},
            "nestedCalls": {"calls": [{"id": "a", "durationMs": 7}], "complete": true}});
        assert_eq!(
            without_times(&message),
            json!({"durationMs": 0, "details": {"timestamp": 2, "durationMs": 6},
                "nestedCalls": {"calls": [{"id": "a", "durationMs": 0}], "complete": true}})
        );
        assert_eq!(
            without_times(&json!({"timestamp": "noon"})),
            json!({"timestamp": "noon"})
        );
    }

    #[test]
    fn events_stand_call_by_call() {
        let event = |id: &str, n: u32| json!({"toolCallId": id, "n": n, "atMs": n});
        let events = [
            event("b", 1),
            event("a", 2),
            event("a", 3),
            json!({"type": "message_end"}),
            event("b", 4),
        ];
        let order: Vec<Value> = in_order(&events)
            .iter()
            .map(|event| event.get("n").cloned().unwrap_or_default())
            .collect();
        assert_eq!(order, [json!(1), json!(4), json!(2), json!(3), json!(null)]);
    }
}

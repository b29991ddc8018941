//! Which tools and which prompt a list of messages declares, and what to append when the tools change.
//!
//! System messages are a log: each may add tools (`toolsAdded`), take some away (`toolsRemoved`), say more (`content`)
//! and patch named `sections`. Reading them in order gives the current state, as pi's `transcript-tools` and
//! `system-prompt` do; messages of other roles are never read. Messages and tools stay JSON values here, because what
//! is unknown in them has to survive.
//!
//! ```
//! use pitool::transcript::{current_tools, declare_tools};
//! use serde_json::json;
//!
//! let echo = json!({"name": "echo", "description": "Echo", "parameters": {"type": "object"}});
//! let now = json!({"name": "now", "description": "The time", "parameters": {"type": "object"}});
//! let mut messages = vec![json!({"role": "system", "content": "Be brief.", "toolsAdded": [echo]})];
//! assert_eq!(current_tools(&messages), [echo]);
//!
//! // The tools have changed: what to append, so that the transcript declares the new ones.
//! messages.extend(declare_tools(&messages, std::slice::from_ref(&now), Vec::new(), 0));
//! assert_eq!(messages[1]["toolsRemoved"], json!([{"name": "echo"}]));
//! assert_eq!(current_tools(&messages), [now]);
//! ```

use std::collections::HashSet;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::json;

/// Tools by name, in the order of their first declaration: setting a name again keeps its place.
#[derive(Debug, Default)]
struct NamedTools(Vec<Value>);

impl NamedTools {
    fn set(&mut self, tool: &Value) {
        match self.0.iter_mut().find(|known| name(known) == name(tool)) {
            Some(known) => *known = tool.clone(),
            None => self.0.push(tool.clone()),
        }
    }

    fn remove(&mut self, removed: &Value) {
        self.0.retain(|known| name(known) != name(removed));
    }

    /// What one system message does: removals go first.
    fn apply(&mut self, system: &Value) {
        for removed in list(system, "toolsRemoved") {
            self.remove(removed);
        }
        for added in list(system, "toolsAdded") {
            self.set(added);
        }
    }
}

/// The tools that are declared at the end of the transcript.
pub fn current_tools(messages: &[Value]) -> Vec<Value> {
    let mut tools = NamedTools::default();
    for system in system_messages(messages) {
        tools.apply(system);
    }
    tools.0
}

/// Every tool that was ever declared, removed or not, in its last definition.
pub fn declared_tools(messages: &[Value]) -> Vec<Value> {
    let mut tools = NamedTools::default();
    for added in system_messages(messages).flat_map(|system| list(system, "toolsAdded")) {
        tools.set(added);
    }
    tools.0
}

/// Whether a system message removes a tool or declares a name a second time.
pub fn has_non_additive_tool_changes(messages: &[Value]) -> bool {
    non_additive(messages).any(|is_non_additive| is_non_additive)
}

/// For each system message, whether it does more than add new names.
fn non_additive(messages: &[Value]) -> impl Iterator<Item = bool> {
    let mut names = HashSet::new();
    system_messages(messages).map(move |system| {
        let mut changes = !list(system, "toolsRemoved").is_empty();
        for added in list(system, "toolsAdded") {
            changes |= !names.insert(name(added));
        }
        changes
    })
}

/// What an API can do with tools that change in the middle of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolChangeSupport {
    /// Nothing: all tools are in the request.
    None,
    /// Tools can be added later.
    Additions,
    /// Tools can be added and removed later.
    Changes,
}

/// Which tools go into the request, and how many system messages that takes care of.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedTools {
    /// The tools for the request itself.
    pub request_tools: Vec<Value>,
    /// How many of the system messages are in it; the later ones are sent as changes.
    pub folded_system_messages: usize,
}

/// Splits the declarations of a transcript into the request's own and later changes, as far as an API can take
/// changes.
pub fn resolve_tools(messages: &[Value], support: ToolChangeSupport) -> ResolvedTools {
    let folded = match support {
        ToolChangeSupport::None => system_messages(messages).count(),
        ToolChangeSupport::Changes => 0,
        ToolChangeSupport::Additions => {
            let leading = usize::from(messages.first().is_some_and(is_system));
            let last_non_additive = non_additive(messages)
                .enumerate()
                .filter(|(_, is_non_additive)| *is_non_additive)
                .map(|(index, _)| index + 1)
                .last();
            leading.max(last_non_additive.unwrap_or(0))
        }
    };
    let mut tools = NamedTools::default();
    for system in system_messages(messages).take(folded) {
        tools.apply(system);
    }
    ResolvedTools {
        request_tools: tools.0,
        folded_system_messages: folded,
    }
}

/// What changed between two lists of tools.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolChanges {
    /// Declarations that are new or changed, in the order of the current list.
    pub tools_added: Vec<Value>,
    /// `{"name"}` of those that are gone or changed, in the order of the previous list.
    pub tools_removed: Vec<Value>,
}

impl ToolChanges {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.tools_added.is_empty() && self.tools_removed.is_empty()
    }
}

/// What leads from `previous` to `current`: a changed declaration is a removal and an addition; another order is no
/// change.
pub fn tool_changes(previous: &[Value], current: &[Value]) -> ToolChanges {
    let is_kept = |tool: &Value, others: &[Value]| {
        let other = others.iter().rev().find(|other| name(other) == name(tool));
        other.is_some_and(|other| declarations_equal(tool, other))
    };
    ToolChanges {
        tools_added: current
            .iter()
            .filter(|tool| !is_kept(tool, previous))
            .map(to_declaration)
            .collect(),
        tools_removed: previous
            .iter()
            .filter(|tool| !is_kept(tool, current))
            .map(|tool| tool.get("name").map_or(Value::Null, just_name))
            .collect(),
    }
}

fn just_name(name: &Value) -> Value {
    Value::Object(Map::from_iter([("name".to_owned(), name.clone())]))
}

/// The part of a tool that a model sees.
pub fn to_declaration(tool: &Value) -> Value {
    let fields = ["name", "description", "parameters", "constrainedSampling"];
    fields
        .into_iter()
        .filter_map(|field| Some((field.to_owned(), tool.get(field)?.clone())))
        .collect::<Map<String, Value>>()
        .into()
}

/// Whether two declarations are the same text, key order inside of `parameters` included.
pub fn declarations_equal(left: &Value, right: &Value) -> bool {
    let text = |tool| json::compact(&to_declaration(tool));
    text(left) == text(right)
}

/// The messages to append so that the transcript declares exactly `tools`.
///
/// The last system message among `pending` takes the changes: its own tool fields are replaced, empty ones left out.
/// Without one, a system message of its own goes before the pending messages. `timestamp` is for that one.
pub fn declare_tools(
    messages: &[Value],
    tools: &[Value],
    mut pending: Vec<Value>,
    timestamp: u64,
) -> Vec<Value> {
    let carrier = pending.iter().rposition(is_system);
    let own = carrier.map(|at| without_tool_fields(&pending[at]));
    let declared = {
        let mut all: Vec<Value> = messages.to_vec();
        all.extend(pending.iter().cloned());
        if let (Some(at), Some(own)) = (carrier, &own) {
            all[messages.len() + at] = own.clone();
        }
        current_tools(&all)
    };
    let changes = tool_changes(&declared, tools);
    match (carrier, own) {
        (Some(at), Some(_)) if changes.is_empty() && !changes_tools(&pending[at]) => {}
        (Some(at), Some(own)) => pending[at] = with_changes(own, changes),
        _ if changes.is_empty() => {}
        _ => pending.insert(0, with_changes(empty_system_message(timestamp), changes)),
    }
    pending
}

fn changes_tools(system: &Value) -> bool {
    !list(system, "toolsAdded").is_empty() || !list(system, "toolsRemoved").is_empty()
}

fn without_tool_fields(system: &Value) -> Value {
    let mut system = system.clone();
    if let Some(fields) = system.as_object_mut() {
        fields.retain(|key, _| key != "toolsAdded" && key != "toolsRemoved");
    }
    system
}

fn empty_system_message(timestamp: u64) -> Value {
    serde_json::json!({"role": "system", "content": "", "timestamp": timestamp})
}

fn with_changes(mut system: Value, changes: ToolChanges) -> Value {
    if !changes.tools_added.is_empty() {
        system["toolsAdded"] = changes.tools_added.into();
    }
    if !changes.tools_removed.is_empty() {
        system["toolsRemoved"] = changes.tools_removed.into();
    }
    system
}

/// All system messages as one: contents joined by a blank line, sections patched by name (`null` deletes), the
/// current tools, the first timestamp. `None` without any.
pub fn current_system_message(messages: &[Value]) -> Option<Value> {
    let first = system_messages(messages).next()?;
    let mut current = Map::new();
    current.insert("role".to_owned(), "system".into());
    current.insert("content".to_owned(), current_content(messages).into());
    let sections = current_sections(messages);
    if !sections.is_empty() {
        current.insert("sections".to_owned(), Value::Object(sections));
    }
    let tools = current_tools(messages);
    if !tools.is_empty() {
        current.insert("toolsAdded".to_owned(), tools.into());
    }
    if let Some(timestamp) = first.get("timestamp") {
        current.insert("timestamp".to_owned(), timestamp.clone());
    }
    Some(Value::Object(current))
}

/// The current prompt as one text: the contents, then the sections, with blank lines between; empty ones left out.
pub fn current_system_prompt(messages: &[Value]) -> String {
    let sections = current_sections(messages);
    let texts = sections.values().filter_map(Value::as_str);
    let content = current_content(messages);
    let parts: Vec<&str> = std::iter::once(content.as_str())
        .chain(texts)
        .filter(|part| !part.is_empty())
        .collect();
    parts.join("\n\n")
}

/// The transcript with its system messages replaced by the current one, which leads.
pub fn collapse_system_messages(messages: &[Value]) -> Vec<Value> {
    let others = messages
        .iter()
        .filter(|message| !is_system(message))
        .cloned();
    current_system_message(messages)
        .into_iter()
        .chain(others)
        .collect()
}

fn current_content(messages: &[Value]) -> String {
    let contents: Vec<String> = system_messages(messages)
        .map(text_of)
        .filter(|text| !text.is_empty())
        .collect();
    contents.join("\n\n")
}

/// A message's text: its content, or the text blocks of it joined by line breaks.
fn text_of(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts: Vec<&str> = blocks
                .iter()
                .filter_map(|block| block.get("text")?.as_str())
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

fn current_sections(messages: &[Value]) -> Map<String, Value> {
    let mut sections = Map::new();
    let patches =
        system_messages(messages).filter_map(|system| system.get("sections")?.as_object());
    for (key, value) in patches.flatten() {
        if value.is_null() {
            sections.shift_remove(key);
        } else {
            sections.insert(key.clone(), value.clone());
        }
    }
    in_javascript_order(sections)
}

/// The prompt's sections stand in the order in which JavaScript walks an object: names that are array indices first,
/// ascending. Transcripts are written by it, and a prompt in another order would miss the provider's cache.
fn in_javascript_order(sections: Map<String, Value>) -> Map<String, Value> {
    let mut entries: Vec<(String, Value)> = sections.into_iter().collect();
    entries.sort_by_key(|(key, _)| array_index(key).map_or(u64::MAX, u64::from));
    entries.into_iter().collect()
}

fn array_index(key: &str) -> Option<u32> {
    let index: u32 = key.parse().ok()?;
    (index < u32::MAX && index.to_string() == key).then_some(index)
}

fn system_messages(messages: &[Value]) -> impl Iterator<Item = &Value> {
    messages.iter().filter(|message| is_system(message))
}

fn is_system(message: &Value) -> bool {
    message.get("role").and_then(Value::as_str) == Some("system")
}

fn name(tool: &Value) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(message: &'v Value, field: &str) -> &'v [Value] {
    message
        .get(field)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

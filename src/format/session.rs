//! pi's session files: entries that form a tree, of which the branch to the last entry is the conversation.
//!
//! Source: pi's `docs/session-format.md` (`@earendil-works/pi-coding-agent` 1.6.0). Of the branch, everything since
//! the latest compaction counts: that is what the model still sees. Older calls are not run again.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::wire::text_at;

/// A session while it is read, and afterwards.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Session {
    /// The header and all entries, in the order of the file, with their lines.
    pub(super) entries: Vec<(usize, Value)>,
}

/// Whether a value opens a session file.
pub(super) fn is_header(value: &Value) -> bool {
    text_at(value, "type") == Some("session") && value.get("role").is_none()
}

/// Whether a value is an entry of a session file; inside one, entries of its first version have no ids.
pub(super) fn is_entry(value: &Value, inside: bool) -> bool {
    text_at(value, "type").is_some()
        && value.get("timestamp").is_some()
        && value.get("role").is_none()
        && (inside || value.get("parentId").is_some())
}

/// One message of the conversation and the entry that holds it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SessionMessage {
    /// Its position in [`Session::entries`].
    pub(super) entry: usize,
    pub(super) message: Value,
}

impl Session {
    /// The messages that the model sees at the end of the current branch.
    pub(super) fn messages(&self) -> Vec<SessionMessage> {
        let branch = self.branch();
        let edits = self.context_edits(&branch);
        let Some(at) = branch
            .iter()
            .rposition(|&entry| self.kind(entry) == "compaction")
        else {
            return self.messages_of(&branch, &edits);
        };
        let compaction = &self.entries[branch[at]].1;
        let mut messages = Vec::new();
        if let Some(system) = compaction
            .get("systemMessage")
            .filter(|system| system.is_object())
        {
            messages.push(SessionMessage {
                entry: branch[at],
                message: system.clone(),
            });
        }
        let kept = self.messages_of(self.kept(&branch[..at], compaction), &edits);
        messages.extend(kept.into_iter().filter(|kept| !is_system(&kept.message)));
        messages.extend(self.messages_of(&branch[at + 1..], &edits));
        messages
    }

    /// The entries from the first one to the last of the file, along `parentId`; all of them in a file of the first
    /// version, which has no ids.
    fn branch(&self) -> Vec<usize> {
        let ids: HashMap<&str, usize> = (0..self.entries.len())
            .filter(|&entry| self.is_node(entry))
            .filter_map(|entry| Some((text_at(&self.entries[entry].1, "id")?, entry)))
            .collect();
        let mut all = (0..self.entries.len()).filter(|&entry| self.is_node(entry));
        if ids.is_empty() {
            return all.collect();
        }
        let mut branch = Vec::new();
        let mut next = all.next_back();
        while let Some(entry) = next.filter(|_| branch.len() <= self.entries.len()) {
            branch.push(entry);
            next = text_at(&self.entries[entry].1, "parentId")
                .and_then(|parent| ids.get(parent).copied());
        }
        branch.reverse();
        branch
    }

    /// Whether it is an entry of the tree, and still in it.
    fn is_node(&self, entry: usize) -> bool {
        let value = &self.entries[entry].1;
        !value.is_null() && !is_header(value)
    }

    /// What a compaction kept of the entries before it.
    fn kept<'b>(&self, before: &'b [usize], compaction: &Value) -> &'b [usize] {
        let first = text_at(compaction, "firstKeptEntryId").and_then(|first| {
            before
                .iter()
                .position(|&entry| text_at(&self.entries[entry].1, "id") == Some(first))
        });
        first.map_or(&[], |first| &before[first..])
    }

    /// The latest edit of each entry on the branch.
    fn context_edits(&self, branch: &[usize]) -> HashMap<&str, &Value> {
        branch
            .iter()
            .map(|&entry| &self.entries[entry].1)
            .filter(|entry| text_at(entry, "type") == Some("context_edit"))
            .filter_map(|edit| Some((text_at(edit, "targetId")?, edit.get("replacement")?)))
            .collect()
    }

    fn messages_of(&self, branch: &[usize], edits: &HashMap<&str, &Value>) -> Vec<SessionMessage> {
        branch
            .iter()
            .filter(|&&entry| self.kind(entry) == "message")
            .filter_map(|&entry| {
                let value = &self.entries[entry].1;
                let message = value.get("message")?;
                let edit = text_at(value, "id").and_then(|id| edits.get(id));
                Some(SessionMessage {
                    entry,
                    message: edited(message, edit.copied())?,
                })
            })
            .collect()
    }

    fn kind(&self, entry: usize) -> &str {
        text_at(&self.entries[entry].1, "type").unwrap_or_default()
    }

    /// Puts messages behind entries of the current branch, each `(entry, messages)`; what came next there follows the
    /// last of them.
    pub(super) fn insert(&mut self, insertions: Vec<(usize, Vec<Value>)>) {
        let branch = self.branch();
        let next_of: HashMap<usize, usize> =
            branch.windows(2).map(|pair| (pair[0], pair[1])).collect();
        let mut ids = FreeIds::of(&self.entries);
        if ids.are_in_use() {
            // An entry without an id could not be followed.
            for (after, _) in &insertions {
                let entry = &mut self.entries[*after].1;
                if text_at(entry, "id").is_none() {
                    entry["id"] = ids.next().into();
                }
            }
        }
        let mut behind: HashMap<usize, Vec<(usize, Value)>> = HashMap::new();
        for (after, messages) in insertions.into_iter().rev() {
            let (line, entry) = &self.entries[after];
            let (line, timestamp) = (*line, entry.get("timestamp").cloned());
            let mut last = text_at(entry, "id").map(str::to_owned);
            let added = behind.entry(after).or_default();
            for message in messages {
                let id = last.as_ref().map(|_| ids.next());
                let entry = new_entry(id.as_deref(), last.as_deref(), timestamp.as_ref(), message);
                added.push((line, entry));
                last = id;
            }
            if let (Some(next), Some(last)) = (next_of.get(&after), last) {
                self.entries[*next].1["parentId"] = last.into();
            }
        }
        let entries = std::mem::take(&mut self.entries).into_iter().enumerate();
        self.entries = entries
            .flat_map(|(at, entry)| {
                let added = behind.remove(&at).unwrap_or_default();
                std::iter::once(entry).chain(added)
            })
            .collect();
    }

    /// Replaces the message of an entry.
    pub(super) fn set_message(&mut self, entry: usize, message: &Value) {
        let value = &mut self.entries[entry].1;
        let key = if text_at(value, "type") == Some("compaction") {
            "systemMessage"
        } else {
            "message"
        };
        if value[key] != *message {
            value[key] = message.clone();
        }
    }

    /// Takes entries out of the tree; what followed one follows what it followed. Their places stay, so that others
    /// keep theirs.
    pub(super) fn take_out(&mut self, taken: impl IntoIterator<Item = usize>) {
        let mut parents: HashMap<String, Value> = HashMap::new();
        for entry in taken {
            let taken = self.entries[entry].1.take();
            if let Some(id) = text_at(&taken, "id") {
                let parent = taken.get("parentId").cloned().unwrap_or_default();
                parents.insert(id.to_owned(), parent);
            }
        }
        let parent_of = |parent: &Value| parents.get(parent.as_str()?);
        for (_, entry) in &mut self.entries {
            let Some(parent) = entry.get("parentId").and_then(parent_of) else {
                continue;
            };
            // As many steps as there are entries at most, should they follow each other in a circle.
            let further = std::iter::successors(Some(parent), |parent| parent_of(parent));
            let kept = further.take(parents.len()).last().unwrap_or(parent).clone();
            entry["parentId"] = kept;
        }
    }

    /// The header and all entries.
    pub(super) fn into_values(self) -> Vec<Value> {
        let values = self.entries.into_iter().map(|(_, entry)| entry);
        values.filter(|entry| !entry.is_null()).collect()
    }
}

/// Ids that no entry has.
struct FreeIds {
    used: HashSet<String>,
    number: usize,
}

impl FreeIds {
    fn of(entries: &[(usize, Value)]) -> Self {
        let nodes = entries.iter().filter(|(_, entry)| !is_header(entry));
        let ids = nodes.filter_map(|(_, entry)| text_at(entry, "id"));
        Self {
            used: ids.map(str::to_owned).collect(),
            number: entries.len(),
        }
    }

    /// Whether entries have ids at all; those of the first version of session files have none.
    fn are_in_use(&self) -> bool {
        !self.used.is_empty()
    }

    fn next(&mut self) -> String {
        loop {
            let id = format!("{:08x}", self.number);
            self.number += 1;
            if !self.used.contains(&id) {
                return id;
            }
        }
    }
}

fn is_system(message: &Value) -> bool {
    text_at(message, "role") == Some("system")
}

/// A message after an edit of what the model sees: `None` when it was left out.
///
/// Results stay as they are: whether a call was answered does not depend on what the model still sees of the answer.
fn edited(message: &Value, edit: Option<&Value>) -> Option<Value> {
    let mut message = message.clone();
    match edit {
        Some(_) if text_at(&message, "role") == Some("toolResult") => {}
        None => {}
        Some(Value::Null) => return None,
        Some(replacement) => {
            if let Some(fields) = message.as_object_mut() {
                fields.insert("content".to_owned(), replacement.clone());
            }
        }
    }
    Some(message)
}

fn new_entry(
    id: Option<&str>,
    parent: Option<&str>,
    timestamp: Option<&Value>,
    message: Value,
) -> Value {
    let mut entry = Map::new();
    entry.insert("type".to_owned(), "message".into());
    if let Some(id) = id {
        entry.insert("id".to_owned(), id.into());
        entry.insert("parentId".to_owned(), parent.into());
    }
    entry.extend(timestamp.map(|timestamp| ("timestamp".to_owned(), timestamp.clone())));
    entry.insert("message".to_owned(), message);
    Value::Object(entry)
}

//! What has happened so far: the numbers and the open calls that progress rows and the summary show.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use pitool::event::Event;
use pitool::message::{ToolCall, ToolResult};
use serde_json::Value;

use super::usage::Usage;

/// How many characters of an update or of arguments are kept for a row; no terminal is wider.
const MAX_LATEST: usize = 500;

/// Counts of finished calls, and the calls that have started and not ended.
pub(crate) struct Tally {
    /// Calls that were announced, whether they have started or not.
    expected: usize,
    /// Calls that have ended.
    pub(crate) done: usize,
    /// Those of them that failed.
    pub(crate) errors: usize,
    /// What the tools spent, added up.
    pub(crate) usage: Usage,
    /// By the order of their starts, so the longest-running comes first.
    open: BTreeMap<u64, OpenCall>,
    /// Ids may repeat: all open calls of one, oldest first.
    by_id: HashMap<String, Vec<u64>>,
    next: u64,
    /// When something last happened.
    pub(crate) last_event: Instant,
}

/// A call that has started and not ended.
pub(crate) struct OpenCall {
    /// The tool's label for people, or its name.
    pub(crate) label: String,
    /// When it started.
    pub(crate) started: Instant,
    /// The last line of its latest update, or its arguments as long as there is none; unsanitised.
    pub(crate) latest: String,
    /// How far it says it is, from 0 to 1.
    pub(crate) fraction: Option<f64>,
}

impl Tally {
    /// Nothing has happened.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            expected: 0,
            done: 0,
            errors: 0,
            usage: Usage::default(),
            open: BTreeMap::new(),
            by_id: HashMap::new(),
            next: 0,
            last_event: now,
        }
    }

    /// Announces calls that will start.
    pub(crate) fn expect(&mut self, calls: usize) {
        self.expected += calls;
    }

    /// How many calls there are, as far as is known.
    pub(crate) fn total(&self) -> usize {
        self.expected.max(self.done + self.open.len())
    }

    /// The open calls, the longest-running first.
    pub(crate) fn open(&self) -> impl ExactSizeIterator<Item = &OpenCall> {
        self.open.values()
    }

    /// Takes in what happened. `label` is asked for a tool's label once per call.
    pub(crate) fn event(
        &mut self,
        event: Event<'_>,
        now: Instant,
        label: impl FnOnce(&str) -> Option<String>,
    ) {
        self.last_event = now;
        match event {
            Event::Start { call, .. } => self.start(call, now, label(&call.name)),
            Event::Update {
                call,
                partial_result,
            } => self.update(call, partial_result),
            Event::End {
                call,
                result,
                is_error,
                ..
            } => self.end(call, result, is_error),
            Event::MessageStart { .. } | Event::MessageEnd { .. } | Event::TurnEnd { .. } => {}
        }
    }

    fn start(&mut self, call: &ToolCall, now: Instant, label: Option<String>) {
        let open = OpenCall {
            label: label.unwrap_or_else(|| call.name.clone()),
            started: now,
            latest: arguments_text(&call.arguments),
            fraction: None,
        };
        self.open.insert(self.next, open);
        let same_id = self.by_id.entry(call.id.clone()).or_default();
        same_id.push(self.next);
        self.next += 1;
    }

    fn update(&mut self, call: &ToolCall, partial_result: &Value) {
        let number = self.by_id.get(&call.id).and_then(|same_id| same_id.first());
        let Some(open) = number.and_then(|number| self.open.get_mut(number)) else {
            return;
        };
        if let Some(line) = last_line(partial_result) {
            open.latest = line.chars().take(MAX_LATEST).collect();
        }
        if let Some(fraction) = fraction(partial_result) {
            open.fraction = Some(fraction);
        }
    }

    fn end(&mut self, call: &ToolCall, result: &ToolResult, is_error: bool) {
        self.close(&call.id);
        self.done += 1;
        self.errors += usize::from(is_error);
        if let Some(usage) = &result.usage {
            self.usage.add(usage);
        }
    }

    fn close(&mut self, id: &str) {
        let Some(same_id) = self.by_id.get_mut(id) else {
            return;
        };
        self.open.remove(&same_id.remove(0));
        if same_id.is_empty() {
            self.by_id.remove(id);
        }
    }
}

impl OpenCall {
    /// How long it has been open.
    pub(crate) fn elapsed(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }
}

/// The last line with something on it of an update's text, else its `details.message`.
fn last_line(partial_result: &Value) -> Option<&str> {
    let blocks = partial_result.get("content").and_then(Value::as_array);
    let text =
        blocks.and_then(|blocks| blocks.iter().rev().find_map(|block| block["text"].as_str()));
    let line = text.and_then(|text| {
        text.rsplit(['\n', '\r'])
            .find(|line| !line.trim().is_empty())
    });
    line.or_else(|| partial_result.pointer("/details/message")?.as_str())
}

/// `details.progress` of `details.total`.
fn fraction(partial_result: &Value) -> Option<f64> {
    let details = partial_result.get("details")?;
    let total = details
        .get("total")?
        .as_f64()
        .filter(|total| *total > 0.0)?;
    let progress = details.get("progress")?.as_f64()?;
    Some((progress / total).clamp(0.0, 1.0))
}

/// `path: a, depth: 3`: the beginning of it, enough for a row.
fn arguments_text(arguments: &Value) -> String {
    let Value::Object(arguments) = arguments else {
        return String::new();
    };
    let mut text = String::new();
    for (name, value) in arguments {
        if text.len() > MAX_LATEST {
            break;
        }
        let separator = if text.is_empty() { "" } else { ", " };
        text.extend([separator, name, ": "]);
        match value {
            Value::String(string) => text.extend(string.chars().take(MAX_LATEST)),
            Value::Array(items) => text.push_str(if items.is_empty() { "[]" } else { "[…]" }),
            Value::Object(_) => text.push_str("{…}"),
            scalar => text.push_str(&scalar.to_string()),
        }
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    pub(crate) fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
        ToolCall {
            id: id.into(),
            name: name.into(),
            arguments,
            arguments_error: None,
        }
    }

    pub(crate) fn start(tally: &mut Tally, call: &ToolCall, now: Instant) {
        let event = Event::Start {
            call,
            replayed: false,
        };
        tally.event(event, now, |_| None);
    }

    pub(crate) fn update(tally: &mut Tally, call: &ToolCall, partial_result: &Value) {
        let event = Event::Update {
            call,
            partial_result,
        };
        tally.event(event, Instant::now(), |_| None);
    }

    pub(crate) fn end(tally: &mut Tally, call: &ToolCall, is_error: bool, usage: Option<Value>) {
        let result = ToolResult {
            usage,
            ..ToolResult::default()
        };
        let event = Event::End {
            call,
            result: &result,
            is_error,
            duration_ms: None,
            replayed: false,
        };
        tally.event(event, Instant::now(), |_| None);
    }

    fn open(tally: &Tally) -> Vec<&str> {
        tally.open().map(|call| call.latest.as_str()).collect()
    }

    #[test]
    fn calls_of_one_id_end_one_by_one() {
        let now = Instant::now();
        let mut tally = Tally::new(now);
        let (a, b) = (
            call("x", "t", json!({"n": 1})),
            call("x", "t", json!({"n": 2})),
        );
        start(&mut tally, &a, now);
        start(&mut tally, &b, now);
        assert_eq!(open(&tally), ["n: 1", "n: 2"]);
        end(&mut tally, &a, false, Some(json!({"input": 2})));
        end(&mut tally, &b, true, Some(json!({"input": 3})));
        assert_eq!((tally.done, tally.errors, tally.total()), (2, 1, 2));
        assert_eq!(tally.open().len(), 0);
        assert_eq!(tally.usage.to_string(), "input 5");
    }

    #[test]
    fn the_latest_line_and_fraction_are_kept() {
        let now = Instant::now();
        let mut tally = Tally::new(now);
        let call = call(
            "x",
            "t",
            json!({"path": "a", "all": [1], "o": {}, "n": null}),
        );
        start(&mut tally, &call, now);
        assert_eq!(open(&tally), ["path: a, all: […], o: {…}, n: null"]);
        let partial = json!({"content": [{"type": "text", "text": "one\ntwo\n\n"}]});
        update(&mut tally, &call, &partial);
        assert_eq!(open(&tally), ["two"]);
        update(
            &mut tally,
            &call,
            &json!({"details": {"progress": 3, "total": 12, "message": "three"}}),
        );
        assert_eq!(open(&tally), ["three"]);
        assert_eq!(tally.open().next().unwrap().fraction, Some(0.25));
        update(
            &mut tally,
            &call,
            &json!({"details": {"progress": 3, "total": 0}}),
        );
        assert_eq!(tally.open().next().unwrap().fraction, Some(0.25));
    }

    #[test]
    fn announced_calls_count_before_they_start() {
        let now = Instant::now();
        let mut tally = Tally::new(now);
        tally.expect(3);
        start(&mut tally, &call("x", "t", json!({})), now);
        assert_eq!(tally.total(), 3);
    }
}

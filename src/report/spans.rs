//! What ran when, read back from recorded events.

use std::collections::HashMap;

use serde_json::Value;

/// How many characters of an error's text are kept.
const MAX_REASON: usize = 200;

/// One call on the time axis. Times are milliseconds since the start of the run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Span {
    /// The call's id.
    pub(crate) id: String,
    /// The tool that was asked for.
    pub(crate) name: String,
    /// Which batch of the run it belongs to, from 0.
    pub(crate) batch: usize,
    /// When it started, before lookup, validation and hooks.
    pub(crate) start: f64,
    /// When it was ready: what lies between is preparation and before hooks.
    pub(crate) ready: f64,
    /// When `execute` began, if it did: what lies between is waiting for other calls, a slot or a file.
    /// Events tell how long `execute` took and when the call ended, which is after the after hooks: see
    /// [`place_runs`].
    pub(crate) run: Option<f64>,
    /// When `execute` was done, if it ran to its end: what lies between it and the end is after hooks.
    pub(crate) done: Option<f64>,
    /// When it ended; none if the recording stops before.
    pub(crate) end: Option<f64>,
    /// When it reported updates.
    pub(crate) updates: Vec<f64>,
    /// The first line of the error's text, if it failed.
    pub(crate) error: Option<String>,
    /// Whether a journal answered it.
    pub(crate) is_replayed: bool,
}

impl Span {
    /// When the call began to run; one that has not ended runs since its first update, or since it was ready.
    pub(crate) fn began(&self) -> Option<f64> {
        match self.end {
            Some(_) => self.run,
            None => Some(self.updates.first().copied().unwrap_or(self.ready)),
        }
    }

    /// When it stopped running; `until` if it did not.
    pub(crate) fn stopped(&self, until: f64) -> f64 {
        self.done.or(self.end).unwrap_or(until)
    }

    /// The latest that its run can have begun: so long before its end, and before its first update.
    fn latest_run(&self) -> Option<f64> {
        let first_update = self.updates.first().copied().unwrap_or(f64::INFINITY);
        Some(self.run?.min(first_update).max(self.start))
    }
}

/// A recording, event by event.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    spans: Vec<Span>,
    /// Ids may repeat: the open spans of each, oldest first.
    open: HashMap<String, Vec<usize>>,
    batch: usize,
    /// Where the spans of the current batch begin.
    batch_begin: usize,
    latest: f64,
}

impl Recording {
    /// Takes in one event. False if the value is none.
    pub(crate) fn event(&mut self, event: &Value) -> bool {
        let Some(at) = event.get("atMs").and_then(Value::as_f64) else {
            return false;
        };
        self.latest = self.latest.max(at);
        match event.get("type").and_then(Value::as_str) {
            Some("tool_execution_start") => self.start(event, at),
            Some("tool_execution_update") => self.update(event, at),
            Some("tool_execution_end") => self.end(event, at),
            Some("turn_end") => self.end_batch(),
            Some("message_start" | "message_end") => {}
            _ => return false,
        }
        true
    }

    /// The calls in the order of their starts, and the time of the last event.
    pub(crate) fn finish(mut self) -> (Vec<Span>, f64) {
        self.end_batch();
        (self.spans, self.latest)
    }

    fn start(&mut self, event: &Value, at: f64) {
        let id = text(event, "toolCallId");
        self.open
            .entry(id.clone())
            .or_default()
            .push(self.spans.len());
        self.spans.push(Span {
            id,
            name: text(event, "toolName"),
            batch: self.batch,
            start: at,
            ready: at,
            run: None,
            done: None,
            end: None,
            updates: Vec::new(),
            error: None,
            is_replayed: event.get("replayed") == Some(&Value::Bool(true)),
        });
    }

    fn update(&mut self, event: &Value, at: f64) {
        let same_id = self.open.get(&text(event, "toolCallId"));
        if let Some(index) = same_id.and_then(|same_id| same_id.first()) {
            self.spans[*index].updates.push(at);
        }
    }

    fn end(&mut self, event: &Value, at: f64) {
        let Some(same_id) = self.open.get_mut(&text(event, "toolCallId")) else {
            return;
        };
        if same_id.is_empty() {
            return;
        }
        let span = &mut self.spans[same_id.remove(0)];
        span.end = Some(at);
        let duration = event.get("durationMs").and_then(Value::as_f64);
        span.run = duration.map(|duration| (at - duration).clamp(span.start, at));
        span.done = span.run.map(|_| at);
        if event.get("isError") == Some(&Value::Bool(true)) {
            span.error = Some(reason(event));
        }
    }

    /// Calls are prepared one after another and then run: a call is ready when the next one of its batch starts,
    /// at the latest when any of them runs.
    fn end_batch(&mut self) {
        let spans = &mut self.spans[self.batch_begin..];
        place_runs(spans);
        let mut runs: Vec<f64> = spans.iter().filter_map(|span| span.run).collect();
        runs.sort_by(f64::total_cmp);
        let mut next_start = f64::INFINITY;
        for span in spans.iter_mut().rev() {
            let next_run = runs.get(runs.partition_point(|run| *run < span.start));
            let begins = span.run.or(span.updates.first().copied());
            let ends = begins.or(span.end).unwrap_or(self.latest);
            let ready = next_start
                .min(*next_run.unwrap_or(&f64::INFINITY))
                .min(ends);
            span.ready = ready.max(span.start);
            next_start = span.start;
        }
        self.open.clear();
        self.batch_begin = self.spans.len();
        self.batch += 1;
    }
}

/// Recorded times are whole milliseconds, and starting takes a moment.
const SLACK: f64 = 3.0;

/// Finds the place of each run, which the calls so far have as late as it can be.
///
/// A run begins when the first of its batch does, unless it waited, and then it begins when another run makes room for
/// it. So it is put at the latest of these moments that leave it time before its first update; what is left between
/// its end and that of the call is after hooks. A call that is alone leaves no such trace, and its hooks stay before it.
fn place_runs(spans: &mut [Span]) {
    let mut order: Vec<(f64, usize)> = spans
        .iter()
        .enumerate()
        .filter_map(|(index, span)| Some((span.latest_run()?, index)))
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut moments: Vec<f64> = order.first().map(|(first, _)| *first).into_iter().collect();
    for (latest, index) in order {
        let span = &mut spans[index];
        let (Some(run), Some(end)) = (span.run, span.end) else {
            continue;
        };
        let before = moments.partition_point(|moment| *moment <= latest);
        let cause = moments[..before].last().copied().unwrap_or(latest);
        let began = if latest - cause <= SLACK {
            latest
        } else {
            cause.max(span.start)
        };
        span.run = Some(began);
        let done = (began + end - run).min(end);
        span.done = Some(done);
        let at = moments.partition_point(|moment| *moment <= done);
        moments.insert(at, done);
    }
}

fn text(event: &Value, field: &str) -> String {
    event[field].as_str().unwrap_or_default().to_owned()
}

fn reason(event: &Value) -> String {
    let text = event
        .pointer("/result/content/0/text")
        .and_then(Value::as_str);
    let line = text.and_then(|text| text.lines().find(|line| !line.trim().is_empty()));
    line.unwrap_or("error").chars().take(MAX_REASON).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn start(id: &str, at: u64) -> Value {
        json!({"type": "tool_execution_start", "toolCallId": id, "toolName": "t", "args": {}, "atMs": at})
    }

    fn end(id: &str, at: u64, duration: Option<u64>, is_error: bool) -> Value {
        let mut event = json!({"type": "tool_execution_end", "toolCallId": id, "toolName": "t", "isError": is_error,
            "result": {"content": [{"type": "text", "text": "\nboom\nmore"}]}, "atMs": at});
        if let Some(duration) = duration {
            event["durationMs"] = json!(duration);
        }
        event
    }

    fn read(events: &[Value]) -> Vec<Span> {
        let mut recording = Recording::default();
        for event in events {
            assert!(recording.event(event), "{event}");
        }
        recording.finish().0
    }

    #[test]
    fn a_call_is_prepared_then_waits_then_runs() {
        let spans = read(&[
            start("a", 0),
            start("b", 20),
            json!({"type": "tool_execution_update", "toolCallId": "a", "atMs": 60}),
            end("a", 100, Some(50), false),
            end("b", 200, Some(100), true),
        ]);
        assert_eq!(
            (spans[0].start, spans[0].ready, spans[0].run, spans[0].end),
            (0.0, 20.0, Some(50.0), Some(100.0))
        );
        assert_eq!(spans[0].updates, [60.0]);
        assert_eq!((spans[1].ready, spans[1].run), (50.0, Some(100.0)));
        assert_eq!(spans[1].error.as_deref(), Some("boom"));
    }

    #[test]
    fn what_an_after_hook_took_is_behind_the_run() {
        let runs = |events: &[Value]| -> Vec<(Option<f64>, Option<f64>)> {
            let spans = read(events);
            spans.iter().map(|span| (span.run, span.done)).collect()
        };
        // Another call shows when the batch began to run.
        let events = [
            start("a", 0),
            start("b", 1),
            end("a", 100, Some(90), false),
            end("b", 600, Some(90), false),
        ];
        assert_eq!(
            runs(&events),
            [(Some(10.0), Some(100.0)), (Some(100.0), Some(190.0))]
        );
        // An update is during the run.
        let update =
            |at: u64| json!({"type": "tool_execution_update", "toolCallId": "a", "atMs": at});
        let events = [start("a", 0), update(20), end("a", 500, Some(50), false)];
        assert_eq!(runs(&events), [(Some(20.0), Some(70.0))]);
        // A wait for room is a wait.
        let events = [
            start("a", 0),
            start("b", 1),
            end("a", 100, Some(90), false),
            end("b", 192, Some(90), false),
        ];
        assert_eq!(runs(&events)[1], (Some(102.0), Some(192.0)));
    }

    #[test]
    fn calls_of_one_id_are_told_apart_by_order() {
        let spans = read(&[
            start("x", 0),
            start("x", 1),
            end("x", 5, Some(2), false),
            end("x", 9, Some(2), false),
        ]);
        assert_eq!((spans[0].end, spans[1].end), (Some(5.0), Some(9.0)));
    }

    #[test]
    fn an_interrupted_recording_leaves_calls_open() {
        let turn_end = json!({"type": "turn_end", "atMs": 3});
        let spans = read(&[
            start("a", 0),
            end("a", 2, None, true),
            turn_end,
            start("b", 5),
        ]);
        assert_eq!((spans[0].batch, spans[1].batch), (0, 1));
        assert_eq!((spans[0].run, spans[1].end), (None, None));
    }

    #[test]
    fn other_values_are_no_events() {
        let mut recording = Recording::default();
        assert!(!recording.event(&json!({"role": "toolResult"})));
        assert!(!recording.event(&json!({"type": "text", "atMs": 1})));
        assert!(recording.finish().0.is_empty());
    }
}

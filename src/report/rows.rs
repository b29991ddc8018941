//! What progress looks like: the rows on a terminal, the line of an ended call elsewhere, the summary. Pure text.

use std::time::{Duration, Instant};

use super::style::Styles;
use super::tally::{OpenCall, Tally};
use super::{sanitize, text};

/// How many running calls have a row of their own.
const MAX_CALLS: usize = 8;
/// A call that is younger has no row: most end before anybody could read it.
pub(crate) const MIN_AGE: Duration = Duration::from_millis(250);
/// The widest label column.
const MAX_LABEL: usize = 24;

/// The size of the terminal, in characters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Characters on a line.
    pub(crate) columns: usize,
    /// Lines.
    pub(crate) lines: usize,
}

/// One row per longest-running call, then the row of the whole run. Never more than the terminal has, less one for the
/// cursor, and none wider.
pub(crate) fn rows(
    tally: &Tally,
    run: Duration,
    now: Instant,
    size: Size,
    styles: &Styles,
) -> Vec<String> {
    let room = size.lines.saturating_sub(2).min(MAX_CALLS);
    let shown: Vec<&OpenCall> = tally
        .open()
        .take(room)
        .filter(|call| call.elapsed(now) >= MIN_AGE)
        .collect();
    let columns = size.columns.saturating_sub(1);
    let labels: Vec<_> = shown.iter().map(|call| label(call, columns)).collect();
    let label_columns = labels.iter().map(|label| text::width(label)).max();
    let mut rows: Vec<String> = shown
        .iter()
        .zip(&labels)
        .map(|(call, label)| {
            let label = text::pad(label, label_columns.unwrap_or(0));
            call_row(call, &label, now, columns, styles)
        })
        .collect();
    rows.push(total_row(tally, shown.len(), run, columns, styles));
    rows
}

/// `5 calls, 1 error, 1.2s, usage: input 120`.
pub(crate) fn summary(tally: &Tally, run: Duration, styles: &Styles) -> String {
    let errors = text::count(tally.errors, "error");
    let errors = if tally.errors > 0 {
        styles.error.paint(errors)
    } else {
        styles.success.paint(errors)
    };
    let mut line = format!(
        "{}, {errors}, {}",
        text::count(tally.done, "call"),
        text::duration(run)
    );
    if !tally.usage.is_empty() {
        let usage = tally.usage.to_string();
        line.push_str(&format!(", usage: {}", sanitize::one_line(&usage)));
    }
    line
}

/// The line of an ended call where no rows can be drawn: `echo call-1 ok 12ms`.
pub(crate) fn ended(
    label: &str,
    id: &str,
    is_error: bool,
    time: Option<Duration>,
    styles: &Styles,
) -> String {
    let verdict = if is_error {
        styles.error.paint("error")
    } else {
        styles.success.paint("ok")
    };
    let label = sanitize::one_line(label);
    let id = sanitize::one_line(id);
    let mut line = format!("{} {id} {verdict}", styles.tool.paint(label));
    if let Some(time) = time {
        line.push_str(&format!(" {}", styles.dim.paint(text::duration(time))));
    }
    line
}

fn label(call: &OpenCall, columns: usize) -> String {
    let safe = sanitize::one_line(&call.label);
    text::truncate(&safe, MAX_LABEL.min(columns / 3)).into_owned()
}

fn call_row(call: &OpenCall, label: &str, now: Instant, columns: usize, styles: &Styles) -> String {
    let time = format!("{:>6}", text::duration(call.elapsed(now)));
    if columns < 24 {
        return text::truncate(&format!("{label} {time}"), columns).into_owned();
    }
    let mut used = text::width(label) + 2 + time.len();
    let mut row = format!("{} {}", styles.tool.paint(label), styles.dim.paint(time));
    if let Some(fraction) = call.fraction {
        let bar_columns = if columns >= 60 { 20 } else { 10 };
        if used + bar_columns + 6 <= columns {
            row.push_str(&format!(" {}", bar(fraction, bar_columns, styles)));
            used += bar_columns + 6;
        }
    }
    let latest = sanitize::one_line(call.latest.trim());
    let latest = text::truncate(&latest, columns.saturating_sub(used));
    if !latest.is_empty() {
        row.push_str(&format!(" {latest}"));
    }
    row
}

/// `━━━━━─────  50%`, five characters wider than the bar.
fn bar(fraction: f64, columns: usize, styles: &Styles) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a fraction of 0 to 1 of a few columns"
    )]
    let share = |whole: usize| ((fraction * whole as f64) as usize).min(whole);
    let filled = share(columns);
    format!(
        "{}{} {:>3}%",
        styles.success.paint("━".repeat(filled)),
        styles.dim.paint("─".repeat(columns - filled)),
        share(100)
    )
}

fn total_row(
    tally: &Tally,
    shown: usize,
    run: Duration,
    columns: usize,
    styles: &Styles,
) -> String {
    let done = format!(
        "{} of {} done",
        tally.done,
        text::count(tally.total(), "call")
    );
    let errors = text::count(tally.errors, "error");
    let more = tally.open().len() - shown;
    let mut rest = format!(", {}", text::duration(run));
    if more > 0 {
        rest.push_str(&format!(", {more} more running or waiting"));
    }
    if tally.errors == 0 {
        return text::truncate(&format!("{done}{rest}"), columns).into_owned();
    }
    let plain = format!("{done}, {errors}{rest}");
    if text::width(&plain) > columns {
        return text::truncate(&plain, columns).into_owned();
    }
    format!("{done}, {}{rest}", styles.error.paint(errors))
}

#[cfg(test)]
mod tests {
    use pitool::message::ToolCall;
    use serde_json::json;

    use super::super::tally::tests::{call, end, start, update};
    use super::*;

    const SMALL: Size = Size {
        columns: 80,
        lines: 24,
    };

    fn calls(count: usize) -> Vec<ToolCall> {
        (0..count)
            .map(|n| call(&format!("call-{n}"), "search_text", json!({"n": n})))
            .collect()
    }

    fn started(calls: &[ToolCall], now: Instant) -> Tally {
        let mut tally = Tally::new(now);
        tally.expect(calls.len());
        for call in calls {
            start(&mut tally, call, now);
        }
        tally
    }

    fn draw(tally: &Tally, began: Instant, millis: u64, size: Size) -> Vec<String> {
        let run = Duration::from_millis(millis);
        rows(tally, run, began + run, size, &Styles::default())
    }

    #[test]
    fn each_running_call_has_a_row() {
        let began = Instant::now();
        let calls = [
            call("a", "long_task", json!({"steps": 3})),
            call("b", "grep", json!({"q": "x"})),
            call("c", "echo", json!({})),
        ];
        let mut tally = started(&calls, began);
        update(
            &mut tally,
            &calls[0],
            &json!({"content": [{"type": "text", "text": "half \u{1b}[2Jway"}], "details": {"progress": 1, "total": 2}}),
        );
        end(&mut tally, &calls[2], true, None);
        assert_eq!(
            draw(&tally, began, 1500, SMALL),
            [
                "long_task   1.5s ━━━━━━━━━━──────────  50% half \\x1b[2Jway",
                "grep        1.5s q: x",
                "1 of 3 calls done, 1 error, 1.5s",
            ]
        );
    }

    #[test]
    fn rows_are_few_however_many_calls_run() {
        let began = Instant::now();
        let tally = started(&calls(200), began);
        let drawn = draw(&tally, began, 61_000, SMALL);
        assert_eq!(drawn.len(), MAX_CALLS + 1);
        assert_eq!(drawn[0], "search_text  1m01s n: 0");
        assert_eq!(
            drawn[MAX_CALLS],
            "0 of 200 calls done, 1m01s, 192 more running or waiting"
        );
    }

    #[test]
    fn rows_never_leave_the_terminal() {
        let began = Instant::now();
        let wide = json!({"text": "漢字".repeat(200)});
        let calls: Vec<ToolCall> = (0..20)
            .map(|n| call(&n.to_string(), &"long name ".repeat(9), wide.clone()))
            .collect();
        let mut tally = started(&calls, began);
        update(
            &mut tally,
            &calls[1],
            &json!({"details": {"progress": 1, "total": 2}}),
        );
        for (columns, lines) in [(80, 24), (20, 3), (10, 2), (1, 1), (200, 50)] {
            let drawn = draw(&tally, began, 1000, Size { columns, lines });
            assert!(drawn.len() <= lines.max(1), "{lines}: {drawn:?}");
            for row in &drawn {
                assert!(text::width(row) < columns, "{columns}: {row}");
            }
        }
    }

    #[test]
    fn young_calls_have_no_row() {
        let began = Instant::now();
        let tally = started(&calls(2), began);
        assert_eq!(
            draw(&tally, began, 249, SMALL),
            ["0 of 2 calls done, 249ms, 2 more running or waiting"]
        );
    }

    #[test]
    fn the_summary_adds_up() {
        let began = Instant::now();
        let calls = calls(2);
        let mut tally = started(&calls, began);
        end(
            &mut tally,
            &calls[0],
            false,
            Some(json!({"input": 1, "a\u{1b}": 2})),
        );
        end(&mut tally, &calls[1], true, Some(json!({"input": 2})));
        let run = Duration::from_millis(1234);
        assert_eq!(
            summary(&tally, run, &Styles::default()),
            "2 calls, 1 error, 1.2s, usage: input 3, a\\x1b 2"
        );
        let none = Tally::new(began);
        assert_eq!(
            summary(&none, Duration::ZERO, &Styles::default()),
            "0 calls, 0 errors, 0ms"
        );
    }

    #[test]
    fn an_ended_call_is_a_line() {
        let time = Some(Duration::from_millis(12));
        let plain = Styles::default();
        assert_eq!(
            ended("Echo", "c\u{7}", false, time, &plain),
            "Echo c\\x07 ok 12ms"
        );
        assert_eq!(ended("Echo", "c", true, None, &plain), "Echo c error");
    }
}

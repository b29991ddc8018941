//! A recording as a picture: one row per call on a time axis, as SVG.
//!
//! Colours follow the reader's light or dark scheme. Everything that the picture tells by colour, the tooltip of the row
//! tells in words.

use std::fmt::Write as _;
use std::time::Duration;

use super::spans::Span;
use super::{sanitize, text};

/// Width of the picture.
const WIDTH: f64 = 1200.0;
/// Where the time axis begins; names stand before it.
const LEFT: f64 = 252.0;
/// Where it ends; durations may stand behind it.
const RIGHT: f64 = 1120.0;
/// How many columns of a name are shown.
const NAME: usize = 20;
/// How many columns of an id are shown: the last ones, by which ids differ.
const ID: usize = 9;
/// Height of title and legend.
const HEAD: f64 = 64.0;
/// Height of the picture of how many calls ran at once.
const OVERVIEW: f64 = 48.0;
/// How often the time is written again in a long picture.
const ROWS_PER_AXIS: usize = 50;

/// Draws the calls; `until` is the time of the last event, in milliseconds.
pub(crate) fn svg(spans: &[Span], until: f64) -> String {
    let picture = Picture::new(spans, until);
    let mut svg = picture.head();
    picture.overview(&mut svg);
    picture.grid(&mut svg);
    for (index, span) in spans.iter().enumerate() {
        picture.row(&mut svg, index, span);
    }
    svg.push_str("</svg>\n");
    svg
}

struct Picture<'a> {
    spans: &'a [Span],
    until: f64,
    row_height: f64,
    font: f64,
}

impl<'a> Picture<'a> {
    fn new(spans: &'a [Span], until: f64) -> Self {
        let (row_height, font) = match spans.len() {
            0..=60 => (22.0, 12.0),
            61..=300 => (16.0, 11.0),
            _ => (12.0, 9.0),
        };
        Self {
            spans,
            until: until.max(1.0),
            row_height,
            font,
        }
    }

    fn x(&self, at: f64) -> f64 {
        LEFT + (at / self.until).clamp(0.0, 1.0) * (RIGHT - LEFT)
    }

    /// The top of a row. Every so often a line is left free for the times.
    fn y(&self, index: usize) -> f64 {
        let axes = index / ROWS_PER_AXIS + 1;
        #[expect(clippy::cast_precision_loss, reason = "rows of a picture")]
        let (rows, axes) = (index as f64, axes as f64);
        HEAD + OVERVIEW + axes * 22.0 + rows * self.row_height
    }

    fn bottom(&self) -> f64 {
        self.y(self.spans.len().saturating_sub(1)) + self.row_height + 12.0
    }

    fn head(&self) -> String {
        let failed = self
            .spans
            .iter()
            .filter(|span| span.error.is_some())
            .count();
        let title = format!(
            "{}, {}, {}",
            text::count(self.spans.len(), "call"),
            text::count(failed, "error"),
            time(self.until)
        );
        let height = self.bottom();
        let mut head = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" font-size=\"{}\">\n<title>{title}</title>\n{STYLE}<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n<text class=\"title\" x=\"16\" y=\"28\">{title}</text>\n",
            self.font
        );
        legend(&mut head);
        head
    }

    /// How many calls ran at once, over the whole run; errors as marks below.
    fn overview(&self, svg: &mut String) {
        let counts = self.counts();
        let most = self.most_at_once();
        let base = HEAD + OVERVIEW - 8.0;
        #[expect(clippy::cast_precision_loss, reason = "columns of a picture")]
        let points: String =
            counts
                .iter()
                .enumerate()
                .fold(String::new(), |mut points, (column, count)| {
                    let x = LEFT + column as f64;
                    let y = base - (*count as f64 / most as f64).min(1.0) * (OVERVIEW - 16.0);
                    let _ = write!(points, "L{x} {y:.1}");
                    points
                });
        writeln!(
            svg,
            "<path class=\"load\" d=\"M{LEFT} {base}{points}L{RIGHT} {base}Z\"><title>at most {most} running at once</title></path>\n<text class=\"note\" x=\"16\" y=\"{:.1}\">at most {most} at once</text>",
            base - 8.0
        )
        .expect("a string takes every write");
        let mut marks = String::new();
        for span in self.spans.iter().filter(|span| span.error.is_some()) {
            let x = self.x(span.end.unwrap_or(self.until));
            let _ = write!(marks, "M{x:.1} {base}v6");
        }
        if !marks.is_empty() {
            writeln!(svg, "<path class=\"failure\" d=\"{marks}\"/>")
                .expect("a string takes every write");
        }
    }

    /// The most calls that ran at one time. One that ends when another begins makes room for it; recorded times are
    /// whole milliseconds, so that much is no overlap.
    fn most_at_once(&self) -> i64 {
        let mut changes: Vec<(f64, i64)> = Vec::new();
        for span in self.spans {
            if let Some(run) = span.began() {
                changes.push((run, 1));
                let end = span.stopped(self.until) - 1.0;
                changes.push((end.max(run + 0.1), -1));
            }
        }
        changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let running = changes.iter().scan(0, |running, (_, change)| {
            *running += change;
            Some(*running)
        });
        running.max().unwrap_or(0).max(1)
    }

    /// How many calls run in each column of the axis.
    fn counts(&self) -> Vec<i64> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "columns of a picture"
        )]
        let column = |at: f64| (self.x(at) - LEFT) as usize;
        let mut changes = vec![0_i64; column(self.until) + 2];
        for span in self.spans {
            if let Some(run) = span.began() {
                let first = column(run);
                changes[first] += 1;
                changes[column(span.stopped(self.until)).max(first + 1)] -= 1;
            }
        }
        let mut running = 0;
        changes.pop();
        for change in &mut changes {
            running += *change;
            *change = running;
        }
        changes
    }

    /// Lines at round times, with the times above every so many rows.
    fn grid(&self, svg: &mut String) {
        let step = round_step(self.until);
        let top = HEAD + OVERVIEW;
        let mut lines = String::new();
        let mut at = 0.0;
        while at <= self.until {
            let x = self.x(at);
            let _ = write!(
                lines,
                "M{x:.1} {:.1}V{:.1}",
                top + 20.0,
                self.bottom() - 8.0
            );
            for index in (0..self.spans.len().max(1)).step_by(ROWS_PER_AXIS) {
                let y = self.y(index) - 7.0;
                let _ = writeln!(
                    svg,
                    "<text class=\"note\" text-anchor=\"middle\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
                    time(at)
                );
            }
            at += step;
        }
        let _ = writeln!(svg, "<path class=\"grid\" d=\"{lines}\"/>");
    }

    fn row(&self, svg: &mut String, index: usize, span: &Span) {
        let y = self.y(index);
        let end = span.end.unwrap_or(self.until);
        let run = span.began();
        let kind = kind(span);
        let _ = write!(
            svg,
            "<g class=\"{kind}\"><title>{}</title>",
            self.words(span)
        );
        let _ = write!(
            svg,
            "<rect class=\"hit\" y=\"{y:.1}\" width=\"{WIDTH}\" height=\"{:.1}\"/>",
            self.row_height
        );
        self.name(svg, span, y);
        self.bar(svg, "prepare", span.start, span.ready.min(end), y);
        self.bar(svg, "wait", span.ready, run.unwrap_or(end), y);
        match run {
            Some(run) => {
                let done = span.stopped(self.until);
                self.bar(svg, "run", run, done, y);
                self.bar(svg, "prepare", done, end, y);
            }
            None => self.bar(svg, "run", end, end, y),
        }
        self.ticks(svg, &span.updates, y);
        let took = span.stopped(self.until) - run.unwrap_or(span.start);
        self.duration(svg, span, took, y);
        svg.push_str("</g>\n");
    }

    fn name(&self, svg: &mut String, span: &Span, y: f64) {
        let name = sanitize::one_line(&span.name);
        let name = sanitize::xml(&text::truncate(&name, NAME));
        let id = sanitize::one_line(&span.id);
        let id = sanitize::xml(&text::truncate_front(&id, ID));
        let baseline = y + self.row_height / 2.0 + self.font * 0.35;
        let _ = write!(
            svg,
            "<text x=\"16\" y=\"{baseline:.1}\">{name}</text><text class=\"note\" text-anchor=\"end\" x=\"{}\" y=\"{baseline:.1}\">{id}</text>",
            LEFT - 8.0
        );
    }

    /// A part of a call. What ran is at least visible; waits that round to nothing are left out.
    fn bar(&self, svg: &mut String, class: &str, from: f64, to: f64, y: f64) {
        let width = self.x(to) - self.x(from);
        let (inset, least) = if class == "run" {
            (0.2, 1.5)
        } else {
            (0.38, 0.0)
        };
        if width < 0.25 && least == 0.0 {
            return;
        }
        let _ = write!(
            svg,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            self.x(from),
            y + self.row_height * inset,
            width.max(least),
            self.row_height * (1.0 - 2.0 * inset)
        );
    }

    /// Updates, at most one mark per column.
    fn ticks(&self, svg: &mut String, updates: &[f64], y: f64) {
        let mut marks = String::new();
        let mut last = f64::NEG_INFINITY;
        for at in updates {
            let x = self.x(*at);
            if x - last >= 2.0 {
                let _ = write!(
                    marks,
                    "M{x:.1} {:.1}v{:.1}",
                    y + self.row_height * 0.2,
                    self.row_height * 0.6
                );
                last = x;
            }
        }
        if !marks.is_empty() {
            let _ = write!(svg, "<path class=\"tick\" d=\"{marks}\"/>");
        }
    }

    fn duration(&self, svg: &mut String, span: &Span, took: f64, y: f64) {
        let baseline = y + self.row_height / 2.0 + self.font * 0.35;
        let x = self.x(span.end.unwrap_or(self.until)) + 5.0;
        let words = match (span.end, span.run) {
            (None, _) => "not ended".to_owned(),
            (Some(_), None) => "not run".to_owned(),
            (Some(_), Some(_)) => time(took),
        };
        let _ = write!(
            svg,
            "<text class=\"took\" x=\"{x:.1}\" y=\"{baseline:.1}\">{words}</text>"
        );
    }

    /// The row in words.
    fn words(&self, span: &Span) -> String {
        let mut words = format!("{} {}\nstarted at {}", span.name, span.id, time(span.start));
        let end = span.end.unwrap_or(self.until);
        let run = span.began().unwrap_or(end);
        let _ = write!(words, "\nprepared in {}", time(span.ready - span.start));
        let _ = write!(words, "\nwaited {}", time(run - span.ready));
        match (span.end, span.run) {
            (None, _) => words.push_str("\ndid not end"),
            (Some(_), None) => words.push_str("\ndid not run"),
            (Some(end), Some(run)) => {
                let done = span.stopped(self.until);
                let _ = write!(words, "\nran {}", time(done - run));
                if end - done >= 1.0 {
                    let _ = write!(words, "\nafter hooks took {}", time(end - done));
                }
            }
        }
        if !span.updates.is_empty() {
            let _ = write!(words, "\n{}", text::count(span.updates.len(), "update"));
        }
        if let Some(error) = &span.error {
            let _ = write!(words, "\nerror: {error}");
        }
        if span.is_replayed {
            words.push_str("\nanswered from the journal");
        }
        sanitize::xml(&words)
    }
}

fn kind(span: &Span) -> &'static str {
    match span {
        Span { error: Some(_), .. } => "failed",
        Span { end: None, .. } => "open",
        Span {
            is_replayed: true, ..
        } => "replayed",
        _ => "good",
    }
}

fn legend(svg: &mut String) {
    let entries = [
        ("prepare", "preparation and hooks"),
        ("wait", "waiting"),
        ("run", "running"),
        ("failure", "error"),
        ("tick", "update"),
    ];
    let mut x = 16.0;
    for (class, words) in entries {
        let mark = match class {
            "failure" => format!(
                "<g class=\"failed\"><rect class=\"run\" x=\"{x}\" y=\"41\" width=\"14\" height=\"10\"/></g>"
            ),
            "tick" => format!(
                "<g class=\"good\"><rect class=\"run\" x=\"{x}\" y=\"41\" width=\"14\" height=\"10\"/><path class=\"tick\" d=\"M{} 41v10M{} 41v10\"/></g>",
                x + 5.0,
                x + 9.0
            ),
            _ => format!(
                "<g class=\"good\"><rect class=\"{class}\" x=\"{x}\" y=\"41\" width=\"14\" height=\"10\"/></g>"
            ),
        };
        let _ = writeln!(
            svg,
            "{mark}<text class=\"note\" font-size=\"12\" x=\"{}\" y=\"50\">{words}</text>",
            x + 20.0
        );
        #[expect(clippy::cast_precision_loss, reason = "a few letters")]
        let letters = words.len() as f64;
        x += 44.0 + letters * 6.2;
    }
}

/// A step of 1, 2 or 5 times a power of ten that gives at most ten lines.
fn round_step(until: f64) -> f64 {
    let rough = until / 8.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|step| step * power >= rough);
    (step.unwrap_or(10.0) * power).max(1.0)
}

fn time(millis: f64) -> String {
    text::duration(Duration::from_secs_f64((millis / 1000.0).max(0.0)))
}

/// Colours stand in every rule: not every viewer of pictures knows variables.
const STYLE: &str = "<style>
:root { color-scheme: light dark; }
svg { font-family: system-ui, -apple-system, \"Segoe UI\", sans-serif; }
.title { font-size: 18px; font-weight: 600; } .hit { fill: transparent; } .grid, .tick, .failure { fill: none; }
.page { fill: #ffffff; } text { fill: #1f2328; } .note, .took { fill: #656d76; } .grid { stroke: #e4e7eb; } g:hover > .hit { fill: #e4e7eb; }
.load { fill: #b6d4fb; } .prepare { fill: #d4a72c; } .wait { fill: #c8ccd1; } .run { fill: #2f81f7; } .tick { stroke: #ffffff; }
.replayed .run { fill: #8b949e; } .failed .run, .failed .took { fill: #d1242f; } .failure { stroke: #d1242f; }
.open .run { fill: none; stroke: #d1242f; stroke-dasharray: 4 3; }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117; } text { fill: #e6edf3; } .note, .took { fill: #8d96a0; } .grid { stroke: #21262d; } g:hover > .hit { fill: #21262d; }
.load { fill: #1f3f6b; } .prepare { fill: #bb8009; } .wait { fill: #3d444d; } .run { fill: #388bfd; } .tick { stroke: #0d1117; }
.replayed .run { fill: #6e7681; } .failed .run, .failed .took { fill: #f85149; } .failure { stroke: #f85149; }
.open .run { fill: none; stroke: #f85149; }
}
</style>
";

#[cfg(test)]
mod tests {
    use super::*;

    fn span(name: &str) -> Span {
        Span {
            id: "call-1".into(),
            name: name.into(),
            batch: 0,
            start: 0.0,
            ready: 10.0,
            run: Some(40.0),
            done: Some(100.0),
            end: Some(100.0),
            updates: vec![50.0, 50.1, 80.0],
            error: None,
            is_replayed: false,
        }
    }

    #[test]
    fn a_row_tells_in_words_what_it_shows() {
        let failed = Span {
            error: Some("a < b \u{1b}[2J".into()),
            ..span("grep")
        };
        let svg = svg(&[failed], 200.0);
        let words = "<g class=\"failed\"><title>grep call-1\nstarted at 0ms\nprepared in 10ms\nwaited 30ms\nran 60ms\n3 updates\nerror: a &lt; b \\x1b[2J</title>";
        assert!(svg.contains(words), "{svg}");
        assert!(
            svg.contains("<title>1 call, 1 error, 200ms</title>"),
            "{svg}"
        );
    }

    #[test]
    fn parts_lie_on_the_axis() {
        let svg = svg(&[span("a")], 100.0);
        let x = |at: f64| LEFT + at * (RIGHT - LEFT) / 100.0;
        let run = format!("<rect class=\"run\" x=\"{:.1}\"", x(40.0));
        let wait = format!("<rect class=\"wait\" x=\"{:.1}\"", x(10.0));
        assert!(svg.contains(&run) && svg.contains(&wait), "{svg}");
        // The second update is less than two columns behind the first.
        let ticks = svg.rsplit("class=\"tick\" d=\"").next().unwrap();
        let ticks = ticks.split('"').next().unwrap();
        assert_eq!(ticks.matches('M').count(), 2, "{ticks}");
    }

    #[test]
    fn a_call_that_never_ran_or_ended_says_so() {
        let blocked = Span {
            run: None,
            done: None,
            ..span("a")
        };
        let open = Span {
            end: None,
            run: None,
            done: None,
            ..span("b")
        };
        let svg = svg(&[blocked, open], 100.0);
        assert!(
            svg.contains(">not run</text>") && svg.contains(">not ended</text>"),
            "{svg}"
        );
        assert!(svg.contains("<g class=\"open\">"), "{svg}");
    }

    #[test]
    fn ids_are_told_apart_by_their_ends() {
        let long = Span {
            id: "toolu_01A09q90qw90lq917835lq9".into(),
            ..span("mcp__files__read_text_file\u{ffff}")
        };
        let svg = svg(&[long], 100.0);
        assert!(svg.contains(">…17835lq9</text>"), "{svg}");
        assert!(svg.contains(">mcp__files__read_te…</text>"), "{svg}");
        assert!(!svg.contains('\u{ffff}'));
    }

    #[test]
    fn empty_recordings_are_a_picture_too() {
        assert!(svg(&[], 0.0).contains("0 calls, 0 errors"));
    }

    #[test]
    fn steps_are_round() {
        assert!((round_step(100.0) - 20.0).abs() < 1e-9);
        assert!((round_step(3_200.0) - 500.0).abs() < 1e-9);
        assert!((round_step(1.0) - 1.0).abs() < 1e-9);
    }
}

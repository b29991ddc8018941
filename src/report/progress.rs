//! Progress on stderr, and everything else that is written there while calls run.
//!
//! A fixed small set of rows (the longest-running calls and a total), drawn as one block by one thread ten times a second:
//! a bar per call costs more than most calls. Nothing is drawn in the first quarter of a second, nothing is left behind
//! but one summary line. Where rows cannot be drawn, progress is a line per ended call.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pitool::event::{Event, Listener, Notice};

use super::echo::QuietControls;
use super::rows::{self, MIN_AGE, Size};
use super::style::{Styles, When};
use super::tally::Tally;
use super::{lock, sanitize};

/// Time between two drawings.
const TICK: Duration = Duration::from_millis(100);
/// With nothing running for this long, the rows go: stdin may be a person who types.
const IDLE: Duration = Duration::from_millis(500);

/// Finds the label of a tool by its name.
pub(crate) type Label = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// A listener that shows people what runs, and the one way to stderr while it does.
pub(crate) struct Progress {
    shared: Arc<Shared>,
    /// Until the end, if rows may be drawn.
    drawing: Mutex<Option<Drawing>>,
}

/// Who draws the rows, and how the terminal is meanwhile.
struct Drawing {
    ticker: JoinHandle<()>,
    _quiet: QuietControls,
}

/// How progress shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Rows on a terminal.
    Rows,
    /// A line per ended call.
    Lines,
    /// Only notices.
    Off,
}

struct Shared {
    mode: Mode,
    styles: Styles,
    label: Label,
    began: Instant,
    tally: Mutex<Tally>,
    screen: Mutex<Screen>,
    ended: Mutex<bool>,
    has_ended: Condvar,
}

/// The block of rows. It may only be drawn or cleared, and stderr only be written, by who holds its lock.
struct Screen {
    block: ProgressBar,
    is_drawn: bool,
    drawn_at: Option<Instant>,
    /// How many [`Pause`]s there are.
    pauses: usize,
}

impl Progress {
    /// Starts to listen. `progress` is the option of that name; `styles` are those of stderr.
    pub(crate) fn start(progress: When, styles: Styles, label: Label) -> Self {
        let now = Instant::now();
        let mode = mode(progress, io::stderr().is_terminal());
        let shared = Arc::new(Shared {
            mode,
            styles,
            label,
            began: now,
            tally: Mutex::new(Tally::new(now)),
            screen: Mutex::new(Screen::new(mode)),
            ended: Mutex::new(false),
            has_ended: Condvar::new(),
        });
        let drawing = (shared.mode == Mode::Rows).then(|| {
            let shared = Arc::clone(&shared);
            Drawing {
                ticker: thread::spawn(move || shared.tick()),
                _quiet: QuietControls::begin(),
            }
        });
        Self {
            shared,
            drawing: Mutex::new(drawing),
        }
    }

    /// Announces calls that will start, so that the total is right from the beginning.
    pub(crate) fn expect(&self, calls: usize) {
        lock(&self.shared.tally).expect(calls);
    }

    /// Takes the rows away until the pause is dropped: to ask something, or to write on the same terminal.
    pub(crate) fn pause(&self) -> Pause<'_> {
        let mut screen = lock(&self.shared.screen);
        screen.clear();
        screen.pauses += 1;
        Pause(&self.shared)
    }

    /// Writes to the terminal where the rows are, without mixing with them.
    pub(crate) fn suspend<R>(&self, write: impl FnOnce() -> R) -> R {
        let _pause = self.pause();
        write()
    }

    /// Writes one line to stderr. The line must be safe to show already.
    pub(crate) fn say(&self, line: &str) {
        self.shared.say(line);
    }

    /// Ends the progress: the rows go, the summary stays. Only errors of stderr are lost.
    pub(crate) fn finish(&self) {
        self.end();
        if self.shared.mode != Mode::Off {
            let tally = lock(&self.shared.tally);
            let line = rows::summary(&tally, self.shared.began.elapsed(), &self.shared.styles);
            self.shared.say(&line);
        }
    }

    fn end(&self) {
        *lock(&self.shared.ended) = true;
        self.shared.has_ended.notify_all();
        let drawing = lock(&self.drawing).take();
        if let Some(Drawing { ticker, _quiet }) = drawing {
            // A ticker that panicked has nothing to draw any more.
            let _ = ticker.join();
            lock(&self.shared.screen).clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}

impl Listener for Progress {
    fn event(&self, event: Event<'_>) {
        self.shared.event(event);
    }

    fn notice(&self, notice: Notice) {
        self.shared.say(&notice_line(&notice, &self.shared.styles));
    }
}

/// While it lives no rows are drawn.
pub(crate) struct Pause<'a>(&'a Shared);

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        lock(&self.0.screen).pauses -= 1;
    }
}

impl Shared {
    fn event(&self, event: Event<'_>) {
        if self.mode == Mode::Off {
            return;
        }
        let now = Instant::now();
        lock(&self.tally).event(event, now, &self.label);
        if let (Mode::Lines, Event::End { .. }) = (self.mode, event) {
            self.say_ended(event);
        }
    }

    fn say_ended(&self, event: Event<'_>) {
        let Event::End {
            call,
            is_error,
            duration_ms,
            ..
        } = event
        else {
            return;
        };
        let label = (self.label)(&call.name).unwrap_or_else(|| call.name.clone());
        let time = duration_ms.map(Duration::from_millis);
        self.say(&rows::ended(&label, &call.id, is_error, time, &self.styles));
    }

    fn say(&self, line: &str) {
        let mut screen = lock(&self.screen);
        let was_drawn = screen.is_drawn;
        screen.clear();
        // One write, so that lines of others do not land inside; a closed stderr is nobody's business.
        let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
        if was_drawn && screen.may_redraw(Instant::now()) {
            self.draw(&mut screen);
        }
    }

    /// Draws until the end, first after [`MIN_AGE`].
    fn tick(&self) {
        let mut wait = MIN_AGE;
        while !self.ends_within(wait) {
            wait = TICK;
            let mut screen = lock(&self.screen);
            if screen.pauses == 0 {
                self.draw(&mut screen);
            }
        }
    }

    fn ends_within(&self, time: Duration) -> bool {
        let ended = lock(&self.ended);
        let (ended, _) = self
            .has_ended
            .wait_timeout_while(ended, time, |ended| !*ended)
            .expect("no holder of the lock panics");
        *ended
    }

    fn draw(&self, screen: &mut Screen) {
        let now = Instant::now();
        let tally = lock(&self.tally);
        let is_idle = tally.open().len() == 0 && now.duration_since(tally.last_event) >= IDLE;
        if is_idle {
            screen.clear();
            return;
        }
        let run = now.duration_since(self.began);
        let rows = rows::rows(&tally, run, now, terminal_size(), &self.styles);
        drop(tally);
        screen.show(rows.join("\n"), now);
    }
}

impl Screen {
    fn new(mode: Mode) -> Self {
        let target = match mode {
            Mode::Rows => ProgressDrawTarget::stderr(),
            Mode::Lines | Mode::Off => ProgressDrawTarget::hidden(),
        };
        let block = ProgressBar::with_draw_target(None, target);
        block.set_style(ProgressStyle::with_template("{msg}").expect("the template is right"));
        Self {
            block,
            is_drawn: false,
            drawn_at: None,
            pauses: 0,
        }
    }

    fn show(&mut self, rows: String, now: Instant) {
        if !self.is_drawn {
            self.block.reset();
        }
        self.block.set_message(rows);
        self.block.force_draw();
        self.is_drawn = true;
        self.drawn_at = Some(now);
    }

    fn clear(&mut self) {
        if self.is_drawn {
            self.block.finish_and_clear();
            self.block.set_message("");
            self.is_drawn = false;
        }
    }

    /// Whether it is long enough since the last drawing; a flood of notices must not become a flood of drawings.
    fn may_redraw(&self, now: Instant) -> bool {
        let age = self.drawn_at.map(|at| now.duration_since(at));
        self.pauses == 0 && age.is_none_or(|age| age >= TICK / 2)
    }
}

fn mode(progress: When, is_terminal: bool) -> Mode {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    match progress {
        When::Auto | When::Always if is_terminal && !is_dumb => Mode::Rows,
        When::Always => Mode::Lines,
        When::Auto | When::Never => Mode::Off,
    }
}

/// The terminal's size now; it may change while calls run.
fn terminal_size() -> Size {
    super::terminal_size(&io::stderr()).unwrap_or(Size {
        columns: 80,
        lines: 24,
    })
}

/// `NAME ID: line` for each line of a tool's stderr, `SERVER: line` for a server, `pitool: sentence` for a warning.
pub(crate) fn notice_line(notice: &Notice, styles: &Styles) -> String {
    match notice {
        Notice::ToolStderr {
            tool_name,
            tool_call_id,
            lines,
        } => {
            let origin = format!("{tool_name} {tool_call_id}:");
            let origin = sanitize::one_line(&origin).into_owned();
            behind(&format!("{} ", styles.dim.paint(origin)), lines)
        }
        Notice::ServerLine { server, line } => {
            let origin = sanitize::one_line(&format!("{server}:")).into_owned();
            format!("{} {}", styles.dim.paint(origin), sanitize::lines(line))
        }
        Notice::Warning(sentence) => format!(
            "pitool: {} {}",
            styles.warning.paint("warning:"),
            sanitize::lines(sentence)
        ),
    }
}

/// The lines, each safe to show and behind `origin`.
fn behind(origin: &str, lines: &str) -> String {
    let mut text = String::with_capacity(lines.len() + lines.len() / 2);
    // Of an empty text there is one line, an empty one.
    for line in lines.split('\n') {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(origin);
        text.push_str(&sanitize::lines(line.strip_suffix('\r').unwrap_or(line)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_need_a_terminal() {
        // TERM of the machine that runs the test may be dumb; then a terminal is none.
        let rows = if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
            (Mode::Off, Mode::Lines)
        } else {
            (Mode::Rows, Mode::Rows)
        };
        assert_eq!(mode(When::Auto, true), rows.0);
        assert_eq!(mode(When::Always, true), rows.1);
        assert_eq!(mode(When::Auto, false), Mode::Off);
        assert_eq!(mode(When::Always, false), Mode::Lines);
        assert_eq!(mode(When::Never, true), Mode::Off);
    }

    #[test]
    fn notices_are_safe_and_say_where_they_come_from() {
        let line = |notice| notice_line(&notice, &Styles::default());
        let stderr = Notice::ToolStderr {
            tool_name: "grep\n".into(),
            tool_call_id: "call-1".into(),
            lines: "\u{1b}]0;title\u{7}\rdone\r\n\nmore".into(),
        };
        assert_eq!(
            line(stderr),
            "grep\\n call-1: \\x1b]0;title\\x07\\rdone\ngrep\\n call-1: \ngrep\\n call-1: more"
        );
        let server = Notice::ServerLine {
            server: "fs".into(),
            line: "ready\u{7}".into(),
        };
        assert_eq!(line(server), "fs: ready\\x07");
        let warning = Notice::Warning("two calls have the id \"a\"".into());
        assert_eq!(
            line(warning),
            "pitool: warning: two calls have the id \"a\""
        );
    }
}

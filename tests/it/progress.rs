//! Progress as a person sees it: `pitool` on a terminal of our own, and the screen that results.

use std::fs::File;
use std::io::{Read, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::termios::{LocalModes, tcgetattr};
use serde_json::json;

use crate::support::Test;
use crate::terminal;

/// What a terminal shows, as far as progress uses one.
struct Screen {
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
    columns: usize,
    /// An escape sequence that is not complete yet.
    escape: Option<String>,
    /// Sequences that progress has no business with.
    strange: Vec<String>,
}

impl Screen {
    fn new(columns: usize) -> Self {
        Self {
            lines: vec![Vec::new()],
            row: 0,
            column: 0,
            columns,
            escape: None,
            strange: Vec::new(),
        }
    }

    fn put(&mut self, character: char) {
        if let Some(mut escape) = self.escape.take() {
            escape.push(character);
            if escape.len() > 1 && character.is_ascii_alphabetic() {
                self.obey(&escape);
            } else {
                self.escape = Some(escape);
            }
            return;
        }
        match character {
            '\u{1b}' => self.escape = Some(String::new()),
            '\r' => self.column = 0,
            '\n' => self.down(1),
            character => self.print(character),
        }
    }

    fn obey(&mut self, escape: &str) {
        let (number, command) = escape[1..].split_at(escape.len() - 2);
        let count = number.parse().unwrap_or(1);
        match command {
            "A" => self.row = self.row.saturating_sub(count),
            "B" => self.down(count),
            "K" if number == "2" => self.lines[self.row].clear(),
            // Colours.
            "m" => {}
            _ => self.strange.push(escape.to_owned()),
        }
    }

    fn down(&mut self, count: usize) {
        self.row += count;
        if self.lines.len() <= self.row {
            self.lines.resize(self.row + 1, Vec::new());
        }
    }

    fn print(&mut self, character: char) {
        if self.column == self.columns {
            self.column = 0;
            self.down(1);
        }
        let line = &mut self.lines[self.row];
        if line.len() <= self.column {
            line.resize(self.column + 1, ' ');
        }
        line[self.column] = character;
        self.column += 1;
    }

    /// The lines that are not blank, from top to bottom.
    fn shown(&self) -> Vec<String> {
        let lines = self
            .lines
            .iter()
            .map(|line| line.iter().collect::<String>());
        lines
            .map(|line| line.trim_end().to_owned())
            .filter(|line| !line.is_empty())
            .collect()
    }
}

/// `pitool` with stderr on a terminal, and what is on it.
struct Terminal {
    child: Child,
    screen: Arc<Mutex<Screen>>,
    reader: JoinHandle<()>,
    keyboard: File,
}

impl Terminal {
    /// Starts the command on a terminal of this size.
    fn start(test: &mut Test, columns: u16, lines: u16) -> Self {
        let (terminal, stderr) = terminal::open((lines, columns));
        let child = test.spawn_with_stderr(Stdio::from(stderr));
        let screen = Arc::new(Mutex::new(Screen::new(columns.into())));
        let keyboard = File::from(terminal.try_clone().unwrap());
        let reader = thread::spawn({
            let screen = Arc::clone(&screen);
            move || read(terminal, &screen)
        });
        Self {
            child,
            screen,
            reader,
            keyboard,
        }
    }

    /// Waits until the screen shows what is looked for.
    #[track_caller]
    fn wait_for(&self, is_there: impl Fn(&[String]) -> bool) -> Vec<String> {
        let begin = Instant::now();
        loop {
            let shown = self.screen.lock().unwrap().shown();
            if is_there(&shown) {
                return shown;
            }
            assert!(begin.elapsed() < Duration::from_secs(30), "{shown:#?}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the end; the screen that is left, and the sequences on it that nobody should have sent.
    fn end(mut self) -> (Vec<String>, Vec<String>) {
        self.child.wait().unwrap();
        drop(self.keyboard);
        drop(self.child);
        self.reader.join().unwrap();
        let screen = self.screen.lock().unwrap();
        (screen.shown(), screen.strange.clone())
    }
}

/// Feeds the screen until the last program has closed the terminal.
fn read(terminal: OwnedFd, screen: &Mutex<Screen>) {
    let mut terminal = File::from(terminal);
    let mut pending = Vec::new();
    let mut bytes = [0; 4096];
    while let Ok(length @ 1..) = terminal.read(&mut bytes) {
        pending.extend_from_slice(&bytes[..length]);
        let valid = match str::from_utf8(&pending) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let text = String::from_utf8(pending.drain(..valid).collect()).unwrap();
        let mut screen = screen.lock().unwrap();
        text.chars().for_each(|character| screen.put(character));
    }
}

/// A tool that says something and ends when the file `go` is there.
const WAITS: &str =
    "printf 'half\\033[2Jway\\n'; while [ ! -e go ]; do sleep 0.05; done; echo done";

fn go(folder: &Path) {
    File::create(folder.join("go")).unwrap();
}

#[test]
fn a_running_call_has_a_row_and_leaves_only_the_summary() {
    let mut test = Test::new(["run"])
        .sh("waits", WAITS)
        .calls(&[("c1", "waits", json!({}))]);
    let folder = test.folder().to_owned();
    let terminal = Terminal::start(&mut test, 80, 24);
    let shown = terminal.wait_for(|shown| shown.first().is_some_and(|row| row.contains("half")));
    assert_eq!(shown.len(), 2, "{shown:#?}");
    assert!(
        shown[0].starts_with("waits ") && shown[0].ends_with(" half\\x1b[2Jway"),
        "{shown:#?}"
    );
    assert!(shown[1].starts_with("0 of 1 call done, "), "{shown:#?}");
    go(&folder);
    let (shown, strange) = terminal.end();
    assert_eq!(shown.len(), 1, "{shown:#?}");
    assert!(shown[0].starts_with("1 call, 0 errors, "), "{shown:#?}");
    assert_eq!(strange, [""; 0]);
}

#[test]
fn many_calls_have_few_rows() {
    let calls: Vec<(String, serde_json::Value)> =
        (0..200).map(|n| (format!("c{n}"), json!({}))).collect();
    let calls: Vec<(&str, &str, serde_json::Value)> = calls
        .iter()
        .map(|(id, arguments)| (id.as_str(), "waits", arguments.clone()))
        .collect();
    let mut test = Test::new(["run", "--jobs", "4"])
        .sh("waits", WAITS)
        .calls(&calls);
    let folder = test.folder().to_owned();
    let terminal = Terminal::start(&mut test, 80, 24);
    let shown = terminal.wait_for(|shown| shown.len() > 8);
    assert_eq!(shown.len(), 9, "{shown:#?}");
    assert!(shown[8].starts_with("0 of 200 calls done, "), "{shown:#?}");
    assert!(
        shown[8].ends_with(", 192 more running or waiting"),
        "{shown:#?}"
    );
    go(&folder);
    let (shown, _) = terminal.end();
    assert_eq!(shown.len(), 1, "{shown:#?}");
    assert!(shown[0].starts_with("200 calls, 0 errors, "), "{shown:#?}");
}

#[test]
fn what_tools_say_stands_above_the_rows() {
    let script = "echo 'to people\u{7}' >&2; if [ ! -e go ]; then touch said; fi; while [ ! -e go ]; do sleep 0.05; done";
    let mut test = Test::new(["run"])
        .sh("speaks", "echo 'to \u{1b}[2Jpeople' >&2")
        .sh("waits", script)
        .calls(&[("c1", "waits", json!({})), ("c2", "speaks", json!({}))]);
    let folder = test.folder().to_owned();
    let terminal = Terminal::start(&mut test, 80, 24);
    let is_whole =
        |shown: &[String]| shown.len() == 3 && shown[2].starts_with("1 of 2 calls done, ");
    let shown = terminal.wait_for(is_whole);
    assert_eq!(shown[0], "speaks c2: to \\x1b[2Jpeople");
    assert!(shown[1].starts_with("waits "), "{shown:#?}");
    go(&folder);
    let (shown, strange) = terminal.end();
    assert_eq!(shown.len(), 3, "{shown:#?}");
    assert_eq!(shown[1], "waits c1: to people\\x07");
    assert_eq!(strange, [""; 0]);
}

#[test]
fn without_a_terminal_there_is_a_line_per_call_if_asked_for() {
    let calls = [("c1", "good", json!({})), ("c2", "bad", json!({}))];
    let test = |progress: &[&str]| {
        Test::new([&["run"], progress].concat())
            .sh("good", "echo 1")
            .sh("bad", "exit 3")
            .calls(&calls)
            .run()
            .code(1)
    };
    test(&[]).quiet();
    let stderr = test(&["--progress", "always", "--mode", "sequential"]).stderr;
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{stderr}");
    assert!(
        lines[0].starts_with("good c1 ok ") && lines[1].starts_with("bad c2 error "),
        "{stderr}"
    );
    assert!(lines[2].starts_with("2 calls, 1 error, "), "{stderr}");
}

/// The first process of a session, which gets the terminal as its own when it opens it, as under a shell.
#[cfg(target_os = "linux")]
#[test]
fn a_question_that_ctrl_c_ends_leaves_the_terminal_and_the_events_whole() {
    let own_the_terminal = r#"exec 3<>"$(tty <&2)"; exec "$@""#;
    let mut test = Test::new(["run", "--confirm", "*", "--events", "events"])
        .sh("asked", "echo ran >ran")
        .calls(&[("c1", "asked", json!({}))])
        .under(["setsid", "sh", "-c", own_the_terminal, "sh"]);
    let folder = test.folder().to_owned();
    let mut terminal = Terminal::start(&mut test, 80, 24);
    let is_asked = |shown: &[String]| shown.iter().any(|line| line == "Run asked? [y/N]");
    terminal.wait_for(is_asked);
    terminal.keyboard.write_all(b"\x03").unwrap();
    assert_eq!(terminal.child.wait().unwrap().code(), Some(130));
    let modes = tcgetattr(&terminal.keyboard).unwrap().local_modes;
    assert!(
        modes.contains(LocalModes::ECHOCTL),
        "as it was before the rows"
    );
    let (shown, _) = terminal.end();
    assert_eq!(shown.len(), 3, "{shown:#?}");
    assert!(shown[1].starts_with("Run asked? [y/N]"), "{shown:#?}");
    assert!(shown[2].starts_with("1 call, 1 error, "), "{shown:#?}");
    let events = std::fs::read_to_string(folder.join("events")).unwrap();
    assert_eq!(events.lines().count(), 5, "{events}");
    assert!(!folder.join("ran").exists());
}

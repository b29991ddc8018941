//! What a person sees, screen by screen: on a small and a large terminal, without colours, in a pipe and in a CI log.
//!
//! `tests/golden/screens/` holds the screens; `PITOOL_UPDATE_GOLDEN=1 cargo test` writes them anew. Looks stand around
//! what they are on: `⟦red bold⟧FAIL⟦/⟧`. Times are made the same.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{self, message, project};
use crate::terminal::{self, Size};

const SMALL: Size = (24, 80);
const LARGE: Size = (50, 200);

/// A command in a folder, and what stands on its stdin.
struct Scene {
    folder: tempfile::TempDir,
    arguments: Vec<String>,
    stdin: Option<PathBuf>,
}

impl Scene {
    /// In an empty folder.
    fn new(command_line: &str) -> Self {
        let words = command_line.split_whitespace();
        Self {
            folder: tempfile::tempdir().unwrap(),
            arguments: words.map(str::to_owned).collect(),
            stdin: None,
        }
    }

    /// With a copy of the project's own tools.
    fn shipped(self) -> Self {
        copy(
            &project().join("tools.d"),
            &self.folder.path().join("tools.d"),
        );
        self
    }

    fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    fn stdin(mut self, path: impl Into<PathBuf>) -> Self {
        self.stdin = Some(path.into());
        self
    }

    fn sample(self, name: &str) -> Self {
        self.stdin(project().join("samples").join(name))
    }

    /// A message with calls on stdin.
    fn calls(self, calls: &[(&str, &str, serde_json::Value)]) -> Self {
        let path = self.folder.path().join("message");
        fs::write(&path, message(calls).to_string()).unwrap();
        self.stdin(path)
    }

    /// The command, in an environment that is the same everywhere.
    fn command(&self, environment: &[(&str, &str)]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pitool"));
        let stdin = self.stdin.as_deref().unwrap_or(Path::new("/dev/null"));
        command
            .args(&self.arguments)
            .current_dir(self.folder.path())
            .stdin(File::open(stdin).unwrap())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", "/home/pi")
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .envs(environment.iter().copied());
        command
    }

    /// The screen that it leaves.
    fn screen(&self, size: Size, environment: &[(&str, &str)]) -> String {
        let terminal = Terminal::start(self.command(environment), size);
        self.normalised(&terminal.end())
    }

    /// What it prints where there is no terminal.
    fn log(&self, environment: &[(&str, &str)]) -> String {
        let output = self.command(environment).output().unwrap();
        let mut text = String::new();
        for (stream, bytes) in [("stdout", output.stdout), ("stderr", output.stderr)] {
            let said = String::from_utf8(bytes).unwrap();
            if !said.is_empty() {
                write!(text, "[{stream}]\n{}", logged(&said)).unwrap();
            }
        }
        writeln!(text, "[exit {}]", output.status.code().unwrap()).unwrap();
        self.normalised(&text)
    }

    /// What changes from run to run, made the same.
    fn normalised(&self, text: &str) -> String {
        let text = text.replace(&*self.folder.path().to_string_lossy(), "<folder>");
        let number = regex::Regex::new("((?:durationMs|timestamp)\"(?:⟦/⟧)?: ?)\\d+").unwrap();
        let text = number.replace_all(&text, "${1}0");
        // Columns of times are as wide as the times: what stands before them shrinks to one blank and the looks.
        let time = regex::Regex::new(r"((?: |⟦[^⟧]*⟧)*)\b\d+(?:\.\d+)?m?s\b").unwrap();
        let same = |found: &regex::Captures<'_>| format!(" {}TIME", found[1].replace(' ', ""));
        time.replace_all(&text, same).into_owned()
    }
}

fn copy(source: &Path, target: &Path) {
    fs::create_dir_all(target).unwrap();
    for entry in fs::read_dir(source).unwrap() {
        let entry = entry.unwrap();
        let target = target.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A terminal of the test's own with a command on it.
struct Terminal {
    child: std::process::Child,
    parser: Arc<Mutex<vt100::Parser>>,
    reader: thread::JoinHandle<()>,
}

impl Terminal {
    fn start(command: Command, size: Size) -> Self {
        let (terminal, side) = terminal::open(size);
        Self::begin(command, terminal, side, size)
    }

    /// Starts a command on a terminal that is open already.
    fn begin(
        mut command: Command,
        terminal: OwnedFd,
        side: OwnedFd,
        (rows, columns): Size,
    ) -> Self {
        command.stdout(Stdio::from(side.as_fd().try_clone_to_owned().unwrap()));
        command.stderr(Stdio::from(side));
        let child = command.spawn().unwrap();
        // The command keeps its side of the terminal open; without it the reading ends with the child.
        drop(command);
        let parser = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let reader = thread::spawn({
            let parser = Arc::clone(&parser);
            move || read(terminal, &parser)
        });
        Self {
            child,
            parser,
            reader,
        }
    }

    /// Waits until every one of these texts is on the screen, and takes it.
    #[track_caller]
    fn wait_for(&self, texts: &[&str]) -> String {
        let begin = Instant::now();
        loop {
            {
                let parser = self.parser.lock().unwrap();
                let shown = parser.screen().contents();
                if texts.iter().all(|text| shown.contains(text)) {
                    return marked(parser.screen());
                }
                assert!(begin.elapsed() < Duration::from_mins(1), "{shown}");
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The screen that is left at the end.
    fn end(mut self) -> String {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begin.elapsed() < Duration::from_mins(1), "it does not end");
            thread::sleep(Duration::from_millis(5));
        };
        let code = status.code().unwrap();
        self.reader.join().unwrap();
        let screen = marked(self.parser.lock().unwrap().screen());
        format!("{screen}\n[exit {code}]\n")
    }
}

fn read(terminal: OwnedFd, parser: &Mutex<vt100::Parser>) {
    let mut terminal = File::from(terminal);
    let mut bytes = [0; 4096];
    while let Ok(length @ 1..) = terminal.read(&mut bytes) {
        parser.lock().unwrap().process(&bytes[..length]);
    }
}

/// The lines of a screen up to the last one that is not blank, with the looks of the text.
fn marked(screen: &vt100::Screen) -> String {
    let (rows, columns) = screen.size();
    let lines = (0..rows).map(|row| line(screen, row, columns));
    let text = lines.collect::<Vec<_>>().join("\n");
    text.trim_end().to_owned()
}

/// A log with the looks of the text; what has none stands as it is, tabs and all.
fn logged(text: &str) -> String {
    if !text.contains('\u{1b}') {
        return text.to_owned();
    }
    let rows = u16::try_from(text.lines().count() + 1).unwrap();
    let mut parser = vt100::Parser::new(rows, 4000, 0);
    parser.process(text.replace('\n', "\r\n").as_bytes());
    marked(parser.screen()) + "\n"
}

fn line(screen: &vt100::Screen, row: u16, columns: u16) -> String {
    let mut line = String::new();
    let mut current = String::new();
    // Blanks at the end of a line cannot be seen.
    let seen = |column: &u16| {
        screen
            .cell(row, *column)
            .is_some_and(|cell| !cell.contents().trim().is_empty())
    };
    let end = (0..columns).rev().find(seen).map_or(0, |last| last + 1);
    for column in 0..end {
        let cell = screen.cell(row, column).unwrap();
        if cell.is_wide_continuation() {
            continue;
        }
        let look = look(cell);
        if look != current {
            if !current.is_empty() {
                line += "⟦/⟧";
            }
            if !look.is_empty() {
                write!(line, "⟦{look}⟧").unwrap();
            }
            current = look;
        }
        line += if cell.has_contents() {
            cell.contents()
        } else {
            " "
        };
    }
    if !current.is_empty() {
        line += "⟦/⟧";
    }
    line
}

fn look(cell: &vt100::Cell) -> String {
    const COLORS: [&str; 8] = [
        "black", "red", "green", "yellow", "blue", "magenta", "cyan", "white",
    ];
    let color = match cell.fgcolor() {
        vt100::Color::Default => String::new(),
        vt100::Color::Idx(index) => COLORS.get(usize::from(index)).map_or_else(
            || panic!("color {index} is not one of the theme's eight"),
            |name| (*name).to_owned(),
        ),
        vt100::Color::Rgb(..) => panic!("a color that no theme knows"),
    };
    assert_eq!(
        cell.bgcolor(),
        vt100::Color::Default,
        "backgrounds are the theme's"
    );
    let mut words = vec![color.as_str()];
    words.extend(cell.bold().then_some("bold"));
    words.extend(cell.dim().then_some("dim"));
    words.extend(cell.underline().then_some("underline"));
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

/// Without the looks.
fn plain(text: &str) -> String {
    let look = regex::Regex::new("⟦[^⟧]*⟧").unwrap();
    look.replace_all(text, "").into_owned()
}

#[track_caller]
fn kept(name: &str, screens: &str) {
    support::golden(&format!("screens/{name}.txt"), screens);
}

/// All views of a scene; it must leave its folder as it was.
#[track_caller]
fn golden(name: &str, scene: &Scene) {
    let mut screens = format!("$ pitool {}\n", scene.arguments.join(" "));
    let small = scene.screen(SMALL, &[]);
    let bare = scene.screen(SMALL, &[("NO_COLOR", "1")]);
    assert_eq!(bare, plain(&small), "NO_COLOR changes more than colours");
    let views = [
        ("a terminal of 80x24", small),
        (
            "a terminal of 200x50, NO_COLOR",
            scene.screen(LARGE, &[("NO_COLOR", "1")]),
        ),
        ("a pipe", scene.log(&[])),
        (
            "a CI log with CLICOLOR_FORCE",
            scene.log(&[("CI", "true"), ("TERM", "dumb"), ("CLICOLOR_FORCE", "1")]),
        ),
    ];
    for (view, screen) in views {
        write!(screens, "\n=== {view}\n{screen}").unwrap();
    }
    kept(name, &screens);
}

/// A folder with tools of which one has something of each kind wrong with it.
fn doubtful(command_line: &str) -> Scene {
    let tool = "{\"name\": \"fetch\", \"description\": \"Fetch a page\", \"parameters\": {\"properties\": {\n  \
                \"url\": {\"$ref\": \"#/$defs/gone\"},\n  \
                \"how\": {\"type\": \"string\", \"format\": \"made-up\"}}},\n  \
                \"execute\": {\"command\": [\"no-such-program\"]}}";
    let hook = json!({"hook": "afterToolCall", "tools": ["u"], "run": {"jq": "{"}});
    Scene::new(command_line)
        .file("tools.d/fetch.json", tool)
        .file("tools.d/z.json", hook.to_string())
}

/// Calls that end in every way: well, after coercion, blocked, thrown, refused.
fn every_end(command_line: &str) -> Scene {
    Scene::new(command_line).shipped().calls(&[
        ("call-1", "calculate", json!({"expression": "2 + 3 * 4"})),
        ("call-2", "echo", json!({"value": 42, "ignored": true})),
        ("call-3", "read_file", json!({"path": "../secret"})),
        ("call-4", "calculate", json!({"expression": "1 /"})),
        ("call-5", "search_text", json!({"pattern": 7})),
        ("call-6", "echo", json!({"value": "漢字 and\nlines, \u{1b}[2J and a text that goes on and on until no terminal can hold it on one line any more"})),
    ])
}

#[test]
fn list() {
    golden("list", &Scene::new("list").shipped());
}

#[test]
fn show() {
    golden("show", &Scene::new("show search_text").shipped());
}

#[test]
fn check() {
    golden("check", &Scene::new("check").shipped());
    golden("check-findings", &doubtful("check"));
}

#[test]
fn manifests_that_do_not_load() {
    let tool =
        "{\n  \"name\": \"t\",\n  \"description\": \"\",\n  \"exekute\": {\"jq\": \".\"}\n}\n";
    let scene = Scene::new("run").file("tools.d/t.json", tool);
    golden("unloadable", &scene.calls(&[("call-1", "t", json!({}))]));
}

#[test]
fn validate() {
    let scene = |command_line: &str| Scene::new(command_line).shipped();
    golden(
        "validate-explain",
        &scene("validate --explain").sample("sloppy-arguments.json"),
    );
    golden(
        "validate-compare",
        &scene("validate --compare").sample("sloppy-arguments.json"),
    );
    golden(
        "validate-errors",
        &scene("validate").sample("invalid-arguments.json"),
    );
}

#[test]
fn run() {
    let scene = Scene::new("run --mode sequential").shipped();
    golden("run", &scene.sample("unknown-tool.json"));
    golden(
        "run-text",
        &every_end("run --mode sequential --output text"),
    );
    let scene = Scene::new("run --dry-run").shipped();
    golden("dry-run", &scene.sample("sloppy-arguments.json"));
}

#[test]
fn a_plan_never_drives_the_terminal() {
    let scene = Scene::new("run --dry-run").shipped().calls(&[(
        "call-1",
        "echo",
        json!({"value": "\u{9b}2J\u{202e}\u{1b}[2J"}),
    )]);
    let screen = scene.screen(LARGE, &[]);
    assert!(screen.contains("\\u009b2J\\u202e\\u001b[2J"), "{screen}");
}

#[test]
fn who_has_to_type_the_input_is_told() {
    for command_line in [
        "run",
        "run --dry-run",
        "validate",
        "transcript lint",
        "timeline",
    ] {
        let scene = Scene::new(command_line).shipped();
        let (terminal, side) = terminal::open(SMALL);
        let mut keys = File::from(terminal.try_clone().unwrap());
        let mut command = scene.command(&[]);
        command.stdin(side.try_clone().unwrap());
        let terminal = Terminal::begin(command, terminal, side, SMALL);
        terminal.wait_for(&["pitool: reading from the terminal; Ctrl-D ends the input"]);
        // Once is enough.
        keys.write_all(b"\x04").unwrap();
        assert!(terminal.end().contains("[exit 0]"), "{command_line}");
    }
}

#[test]
fn recorded_cases() {
    let tool = json!({"name": "greet", "description": "Greet a person",
        "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        "execute": {"jq": "\"Hello, \\(.name)!\\nHow are you?\\nBye\"", "output": "text"}});
    let call = json!({"name": "greet", "arguments": {"name": "Ada"}});
    let passes = json!({"call": call, "results": [{"$includes": {"isError": false}}]});
    let fails = json!({"title": "politely", "call": call,
        "results": [{"$includes": {"content": [{"text": "Hello, Ada!\nHow do you do?\nBye"}], "isError": true}}]});
    let new = json!({"name": "greet", "arguments": {}});
    let broken = json!({"name": "greet", "options": ["--no-such-option"]});
    let told = json!([{"name": "greet", "description": "Greet somebody", "parameters": tool["parameters"]}]);
    let scene = Scene::new("test -j 1")
        .file("tools.d/greet.json", tool.to_string())
        .file("tools.d/cases/declare.json", told.to_string())
        .file("tools.d/cases/a.json", passes.to_string())
        .file("tools.d/cases/b.json", fails.to_string())
        .file("tools.d/cases/c.json", new.to_string())
        .file("tools.d/cases/d.json", broken.to_string());
    golden("test", &scene);
    let scene = Scene::new("test").file("tools.d/greet.json", tool.to_string());
    golden("test-no-cases", &scene);
}

#[test]
fn init() {
    // It writes, so each view has a folder of its own.
    let small = Scene::new("init").screen(SMALL, &[]);
    let pipe = Scene::new("init").log(&[]);
    kept(
        "init",
        &format!("$ pitool init\n\n=== a terminal of 80x24\n{small}\n=== a pipe\n{pipe}"),
    );
}

#[test]
fn progress() {
    let mut screens = "$ pitool run\n".to_owned();
    for (size, view) in [(SMALL, "80x24"), (LARGE, "200x50")] {
        let waits = |says: &str, output: &str| {
            let script = format!(
                "echo '{says}'; while [ ! -e go ]; do sleep 0.05; done; echo '{{\"content\":[]}}'"
            );
            json!({"command": ["sh", "-c", script], "output": output})
        };
        let half = json!({"type": "update", "content": [{"type": "text", "text": "half of it"}],
            "details": {"progress": 1, "total": 2}});
        let tool = |name: &str, label: &str, execute: serde_json::Value| {
            json!({"name": name, "label": label, "description": "", "execute": execute}).to_string()
        };
        let scene = Scene::new("run --output text")
            .file("tools.d/a.json", tool("a", "Indexer", waits(&half.to_string(), "items")))
            .file("tools.d/b.json", tool("b", "Reader", waits("line \u{1b}[2J 7 of a long file, of which only so much is shown as there is room on the line", "text")))
            .file("tools.d/c.json", tool("c", "Fails", json!({"jq": "error(\"no\")"})))
            .calls(&[("call-1", "a", json!({})), ("call-2", "b", json!({})), ("call-3", "c", json!({}))]);
        let terminal = Terminal::start(scene.command(&[]), size);
        let running = scene.normalised(&terminal.wait_for(&["50%", "line", "1 error"]));
        File::create(scene.folder.path().join("go")).unwrap();
        let ended = scene.normalised(&terminal.end());
        write!(
            screens,
            "\n=== a terminal of {view}, while it runs\n{running}\n\n=== and at the end\n{ended}"
        )
        .unwrap();
    }
    kept("progress", &screens);
}

//! Runs the binary in a fresh folder with a `tools.d` of its own, and compares what it says.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// A script that prints the id of a process that is in a session of its own by then and runs on, without our pipes: the
/// shell waits until that process has let go of the stdout on which it names itself.
pub(crate) const LEAVES_ITS_GROUP: &str =
    "echo $(setsid sh -c 'echo $$; exec sleep 300 >/dev/null 2>&1' 2>&1 &)";

/// A fresh folder, the files in it, and a command line of `pitool` in it.
pub(crate) struct Test {
    folder: tempfile::TempDir,
    command: Command,
    stdin: Vec<u8>,
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Done {
    /// The exit code; none if a signal ended it.
    pub(crate) code: Option<i32>,
    /// All of stdout.
    pub(crate) stdout: String,
    /// All of stderr.
    pub(crate) stderr: String,
}

impl Test {
    /// `pitool` with these arguments, in an empty folder with an empty `tools.d`, nothing on stdin.
    pub(crate) fn new<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tools.d")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_pitool"));
        command.args(arguments).current_dir(folder.path());
        for name in ["PITOOL_TOOLS", "NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR"] {
            command.env_remove(name);
        }
        Self {
            folder,
            command,
            stdin: Vec::new(),
        }
    }

    /// The same with other arguments in the folder of an earlier test.
    pub(crate) fn again<S: AsRef<OsStr>>(
        folder: tempfile::TempDir,
        arguments: impl IntoIterator<Item = S>,
    ) -> Self {
        let mut test = Self::new(arguments);
        test.command.current_dir(folder.path());
        test.folder = folder;
        test
    }

    /// The folder in which it runs.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file, with the folders above it.
    pub(crate) fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.folder().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        let is_manifest = path.ends_with(Path::new("tools.d").join(path.file_name().unwrap()));
        if is_manifest && path.extension() == Some(OsStr::new("json")) {
            crate::schema::accepts_if_it_loads(&path);
        }
        self
    }

    /// Writes `tools.d/NAME.json`.
    pub(crate) fn manifest(self, name: &str, manifest: &Value) -> Self {
        self.file(&format!("tools.d/{name}.json"), manifest.to_string())
    }

    /// A tool without declared arguments that runs `execute`.
    pub(crate) fn tool(self, name: &str, execute: &Value) -> Self {
        self.manifest(
            name,
            &json!({"name": name, "description": "", "execute": execute}),
        )
    }

    /// A tool without declared arguments that runs a line of `sh`.
    pub(crate) fn sh(self, name: &str, script: &str) -> Self {
        self.tool(name, &json!({"command": ["sh", "-c", script]}))
    }

    /// The tools of the project instead of those of the folder.
    pub(crate) fn shipped_tools(mut self) -> Self {
        self.command.arg("--tools").arg(project().join("tools.d"));
        self
    }

    /// Sets a variable.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Adds arguments.
    pub(crate) fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.command.args(arguments);
        self
    }

    /// Makes a file that is there a program.
    pub(crate) fn executable(self, path: &str) -> Self {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(self.folder().join(path), mode).unwrap();
        self
    }

    /// What stands on stdin.
    pub(crate) fn stdin(mut self, stdin: impl Into<Vec<u8>>) -> Self {
        self.stdin = stdin.into();
        self
    }

    /// A message with these calls on stdin, each `(id, name, arguments)`.
    pub(crate) fn calls(self, calls: &[(&str, &str, Value)]) -> Self {
        let message = message(calls).to_string();
        self.stdin(message)
    }

    /// In the background of the terminal, if there is one: nobody can be asked there.
    pub(crate) fn in_background(mut self) -> Self {
        std::os::unix::process::CommandExt::process_group(&mut self.command, 0);
        self
    }

    /// The same command line behind another one, which starts it.
    pub(crate) fn under<S: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        let mut words = words.into_iter();
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).arg(self.command.get_program());
        command.args(self.command.get_args());
        command.current_dir(self.folder());
        for (name, value) in self.command.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        self.command = command;
        self
    }

    /// The command as it stands, to start it otherwise.
    pub(crate) fn command(&mut self) -> &mut Command {
        &mut self.command
    }

    /// Starts it, with stdin written and closed; the caller waits.
    pub(crate) fn spawn(&mut self) -> Child {
        self.spawn_with_stderr(Stdio::piped())
    }

    /// The same with a stderr of the caller's.
    pub(crate) fn spawn_with_stderr(&mut self, stderr: Stdio) -> Child {
        let command = &mut self.command;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr);
        let mut child = command.spawn().unwrap();
        // The command keeps what it hands out; a terminal must only be held by who runs on it.
        command.stderr(Stdio::null());
        let (mut pipe, stdin) = (child.stdin.take().unwrap(), std::mem::take(&mut self.stdin));
        // A program that does not read must not block the test.
        std::thread::spawn(move || pipe.write_all(&stdin));
        child
    }

    /// Starts it with a stdin on which nothing comes and that stays open as long as the answer's second part.
    pub(crate) fn spawn_with_open_stdin(&mut self) -> (Child, std::io::PipeWriter) {
        let (stdin, open) = std::io::pipe().unwrap();
        let command = &mut self.command;
        command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        (command.spawn().unwrap(), open)
    }

    /// The folder, to look at or go on in.
    pub(crate) fn into_folder(self) -> tempfile::TempDir {
        self.folder
    }

    /// Runs it to its end.
    pub(crate) fn run(mut self) -> Done {
        Done::of(self.spawn())
    }

    /// Runs it to its end and hands the folder back as well, to look at what was left there.
    pub(crate) fn run_and_keep(mut self) -> (Done, tempfile::TempDir) {
        let done = Done::of(self.spawn());
        (done, self.folder)
    }
}

impl Done {
    /// Waits for a started command.
    pub(crate) fn of(child: Child) -> Self {
        let output = child.wait_with_output().unwrap();
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        }
    }

    /// Compares the exit code; shows everything when it differs.
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Nothing was said to people.
    #[track_caller]
    pub(crate) fn quiet(self) -> Self {
        assert_eq!(self.stderr, "", "{self:#?}");
        self
    }

    /// stdout as JSON lines.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        let parse =
            |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        self.stdout.lines().map(parse).collect()
    }

    /// The texts of the result messages, in order: `error: ` before those of errors.
    #[track_caller]
    pub(crate) fn texts(&self) -> Vec<String> {
        self.lines().iter().map(text).collect()
    }
}

/// The most memory that a process had while it printed to its end, in kB, as long as it can be asked.
pub(crate) fn peak_memory(child: &mut Child) -> u64 {
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    let (id, mut peak) = (child.id(), 0);
    let reader = std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        peak = kilobytes.unwrap_or(peak);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    reader.join().unwrap().unwrap();
    peak
}

/// The text of a result message.
pub(crate) fn text(message: &Value) -> String {
    let blocks = message["content"].as_array().unwrap();
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| block["text"].as_str())
        .collect();
    let before = if message["isError"] == true {
        "error: "
    } else {
        ""
    };
    format!("{before}{}", texts.join("\n"))
}

/// An assistant message with these calls, each `(id, name, arguments)`.
pub(crate) fn message(calls: &[(&str, &str, Value)]) -> Value {
    let calls = calls.iter().map(|(id, name, arguments)| {
        json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments})
    });
    json!({"role": "assistant", "content": calls.collect::<Vec<_>>(), "stopReason": "toolUse"})
}

/// The folder of the project.
pub(crate) fn project() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Compares what a person sees with what is kept in `tests/golden/`; `PITOOL_UPDATE_GOLDEN=1` writes it anew.
#[track_caller]
pub(crate) fn golden(file: &str, seen: &str) {
    let path = project().join("tests/golden").join(file);
    if std::env::var_os("PITOOL_UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, seen).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        seen == golden,
        "{file} looks different; PITOOL_UPDATE_GOLDEN=1 rewrites.\n{seen}"
    );
}

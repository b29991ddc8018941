//! The binary itself: any bytes on its stdin and in its manifests.

use std::cell::OnceCell;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::harness::{Observed, Target};

pub(crate) const TARGET: Target = Target {
    name: "command_line",
    beside: &[
        "samples/echo.json",
        "samples/batch.json",
        "samples/openai.json",
        "tests/golden/format/mcp",
        "tools.d/echo.json",
    ],
    inputs: 12,
    check,
};

/// Commands, and whether the input is their stdin or a manifest.
const COMMANDS: [(&[&str], Goes); 9] = [
    (&["run", "--output", "jsonl"], Goes::Stdin),
    (
        &["run", "--output", "text", "--color", "always"],
        Goes::Stdin,
    ),
    (&["run", "--output", "transcript"], Goes::Stdin),
    (&["run", "--dry-run"], Goes::Stdin),
    (&["validate", "--report", "jsonl"], Goes::Stdin),
    (&["transcript", "lint"], Goes::Stdin),
    (&["serve"], Goes::Stdin),
    (&["check"], Goes::Manifest),
    (&["list"], Goes::Manifest),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goes {
    Stdin,
    Manifest,
}

thread_local! {
    static FOLDER: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
}

fn check(input: &[u8], observed: &mut Observed) {
    let folder = FOLDER.with(|folder| {
        let folder = folder.get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir(folder.path().join("manifests")).unwrap();
            std::fs::create_dir(folder.path().join("tools.d")).unwrap();
            std::fs::copy("tools.d/echo.json", folder.path().join("tools.d/echo.json")).unwrap();
            folder
        });
        folder.path().to_owned()
    });
    std::fs::write(folder.join("manifests/a.json"), input).unwrap();
    let sum = input
        .iter()
        .fold(input.len(), |sum, byte| sum + usize::from(*byte));
    let (arguments, goes) = COMMANDS[sum % COMMANDS.len()];
    let mut command = Command::new(env!("CARGO_BIN_EXE_pitool"));
    command
        .args(arguments)
        .current_dir(&folder)
        .env_remove("PITOOL_TOOLS");
    if goes == Goes::Manifest {
        command.args(["--tools", "manifests"]);
    }
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut stdin, bytes) = (child.stdin.take().unwrap(), input.to_vec());
    let writer = std::thread::spawn(move || {
        // It may well end without reading all of this.
        let _ = stdin.write_all(&bytes);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        matches!(output.status.code(), Some(0..=2)) && !stderr.contains("panicked"),
        "{arguments:?}: {}: {stderr}",
        output.status
    );
    observed.fact((arguments, output.status.code()));
    observed.sentence(stderr.lines().next().unwrap_or_default());
    assert!(arguments.contains(&"always") || !output.stdout.contains(&0x1b));
}

//! Confined programs, and what they cannot do.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// A folder with a working directory `cwd`, a manifest folder `home`, and files outside both.
struct World {
    root: TempDir,
}

struct Ran {
    stdout: String,
    stderr: String,
    status: std::process::ExitStatus,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["cwd/out", "cwd/in", "home"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        for file in ["cwd/in/data", "cwd/other", "home/part", "secret"] {
            fs::write(root.path().join(file), "content").unwrap();
        }
        Self { root }
    }

    fn confined(&self, sandbox: Value, script: &str) -> Result<Ran, String> {
        let sandbox = sandbox_of(sandbox, &self.root.path().join("home"));
        let cwd = self.root.path().join("cwd");
        let mut command = Command::new("/bin/bash");
        command.args(["-c", script]).current_dir(&cwd);
        command.stdin(Stdio::null());
        let place = Place {
            cwd: &cwd,
            program: Path::new("/bin/bash"),
            socket: None,
        };
        let _confined = sandbox.confine(&mut command, place)?;
        let output = command.output().unwrap();
        Ok(Ran {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            status: output.status,
        })
    }
}

fn sandbox_of(sandbox: Value, home: &Path) -> Sandbox {
    Sandbox::new(serde_json::from_value(sandbox).unwrap(), home).unwrap()
}

#[track_caller]
fn prints(sandbox: Value, script: &str, stdout: &str) {
    let ran = World::new().confined(sandbox, script).unwrap();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), (stdout, ""));
    assert!(ran.status.success());
}

#[track_caller]
fn refused(sandbox: Value, script: &str, reason: &str) {
    let ran = World::new().confined(sandbox, script).unwrap();
    assert!(
        ran.stderr.contains(reason),
        "{script}: {:?} {:?}",
        ran.stdout,
        ran.stderr
    );
    assert!(!ran.status.success(), "{script}");
}

const DENIED: &str = "Permission denied";

#[test]
fn named_files_can_be_used_as_named() {
    let sandbox = || json!({"read": ["in"], "write": ["out"]});
    prints(sandbox(), "cat in/data; cat ../home/part", "contentcontent");
    prints(sandbox(), "echo x > out/y; mkdir out/z; cat out/y", "x\n");
    prints(sandbox(), "cp /bin/true out/t; out/t && echo ran", "ran\n");
}

#[test]
fn other_files_are_closed() {
    let sandbox = || json!({"read": ["in"], "write": ["out"]});
    refused(sandbox(), "cat other", DENIED);
    refused(sandbox(), "cat ../secret", DENIED);
    refused(sandbox(), "ls ..", DENIED);
    refused(sandbox(), "echo x > in/data", DENIED);
    refused(sandbox(), "truncate -s 0 in/data", DENIED);
    refused(sandbox(), "rm in/data", DENIED);
    refused(
        sandbox(),
        "ln -s ../../secret out/link; cat out/link",
        DENIED,
    );
    refused(sandbox(), "echo x > /etc/pitool-test", DENIED);
}

#[test]
fn every_program_finds_what_it_needs() {
    prints(
        json!({}),
        "cat /dev/null; echo x > /dev/null; head -c 2 /dev/zero | wc -c",
        "2\n",
    );
    prints(
        json!({}),
        "cat /proc/self/comm; head -c 1 /dev/urandom | wc -c",
        "cat\n1\n",
    );
    prints(json!({}), "cat <(echo through a pipe)", "through a pipe\n");
}

#[test]
fn environment_of_other_processes_is_closed() {
    refused(json!({}), "cat /proc/$PPID/environ", DENIED);
    refused(json!({}), "cat /proc/$PPID/maps", DENIED);
    refused(json!({}), "ls /proc/$PPID/cwd/", DENIED);
    refused(json!({}), "cat /proc/$PPID/root/etc/passwd", DENIED);
}

#[test]
fn private_folder_is_writable_and_goes_away() {
    let world = World::new();
    let ran = world
        .confined(
            json!({}),
            "echo x > $TMPDIR/file && cat $TMPDIR/file && echo $TMPDIR",
        )
        .unwrap();
    let (content, folder) = ran.stdout.split_once('\n').unwrap();
    assert_eq!(content, "x");
    assert!(folder.contains("pitool-tmp-"));
    assert!(!Path::new(folder.trim()).exists());
}

#[test]
fn no_network_is_no_socket() {
    let script = r#"python3 -c '
import socket
for kind in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK):
    try:
        socket.socket(kind)
        print("open", kind)
    except PermissionError:
        pass
try:
    socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    print("open datagram pair")
except PermissionError:
    pass
a, b = socket.socketpair()
a.send(b"pair")
print(b.recv(4).decode())
'"#;
    let script = script.replace("python3", "/usr/bin/python3");
    if Path::new("/usr/bin/python3").exists() {
        prints(json!({"network": false}), &script, "pair\n");
    }
}

#[test]
fn connect_is_refused_without_network_and_works_with_it() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    refused(json!({}), &script, "Operation not permitted");
    prints(json!({"network": true}), &script, "");
}

#[test]
fn memory_limit_holds() {
    let script = "x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo ${#x}";
    refused(json!({"memoryMb": 64}), script, "cannot allocate");
}

#[test]
fn processor_limit_ends_the_process_and_says_so() {
    use std::os::unix::process::ExitStatusExt;
    let ran = World::new()
        .confined(json!({"cpuSeconds": 1}), "while :; do :; done")
        .unwrap();
    assert_eq!(ran.status.signal(), Some(libc::SIGXCPU));
}

#[test]
fn pitool_cannot_be_signalled() {
    refused(json!({}), "kill -0 $PPID", "not permitted");
}

#[test]
fn path_that_does_not_exist_fails_the_call() {
    let error = World::new()
        .confined(json!({"write": ["missing"]}), "true")
        .err()
        .unwrap();
    assert!(error.starts_with("The sandbox of this tool cannot be enforced, so it was not run: "));
    assert!(error.ends_with("/cwd/missing: No such file or directory (os error 2)"));
}

#[test]
fn socket_folder_is_open_to_its_tool() {
    let world = World::new();
    let socket = world.root.path().join("cwd/in/socket");
    let sandbox = sandbox_of(json!({}), &world.root.path().join("home"));
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "echo x > in/request"]);
    command.current_dir(world.root.path().join("cwd"));
    let place = Place {
        cwd: Path::new("."),
        program: Path::new("/bin/sh"),
        socket: Some(&socket),
    };
    let _confined = sandbox.confine(&mut command, place).unwrap();
    assert!(command.status().unwrap().success());
}

#[test]
fn filter_is_confined_but_not_limited() {
    let sandbox = |sandbox| sandbox_of(sandbox, Path::new("/"));
    assert_eq!(
        sandbox(json!({"read": ["."]})).enforceable_for_filter(),
        Ok(())
    );
    let limited = sandbox(json!({"memoryMb": 1})).enforceable_for_filter();
    assert!(limited.unwrap_err().contains("jq filter"));
}

#[test]
fn sandbox_is_described_in_one_line() {
    let sandbox =
        json!({"read": [".", "/srv"], "write": ["out"], "memoryMb": 512, "cpuSeconds": 10});
    assert_eq!(
        sandbox_of(sandbox, Path::new("/")).describe(),
        "reads . /srv, writes out, no network, 512 MiB of memory per process, 10 s of processor time per process"
    );
    assert_eq!(
        sandbox_of(json!({"network": true}), Path::new("/")).describe(),
        "reads nothing, writes nothing, network"
    );
}

#[test]
fn malformed_manifests_are_refused() {
    for wrong in [
        json!({"reads": []}),
        json!({"read": "."}),
        json!({"memoryMb": 0}),
        json!({"cpuSeconds": 1.5}),
        json!({"network": "no"}),
    ] {
        assert!(
            serde_json::from_value::<SandboxManifest>(wrong.clone()).is_err(),
            "{wrong}"
        );
    }
    let empty = SandboxManifest {
        write: vec!["out".into(), "".into()],
        ..SandboxManifest::default()
    };
    assert_eq!(
        Sandbox::new(empty, Path::new("/")).unwrap_err().to_string(),
        "/write/1: empty path"
    );
}

//! Links the release build for Linux at a fixed address, with the unwinder inside and the code of a short run in one
//! place. Development builds and other systems are linked as usual.
//!
//! - A position-independent program of this size begins by adjusting tens of thousands of its own pointers, a page fault
//!   for every few of them: with them done at link time a run of one call starts 0.8 ms sooner. The price is that the
//!   program's own code always lies at the same address; its libraries, heap and stacks do not.
//! - One call needs a fifteenth of the code, a little of everywhere, and every 64 KiB of code that are touched are a page
//!   fault of their own. With what it needs side by side, as `order.txt` lists it, it ends 0.4 ms sooner. The names in
//!   that list belong to one compiler, one `Cargo.lock` and this code; a name that is not there any more is passed over.
//!   `benches/order` writes the list anew.
//!
//! With `PITOOL_LINK_MAP=FILE` the linker writes down what lies where.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The functions that a short run needs, a name a line.
const ORDER: &str = "src/link/order.txt";

fn main() {
    println!("cargo:rerun-if-changed=src/link/build.rs");
    println!("cargo:rerun-if-changed={ORDER}");
    println!("cargo:rerun-if-env-changed=PITOOL_LINK_MAP");
    let is_gnu_linux =
        variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    // A static program is linked at a fixed address or not by its own rules.
    let is_static = variable("CARGO_CFG_TARGET_FEATURE").contains("crt-static");
    if variable("PROFILE") != "release" || !is_gnu_linux {
        return;
    }
    if !is_static {
        println!("cargo:rustc-link-arg-bins=-no-pie");
        if let Some(folder) = unwinder() {
            println!("cargo:rustc-link-search=native={}", folder.display());
            println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
        }
    }
    let order = Path::new(&variable("CARGO_MANIFEST_DIR")).join(ORDER);
    let in_order = [
        format!("-Wl,--symbol-ordering-file={}", order.display()),
        "-Wl,--no-warn-symbol-ordering".to_owned(),
    ];
    if links_with(&in_order) {
        for argument in in_order {
            println!("cargo:rustc-link-arg-bins={argument}");
        }
    }
    let map = variable("PITOOL_LINK_MAP");
    if !map.is_empty() {
        println!("cargo:rustc-link-arg-bins=-Wl,-Map={map}");
    }
}

/// A variable that Cargo set, or nothing.
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// Where the C compiler has what unwinds the stack as a static library: with it there is one library less to load.
fn unwinder() -> Option<PathBuf> {
    let answer = Command::new("cc")
        .arg("-print-file-name=libgcc_eh.a")
        .output()
        .ok()?;
    let path = PathBuf::from(String::from_utf8(answer.stdout).ok()?.trim());
    // A name without a folder means that there is none.
    path.is_absolute().then(|| path.parent().map(Into::into))?
}

/// Whether the linker of this build takes these arguments: Rust's own does, others may not.
fn links_with(arguments: &[String]) -> bool {
    let folder = PathBuf::from(variable("OUT_DIR"));
    let source = folder.join("nothing.rs");
    if std::fs::write(&source, "fn main() {}").is_err() {
        return false;
    }
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    let mut rustc = Command::new(variable("RUSTC"));
    rustc
        .args(["--crate-type", "bin", "--target", &variable("TARGET"), "-o"])
        .args([folder.join("nothing"), source])
        .args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={}", linker.display()));
    }
    for argument in arguments {
        rustc.arg("-C").arg(format!("link-arg={argument}"));
    }
    let linked = rustc.stdout(Stdio::null()).stderr(Stdio::null()).status();
    linked.is_ok_and(|status| status.success())
}

//! Links the release build for Linux at a fixed address, with the unwinder inside.
//!
//! A position-independent program of this size begins by adjusting tens of thousands of its own pointers, a page fault
//! for every few of them: with them done at link time a run of one call starts 0.8 ms sooner. The price is that the
//! program's own code always lies at the same address; its libraries, heap and stacks do not. Development builds and
//! other systems are linked as usual.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let is_gnu_linux =
        variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    // A static program is linked at a fixed address or not by its own rules.
    let is_static = variable("CARGO_CFG_TARGET_FEATURE").contains("crt-static");
    if variable("PROFILE") == "release" && is_gnu_linux && !is_static {
        println!("cargo:rustc-link-arg-bins=-no-pie");
        if let Some(folder) = unwinder() {
            println!("cargo:rustc-link-search=native={}", folder.display());
            println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
        }
    }
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

//! What mutations begin with: files of the project, and inputs that once did something new.

use std::path::{Path, PathBuf};

/// The most that one input holds: more only takes longer.
pub(crate) const MAX_BYTES: usize = 32 * 1024;

/// All files of `corpus/NAME` and those below the folders or files `beside`, in a fixed order.
pub(crate) fn load(name: &str, beside: &[&str]) -> Vec<Vec<u8>> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    collect(&project.join("tests/fuzz/corpus").join(name), &mut files);
    for place in beside {
        collect(&project.join(place), &mut files);
    }
    let inputs = files.iter().map(|file| std::fs::read(file).unwrap());
    let inputs: Vec<Vec<u8>> = inputs.filter(|input| input.len() <= MAX_BYTES).collect();
    assert!(!inputs.is_empty(), "{name} has no corpus");
    inputs
}

fn collect(place: &Path, files: &mut Vec<PathBuf>) {
    if place.is_file() {
        files.push(place.to_owned());
        return;
    }
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let mut places: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    places.sort();
    for place in places {
        collect(&place, files);
    }
}

//! Every message in `samples/`, run with the shipped tools: what is printed is what `tests/golden/samples/` says.
//!
//! `PITOOL_UPDATE_GOLDEN=1 cargo test` writes the files anew.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Test, project};

fn golden_folder() -> PathBuf {
    project().join("tests/golden/samples")
}

/// The names of the files of a folder that end so, without that ending.
fn names(folder: &Path, ending: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(ending).map(str::to_owned)
        })
        .collect()
}

/// What changes from run to run, made the same.
fn normalised(text: &str) -> String {
    let volatile = regex::Regex::new(r#""(durationMs|timestamp)":\d+"#).unwrap();
    volatile.replace_all(text, "\"$1\":0").into_owned()
}

/// What runs of the sample say, as a person would see it: the messages, and the outcomes for programs.
fn transcript(sample: &str) -> String {
    let mut text = String::new();
    for options in ["", " --output outcomes"] {
        writeln!(text, "$ pitool run{options} < samples/{sample}.json").unwrap();
        let message = fs::read(project().join(format!("samples/{sample}.json"))).unwrap();
        let done = Test::new(["run"])
            .args(options.split_whitespace())
            .shipped_tools()
            .stdin(message)
            .run();
        text += &normalised(&done.stdout);
        for line in done.stderr.lines() {
            writeln!(text, "[stderr] {line}").unwrap();
        }
        writeln!(text, "[exit {}]", done.code.unwrap()).unwrap();
    }
    text
}

#[test]
fn every_sample_prints_what_its_golden_file_says() {
    let samples = names(&project().join("samples"), ".json");
    assert!(samples.contains("echo"));
    let update = std::env::var_os("PITOOL_UPDATE_GOLDEN").is_some();
    for sample in &samples {
        let file = golden_folder().join(format!("{sample}.txt"));
        let printed = transcript(sample);
        if update {
            fs::create_dir_all(golden_folder()).unwrap();
            fs::write(&file, &printed).unwrap();
        }
        let golden = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(
            printed, golden,
            "samples/{sample}.json differs; PITOOL_UPDATE_GOLDEN=1 rewrites"
        );
    }
    assert_eq!(names(&golden_folder(), ".txt"), samples);
}

//! The case files: one JSON object a line.

use std::{
    env,
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
};

use pitool::json;
use serde_json::Value;

/// One case of validation.
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) schema: Value,
    pub(crate) arguments: Value,
    pub(crate) expect: Value,
    /// Whether the arguments pass as they are, where the case says so.
    pub(crate) check: Option<bool>,
    /// Why the reference's answer depends on JavaScript; empty where it does not.
    pub(crate) why: Vec<String>,
    /// Whether the case is about a call whose arguments were no JSON, which never reaches the schema.
    pub(crate) is_arguments_error: bool,
}

/// Reads a file that lies beside the tests.
pub(crate) fn committed(name: &str) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    read(&folder.join(name))
}

/// Reads a file that may lie outside the repository; nothing where it does not.
pub(crate) fn read_outside(name: &str) -> Vec<Case> {
    outside(name).map_or_else(Vec::new, |file| read(&file))
}

/// A file outside the repository, where it is there.
pub(crate) fn outside(name: &str) -> Option<PathBuf> {
    let folder = env::var_os("PITOOL_CONFORMANCE").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/conformance"),
        PathBuf::from,
    );
    Some(folder.join(name)).filter(|file| file.exists())
}

fn read(file: &Path) -> Vec<Case> {
    let lines = BufReader::new(File::open(file).expect("the case file opens")).split(b'\n');
    lines
        .map(|line| case(&line.expect("the case file is readable")))
        .collect()
}

fn case(line: &[u8]) -> Case {
    let mut case = json::parse(line).expect("a case is JSON");
    let why = case["why"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    Case {
        id: case["id"].as_str().expect("a case has an id").to_owned(),
        why: why.map(str::to_owned).collect(),
        check: case["check"].as_bool(),
        is_arguments_error: case["argumentsError"]
            .as_str()
            .is_some_and(|text| !text.is_empty()),
        schema: case["schema"].take(),
        arguments: case["arguments"].take(),
        expect: case["expect"].take(),
    }
}

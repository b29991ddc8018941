//! A file in `tools.d`.

use std::cell::OnceCell;

use pitool::format::Format;
use pitool::format::declare::{Strictness, declare};
use pitool::registry::Registry;
use pitool::tool::{Executor, Tool};
use serde_json::json;

use crate::harness::{Observed, Target};

pub(crate) const TARGET: Target = Target {
    name: "manifest",
    beside: &["tools.d", "samples/course/tools.d"],
    inputs: 1_000,
    check,
};

thread_local! {
    static FOLDER: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
}

fn check(input: &[u8], observed: &mut Observed) {
    let folder = FOLDER.with(|folder| {
        let folder = folder.get_or_init(|| tempfile::tempdir().unwrap());
        folder.path().to_owned()
    });
    std::fs::write(folder.join("a.json"), input).unwrap();
    let loaded = Registry::load(&[folder]);
    let lines = input.split(|byte| *byte == b'\n').count();
    for problem in &loaded.problems {
        observed.sentence(&problem.message);
        assert!(!problem.message.is_empty());
        assert!(
            problem.line.is_none_or(|line| (1..=lines).contains(&line)),
            "{problem}"
        );
    }
    let registry = &loaded.registry;
    if loaded.unloadable().is_some() {
        assert!(registry.tools().is_empty() && registry.hooks().is_empty());
    }
    for tool in registry.tools() {
        use_tool(tool, observed);
    }
    for format in Format::ALL {
        for strictness in [Strictness::AsDeclared, Strictness::WherePossible] {
            let declared = declare(registry.tools(), format, strictness);
            for finding in declared.findings {
                observed.fact(finding.rule);
            }
        }
    }
}

fn use_tool(tool: &Tool, observed: &mut Observed) {
    if let Executor::Program(program) = &tool.executor
        && let Err(error) = program.check()
    {
        observed.sentence(&error.message);
    }
    let Ok(schema) = tool.schema() else {
        return observed.fact("no schema");
    };
    for finding in schema.findings() {
        observed.sentence(&finding.message);
    }
    for value in [json!({}), json!({"path": 1, "value": ["x"]}), json!(null)] {
        observed.fact(schema.check(&value));
    }
}

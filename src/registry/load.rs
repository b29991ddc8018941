//! From tools folders to a registry, with every problem on the way.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

use super::Registry;
use super::file::{self, Definition};
use super::folder::{self, Listed};
use super::problem::{Problem, Severity};
use crate::mcp::ServerConfig;
use crate::tool::Tool;

/// From this many files on, threads share the work: before, starting one costs more than it saves.
const FILES_FOR_THREADS: usize = 128;

/// More threads than this gain nothing, as the files come from one folder.
const MAX_THREADS: usize = 4;

/// What the tools folders hold.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The tools and hooks that are right.
    pub registry: Registry,
    /// All that is wrong, in file order and in a file from top to bottom.
    pub problems: Vec<Problem>,
}

impl Loaded {
    /// The first file that could not be loaded. If there is one, no tool may run: what is missing could be a guard.
    pub fn unloadable(&self) -> Option<&Path> {
        self.problems
            .iter()
            .find(|problem| problem.severity == Severity::Error)
            .map(|problem| problem.file.as_path())
    }
}

impl Registry {
    /// Loads the manifests of `dirs`, in that order, within each by file name. Never fails and never stops early:
    /// what is wrong is told in [`Loaded::problems`]. Compiles no schema and no filter, and starts nothing.
    pub fn load(dirs: &[PathBuf]) -> Loaded {
        let mut loaded = Loaded::default();
        for dir in dirs {
            loaded.load_folder(dir);
        }
        loaded
    }
}

impl Loaded {
    fn load_folder(&mut self, dir: &Path) {
        let files = match folder::manifests(dir) {
            Ok(files) => files,
            Err(problem) => return self.problems.push(problem),
        };
        // Programs run elsewhere too, so the folder they are relative to must not depend on where.
        let home = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        for definition in definitions(&files, &home) {
            match definition {
                Ok(Definition::Tool(tool)) => self.add_tool(*tool),
                Ok(Definition::Hook(hook)) => self.registry.add_hook(hook),
                Ok(Definition::Servers { servers, warnings }) => {
                    self.problems.extend(warnings);
                    self.add_servers(servers);
                }
                Err(problems) => self.problems.extend(problems),
            }
        }
    }

    fn add_tool(&mut self, tool: Tool) {
        match self.registry.get(tool.name()) {
            Some(first) => self.problems.push(file::second_of_its_name(&tool, first)),
            None => self
                .registry
                .register(tool)
                .expect("its name was free a line above"),
        }
    }
}

impl Loaded {
    fn add_servers(&mut self, servers: Vec<ServerConfig>) {
        for server in servers {
            let (name, path) = (server.name.clone(), server.source.clone());
            if let Err(first) = self.registry.add_server(server) {
                let problem = file::second_server(&path, &name, first.config());
                self.problems.push(problem);
            }
        }
    }
}

/// What each file holds, in the order of the files.
fn definitions(files: &[Listed], home: &Path) -> Vec<Result<Definition, Vec<Problem>>> {
    let load = |files: &[Listed]| -> Vec<_> {
        files
            .iter()
            .map(|listed| file::load(listed, home))
            .collect()
    };
    if files.len() < FILES_FOR_THREADS {
        return load(files);
    }
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let share = files.len().div_ceil(threads.min(MAX_THREADS));
    thread::scope(|scope| {
        let shares = files.chunks(share);
        let running: Vec<_> = shares
            .map(|share| scope.spawn(move || load(share)))
            .collect();
        let loaded = running
            .into_iter()
            .map(|thread| thread.join().expect("loading does not panic"));
        loaded.flatten().collect()
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::json;

    use super::*;

    /// A tools folder with these files, loaded; problems as text, each with its hint behind an arrow.
    fn load(files: &[(&str, &str)]) -> (Loaded, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let loaded = Registry::load(&[dir.path().to_owned()]);
        let folder = format!("{}/", dir.path().display());
        let told = |problem: &Problem| match &problem.hint {
            Some(hint) => format!("{problem} -> {hint}"),
            None => problem.to_string(),
        };
        let problems = loaded.problems.iter().map(told);
        let problems = problems.map(|told| told.replace(&folder, "")).collect();
        (loaded, problems)
    }

    #[track_caller]
    fn case(text: &str, expected: &[&str]) {
        let (loaded, problems) = load(&[("a.json", text)]);
        assert_eq!(problems, expected);
        assert_eq!(loaded.unloadable().is_some(), !expected.is_empty());
        let registry = &loaded.registry;
        let count = registry.tools().len() + registry.hooks().len();
        assert_eq!(count, usize::from(expected.is_empty()));
    }

    /// A tool's manifest with more fields, from line 2 on.
    fn tool(more: &str) -> String {
        format!(
            "{{\"name\": \"t\", \"description\": \"d\", \"execute\": {{\"jq\": \".\"}}{}{more}}}",
            if more.is_empty() { "" } else { ",\n" }
        )
    }

    #[test]
    fn what_is_right_has_no_problem() {
        case(&tool(""), &[]);
        case(
            &tool(
                r#""$schema": "x", "$comment": [1], "label": "T", "parameters": {"properties": {"p": true}},
                "constrainedSampling": null, "outputSchema": {}, "prepareArguments": {"jq": "."},
                "executionMode": "parallel", "replay": "safe", "coerce": "off", "unknownArguments": "strip",
                "mutates": ["p"], "callsTools": ["x_*"], "sandbox": {"read": ["."]}"#,
            ),
            &[],
        );
        case(
            r#"{"$schema": "x", "$comment": 1, "hook": "afterToolCall", "tools": ["a*"], "run": {"jq": "."}}"#,
            &[],
        );
        case(
            r#"{"hook": "beforeToolCall", "run": {"command": ["true"]}}"#,
            &[],
        );
    }

    #[test]
    fn what_is_not_json_is_located() {
        case(
            "",
            &["a.json:1:1: not valid JSON: unexpected end of the text"],
        );
        case(
            "{\n  \"name\": nope\n}",
            &["a.json:2:12: not valid JSON: expected `null`"],
        );
        case(
            "{\"a\": 1,\n}",
            &["a.json:2:1: not valid JSON: expected a key in double quotes"],
        );
        case(
            "{} {}",
            &["a.json:1:4: not valid JSON: unexpected text after the value"],
        );
    }

    #[test]
    fn unusual_json_is_json() {
        let text = tool(r#""parameters": {"pattern": "\ud800"}"#);
        case(&format!("\u{feff}{text}"), &[]);
    }

    #[test]
    fn deep_manifests_are_read_and_endless_ones_refused() {
        let nested = |depth: usize| {
            let schema = format!("{}true{}", "{\"not\":".repeat(depth), "}".repeat(depth));
            tool(&format!("\"parameters\": {schema}"))
        };
        case(&nested(json::MAX_DEPTH - 2), &[]);
        for depth in [json::MAX_DEPTH, 100_000] {
            case(
                &nested(depth),
                &["a.json: is nested more than 512 levels deep"],
            );
        }
    }

    #[test]
    fn another_kind_of_value_is_no_manifest() {
        case("[]", &["a.json:1:1: expected an object, got array"]);
        case("\n null", &["a.json:2:2: expected an object, got null"]);
    }

    #[test]
    fn unknown_fields_suggest_the_one_that_was_meant() {
        case(
            &tool(r#"  "exekution_mode": "parallel", "color": 1"#),
            &[
                "a.json:2:3: unknown field \"exekution_mode\" -> did you mean \"executionMode\"?",
                "a.json:2:33: unknown field \"color\"",
            ],
        );
        case(
            &tool(r#""inputSchema": {}"#),
            &["a.json:2:1: unknown field \"inputSchema\" -> did you mean \"parameters\"?"],
        );
    }

    #[test]
    fn a_field_of_a_program_is_sent_into_execute() {
        case(
            &tool(r#""timeoutMs": 5"#),
            &["a.json:2:1: unknown field \"timeoutMs\" -> \"timeoutMs\" belongs in \"execute\""],
        );
    }

    #[test]
    fn a_case_among_manifests_is_sent_into_its_folder() {
        case(
            r#"{"call": {"name": "t"}}"#,
            &[
                "a.json:1:1: missing field \"name\"",
                "a.json:1:2: unknown field \"call\" -> cases of tools stand in the folder \"cases\" below",
            ],
        );
    }

    #[test]
    fn unknown_fields_inside_name_their_place() {
        case(
            &tool(
                r#""prepareArguments": {"jq": ".", "outptu": "text"}, "sandbox": {"writes": []}"#,
            ),
            &[
                "a.json:2:33: prepareArguments: unknown field \"outptu\" -> did you mean \"output\"?",
                "a.json:2:64: sandbox: unknown field \"writes\" -> did you mean \"write\"?",
            ],
        );
    }

    #[test]
    fn missing_fields_are_named() {
        case("{}", &["a.json:1:1: missing field \"name\""]);
        case(
            r#" {"name": "a", "execute": {"jq": "."}}"#,
            &["a.json:1:2: missing field \"description\""],
        );
        case(
            r#"{"name": "a", "description": ""}"#,
            &["a.json:1:1: missing field \"execute\""],
        );
        case(
            r#"{"hook": "beforeToolCall"}"#,
            &["a.json:1:1: missing field \"run\""],
        );
    }

    #[test]
    fn a_hook_without_its_word_is_still_judged_as_a_hook() {
        case(
            r#"{"hok": "beforeToolCall", "run": {"jq": "."}}"#,
            &[
                "a.json:1:1: missing field \"hook\"",
                "a.json:1:2: unknown field \"hok\" -> did you mean \"hook\"?",
            ],
        );
        case(
            r#"{"hook": "beforeTool", "tools": "x", "run": {"jq": 1}}"#,
            &[
                "a.json:1:10: hook: \"beforeTool\" is not one of \"beforeToolCall\", \"afterToolCall\" -> did you mean \"beforeToolCall\"?",
                "a.json:1:33: tools: expected an array, got string",
                "a.json:1:52: run.jq: expected a string, got integer",
            ],
        );
        case(
            r#"{"hook": "beforeToolCall", "name": "x", "run": {"jq": "."}}"#,
            &["a.json:1:28: unknown field \"name\""],
        );
    }

    #[test]
    fn wrong_values_are_all_named() {
        case(
            r#"{"name": 1, "description": null, "label": null, "execute": [], "executionMode": "paralel",
"replay": true, "coerce": "Strict", "unknownArguments": "drop", "mutates": "path", "callsTools": "all"}"#,
            &[
                "a.json:1:10: name: expected a string, got integer",
                "a.json:1:28: description: expected a string, got null",
                "a.json:1:43: label: expected a string, got null",
                "a.json:1:60: execute: expected an object, got array",
                "a.json:1:81: executionMode: \"paralel\" is not one of \"sequential\", \"parallel\" -> did you mean \"parallel\"?",
                "a.json:2:11: replay: expected \"never\" or \"safe\", got boolean",
                "a.json:2:27: coerce: \"Strict\" is not one of \"standard\", \"off\", \"extended\"",
                "a.json:2:57: unknownArguments: \"drop\" is not one of \"schema\", \"strip\"",
                "a.json:2:76: mutates: expected an array, got string",
                "a.json:2:98: callsTools: expected true, false or a list of name patterns, got string",
            ],
        );
    }

    #[test]
    fn a_field_given_twice_is_told() {
        case(
            &tool(r#""label": "a", "label": "b""#),
            &["a.json:2:21: duplicate field \"label\""],
        );
        case(
            r#"{"hook": "beforeToolCall", "run": {"jq": "."}, "run": {"jq": "."}}"#,
            &["a.json:1:52: duplicate field \"run\""],
        );
    }

    #[test]
    fn names_are_of_certain_characters() {
        let named = |name: &str| {
            format!(r#"{{"name": "{name}", "description": "", "execute": {{"jq": "."}}}}"#)
        };
        case(&named(&"x".repeat(128)), &[]);
        case(&named("A-z_0.9"), &[]);
        let wrong = |shown: &str| {
            format!("a.json:1:10: name: a name is 1 to 128 of A-Z a-z 0-9 _ . -, got \"{shown}\"")
        };
        case(&named(""), &[&wrong("")]);
        case(&named("a b"), &[&wrong("a b")]);
        case(&named("übung"), &[&wrong("übung")]);
        case(
            &named(&"é".repeat(129)),
            &[&wrong(&format!("{}…", "é".repeat(40)))],
        );
    }

    #[test]
    fn mutates_names_declared_arguments() {
        case(
            &tool(r#""parameters": {"properties": {"path": {}}}, "mutates": ["path", "pth"]"#),
            &["a.json:2:65: mutates.1: \"parameters\" declares no property \"pth\""],
        );
        case(
            &tool(r#""mutates": ["path"]"#),
            &["a.json:2:13: mutates.0: \"parameters\" declares no property \"path\""],
        );
    }

    #[test]
    fn what_is_wrong_with_programs_and_sandboxes_is_located() {
        case(
            r#"{"name": "a", "description": "", "execute": {"command": ["cat", "{path}"]},
"prepareArguments": {"timeoutMs": 1}, "sandbox": {"read": [""]}}"#,
            &[
                "a.json:1:65: execute.command.1: `{path}` is not declared in the properties of the parameters; a literal brace is `{{`",
                "a.json:2:21: prepareArguments: a program needs \"command\" or \"jq\"",
                "a.json:2:60: sandbox.read.0: empty path",
            ],
        );
        case(
            r#"{"hook": "afterToolCall", "run": {"jq": ".", "command": ["a"]}}"#,
            &["a.json:1:41: run.jq: a program is either a \"command\" or \"jq\", not both"],
        );
    }

    #[test]
    fn two_tools_of_one_name_name_both_files() {
        let (loaded, problems) = load(&[("b.json", &tool("")), ("a.json", &tool(""))]);
        assert_eq!(
            problems,
            ["b.json:1:10: a tool \"t\" is already defined in a.json"]
        );
        assert!(loaded.unloadable().unwrap().ends_with("b.json"));
    }

    #[test]
    fn problems_of_all_files_are_collected() {
        let (loaded, problems) = load(&[
            ("a.json", "{"),
            ("b.json", &tool("")),
            ("c.json", &tool(r#""x": 1"#)),
        ]);
        assert_eq!(
            problems,
            [
                "a.json:1:2: not valid JSON: unexpected end of the text",
                "c.json:2:1: unknown field \"x\""
            ]
        );
        assert!(loaded.unloadable().unwrap().ends_with("a.json"));
        assert!(loaded.registry.get("t").is_some());
    }

    #[test]
    fn folders_come_in_the_given_order() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        fs::write(
            dirs[0].path().join("z.json"),
            tool("").replace("\"t\"", "\"first\""),
        )
        .unwrap();
        fs::write(
            dirs[1].path().join("a.json"),
            tool("").replace("\"t\"", "\"second\""),
        )
        .unwrap();
        let loaded = Registry::load(&[dirs[0].path().to_owned(), dirs[1].path().to_owned()]);
        let names: Vec<&str> = loaded
            .registry
            .tools()
            .iter()
            .map(|tool| tool.name())
            .collect();
        assert_eq!(names, ["first", "second"]);
    }

    #[test]
    fn a_missing_folder_is_a_problem() {
        let loaded = Registry::load(&[PathBuf::from("/nowhere/tools.d")]);
        assert_eq!(
            loaded.problems[0].to_string(),
            "/nowhere/tools.d: there is no such folder"
        );
    }

    #[test]
    fn a_schema_that_does_not_compile_is_found_at_the_call() {
        let (loaded, problems) =
            load(&[("a.json", &tool(r#""parameters": null, "outputSchema": 5"#))]);
        assert_eq!(problems, [""; 0]);
        let tool = loaded.registry.get("t").unwrap();
        assert!(tool.schema().is_err());
        assert!(tool.compiled_output_schema().unwrap().is_err());
    }

    #[test]
    fn absent_parameters_are_any_object() {
        let (loaded, _) = load(&[("a.json", &tool(""))]);
        let tool = loaded.registry.get("t").unwrap();
        assert_eq!(
            *tool.declaration.parameters.read(),
            serde_json::json!({"type": "object"})
        );
        assert!(tool.source.as_ref().unwrap().ends_with("a.json"));
    }
}

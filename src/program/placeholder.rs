//! Placeholders: `{NAME}` in the elements of a command and in `stdin.text`, and what the arguments make of them.
//!
//! A value is passed, never interpreted: there is no shell, a value cannot become an option, and script text takes none.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ffi::OsString;

use serde_json::{Map, Value};

use super::interpreter::anatomy;
use super::{ProgramError, Throw, locate};
use crate::json;
use crate::schema::WrittenSchema;

/// More elements than any kernel takes; an error before memory is spent on them.
const MAX_ELEMENTS: usize = 1 << 17;

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Value(String),
}

impl Template {
    /// Splits a text. `{NAME}` is a placeholder unless it follows `$`; `{{` is a literal brace, other braces are literal.
    pub(crate) fn parse(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(brace) = rest.find('{') {
            literal.push_str(&rest[..brace]);
            let after = &rest[brace + 1..];
            if let Some(behind) = after.strip_prefix('{') {
                literal.push('{');
                rest = behind;
            } else if let Some((name, behind)) = name(after)
                && !literal.ends_with('$')
            {
                if !literal.is_empty() {
                    parts.push(Part::Literal(std::mem::take(&mut literal)));
                }
                parts.push(Part::Value(name.to_owned()));
                rest = behind;
            } else {
                literal.push('{');
                rest = after;
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Self { parts }
    }

    /// A text as it stands.
    fn literal(text: &str) -> Self {
        Self {
            parts: vec![Part::Literal(text.to_owned())],
        }
    }

    /// The names of the placeholders, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Value(name) => Some(name.as_str()),
            Part::Literal(_) => None,
        })
    }

    /// The text, if it has no placeholder.
    fn as_literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The name, if the whole is one placeholder.
    fn as_value(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Value(name)] => Some(name),
            _ => None,
        }
    }

    fn starts_with_dash(&self) -> bool {
        matches!(self.parts.first(), Some(Part::Literal(text)) if text.starts_with('-'))
    }

    /// One text: an absent value leaves nothing in its place, an array is JSON (for `stdin.text`).
    pub(crate) fn text(&self, arguments: &Value) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Value(name) => {
                    if let Some(value) = arguments.get(name) {
                        text.push_str(&value_text(value));
                    }
                }
            }
        }
        text
    }

    /// One element for each combination of the arrays in it; none if a value is absent.
    fn elements(&self, arguments: &Value) -> Result<Vec<String>, Throw> {
        let mut elements = vec![(String::new(), Vec::new())];
        for part in &self.parts {
            let name = match part {
                Part::Literal(literal) => {
                    for (text, _) in &mut elements {
                        text.push_str(literal);
                    }
                    continue;
                }
                Part::Value(name) => name.as_str(),
            };
            match arguments.get(name) {
                None => return Ok(Vec::new()),
                Some(Value::Array(items)) => elements = repeated(&elements, name, items)?,
                Some(value) => {
                    let value = value_text(value);
                    for (text, _) in &mut elements {
                        text.push_str(&value);
                    }
                }
            }
        }
        Ok(elements.into_iter().map(|(text, _)| text).collect())
    }
}

/// A text under construction, with the item that each array of it stands at.
type Unfinished<'a> = (String, Vec<(&'a str, usize)>);

/// Repeats each text for each item; an array that stands in a text already goes in step with itself.
fn repeated<'a>(
    texts: &[Unfinished<'a>],
    name: &'a str,
    items: &[Value],
) -> Result<Vec<Unfinished<'a>>, Throw> {
    let mut all = Vec::new();
    for (text, chosen) in texts {
        let before = chosen.iter().find(|(array, _)| *array == name);
        let range = before.map_or(0..items.len(), |&(_, at)| at..at + 1);
        for at in range {
            let mut chosen = chosen.clone();
            chosen.push((name, at));
            all.push((format!("{text}{}", value_text(&items[at])), chosen));
            if all.len() > MAX_ELEMENTS {
                return Err(Throw(format!(
                    "The arguments make more than {MAX_ELEMENTS} elements of the command"
                )));
            }
        }
    }
    Ok(all)
}

/// Strings as they are, everything else as compact JSON.
fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => json::compact(other),
    }
}

/// `NAME}` at the start of a text: the name, and what follows.
fn name(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')))?;
    let behind = text[end..].strip_prefix('}')?;
    (end > 0).then_some((&text[..end], behind))
}

/// What a tool's parameters say about the names that placeholders may use.
pub(crate) struct Declared<'a> {
    parameters: Option<&'a WrittenSchema>,
    /// The parameters, read for the first placeholder.
    schema: OnceCell<Cow<'a, Value>>,
}

impl<'a> Declared<'a> {
    pub(crate) fn new(parameters: Option<&'a WrittenSchema>) -> Self {
        Self {
            parameters,
            schema: OnceCell::new(),
        }
    }

    fn is_declared(&self, name: &str) -> bool {
        self.any(&|schema| {
            schema
                .get("properties")
                .and_then(Value::as_object)
                .is_some_and(|properties| properties.contains_key(name))
        })
    }

    fn is_required(&self, name: &str) -> bool {
        self.any(&|schema| {
            schema
                .get("required")
                .and_then(Value::as_array)
                .is_some_and(|required| required.iter().any(|one| one == name))
        })
    }

    /// Whether a claim holds of the schema or of a part of its `allOf`.
    fn any(&self, claim: &dyn Fn(&Map<String, Value>) -> bool) -> bool {
        let Some(parameters) = self.parameters else {
            return false;
        };
        let schema = self.schema.get_or_init(|| parameters.read());
        let Some(schema) = schema.as_object() else {
            return false;
        };
        let parts = schema.get("allOf").and_then(Value::as_array);
        claim(schema)
            || parts
                .into_iter()
                .flatten()
                .filter_map(Value::as_object)
                .any(claim)
    }

    /// Refuses a name that no property declares.
    pub(crate) fn check(&self, template: &Template, pointer: &str) -> Result<(), ProgramError> {
        match template.names().find(|name| !self.is_declared(name)) {
            None => Ok(()),
            Some(name) if self.parameters.is_none() => Err(ProgramError::new(
                pointer,
                format!(
                    "`{{{name}}}` stands for an argument, and there are none here; a literal brace is `{{{{`"
                ),
            )),
            Some(name) => Err(ProgramError::new(
                pointer,
                format!(
                    "`{{{name}}}` is not declared in the properties of the parameters; a literal brace is `{{{{`"
                ),
            )),
        }
    }
}

/// The elements of a command, ready for arguments.
#[derive(Debug, Clone)]
pub(crate) struct CommandTemplate {
    program: String,
    elements: Vec<Element>,
}

#[derive(Debug, Clone)]
struct Element {
    template: Template,
    /// A literal `--` stands before it and ends the options of the program.
    behind_dashes: bool,
    /// The literal option before it, which needs a value.
    option_before: Option<String>,
}

impl CommandTemplate {
    /// Reads the vector `command` of a manifest.
    pub(crate) fn new(command: &[String], declared: &Declared<'_>) -> Result<Self, ProgramError> {
        let Some((program, _)) = command.split_first() else {
            return Err(ProgramError::new("/command", "a command needs a program"));
        };
        if program.is_empty() {
            return Err(ProgramError::new("/command/0", "the program has no name"));
        }
        let anatomy = anatomy(command);
        let templates = command
            .iter()
            .enumerate()
            .map(|(at, text)| {
                let script = anatomy.scripts.iter().find(|(script, _)| *script == at);
                element(text, at, script.map(|&(_, start)| start), declared)
            })
            .collect::<Result<Vec<_>, _>>()?;
        for &at in &anatomy.programs {
            if templates[at].as_literal().is_none() {
                let advice = locate::advice_on_words(&command[at]);
                return Err(ProgramError::new(
                    format!("/command/{at}"),
                    format!("the program takes no placeholder{advice}"),
                ));
            }
        }
        let dashes = (anatomy.own_arguments.clone())
            .find(|&at| templates[at].as_literal() == Some("--"))
            .unwrap_or(command.len());
        let mut elements = Vec::with_capacity(templates.len() - 1);
        let mut option_before = None;
        for (at, template) in templates.into_iter().enumerate().skip(1) {
            let is_option = template
                .as_literal()
                .is_some_and(|text| text.starts_with('-') && text != "--" && at < dashes);
            let next_option = is_option.then(|| command[at].clone());
            let element = Element {
                template,
                behind_dashes: at > dashes,
                option_before,
            };
            element.check_value_of_option(at, declared)?;
            elements.push(element);
            option_before = next_option;
        }
        Ok(Self {
            program: program_text(program),
            elements,
        })
    }

    /// The program as the manifest names it.
    pub(crate) fn program(&self) -> &str {
        &self.program
    }

    /// Whether arguments of the call are among those of the process.
    pub(crate) fn has_placeholders(&self) -> bool {
        let mut templates = self.elements.iter().map(|element| &element.template);
        templates.any(|template| template.as_literal().is_none())
    }

    /// The arguments of the process.
    pub(crate) fn expand(&self, arguments: &Value) -> Result<Vec<OsString>, Throw> {
        let mut expanded = Vec::with_capacity(self.elements.len());
        for element in &self.elements {
            if let Some(literal) = element.template.as_literal() {
                expanded.push(literal.into());
                continue;
            }
            let texts = element.template.elements(arguments)?;
            element.guard(&texts, arguments)?;
            expanded.extend(texts.into_iter().map(OsString::from));
        }
        Ok(expanded)
    }
}

/// `{{` of the program's name is a brace like everywhere.
fn program_text(program: &str) -> String {
    let template = Template::parse(program);
    template.as_literal().unwrap_or(program).to_owned()
}

/// Reads one element; `script` is where script text begins in it.
fn element(
    text: &str,
    at: usize,
    script: Option<usize>,
    declared: &Declared<'_>,
) -> Result<Template, ProgramError> {
    let pointer = format!("/command/{at}");
    if text.contains('\0') {
        return Err(ProgramError::new(pointer, "an argument cannot hold a NUL"));
    }
    let template = Template::parse(text);
    if script.is_none() {
        // A program's name is judged by whoever knows that it is one.
        if at > 0 {
            declared.check(&template, &pointer)?;
        }
        return Ok(template);
    }
    match template.names().find(|name| declared.is_declared(name)) {
        None => Ok(Template::literal(text)),
        Some(name) => Err(ProgramError::new(
            pointer,
            format!(
                "script text takes no placeholder: pass `{{{name}}}` as an argument, \
                 as in [\"sh\", \"-c\", \"grep -c -e \\\"$1\\\"\", \"_\", \"{{{name}}}\"]"
            ),
        )),
    }
}

impl Element {
    /// An option must not lose its value because an optional argument is absent.
    fn check_value_of_option(
        &self,
        at: usize,
        declared: &Declared<'_>,
    ) -> Result<(), ProgramError> {
        let (Some(option), Some(name)) = (&self.option_before, self.template.as_value()) else {
            return Ok(());
        };
        if declared.is_required(name) {
            return Ok(());
        }
        let joined = if option.starts_with("--") {
            format!("{option}={{{name}}}")
        } else {
            format!("{option}{{{name}}}")
        };
        Err(ProgramError::new(
            format!("/command/{at}"),
            format!(
                "`{{{name}}}` is optional, and `{option}` before it would lose its value; write `{joined}`"
            ),
        ))
    }

    /// Refuses what the program would not take as a value.
    fn guard(&self, texts: &[String], arguments: &Value) -> Result<(), Throw> {
        let names = || {
            let names: Vec<String> = self
                .template
                .names()
                .map(|name| format!("\"{name}\""))
                .collect();
            names.join(", ")
        };
        if texts.is_empty()
            && let (Some(option), Some(name)) = (&self.option_before, self.template.as_value())
            && arguments.get(name).is_some()
        {
            return Err(Throw(format!(
                "The argument \"{name}\" is empty, and the option {option} needs a value"
            )));
        }
        if texts.iter().any(|text| text.contains('\0')) {
            return Err(Throw(format!(
                "The argument {} holds a NUL character, which no command line can carry",
                names()
            )));
        }
        if !self.behind_dashes
            && !self.template.starts_with_dash()
            && let Some(text) = texts.iter().find(|text| text.starts_with('-'))
        {
            let shown: String = text.chars().take(80).collect();
            return Err(Throw(format!(
                "The argument {} must not start with \"-\" here: {shown:?} would be read as an option",
                names()
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parameters() -> WrittenSchema {
        json!({"properties": {"q": {}, "t": {}, "n": {}, "a.b": {}}, "required": ["q"]}).into()
    }

    fn template(command: &[&str]) -> Result<CommandTemplate, ProgramError> {
        let command: Vec<String> = command.iter().map(ToString::to_string).collect();
        let parameters = parameters();
        CommandTemplate::new(&command, &Declared::new(Some(&parameters)))
    }

    #[track_caller]
    fn case(command: &[&str], arguments: &Value, expected: &[&str]) {
        let expanded = template(command).unwrap().expand(arguments).unwrap();
        assert_eq!(expanded, expected, "of {command:?}");
    }

    #[track_caller]
    fn wrong(command: &[&str], pointer: &str, message: &str) {
        let error = template(command).unwrap_err();
        assert_eq!(error.pointer, pointer, "{error:?}");
        assert!(error.message.contains(message), "{error:?}");
    }

    #[track_caller]
    fn refused(command: &[&str], arguments: &Value, message: &str) {
        let Throw(text) = template(command).unwrap().expand(arguments).unwrap_err();
        assert!(text.contains(message), "{text}");
    }

    #[test]
    fn values_become_text() {
        case(&["p", "{q}"], &json!({"q": "a b"}), &["a b"]);
        case(
            &["p", "{q}"],
            &json!({"q": 9_007_199_254_740_993_u64}),
            &["9007199254740993"],
        );
        case(
            &["p", "x{q}y"],
            &json!({"q": {"b": [1, "é"], "a": null}}),
            &[r#"x{"b":[1,"é"],"a":null}y"#],
        );
        case(&["p", "{q}"], &json!({"q": true}), &["true"]);
        case(&["p", "{q}"], &json!({"q": ""}), &[""]);
        case(&["p", "{a.b}"], &json!({"a.b": "dotted"}), &["dotted"]);
    }

    #[test]
    fn arrays_repeat_their_element() {
        case(
            &["p", "--tag={t}", "end"],
            &json!({"t": ["a", 2]}),
            &["--tag=a", "--tag=2", "end"],
        );
        case(&["p", "{t}", "end"], &json!({"t": []}), &["end"]);
        case(
            &["p", "{t}"],
            &json!({"t": [["n"], "s"]}),
            &[r#"["n"]"#, "s"],
        );
        case(
            &["p", "{t}={t}"],
            &json!({"t": ["a", "b"]}),
            &["a=a", "b=b"],
        );
        case(
            &["p", "{q}{t}"],
            &json!({"q": ["a", "b"], "t": [1, 2]}),
            &["a1", "a2", "b1", "b2"],
        );
    }

    #[test]
    fn absent_optional_drops_its_element() {
        case(&["p", "--n={n}", "{q}"], &json!({"q": "x"}), &["x"]);
    }

    #[test]
    fn braces_without_a_name_are_literal() {
        case(
            &["p", "{{q}", "{}", "{ q }", "${q}", "a{", "}{{{q}"],
            &json!({"q": "x"}),
            &["{q}", "{}", "{ q }", "${q}", "a{", "}{x"],
        );
    }

    #[test]
    fn a_value_never_becomes_an_option() {
        refused(
            &["p", "{q}"],
            &json!({"q": "-rf"}),
            "must not start with \"-\"",
        );
        refused(
            &["p", "{q}"],
            &json!({"q": ["ok", "-rf"]}),
            "must not start with \"-\"",
        );
        refused(
            &["p", "{q}x"],
            &json!({"q": -5}),
            "must not start with \"-\"",
        );
        refused(
            &["sh", "-c", "p \"$1\"", "_", "--", "{q}"],
            &json!({"q": "-x"}),
            "must not start",
        );
        refused(
            &["env", "--", "p", "{q}"],
            &json!({"q": "-x"}),
            "must not start",
        );
        case(&["p", "--", "{q}"], &json!({"q": "-rf"}), &["--", "-rf"]);
        case(&["p", "-{q}"], &json!({"q": "-x"}), &["--x"]);
        case(&["p", "-e", "x{q}"], &json!({"q": "-x"}), &["-e", "x-x"]);
        refused(&["p", "--", "{q}"], &json!({"q": "a\0b"}), "NUL");
    }

    #[test]
    fn an_option_never_loses_its_value() {
        wrong(&["p", "-n", "{n}"], "/command/2", "write `-n{n}`");
        wrong(&["p", "--num", "{n}"], "/command/2", "write `--num={n}`");
        case(&["p", "-e", "{q}"], &json!({"q": "x"}), &["-e", "x"]);
        case(&["p", "--", "{n}"], &json!({"q": "x"}), &["--"]);
        refused(&["p", "-e", "{q}"], &json!({"q": []}), "needs a value");
    }

    #[test]
    fn wrong_commands_are_refused() {
        wrong(&[], "/command", "needs a program");
        wrong(&[""], "/command/0", "no name");
        wrong(&["{q}"], "/command/0", "the program takes no placeholder");
        wrong(
            &["echo {q}"],
            "/command/0",
            "the program takes no placeholder; each word of a command is an element of its own",
        );
        wrong(
            &["env", "{q}"],
            "/command/1",
            "the program takes no placeholder",
        );
        wrong(&["p", "{other}"], "/command/1", "`{other}` is not declared");
        wrong(&["p", "a\0"], "/command/1", "NUL");
    }

    #[test]
    fn script_text_takes_no_placeholder() {
        wrong(
            &["sh", "-c", "grep {q}"],
            "/command/2",
            "script text takes no placeholder",
        );
        wrong(
            &["env", "A=1", "bash", "-ec", "{q}"],
            "/command/4",
            "script text",
        );
        case(&["awk", "{print}"], &json!({"q": "x"}), &["{print}"]);
        case(
            &["sh", "-c", "f() {{ :; }; echo {word}"],
            &json!({}),
            &["-c", "f() {{ :; }; echo {word}"],
        );
        case(
            &["sh", "-c", "grep \"$1\"", "_", "{q}"],
            &json!({"q": "x"}),
            &["-c", "grep \"$1\"", "_", "x"],
        );
    }

    #[test]
    fn text_has_one_place_per_value() {
        let template = Template::parse("{q}\n{n}|{t}");
        assert_eq!(template.text(&json!({"q": "a", "t": [1, 2]})), "a\n|[1,2]");
    }

    #[test]
    fn properties_of_all_of_are_declared() {
        let all_of = json!({"allOf": [{"properties": {"x": {}}, "required": ["x"]}]});
        let parameters = all_of.into();
        let command = ["p".to_owned(), "-e".to_owned(), "{x}".to_owned()];
        assert!(CommandTemplate::new(&command, &Declared::new(Some(&parameters))).is_ok());
    }
}

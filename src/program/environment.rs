//! The environment of a tool's process: short by default, so that no secret of ours reaches a tool that did not ask.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::{ProgramError, Throw};
use crate::json::pointer::escaped;

/// What every process gets of pitool's own environment; `LC_*` too.
const PASSED: [&str; 9] = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TMPDIR", "TZ",
];

/// Which call a process belongs to.
pub(crate) const CALL_ID: &str = "PITOOL_TOOL_CALL_ID";
pub(crate) const TOOL_NAME: &str = "PITOOL_TOOL_NAME";

/// Where the socket of a running pitool is; a process gets its own or none.
pub(crate) const SOCKET: &str = "PITOOL_SOCKET";

/// The variables of a manifest, ready for values.
#[derive(Debug, Clone, Default)]
pub(crate) struct EnvironmentTemplate {
    inherit: Inherit,
    added: Vec<(String, VariableText)>,
}

/// How much of pitool's own environment a process gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Inherit {
    #[default]
    Short,
    All,
}

/// A text in which `${NAME}` and `${NAME:-default}` stand for variables of pitool's own environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VariableText(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Variable {
        name: String,
        default: Option<String>,
    },
}

impl EnvironmentTemplate {
    /// Reads `env` of a manifest.
    pub(crate) fn new(
        env: &BTreeMap<String, String>,
        inherit: Inherit,
    ) -> Result<Self, ProgramError> {
        let added = env
            .iter()
            .map(|(name, value)| {
                let wrong = |message: &str| ProgramError::new(pointer(name), message);
                if name.is_empty() || name.contains(['=', '\0']) {
                    return Err(wrong("this is no name of a variable"));
                }
                if name.starts_with("PITOOL_") {
                    return Err(wrong("variables named PITOOL_* are set by pitool alone"));
                }
                if value.contains('\0') {
                    return Err(wrong("a variable cannot hold a NUL"));
                }
                let value = VariableText::parse(value).map_err(|message| wrong(&message))?;
                Ok((name.clone(), value))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { inherit, added })
    }

    /// The variables of a process, sorted by name, with `own` (those that pitool sets) last to have their way.
    pub(crate) fn variables(
        &self,
        own: impl IntoIterator<Item = (&'static str, OsString)>,
    ) -> Result<BTreeMap<OsString, OsString>, Throw> {
        let mut variables: BTreeMap<OsString, OsString> = match self.inherit {
            Inherit::All => std::env::vars_os()
                .filter(|(name, _)| name != SOCKET)
                .collect(),
            Inherit::Short => std::env::vars_os()
                .filter(|(name, _)| is_passed(name))
                .collect(),
        };
        for (name, text) in &self.added {
            let user = format!("the tool's {name}");
            variables.insert(name.into(), text.value(&user)?);
        }
        variables.extend(own.into_iter().map(|(name, value)| (name.into(), value)));
        Ok(variables)
    }
}

fn is_passed(name: &OsStr) -> bool {
    name.to_str()
        .is_some_and(|name| PASSED.contains(&name) || name.starts_with("LC_"))
}

/// The JSON pointer of a variable, relative to its program.
fn pointer(name: &str) -> String {
    format!("/env/{}", escaped(name))
}

impl VariableText {
    /// Splits the text; what is no variable stands for itself.
    pub(crate) fn parse(value: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = value;
        while let Some(start) = rest.find("${") {
            let inside = &rest[start + 2..];
            let Some(end) = inside.find('}') else {
                return Err("`${` without `}`".to_owned());
            };
            let (name, default) = match inside[..end].split_once(":-") {
                Some((name, default)) => (name, Some(default.to_owned())),
                None => (&inside[..end], None),
            };
            let is_name = !name.is_empty()
                && !name.starts_with(|c: char| c.is_ascii_digit())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !is_name {
                return Err(format!(
                    "`${{{}}}` is not of the form ${{NAME}} or ${{NAME:-default}}",
                    &inside[..end]
                ));
            }
            if start > 0 {
                parts.push(Part::Literal(rest[..start].to_owned()));
            }
            parts.push(Part::Variable {
                name: name.to_owned(),
                default,
            });
            rest = &inside[end + 1..];
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Ok(Self(parts))
    }

    /// What the text means now, for `user`; as in a shell, `:-` also replaces an empty value.
    pub(crate) fn value(&self, user: &str) -> Result<OsString, Throw> {
        let mut value = OsString::new();
        for part in &self.0 {
            match part {
                Part::Literal(text) => value.push(text),
                Part::Variable { name, default } => match (std::env::var_os(name), default) {
                    (Some(set), default) if !set.is_empty() || default.is_none() => value.push(set),
                    (_, Some(default)) => value.push(default),
                    (_, None) => {
                        return Err(Throw(format!(
                            "Environment variable {name} is not set; {user} is made from it"
                        )));
                    }
                },
            }
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(env: &[(&str, &str)]) -> Result<EnvironmentTemplate, ProgramError> {
        let env = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        EnvironmentTemplate::new(&env, Inherit::Short)
    }

    #[track_caller]
    fn case(value: &str, expected: &str) {
        let variables = template(&[("X", value)]).unwrap().variables([]).unwrap();
        assert_eq!(variables[OsStr::new("X")], expected);
    }

    #[track_caller]
    fn wrong(name: &str, value: &str, pointer: &str, message: &str) {
        let error = template(&[(name, value)]).unwrap_err();
        assert_eq!(error.pointer, pointer);
        assert!(error.message.contains(message), "{error:?}");
    }

    #[test]
    fn values_use_our_environment() {
        let manifest_dir = std::env::var("CARGO_MANIFEST_DIR").unwrap();
        case("${CARGO_MANIFEST_DIR}/x", &format!("{manifest_dir}/x"));
        case("${PITOOL_TEST_UNSET:-a b}", "a b");
        case("${PITOOL_TEST_UNSET:-}", "");
        case("$HOME {x} $", "$HOME {x} $");
    }

    #[test]
    fn unset_variable_is_named() {
        let Throw(message) = template(&[("X", "${PITOOL_TEST_UNSET}")])
            .unwrap()
            .variables([])
            .unwrap_err();
        assert_eq!(
            message,
            "Environment variable PITOOL_TEST_UNSET is not set; the tool's X is made from it"
        );
    }

    #[test]
    fn wrong_variables_are_refused() {
        wrong("PITOOL_SOCKET", "x", "/env/PITOOL_SOCKET", "pitool alone");
        wrong("A=B", "x", "/env/A=B", "no name");
        wrong("a/b~", "${", "/env/a~1b~0", "without `}`");
        wrong("A", "${A B}", "/env/A", "not of the form");
    }

    #[test]
    fn only_the_short_list_is_passed() {
        let variables = template(&[])
            .unwrap()
            .variables([("OWN", "1".into())])
            .unwrap();
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
        for name in variables.keys() {
            assert!(is_passed(name) || name == "OWN", "{name:?}");
        }
    }
}

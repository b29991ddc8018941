//! Which element of a command is the text of a script: there a value would be code, so none may go there.
//!
//! Knows the interpreters that take a program as an argument and the programs that start another one (`env`,
//! `timeout`, …). What it does not know is taken for an ordinary program, whose arguments are its own.

use std::ops::Range;

/// What the elements of a command are, seen from the program that really runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Anatomy {
    /// The elements that are names of programs: the first one, and those behind `env` and the like.
    pub(crate) programs: Vec<usize>,
    /// The elements that hold script text, with the place in the element where the text begins.
    pub(crate) scripts: Vec<(usize, usize)>,
    /// Where a literal `--` ends the options of the program that really runs: behind its name, and not among the
    /// arguments of a script text.
    pub(crate) own_arguments: Range<usize>,
}

/// An interpreter that takes its program from the command line.
struct Interpreter {
    names: &'static [&'static str],
    /// Letters of short options whose argument is script text (`-c TEXT`, `-ec TEXT`, `-cTEXT`).
    script_letters: &'static str,
    /// Long options whose argument is script text.
    script_options: &'static [&'static str],
    /// Letters of short options that take some other argument.
    value_letters: &'static str,
    /// Letters and long options that name a script file, so that no operand is script text.
    file_letters: &'static str,
    file_options: &'static [&'static str],
    /// Where the script text stands.
    place: Place,
    /// Whether all that follows the script text is an argument of the script, `--` too.
    script_is_last: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Behind its option.
    Option,
    /// The first operand behind the options (`sh -c -e TEXT`).
    OperandAfterOption,
    /// The first operand, unless an option gave the script (`awk TEXT`).
    Operand,
}

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: &[
            "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "yash", "csh",
            "tcsh",
        ],
        script_letters: "c",
        script_options: &["--command"],
        value_letters: "oO",
        file_letters: "",
        file_options: &[],
        place: Place::OperandAfterOption,
        script_is_last: true,
    },
    Interpreter {
        names: &["python", "pypy"],
        script_letters: "c",
        script_options: &[],
        value_letters: "mWXQ",
        file_letters: "",
        file_options: &[],
        place: Place::Option,
        script_is_last: true,
    },
    Interpreter {
        names: &["perl"],
        script_letters: "eE",
        script_options: &[],
        value_letters: "I",
        file_letters: "",
        file_options: &[],
        place: Place::Option,
        script_is_last: false,
    },
    Interpreter {
        names: &[
            "ruby",
            "lua",
            "luajit",
            "julia",
            "R",
            "Rscript",
            "osascript",
            "guile",
            "elixir",
            "groovy",
            "scala",
        ],
        script_letters: "eE",
        script_options: &["--eval", "--print"],
        value_letters: "Ilr",
        file_letters: "",
        file_options: &[],
        place: Place::Option,
        script_is_last: false,
    },
    Interpreter {
        names: &["node", "nodejs", "bun", "deno", "tsx", "ts-node"],
        script_letters: "ep",
        script_options: &["--eval", "--print"],
        value_letters: "rC",
        file_letters: "",
        file_options: &[],
        place: Place::Option,
        script_is_last: false,
    },
    Interpreter {
        names: &["php"],
        script_letters: "rBRE",
        script_options: &[
            "--run",
            "--process-begin",
            "--process-code",
            "--process-end",
        ],
        value_letters: "dczfF",
        file_letters: "",
        file_options: &[],
        place: Place::Option,
        script_is_last: false,
    },
    Interpreter {
        names: &["awk", "gawk", "mawk", "nawk", "original-awk"],
        script_letters: "e",
        script_options: &["--source"],
        value_letters: "Fvil",
        file_letters: "fE",
        file_options: &["--file", "--exec"],
        place: Place::Operand,
        script_is_last: true,
    },
    Interpreter {
        names: &["sed", "gsed"],
        script_letters: "e",
        script_options: &["--expression"],
        value_letters: "l",
        file_letters: "f",
        file_options: &["--file"],
        place: Place::Operand,
        script_is_last: false,
    },
    Interpreter {
        names: &["jq", "jaq", "gojq"],
        script_letters: "",
        script_options: &[],
        value_letters: "L",
        file_letters: "f",
        file_options: &["--from-file"],
        place: Place::Operand,
        script_is_last: false,
    },
];

/// A program that starts the program that follows its own options.
struct Wrapper {
    names: &'static [&'static str],
    /// Letters of short options that take an argument.
    value_letters: &'static str,
    value_options: &'static [&'static str],
    /// How many operands stand before the program.
    operands: usize,
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        names: &["env"],
        value_letters: "uC",
        value_options: &["--unset", "--chdir"],
        operands: 0,
    },
    Wrapper {
        names: &["timeout", "gtimeout"],
        value_letters: "ks",
        value_options: &["--kill-after", "--signal"],
        operands: 1,
    },
    Wrapper {
        names: &["nice"],
        value_letters: "n",
        value_options: &["--adjustment"],
        operands: 0,
    },
    Wrapper {
        names: &["nohup", "setsid", "busybox", "toybox", "unshare", "setarch"],
        value_letters: "",
        value_options: &[],
        operands: 0,
    },
    Wrapper {
        names: &["stdbuf"],
        value_letters: "ioe",
        value_options: &["--input", "--output", "--error"],
        operands: 0,
    },
    Wrapper {
        names: &["time"],
        value_letters: "fo",
        value_options: &["--format", "--output"],
        operands: 0,
    },
    Wrapper {
        names: &["ionice"],
        value_letters: "cnpPu",
        value_options: &["--class", "--classdata"],
        operands: 0,
    },
    Wrapper {
        names: &["taskset", "chroot", "flock"],
        value_letters: "wE",
        value_options: &["--wait", "--timeout", "--groups", "--userspec"],
        operands: 1,
    },
    Wrapper {
        names: &["chrt"],
        value_letters: "TPD",
        value_options: &[],
        operands: 1,
    },
    Wrapper {
        names: &["sudo", "doas"],
        value_letters: "uUgCDhprtT",
        value_options: &["--user", "--group", "--host", "--prompt", "--chdir"],
        operands: 0,
    },
    Wrapper {
        names: &["xargs"],
        value_letters: "IEdaLnPsR",
        value_options: &[
            "--arg-file",
            "--delimiter",
            "--max-args",
            "--max-lines",
            "--max-procs",
            "--max-chars",
            "--replace",
        ],
        operands: 0,
    },
];

/// A program that puts together what follows its operands and has a shell read it, here or elsewhere.
const SHELL_STARTERS: &[Wrapper] = &[
    Wrapper {
        names: &["ssh", "slogin", "autossh", "rsh"],
        value_letters: "BbcDEeFIiJLlMmOoPpQRSWw",
        value_options: &[],
        operands: 1,
    },
    Wrapper {
        names: &["watch"],
        value_letters: "nq",
        value_options: &["--interval", "--equexit"],
        operands: 0,
    },
];

/// What stands before a command among the arguments of `find`.
const FIND_STARTS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];

/// Reads a command as its program will. Elements with placeholders are given as they are written.
pub(crate) fn anatomy(elements: &[String]) -> Anatomy {
    let mut anatomy = Anatomy {
        programs: Vec::new(),
        scripts: Vec::new(),
        own_arguments: 0..elements.len(),
    };
    let mut program = 0;
    while let Some(element) = elements.get(program) {
        anatomy.programs.push(program);
        anatomy.own_arguments.start = program + 1;
        let name = program_name(element);
        let Some(wrapper) = WRAPPERS.iter().find(|one| one.names.contains(&name)) else {
            break;
        };
        program = wrapper.program(elements, program + 1, &mut anatomy.scripts);
    }
    let Some(&program) = anatomy.programs.last() else {
        return anatomy;
    };
    let name = program_name(&elements[program]);
    if let Some(starter) = SHELL_STARTERS.iter().find(|one| one.names.contains(&name)) {
        let text = starter.program(elements, program + 1, &mut anatomy.scripts);
        anatomy
            .scripts
            .extend((text..elements.len()).map(|at| (at, 0)));
    } else if name == "find" {
        for at in program + 1..elements.len() {
            if FIND_STARTS.contains(&elements[at].as_str()) {
                anatomy.add(&self::anatomy(&elements[at + 1..]), at + 1);
            }
        }
    } else if let Some(interpreter) = Interpreter::named(name) {
        interpreter.scripts(elements, program + 1, &mut anatomy.scripts);
        if interpreter.script_is_last
            && let Some(&(script, _)) = anatomy.scripts.last()
        {
            anatomy.own_arguments.end = script;
        }
    }
    anatomy
}

/// The last part of a path, without a version (`/usr/bin/python3.12` is `python`).
fn program_name(element: &str) -> &str {
    let name = element.rsplit('/').next().unwrap_or(element);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    if bare.is_empty() { name } else { bare }
}

impl Anatomy {
    /// Adds a command that stands among the arguments of this one, from `place` on.
    fn add(&mut self, other: &Self, place: usize) {
        self.programs
            .extend(other.programs.iter().map(|at| at + place));
        self.scripts
            .extend(other.scripts.iter().map(|(at, begin)| (at + place, *begin)));
    }
}

impl Wrapper {
    /// The place of the program that this one starts. `env -S TEXT` is a script of its own kind.
    fn program(
        &self,
        elements: &[String],
        mut place: usize,
        scripts: &mut Vec<(usize, usize)>,
    ) -> usize {
        let is_env = self.names == ["env"];
        let mut operands = self.operands;
        while let Some(element) = elements.get(place) {
            if element == "--" {
                place += 1;
                return place + operands;
            }
            if is_env && let Some(text) = split_string(element) {
                scripts.push(if text == element.len() {
                    (place + 1, 0)
                } else {
                    (place, text)
                });
                return elements.len();
            }
            if element.len() > 1 && element.starts_with('-') {
                place += if self.takes_next(element) { 2 } else { 1 };
            } else if is_env && element.contains('=') {
                place += 1;
            } else if operands > 0 {
                operands -= 1;
                place += 1;
            } else {
                return place;
            }
        }
        place
    }

    fn takes_next(&self, element: &str) -> bool {
        if element.starts_with("--") {
            return self.value_options.contains(&element);
        }
        // `-n5` holds its value, `-n` and `-vn` take the next element.
        let mut letters = element[1..].char_indices();
        letters
            .find(|&(_, letter)| self.value_letters.contains(letter))
            .is_some_and(|(at, letter)| 1 + at + letter.len_utf8() == element.len())
    }
}

/// Where the text of `env -S` begins in its element; the element's end if it is the next element.
fn split_string(element: &str) -> Option<usize> {
    if let Some(text) = element.strip_prefix("--split-string=") {
        return Some(element.len() - text.len());
    }
    if element == "--split-string" {
        return Some(element.len());
    }
    if element.starts_with("--") || !element.starts_with('-') {
        return None;
    }
    let options = element.find(['u', 'C']).unwrap_or(element.len());
    element[..options].find('S').map(|at| at + 1)
}

impl Interpreter {
    fn named(name: &str) -> Option<&'static Self> {
        INTERPRETERS.iter().find(|one| one.names.contains(&name))
    }

    /// Collects the script texts among the elements from `place` on.
    fn scripts(&self, elements: &[String], mut place: usize, scripts: &mut Vec<(usize, usize)>) {
        let mut operand_is_script = self.place == Place::Operand;
        while let Some(element) = elements.get(place) {
            if element == "--" {
                place += 1;
                break;
            }
            let is_option = element.len() > 1 && element.starts_with(['-', '+']);
            if !is_option {
                break;
            }
            match self.option(element) {
                Meaning::ScriptAhead if self.place == Place::OperandAfterOption => {
                    operand_is_script = true;
                    place += 1;
                }
                Meaning::ScriptAhead => {
                    scripts.push((place + 1, 0));
                    operand_is_script = false;
                    place += 2;
                }
                Meaning::ScriptWithin(start) => {
                    scripts.push((place, start));
                    operand_is_script = false;
                    place += 1;
                }
                Meaning::FileAhead => {
                    operand_is_script = false;
                    place += 2;
                }
                Meaning::FileWithin => {
                    operand_is_script = false;
                    place += 1;
                }
                Meaning::ValueAhead => place += 2,
                Meaning::Nothing => place += 1,
            }
        }
        if operand_is_script && place < elements.len() {
            scripts.push((place, 0));
        }
    }

    fn option(&self, element: &str) -> Meaning {
        if element.starts_with("--") {
            return self.long_option(element);
        }
        for (at, letter) in element.char_indices().skip(1) {
            let end = at + letter.len_utf8();
            let is_last = end == element.len();
            if self.script_letters.contains(letter) {
                // A shell reads `-ce TEXT` as two options; the others read `-cTEXT`.
                return if is_last || self.place == Place::OperandAfterOption {
                    Meaning::ScriptAhead
                } else {
                    Meaning::ScriptWithin(end)
                };
            }
            if self.file_letters.contains(letter) {
                return if is_last {
                    Meaning::FileAhead
                } else {
                    Meaning::FileWithin
                };
            }
            if self.value_letters.contains(letter) {
                return if is_last {
                    Meaning::ValueAhead
                } else {
                    Meaning::Nothing
                };
            }
        }
        Meaning::Nothing
    }

    fn long_option(&self, element: &str) -> Meaning {
        let (name, has_value) = match element.split_once('=') {
            Some((name, _)) => (name, true),
            None => (element, false),
        };
        if self.script_options.contains(&name) {
            return if has_value {
                Meaning::ScriptWithin(name.len() + 1)
            } else {
                Meaning::ScriptAhead
            };
        }
        if self.file_options.contains(&name) {
            return if has_value {
                Meaning::FileWithin
            } else {
                Meaning::FileAhead
            };
        }
        Meaning::Nothing
    }
}

/// What an option of an interpreter says about what follows.
enum Meaning {
    ScriptAhead,
    ScriptWithin(usize),
    FileAhead,
    FileWithin,
    ValueAhead,
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(command: &[&str], scripts: &[(usize, usize)], own_arguments: Range<usize>) {
        let elements: Vec<String> = command.iter().map(ToString::to_string).collect();
        let anatomy = anatomy(&elements);
        assert_eq!(anatomy.scripts, scripts, "scripts of {command:?}");
        assert_eq!(anatomy.own_arguments, own_arguments, "of {command:?}");
    }

    #[test]
    fn ordinary_programs_have_no_script() {
        case(&["grep", "-e", "x"], &[], 1..3);
        case(&["env", "A=b", "--", "grep", "x"], &[], 4..5);
        case(&["timeout", "-k", "1", "5", "grep", "x"], &[], 5..6);
        case(&["sh", "script.sh", "-c", "x"], &[], 1..4);
        case(&["python3", "-m", "json.tool"], &[], 1..3);
    }

    #[test]
    fn script_text_is_found_behind_its_option() {
        case(&["sh", "-c", "echo", "_", "x"], &[(2, 0)], 1..2);
        case(
            &["/bin/bash", "-eo", "pipefail", "-c", "-u", "x"],
            &[(5, 0)],
            1..5,
        );
        case(&["bash", "-lc", "--", "x"], &[(3, 0)], 1..3);
        case(&["python3.12", "-cprint(1)", "--", "x"], &[(1, 2)], 1..1);
        case(&["perl", "-lane", "print", "x"], &[(2, 0)], 1..4);
        case(&["perl", "-e", "a", "-e", "b"], &[(2, 0), (4, 0)], 1..5);
        case(&["node", "--eval=1"], &[(1, 7)], 1..2);
        case(&["node", "-p", "1"], &[(2, 0)], 1..3);
    }

    #[test]
    fn first_operand_of_awk_is_script_text() {
        case(&["awk", "-F", ":", "{print}", "x"], &[(3, 0)], 1..3);
        case(&["awk", "-f", "a.awk", "x"], &[], 1..4);
        case(&["sed", "-n", "p", "--", "x"], &[(2, 0)], 1..5);
        case(&["jq", "-r", "{name}"], &[(2, 0)], 1..3);
    }

    #[test]
    fn wrappers_are_looked_through() {
        case(&["env", "-u", "A", "B=c", "sh", "-c", "x"], &[(6, 0)], 5..6);
        case(&["env", "-S", "sh -c x"], &[(2, 0)], 1..3);
        case(
            &[
                "timeout",
                "--signal=KILL",
                "5",
                "nice",
                "-n5",
                "bash",
                "-c",
                "x",
            ],
            &[(7, 0)],
            6..7,
        );
    }

    #[test]
    fn commands_among_arguments_are_read_too() {
        case(
            &["find", ".", "-name", "x", "-exec", "grep", "y", "{}", "+"],
            &[],
            1..9,
        );
        let twice = [
            "find", ".", "-exec", "sh", "-c", "a", ";", "-ok", "env", "bash", "-c", "b", ";",
        ];
        case(&twice, &[(5, 0), (11, 0)], 1..13);
        case(
            &["ssh", "-p", "22", "host", "ls", "--", "x"],
            &[(4, 0), (5, 0), (6, 0)],
            1..7,
        );
        case(&["nice", "watch", "-n", "1", "ls"], &[(4, 0)], 2..5);
        case(&["ssh", "-N", "host"], &[], 1..3);
    }
}

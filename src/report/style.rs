//! Colours by meaning, decided once per stream.
//!
//! Nothing outside this file names a colour. Everything reads the same without colours: they repeat what words say.
//! Only the sixteen colours of the terminal's own theme are used, and of those the ones that both light and dark themes show.

use std::ffi::OsString;

use clap::ValueEnum;
use owo_colors::{Style, Styled};

/// When to do something that depends on the terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// If the stream is a terminal
    #[default]
    Auto,
    /// In files and pipes too
    Always,
    /// Not at all
    Never,
}

/// One meaning's look.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Look(Style);

impl Look {
    /// The text in this look. The text must be safe to show already.
    pub(crate) fn paint<T>(self, text: T) -> Styled<T> {
        self.0.style(text)
    }
}

/// The looks of one stream; plain ones by default.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Styles {
    /// Something failed.
    pub(crate) error: Look,
    /// Something to look at that failed nothing.
    pub(crate) warning: Look,
    /// Something went well.
    pub(crate) success: Look,
    /// A tool's name or label.
    pub(crate) tool: Look,
    /// The heading of a column or section.
    pub(crate) heading: Look,
    /// What is there if one looks for it: ids, times, lines around content.
    pub(crate) dim: Look,
    /// A key of an object, the name of an argument.
    pub(crate) key: Look,
    /// A JSON string.
    pub(crate) string: Look,
    /// `true`, `false` and `null`; numbers have no look of their own.
    pub(crate) literal: Look,
}

impl Styles {
    /// Looks with colours.
    pub(crate) fn colored() -> Self {
        Self {
            error: Look(Style::new().red().bold()),
            warning: Look(Style::new().yellow()),
            success: Look(Style::new().green()),
            tool: Look(Style::new().bold()),
            heading: Look(Style::new().underline()),
            dim: Look(Style::new().dimmed()),
            key: Look(Style::new().cyan()),
            string: Look(Style::new().green()),
            literal: Look(Style::new().magenta()),
        }
    }

    /// The looks of a stream, after `--color`, `NO_COLOR`, `CLICOLOR_FORCE` and whether it is a terminal.
    pub(crate) fn of_stream(color: When, is_terminal: bool) -> Self {
        if wants_color(color, is_terminal, |name| std::env::var_os(name)) {
            Self::colored()
        } else {
            Self::default()
        }
    }
}

/// Whether to colour. The option wins over the environment; there, `NO_COLOR` (not empty) wins over `CLICOLOR_FORCE`
/// (not empty, not `0`).
fn wants_color(
    color: When,
    is_terminal: bool,
    variable: impl Fn(&str) -> Option<OsString>,
) -> bool {
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    let is_zero = |name| variable(name).is_some_and(|value| value == "0");
    match color {
        When::Always => true,
        When::Never => false,
        When::Auto if is_set("NO_COLOR") => false,
        When::Auto if is_set("CLICOLOR_FORCE") && !is_zero("CLICOLOR_FORCE") => true,
        When::Auto => {
            is_terminal
                && variable("TERM").is_none_or(|term| term != "dumb")
                && !is_zero("CLICOLOR")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(color: When, is_terminal: bool, environment: &[(&str, &str)], expected: bool) {
        let variable = |name: &str| {
            let found = environment.iter().find(|(key, _)| *key == name)?;
            Some(OsString::from(found.1))
        };
        assert_eq!(wants_color(color, is_terminal, variable), expected);
    }

    #[test]
    fn option_wins_over_environment_wins_over_terminal() {
        case(When::Auto, true, &[], true);
        case(When::Auto, false, &[], false);
        case(When::Auto, true, &[("NO_COLOR", "1")], false);
        case(When::Auto, true, &[("NO_COLOR", "")], true);
        case(When::Auto, false, &[("CLICOLOR_FORCE", "1")], true);
        case(When::Auto, false, &[("CLICOLOR_FORCE", "0")], false);
        case(
            When::Auto,
            false,
            &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")],
            false,
        );
        case(When::Auto, true, &[("TERM", "dumb")], false);
        case(When::Auto, true, &[("CLICOLOR", "0")], false);
        case(When::Always, false, &[("NO_COLOR", "1")], true);
        case(When::Never, true, &[("CLICOLOR_FORCE", "1")], false);
    }

    #[test]
    fn plain_looks_add_nothing() {
        assert_eq!(Styles::default().error.paint("x").to_string(), "x");
        assert_ne!(Styles::colored().error.paint("x").to_string(), "x");
    }
}

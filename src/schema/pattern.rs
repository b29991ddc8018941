//! `pattern` and `patternProperties`: regular expressions, as JSON Schema has them.

use std::sync::OnceLock;

use fancy_regex::Regex;

use super::regex::translate;

/// A regular expression, compiled when first asked.
#[derive(Debug)]
pub(crate) struct Pattern {
    source: String,
    compiled: OnceLock<Option<Compiled>>,
}

#[derive(Debug)]
struct Compiled {
    translated: String,
    regex: Regex,
}

impl Pattern {
    /// Keeps the text of a pattern, which may be invalid.
    pub(crate) fn new(source: String) -> Self {
        Self {
            source,
            compiled: OnceLock::new(),
        }
    }

    /// The pattern as written.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Whether the pattern is a regular expression at all; one that is not matches nothing.
    pub(crate) fn is_valid(&self) -> bool {
        self.compiled().is_some()
    }

    /// Whether the pattern matches somewhere in `text`.
    ///
    /// A match that would take too many steps is none: a pattern must not be able to stop pitool.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.compiled()
            .is_some_and(|compiled| compiled.regex.is_match(text).unwrap_or(false))
    }

    /// The pattern in Rust's words, which the validator reads as they are; `None` if it is invalid.
    pub(crate) fn translated(&self) -> Option<&str> {
        self.compiled().map(|compiled| compiled.translated.as_str())
    }

    fn compiled(&self) -> Option<&Compiled> {
        self.compiled.get_or_init(|| compile(&self.source)).as_ref()
    }
}

fn compile(source: &str) -> Option<Compiled> {
    let translated = translate(source).ok()?;
    let regex = Regex::new(&translated).ok()?;
    let is_left_as_it_is =
        jsonschema_regex::to_rust_regex(&translated).is_ok_and(|again| again == translated);
    is_left_as_it_is.then_some(Compiled { translated, regex })
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[track_caller]
    fn case(pattern: &str, matching: &[&str], other: &[&str]) {
        let pattern = Pattern::new(pattern.to_owned());
        assert!(pattern.is_valid(), "{pattern:?} is invalid");
        for text in matching {
            assert!(pattern.matches(text), "{pattern:?} does not match {text:?}");
        }
        for text in other {
            assert!(!pattern.matches(text), "{pattern:?} matches {text:?}");
        }
    }

    #[test]
    fn shorthands_are_those_of_javascript() {
        case(r"^\d$", &["5"], &["٤", "a"]);
        case(r"^\w$", &["a", "_", "5"], &["é", "-"]);
        case(r"^[\w-]+$", &["a-b"], &["é"]);
        case(
            r"^\s$",
            &[" ", "\u{feff}", "\u{a0}", "\u{2028}"],
            &["\u{85}", "a"],
        );
        case(r"^\S$", &["\u{85}", "a"], &[" ", "\u{feff}"]);
        case(r"^[\D]$", &["x"], &["5"]);
        case(
            "^.$",
            &["a", "é", "😀", "\u{85}"],
            &["\n", "\r", "\u{2028}"],
        );
        case("^a$", &["a"], &["a\n"]);
        case(r"\bcat\b", &["a cat", "écaté", "cat-1"], &["concat"]);
        case(r"^\Bat", &[], &["at"]);
        case(r"c\Bat", &["cat"], &["c at"]);
    }

    #[test]
    fn groups_and_what_refers_to_them() {
        case(r#"^(?<q>['"]).*\k<q>$"#, &["'a'", "\"a\""], &["'a\""]);
        case(r"^(a|b)\1$", &["aa", "bb"], &["ab"]);
        case(r"^(?=.*\d)(?!.*x)[a-z\d]+$", &["a1"], &["a", "x1"]);
        case(r"(?<=\$)\d+", &["$5"], &["5"]);
        case(r"^(?i:ab)c$", &["ABc", "abc"], &["ABC"]);
        case(r"^(?s:.)$", &["\n"], &[]);
        case(r"(?m:^b$)", &["a\nb", "a\r\nb"], &["ab"]);
    }

    #[test]
    fn classes_take_what_rust_would_read_otherwise() {
        case("^[^]$", &["a", "\n"], &["ab"]);
        case("^[]a$", &[], &["a", ""]);
        case("^[[]$", &["["], &["a"]);
        case("^[a&&b]+$", &["a&b"], &["c"]);
        case("^[+--]$", &["+", ",", "-"], &["a"]);
        case(r"^[^\S\n]$", &[" "], &["\n", "a"]);
        case(r"^[\b]$", &["\u{8}"], &["b"]);
        case(r"^[\w-z]+$", &["a-z"], &["!"]);
        case("^[😀-😂]$", &["😁"], &["😃"]);
    }

    #[test]
    fn code_points_are_read_in_every_spelling() {
        case(r"^\u0041\x42\u{1F600}$", &["AB😀"], &[]);
        case(r"^\ud83d\ude00$", &["😀"], &[]);
        case(r"^\ud83d$", &[], &["\u{fffd}", ""]);
        case(r"^\cA$", &["\u{1}"], &[]);
        case(r"^\p{Lu}\p{Script=Greek}\P{L}$", &["Aα1"], &["aα1"]);
        case(r"^\p{digit}+$", &["৪২"], &["a"]);
        case(r"^\/\.\$$", &["/.$"], &[]);
    }

    #[test]
    fn patterns_without_the_unicode_flag_run_as_well() {
        case("^{x}$", &["{x}"], &["x"]);
        case("^x{2$", &["x{2"], &["xx"]);
        case(r"^a\-b\_c$", &["a-b_c"], &["ab"]);
        case(r"^\1a$", &["\u{1}a"], &["a", "1a"]);
        case(r"^\A\z\h\e$", &["Azhe"], &["zhe"]);
        case(r"^\101$", &["A"], &[]);
        case("^]$", &["]"], &[]);
        case(r"^\u{2}\-$", &["uu-"], &["\u{2}-"]);
        case(r"^\c$", &[r"\c"], &[]);
    }

    #[test]
    fn quantifiers_keep_their_greed() {
        case("^a{2,3}?b*?$", &["aa", "aaabb"], &["a"]);
        case("^(?:ab){2}$", &["abab"], &["ab"]);
    }

    #[test]
    fn what_javascript_refuses_is_invalid() {
        for pattern in [
            "(",
            ")",
            "[a",
            "a{2,1}",
            "*a",
            "a**",
            "(?<n>a)(?<n>b)",
            "(?P<x>a)",
            "a++",
            "(?i)a",
            "[b-a]",
            r"\",
            "(?<n",
            "a|*",
            r"(?<a>.)\k<b>",
            "^*",
            "(?z:a)",
        ] {
            assert!(
                !Pattern::new(pattern.to_owned()).is_valid(),
                "{pattern} is valid"
            );
        }
    }

    #[test]
    fn a_hostile_pattern_ends() {
        case(
            "^(a+)+$",
            &["aaaa"],
            &["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"],
        );
        case(
            r"^(a+)+\1$",
            &["aa"],
            &["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"],
        );
    }
}

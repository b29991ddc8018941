//! Which known word was probably meant.

/// Words of other tool formats, and what they are called here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("cmd", "command"),
    ("inputschema", "parameters"),
    ("schema", "parameters"),
];

/// How alike two words must be, from 0 (not at all) to 1 (equal).
const ALIKE: f64 = 0.6;

/// The `candidates` that look like `word`, the most alike first; at most three.
pub(crate) fn nearest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Vec<&'c str> {
    let word = folded(word);
    let mut alike: Vec<(f64, &str)> = candidates
        .map(|candidate| (likeness(&word, candidate), candidate))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .collect();
    alike.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    alike.truncate(3);
    alike.into_iter().map(|(_, candidate)| candidate).collect()
}

fn likeness(word: &str, candidate: &str) -> f64 {
    if ELSEWHERE.contains(&(word, candidate)) {
        return 1.0;
    }
    let candidate = folded(candidate);
    let begins = word.len() >= 3 && candidate.starts_with(word)
        || candidate.len() >= 3 && word.starts_with(&candidate);
    let likeness = strsim::normalized_damerau_levenshtein(word, &candidate);
    if begins {
        likeness.max(ALIKE)
    } else {
        likeness
    }
}

/// `time_out-ms` and `timeoutMs` are one word.
fn folded(word: &str) -> String {
    word.chars()
        .filter(|character| !matches!(character, '_' | '-'))
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &[&str] = &[
        "name",
        "parameters",
        "command",
        "cwd",
        "timeoutMs",
        "env",
        "inheritEnv",
    ];

    #[track_caller]
    fn case(word: &str, expected: &[&str]) {
        assert_eq!(nearest(word, FIELDS.iter().copied()), expected);
    }

    #[test]
    fn slips_find_their_word() {
        case("comand", &["command"]);
        case("nmae", &["name"]);
        case("timeout_ms", &["timeoutMs"]);
        case("timeout", &["timeoutMs"]);
        case("INHERIT-ENV", &["inheritEnv"]);
    }

    #[test]
    fn words_of_other_formats_find_ours() {
        case("input_schema", &["parameters"]);
        case("cmd", &["command", "cwd"]);
    }

    #[test]
    fn strange_words_find_nothing() {
        case("colour", &[]);
        case("", &[]);
    }
}

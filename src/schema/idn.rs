//! Internationalised host names (`idn-hostname`): IDNA 2008, RFC 5890 to 5893, after the mapping of UTS 46.

use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::{UnicodeNormalization, char::canonical_combining_class};

/// The characters that separate labels.
const DOTS: [char; 4] = ['.', '\u{3002}', '\u{FF0E}', '\u{FF61}'];

/// Whether a text is a host name whose labels are ASCII labels, or can be written as such.
pub(super) fn is_hostname(text: &str) -> bool {
    let Some(labels) = text
        .split(DOTS)
        .map(Label::read)
        .collect::<Option<Vec<_>>>()
    else {
        return false;
    };
    let length: usize = labels.iter().map(|label| label.ascii_length + 1).sum();
    let needs_direction = labels
        .iter()
        .any(|label| label.characters.iter().copied().any(is_right_to_left));
    length - 1 <= 253
        && (!needs_direction
            || labels
                .iter()
                .all(|label| has_one_direction(&label.characters)))
}

/// One valid label.
struct Label {
    /// Its characters, decoded and mapped.
    characters: Vec<char>,
    /// How long it is as an ASCII label.
    ascii_length: usize,
}

impl Label {
    fn read(written: &str) -> Option<Self> {
        let mapped = mapped(written);
        let (characters, ascii_length) = match mapped.strip_prefix("xn--") {
            Some(encoded) => (decoded(encoded)?, mapped.len()),
            None if mapped.is_ascii() => (mapped.chars().collect::<Vec<_>>(), mapped.len()),
            None => {
                let characters: Vec<char> = mapped.chars().collect();
                let encoded = punycode::encode(&characters)?;
                (characters, "xn--".len() + encoded.len())
            }
        };
        let is_valid = (1..=63).contains(&ascii_length) && is_valid_label(&characters);
        is_valid.then_some(Self {
            characters,
            ascii_length,
        })
    }
}

/// The label that an `xn--` label stands for, if that is how it has to be written.
fn decoded(encoded: &str) -> Option<Vec<char>> {
    let characters = punycode::decode(encoded)?;
    let text: String = characters.iter().collect();
    let is_canonical =
        !text.is_ascii() && mapped(&text) == text && punycode::encode(&characters)? == encoded;
    is_canonical.then_some(characters)
}

/// Lower case and compatible forms, as far as UTS 46 maps what IDNA 2008 then judges.
fn mapped(label: &str) -> String {
    label.chars().flat_map(char::to_lowercase).nfkc().collect()
}

fn is_valid_label(label: &[char]) -> bool {
    let has_hyphens_inside_only = label.first() != Some(&'-') && label.last() != Some(&'-');
    let looks_encoded = label.get(2..4) == Some(&['-', '-']);
    let begins_with_mark = label.first().is_some_and(|first| is_mark(*first));
    has_hyphens_inside_only
        && !looks_encoded
        && !begins_with_mark
        && (0..label.len()).all(|at| is_allowed(label, at))
}

/// Whether the character at a place is allowed there (RFC 5892).
fn is_allowed(label: &[char], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| label[before]);
    let after = label.get(at + 1).copied();
    match label[at] {
        '\u{DF}' | '\u{3C2}' | '\u{6FD}' | '\u{6FE}' | '\u{F0B}' | '\u{3007}' => true,
        '\u{B7}' => before == Some('l') && after == Some('l'),
        '\u{375}' => after.is_some_and(is_greek),
        '\u{5F3}' | '\u{5F4}' => before.is_some_and(is_hebrew),
        '\u{30FB}' => label.iter().copied().any(is_japanese),
        '\u{660}'..='\u{669}' => !label
            .iter()
            .any(|other| matches!(other, '\u{6F0}'..='\u{6F9}')),
        '\u{6F0}'..='\u{6F9}' => !label
            .iter()
            .any(|other| matches!(other, '\u{660}'..='\u{669}')),
        '\u{200D}' => before.is_some_and(is_virama),
        '\u{200C}' => before.is_some_and(is_virama) || joins(label, at),
        character => character == '-' || is_letter_or_digit(character),
    }
}

fn is_letter_or_digit(character: char) -> bool {
    use GeneralCategory as Category;
    let category = get_general_category(character);
    let is_category = matches!(
        category,
        Category::LowercaseLetter
            | Category::OtherLetter
            | Category::ModifierLetter
            | Category::DecimalNumber
            | Category::NonspacingMark
            | Category::SpacingMark
    );
    is_category && !is_excluded(character)
}

/// Letters and marks that RFC 5892 takes out: exceptions, old jamo, ignorable characters and blocks.
fn is_excluded(character: char) -> bool {
    matches!(
        character,
        '\u{640}' | '\u{7FA}' | '\u{302E}' | '\u{302F}' | '\u{3031}'..='\u{3035}' | '\u{303B}'
            | '\u{1100}'..='\u{11FF}' | '\u{A960}'..='\u{A97F}' | '\u{D7B0}'..='\u{D7FF}'
            | '\u{34F}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}' | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}'
            | '\u{20D0}'..='\u{20FF}' | '\u{1D100}'..='\u{1D24F}'
    )
}

fn is_mark(character: char) -> bool {
    use GeneralCategory as Category;
    matches!(
        get_general_category(character),
        Category::NonspacingMark | Category::SpacingMark | Category::EnclosingMark
    )
}

fn is_virama(character: char) -> bool {
    canonical_combining_class(character) == 9
}

fn is_greek(character: char) -> bool {
    matches!(character, '\u{370}'..='\u{3FF}' | '\u{1F00}'..='\u{1FFF}')
}

fn is_hebrew(character: char) -> bool {
    matches!(character, '\u{591}'..='\u{5F4}' | '\u{FB1D}'..='\u{FB4F}')
}

/// Hiragana, Katakana or Han.
fn is_japanese(character: char) -> bool {
    matches!(
        character,
        '\u{3041}'..='\u{3096}' | '\u{309D}'..='\u{309F}' | '\u{30A1}'..='\u{30FA}' | '\u{30FD}'..='\u{30FF}'
            | '\u{31F0}'..='\u{31FF}' | '\u{3005}' | '\u{3007}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}'
            | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{323AF}'
    )
}

/// Whether a zero-width non-joiner stands where two letters would join (RFC 5892, A.1).
fn joins(label: &[char], at: usize) -> bool {
    let before = label[..at]
        .iter()
        .rev()
        .find(|character| !is_mark(**character));
    let after = label[at + 1..]
        .iter()
        .find(|character| !is_mark(**character));
    before.is_some_and(|letter| joins_both_sides(*letter))
        && after.is_some_and(|letter| joins_both_sides(*letter) || joins_right_only(*letter))
}

/// Letters of the joining scripts that connect to what follows.
fn joins_both_sides(letter: char) -> bool {
    let is_of_joining_script = matches!(
        letter,
        '\u{620}'..='\u{6FF}' | '\u{712}'..='\u{77F}' | '\u{7CA}'..='\u{7EA}' | '\u{840}'..='\u{855}' | '\u{860}'..='\u{868}'
            | '\u{8A0}'..='\u{8C8}' | '\u{1820}'..='\u{18AA}' | '\u{A840}'..='\u{A871}' | '\u{1E900}'..='\u{1E943}'
    );
    let stands_alone = matches!(letter, '\u{621}' | '\u{674}' | '\u{6D5}' | '\u{8AD}');
    is_of_joining_script
        && is_letter_or_digit(letter)
        && get_general_category(letter) != GeneralCategory::DecimalNumber
        && !stands_alone
        && !joins_right_only(letter)
}

/// Letters that connect to what stands before them alone.
fn joins_right_only(letter: char) -> bool {
    matches!(
        letter,
        '\u{622}'..='\u{625}' | '\u{627}' | '\u{629}' | '\u{62F}'..='\u{632}' | '\u{648}' | '\u{671}'..='\u{673}'
            | '\u{675}'..='\u{677}' | '\u{688}'..='\u{699}' | '\u{6C0}' | '\u{6C3}'..='\u{6CB}' | '\u{6CD}' | '\u{6CF}'
            | '\u{6D2}' | '\u{6D3}' | '\u{6D5}' | '\u{6EE}' | '\u{6EF}' | '\u{710}' | '\u{715}'..='\u{719}' | '\u{71E}'
            | '\u{728}' | '\u{72A}' | '\u{72C}' | '\u{72F}' | '\u{74D}' | '\u{759}'..='\u{75B}' | '\u{76B}' | '\u{76C}'
            | '\u{771}' | '\u{773}' | '\u{774}' | '\u{778}' | '\u{779}' | '\u{840}' | '\u{846}' | '\u{847}' | '\u{849}'
            | '\u{854}' | '\u{867}' | '\u{8AA}'..='\u{8AC}' | '\u{8AE}' | '\u{8B1}' | '\u{8B2}' | '\u{8B9}'
    )
}

/// The classes of characters that the direction rule tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Left,
    Right,
    EuropeanDigit,
    ArabicDigit,
    Mark,
    Neutral,
}

fn direction(character: char) -> Direction {
    match character {
        '0'..='9' | '\u{6F0}'..='\u{6F9}' => Direction::EuropeanDigit,
        '\u{660}'..='\u{669}' => Direction::ArabicDigit,
        '-' | '\u{B7}' | '\u{375}' | '\u{30FB}' => Direction::Neutral,
        '\u{200C}' | '\u{200D}' => Direction::Mark,
        _ if get_general_category(character) == GeneralCategory::NonspacingMark => Direction::Mark,
        '\u{590}'..='\u{8FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFF}' => {
            Direction::Right
        }
        '\u{10800}'..='\u{10FFF}' | '\u{1E800}'..='\u{1EFFF}' => Direction::Right,
        _ => Direction::Left,
    }
}

fn is_right_to_left(character: char) -> bool {
    matches!(
        direction(character),
        Direction::Right | Direction::ArabicDigit
    )
}

/// The direction rule for the labels of a name in which some letter runs from right to left (RFC 5893, section 2).
fn has_one_direction(label: &[char]) -> bool {
    let directions: Vec<Direction> = label.iter().copied().map(direction).collect();
    let has = |wanted| directions.contains(&wanted);
    let last = directions
        .iter()
        .rev()
        .find(|direction| **direction != Direction::Mark);
    let mixes_digits = has(Direction::EuropeanDigit) && has(Direction::ArabicDigit);
    match directions.first() {
        Some(Direction::Right) => {
            let ends_well = last != Some(&Direction::Neutral);
            ends_well && !mixes_digits && !has(Direction::Left)
        }
        Some(Direction::Left) => {
            let ends_well = matches!(last, Some(Direction::Left | Direction::EuropeanDigit));
            ends_well && !has(Direction::Right) && !has(Direction::ArabicDigit)
        }
        _ => false,
    }
}

/// Labels in ASCII letters: RFC 3492.
mod punycode {
    const BASE: u32 = 36;
    const T_MIN: u32 = 1;
    const T_MAX: u32 = 26;

    /// The encoding of a label without its prefix; `None` if it is absurdly long.
    pub(super) fn encode(label: &[char]) -> Option<String> {
        let mut encoded: String = label
            .iter()
            .filter(|character| character.is_ascii())
            .collect();
        let plain = u32::try_from(encoded.len()).ok()?;
        if plain > 0 {
            encoded.push('-');
        }
        let (mut state, mut code, mut done) = (State::new(), 0x80, plain);
        while (done as usize) < label.len() {
            let next = label
                .iter()
                .map(|character| *character as u32)
                .filter(|other| *other >= code)
                .min()?;
            state.delta = state
                .delta
                .checked_add((next - code).checked_mul(done + 1)?)?;
            code = next;
            for other in label.iter().map(|character| *character as u32) {
                if other < code {
                    state.delta = state.delta.checked_add(1)?;
                } else if other == code {
                    push_number(&mut encoded, state.delta, state.bias);
                    state.adapt(state.delta, done + 1, done == plain);
                    state.delta = 0;
                    done += 1;
                }
            }
            state.delta = state.delta.checked_add(1)?;
            code += 1;
        }
        Some(encoded)
    }

    /// The label that an encoding stands for.
    pub(super) fn decode(encoded: &str) -> Option<Vec<char>> {
        let (plain, rest) = encoded.rsplit_once('-').unwrap_or(("", encoded));
        let mut label: Vec<char> = plain.chars().collect();
        let (mut state, mut code, mut index) = (State::new(), 0x80_u32, 0_u32);
        let mut digits = rest.chars();
        while !digits.as_str().is_empty() {
            let before = index;
            index = index.checked_add(read_number(&mut digits, state.bias)?)?;
            let count = u32::try_from(label.len()).ok()? + 1;
            state.adapt(index - before, count, before == 0);
            code = code.checked_add(index / count)?;
            index %= count;
            label.insert(index as usize, char::from_u32(code)?);
            index += 1;
        }
        Some(label)
    }

    struct State {
        bias: u32,
        delta: u32,
    }

    impl State {
        fn new() -> Self {
            Self { bias: 72, delta: 0 }
        }

        fn adapt(&mut self, delta: u32, count: u32, is_first: bool) {
            let mut delta = if is_first { delta / 700 } else { delta / 2 };
            delta += delta / count;
            let mut shift = 0;
            while delta > ((BASE - T_MIN) * T_MAX) / 2 {
                delta /= BASE - T_MIN;
                shift += BASE;
            }
            self.bias = shift + (BASE - T_MIN + 1) * delta / (delta + 38);
        }
    }

    fn threshold(place: u32, bias: u32) -> u32 {
        place.saturating_sub(bias).clamp(T_MIN, T_MAX)
    }

    fn push_number(encoded: &mut String, mut number: u32, bias: u32) {
        let mut place = BASE;
        loop {
            let threshold = threshold(place, bias);
            if number < threshold {
                encoded.extend(digit(number));
                return;
            }
            encoded.extend(digit(threshold + (number - threshold) % (BASE - threshold)));
            number = (number - threshold) / (BASE - threshold);
            place += BASE;
        }
    }

    fn digit(value: u32) -> Option<char> {
        // 0 to 25 are letters, 26 to 35 are digits.
        char::from_digit(if value < 26 { value + 10 } else { value - 26 }, BASE)
    }

    fn read_number(digits: &mut std::str::Chars<'_>, bias: u32) -> Option<u32> {
        let (mut number, mut weight, mut place) = (0_u32, 1_u32, BASE);
        loop {
            let value = match digits.next()?.to_digit(BASE)? {
                numeral @ 0..10 => numeral + 26,
                letter => letter - 10,
            };
            number = number.checked_add(value.checked_mul(weight)?)?;
            let threshold = threshold(place, bias);
            if value < threshold {
                return Some(number);
            }
            weight = weight.checked_mul(BASE - threshold)?;
            place += BASE;
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[track_caller]
        fn case(label: &str, encoded: &str) {
            let characters: Vec<char> = label.chars().collect();
            assert_eq!(encode(&characters).as_deref(), Some(encoded));
            assert_eq!(decode(encoded), Some(characters));
        }

        #[test]
        fn labels_are_encoded_as_in_the_rfc() {
            case("bücher", "bcher-kva");
            case("ü", "tda");
            case("他们为什么不说中文", "ihqwcrb4cv8a8dqg056pqjye");
            case("Pročprostěnemluvíčesky", "Proprostnemluvesky-uyb24dma41a");
            case("3年B組金八先生", "3B-ww4c5e180e575a65lsy2b");
        }

        #[test]
        fn what_is_no_encoding_decodes_to_nothing() {
            for text in ["é", "a-é", "99999999", "-!"] {
                assert_eq!(decode(text), None, "{text}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_of_all_scripts_are_accepted() {
        for name in [
            "实例.测试",
            "example.com",
            "straße.de",
            "실례.테스트",
            "a。b",
            "a．b",
            "a｡b",
            "Bücher.example",
            "xn--bcher-kva",
            "XN--BCHER-KVA",
            "ßς་〇",
            "۽۾",
            "l·l",
            "α͵β",
            "א׳ב",
            "א״ב",
            "・ぁ",
            "・ァ",
            "・丈",
            "ب٠ب",
            "۰0",
            "क्\u{200D}ष",
            "क्\u{200C}ष",
            "بي\u{200C}بي",
            "h0stn4me",
            "1host",
            "host-name",
            "xn--ihqwcrb4cv8a8dqg056pqjye",
        ] {
            assert!(is_hostname(name), "{name}");
        }
    }

    #[test]
    fn names_that_the_rules_forbid_are_rejected() {
        for name in [
            "",
            ".",
            "。",
            "a..b",
            ".example",
            "example｡",
            "a b",
            "-> $1.00 <--",
            "-hello",
            "hello-",
            "ab--cd",
            "a_b",
            "\u{302E}실례",
            "실\u{302E}례",
            "\u{903}hello",
            "\u{300}hello",
            "\u{488}hello",
            "ـߺ",
            "〱〲",
            "a·l",
            "l·a",
            "l·",
            "α͵S",
            "α͵",
            "A׳ב",
            "׳ב",
            "A״ב",
            "def・abc",
            "・",
            "ب٠۰",
            "क\u{200D}ष",
            "\u{200D}ष",
            "क\u{200C}ष",
            "x\u{200C}y",
            "0a.א",
            "0ا",
            "aא",
            "א0٠",
            "אa",
            "xn--X",
            "xn--7a",
            "xn--0ca24w",
            "XN--aa---o47jg78q",
            "xn--example-",
            "xn---9uc",
            "xn--",
            "☃",
        ] {
            assert!(!is_hostname(name), "{name}");
        }
    }

    #[test]
    fn lengths_are_those_of_the_ascii_form() {
        let label = "a".repeat(63);
        assert!(is_hostname(&label));
        assert!(!is_hostname(&"a".repeat(64)));
        assert!(is_hostname(&"ü".repeat(50)));
        assert!(!is_hostname(&"ü".repeat(60)));
        let name = format!("{label}.{label}.{label}.{}", "a".repeat(61));
        assert!(is_hostname(&name));
        assert!(!is_hostname(&format!("{name}a")));
    }
}

//! JavaScript's regular expressions in Rust's words.
//!
//! JSON Schema takes its patterns from ECMA-262, and the reference runs them with the `u` flag, or without it where they
//! are valid only so. The same text means other things to Rust: `\d` and `\w` know more than ASCII, `\A` is an anchor,
//! `[^]` is no class. What is written here means the same to the `regex`, `fancy-regex` and `jsonschema` crates: no
//! shorthand and no nested class is left in it, and groups have numbers only.

use std::{iter::Peekable, vec::IntoIter};

/// No pattern, in either mode.
#[derive(Debug)]
pub(super) struct Invalid;

type Parsed<T> = Result<T, Invalid>;

const WHITE_SPACE: &str = r"\x{9}-\x{d}\x{20}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}";
const NOT_WHITE_SPACE: &str = r"\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}";
const DIGIT: &str = "0-9";
const NOT_DIGIT: &str = r"\x{0}-\x{2f}\x{3a}-\x{10ffff}";
const WORD: &str = "0-9A-Za-z_";
const NOT_WORD: &str = r"\x{0}-\x{2f}\x{3a}-\x{40}\x{5b}-\x{5e}\x{60}\x{7b}-\x{10ffff}";
const LINE_END: &str = r"\x{a}\x{d}\x{2028}\x{2029}";
const ANYTHING: &str = r"[\x{0}-\x{10ffff}]";
const NOTHING: &str = r"[^\x{0}-\x{10ffff}]";

/// Translates a pattern.
pub(super) fn translate(pattern: &str) -> Parsed<String> {
    Translator::new(pattern, Mode::Unicode)
        .run()
        .or_else(|_| Translator::new(pattern, Mode::Legacy).run())
}

/// With the `u` flag, or without it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Unicode,
    Legacy,
}

/// What a quantifier would repeat.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Atom,
    /// What cannot be repeated; a lookahead without `u` could be in JavaScript, but nobody means it.
    Assertion,
}

/// An open group.
struct Group {
    closes_as: Before,
    outside: Modifiers,
}

/// What `(?ims:…)` changes.
#[derive(Clone, Copy, Default)]
struct Modifiers {
    is_multiline: bool,
    dot_is_all: bool,
}

/// A member of a character class.
enum Member {
    Character(char),
    /// Half a surrogate pair, which no text contains.
    Absent,
    Set(String),
}

struct Translator<'a> {
    mode: Mode,
    rest: Peekable<IntoIter<char>>,
    /// The names of the capturing groups, in order; unnamed ones are empty.
    groups: Vec<&'a str>,
    open: Vec<Group>,
    modifiers: Modifiers,
    before: Before,
    written: String,
}

impl<'a> Translator<'a> {
    fn new(pattern: &'a str, mode: Mode) -> Self {
        Self {
            mode,
            rest: characters(pattern),
            groups: capturing_groups(pattern),
            open: Vec::new(),
            modifiers: Modifiers::default(),
            before: Before::Nothing,
            written: String::new(),
        }
    }

    fn run(mut self) -> Parsed<String> {
        let mut names: Vec<&str> = self
            .groups
            .iter()
            .copied()
            .filter(|name| !name.is_empty())
            .collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Invalid);
        }
        while let Some(character) = self.rest.next() {
            self.term(character)?;
        }
        if self.open.is_empty() {
            Ok(self.written)
        } else {
            Err(Invalid)
        }
    }

    fn term(&mut self, character: char) -> Parsed<()> {
        match character {
            '|' => {
                self.written.push('|');
                self.before = Before::Nothing;
            }
            '(' => self.open_group()?,
            ')' => {
                let group = self.open.pop().ok_or(Invalid)?;
                self.modifiers = group.outside;
                self.written.push(')');
                self.before = group.closes_as;
            }
            '^' if self.modifiers.is_multiline => self.assertion(&format!("(?<![^{LINE_END}])")),
            '$' if self.modifiers.is_multiline => self.assertion(&format!("(?![^{LINE_END}])")),
            '^' => self.assertion("^"),
            '$' => self.assertion("$"),
            '.' if self.modifiers.dot_is_all => self.atom(ANYTHING),
            '.' => self.atom(&format!("[^{LINE_END}]")),
            '[' => self.class()?,
            '\\' => self.escape()?,
            '*' | '+' | '?' => self.quantifier(&character.to_string())?,
            '{' => self.brace()?,
            '}' | ']' if self.mode == Mode::Unicode => return Err(Invalid),
            literal => self.literal(literal),
        }
        Ok(())
    }

    fn atom(&mut self, text: &str) {
        self.written.push_str(text);
        self.before = Before::Atom;
    }

    fn assertion(&mut self, text: &str) {
        self.written.push_str(text);
        self.before = Before::Assertion;
    }

    fn literal(&mut self, literal: char) {
        push_literal(&mut self.written, literal);
        self.before = Before::Atom;
    }

    fn eat(&mut self, character: char) -> bool {
        self.rest.next_if_eq(&character).is_some()
    }

    /// Takes what comes next if it is exactly that.
    fn eat_all(&mut self, text: &str) -> bool {
        let mut ahead = self.rest.clone();
        let is_there = text
            .chars()
            .all(|character| ahead.next() == Some(character));
        if is_there {
            self.rest = ahead;
        }
        is_there
    }

    fn open_group(&mut self) -> Parsed<()> {
        let outside = self.modifiers;
        let (text, closes_as) = if !self.eat('?') {
            ("(".to_owned(), Before::Atom)
        } else if self.eat(':') {
            ("(?:".to_owned(), Before::Atom)
        } else if self.eat('=') {
            ("(?=".to_owned(), Before::Assertion)
        } else if self.eat('!') {
            ("(?!".to_owned(), Before::Assertion)
        } else if self.eat_all("<=") {
            ("(?<=".to_owned(), Before::Assertion)
        } else if self.eat_all("<!") {
            ("(?<!".to_owned(), Before::Assertion)
        } else if self.eat('<') {
            self.name()?;
            ("(".to_owned(), Before::Atom)
        } else {
            (self.modifier_group()?, Before::Atom)
        };
        self.open.push(Group { closes_as, outside });
        self.written.push_str(&text);
        self.before = Before::Nothing;
        Ok(())
    }

    /// Reads a group's name up to its `>`.
    fn name(&mut self) -> Parsed<String> {
        let mut name = String::new();
        loop {
            match self.rest.next().ok_or(Invalid)? {
                '>' if !name.is_empty() => return Ok(name),
                '$' | '_' => name.push('_'),
                letter
                    if letter.is_alphabetic() || (!name.is_empty() && letter.is_alphanumeric()) =>
                {
                    name.push(letter);
                }
                _ => return Err(Invalid),
            }
        }
    }

    /// Reads `i`, `m` and `s`, switched on and off, up to the `:`.
    fn modifier_group(&mut self) -> Parsed<String> {
        let mut seen = String::new();
        let mut case = "";
        let mut switches_on = true;
        loop {
            let flag = self.rest.next().ok_or(Invalid)?;
            match flag {
                ':' if !seen.is_empty() => return Ok(format!("(?{case}:")),
                '-' if switches_on => {
                    switches_on = false;
                    continue;
                }
                'i' => case = if switches_on { "i" } else { "-i" },
                'm' => self.modifiers.is_multiline = switches_on,
                's' => self.modifiers.dot_is_all = switches_on,
                _ => return Err(Invalid),
            }
            if seen.contains(flag) {
                return Err(Invalid);
            }
            seen.push(flag);
        }
    }

    fn quantifier(&mut self, text: &str) -> Parsed<()> {
        if self.before != Before::Atom {
            return Err(Invalid);
        }
        self.written.push_str(text);
        if self.eat('?') {
            self.written.push('?');
        }
        self.before = Before::Assertion;
        Ok(())
    }

    /// Reads `{n}`, `{n,}` or `{n,m}`; without `u` anything else in braces is literal.
    fn brace(&mut self) -> Parsed<()> {
        let inside: String = self
            .rest
            .clone()
            .take_while(|character| *character != '}')
            .collect();
        let (least, most) = match inside.split_once(',') {
            None => (inside.as_str(), inside.as_str()),
            Some((least, most)) => (least, most),
        };
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_closed = self.rest.clone().any(|character| character == '}');
        let is_quantifier = is_closed && is_number(least) && (most.is_empty() || is_number(most));
        if !is_quantifier {
            return if self.mode == Mode::Unicode {
                Err(Invalid)
            } else {
                self.literal('{');
                Ok(())
            };
        }
        let count = |text: &str| text.parse::<u32>().unwrap_or(u32::MAX);
        if !most.is_empty() && count(least) > count(most) {
            return Err(Invalid);
        }
        self.eat_all(&format!("{inside}}}"));
        self.quantifier(&format!("{{{inside}}}"))
    }

    fn escape(&mut self) -> Parsed<()> {
        let escaped = *self.rest.peek().ok_or(Invalid)?;
        match escaped {
            'b' | 'B' => {
                self.rest.next();
                self.assertion(&boundary(escaped == 'B'));
            }
            '1'..='9' => self.back_reference()?,
            'k' if self.mode == Mode::Unicode || self.has_names() => {
                self.rest.next();
                let name = if self.eat('<') {
                    self.name()?
                } else {
                    return Err(Invalid);
                };
                let is_named = |group: &&str| group.replace('$', "_") == name;
                let index = self.groups.iter().position(is_named).ok_or(Invalid)?;
                self.atom(&format!(r"(?:\{})", index + 1));
            }
            _ => match self.character_escape()? {
                Member::Character(character) => self.literal(character),
                Member::Absent => self.atom(NOTHING),
                Member::Set(set) => self.atom(&format!("[{set}]")),
            },
        }
        Ok(())
    }

    fn has_names(&self) -> bool {
        self.groups.iter().any(|name| !name.is_empty())
    }

    /// A back-reference; without `u` a number beyond the groups is an octal escape.
    fn back_reference(&mut self) -> Parsed<()> {
        let digits: String = self.rest.clone().take_while(char::is_ascii_digit).collect();
        if digits
            .parse()
            .is_ok_and(|number: usize| number <= self.groups.len())
        {
            self.eat_all(&digits);
            self.atom(&format!(r"(?:\{digits})"));
            return Ok(());
        }
        if self.mode == Mode::Unicode {
            return Err(Invalid);
        }
        let character = self.octal();
        self.literal(character);
        Ok(())
    }

    /// An escape that may stand in a class too: one character or a set of them.
    fn character_escape(&mut self) -> Parsed<Member> {
        let escaped = self.rest.next().ok_or(Invalid)?;
        let set = |text: &str| Ok(Member::Set(text.to_owned()));
        let control = |code: u8| Ok(Member::Character(char::from(code)));
        match escaped {
            'd' => set(DIGIT),
            'D' => set(NOT_DIGIT),
            'w' => set(WORD),
            'W' => set(NOT_WORD),
            's' => set(WHITE_SPACE),
            'S' => set(NOT_WHITE_SPACE),
            'f' => control(12),
            'n' => control(10),
            'r' => control(13),
            't' => control(9),
            'v' => control(11),
            'c' => self.control_letter(),
            'x' => self.hexadecimal(2, 'x'),
            'u' => self.code_point(),
            'p' | 'P' if self.mode == Mode::Unicode => self.property(escaped),
            '0' if !self.rest.peek().is_some_and(char::is_ascii_digit) => control(0),
            '0'..='7' if self.mode == Mode::Legacy => {
                let mut ahead = vec![escaped];
                ahead.extend(self.rest.clone());
                self.rest = ahead.into_iter().peekable();
                Ok(Member::Character(self.octal()))
            }
            '^' | '$' | '\\' | '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|'
            | '/' => Ok(Member::Character(escaped)),
            other if self.mode == Mode::Legacy && (other != 'k' || !self.has_names()) => {
                Ok(Member::Character(other))
            }
            _ => Err(Invalid),
        }
    }

    fn control_letter(&mut self) -> Parsed<Member> {
        if let Some(letter) = self.rest.next_if(char::is_ascii_alphabetic) {
            let code = u8::try_from(letter).map_err(|_| Invalid)? % 32;
            return Ok(Member::Character(char::from(code)));
        }
        if self.mode == Mode::Unicode {
            return Err(Invalid);
        }
        // Without `u`, the backslash stands for itself and the `c` is read again.
        let mut ahead = vec!['c'];
        ahead.extend(self.rest.clone());
        self.rest = ahead.into_iter().peekable();
        Ok(Member::Character('\\'))
    }

    /// Reads that many hexadecimal digits; without `u` the letter before them stands for itself if they are missing.
    fn hexadecimal(&mut self, count: usize, letter: char) -> Parsed<Member> {
        match self.digits(count) {
            Some(code) => Ok(char::from_u32(code).map_or(Member::Absent, Member::Character)),
            None if self.mode == Mode::Legacy => Ok(Member::Character(letter)),
            None => Err(Invalid),
        }
    }

    fn digits(&mut self, count: usize) -> Option<u32> {
        let digits: String = self
            .rest
            .clone()
            .take(count)
            .take_while(char::is_ascii_hexdigit)
            .collect();
        if digits.len() < count {
            return None;
        }
        self.eat_all(&digits);
        u32::from_str_radix(&digits, 16).ok()
    }

    /// Reads what follows `\u`: four digits, a surrogate pair, or with `u` a code point in braces.
    fn code_point(&mut self) -> Parsed<Member> {
        if self.mode == Mode::Unicode && self.eat('{') {
            let mut digits = String::new();
            while let Some(digit) = self.rest.next_if(char::is_ascii_hexdigit) {
                digits.push(digit);
            }
            let code = u32::from_str_radix(&digits, 16).map_err(|_| Invalid)?;
            let is_closed = self.eat('}') && code <= 0x0010_ffff;
            return if is_closed {
                Ok(char::from_u32(code).map_or(Member::Absent, Member::Character))
            } else {
                Err(Invalid)
            };
        }
        let start = self.rest.clone();
        let Some(high @ 0xd800..=0xdbff) = self.digits(4) else {
            self.rest = start;
            return self.hexadecimal(4, 'u');
        };
        let before_low = self.rest.clone();
        if self.eat_all("\\u")
            && let Some(low @ 0xdc00..=0xdfff) = self.digits(4)
        {
            let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            return char::from_u32(code).map(Member::Character).ok_or(Invalid);
        }
        self.rest = before_low;
        Ok(Member::Absent)
    }

    fn property(&mut self, letter: char) -> Parsed<Member> {
        if !self.eat('{') {
            return Err(Invalid);
        }
        let mut name = String::new();
        while let Some(part) = self
            .rest
            .next_if(|part| part.is_ascii_alphanumeric() || matches!(part, '_' | '='))
        {
            name.push(part);
        }
        if name.is_empty() || !self.eat('}') {
            return Err(Invalid);
        }
        Ok(Member::Set(format!(r"\{letter}{{{name}}}")))
    }

    /// Reads up to three octal digits, at most 255; `8` and `9` stand for themselves.
    fn octal(&mut self) -> char {
        let mut code = 0;
        let mut count = 0;
        while let Some(digit) = self.rest.peek().and_then(|digit| digit.to_digit(8))
            && count < 3
            && code * 8 + digit <= 0xff
        {
            self.rest.next();
            code = code * 8 + digit;
            count += 1;
        }
        let itself = |translator: &mut Self| translator.rest.next().unwrap_or('8');
        if count == 0 {
            itself(self)
        } else {
            char::from_u32(code).unwrap_or('\0')
        }
    }

    fn class(&mut self) -> Parsed<()> {
        let is_negated = self.eat('^');
        let mut members = String::new();
        while !self.eat(']') {
            let first = self.member()?;
            let mut ahead = self.rest.clone();
            let is_range =
                ahead.next() == Some('-') && ahead.next().is_some_and(|next| next != ']');
            if !is_range {
                push_member(&mut members, &first);
                continue;
            }
            self.eat('-');
            let last = self.member()?;
            match (&first, &last) {
                (Member::Character(first), Member::Character(last)) if first <= last => {
                    push_literal(&mut members, *first);
                    members.push('-');
                    push_literal(&mut members, *last);
                }
                (Member::Character(_), Member::Character(_)) => return Err(Invalid),
                _ if self.mode == Mode::Unicode => return Err(Invalid),
                _ => {
                    push_member(&mut members, &first);
                    push_literal(&mut members, '-');
                    push_member(&mut members, &last);
                }
            }
        }
        match (members.is_empty(), is_negated) {
            (true, true) => self.atom(ANYTHING),
            (true, false) => self.atom(NOTHING),
            (false, true) => self.atom(&format!("[^{members}]")),
            (false, false) => self.atom(&format!("[{members}]")),
        }
        Ok(())
    }

    fn member(&mut self) -> Parsed<Member> {
        match self.rest.next().ok_or(Invalid)? {
            '\\' if self.eat('b') => Ok(Member::Character('\u{8}')),
            '\\' if self.eat('-') => Ok(Member::Character('-')),
            '\\' => self.character_escape(),
            character => Ok(Member::Character(character)),
        }
    }
}

fn characters(text: &str) -> Peekable<IntoIter<char>> {
    text.chars().collect::<Vec<_>>().into_iter().peekable()
}

/// The names of a pattern's capturing groups, in order; unnamed ones are empty.
fn capturing_groups(pattern: &str) -> Vec<&str> {
    let mut groups = Vec::new();
    let mut is_in_class = false;
    let mut is_escaped = false;
    for (at, character) in pattern.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            '(' if !is_in_class => {
                let rest = &pattern[at + 1..];
                let name = rest
                    .strip_prefix("?<")
                    .filter(|name| !name.starts_with(['=', '!']));
                if let Some(name) = name {
                    groups.push(name.split('>').next().unwrap_or_default());
                } else if !rest.starts_with('?') {
                    groups.push("");
                }
            }
            _ => {}
        }
    }
    groups
}

/// Where a word of ASCII begins or ends, or where none does.
fn boundary(is_negated: bool) -> String {
    let (behind, ahead) = (format!("(?<=[{WORD}])"), format!("(?=[{WORD}])"));
    let (not_behind, not_ahead) = (format!("(?<![{WORD}])"), format!("(?![{WORD}])"));
    if is_negated {
        format!("(?:{behind}{ahead}|{not_behind}{not_ahead})")
    } else {
        format!("(?:{behind}{not_ahead}|{not_behind}{ahead})")
    }
}

fn push_member(members: &mut String, member: &Member) {
    match member {
        Member::Character(character) => push_literal(members, *character),
        Member::Absent => {}
        Member::Set(set) => members.push_str(set),
    }
}

fn push_literal(written: &mut String, literal: char) {
    if literal.is_ascii() && !literal.is_ascii_alphanumeric() && literal != '_' {
        written.push_str(&format!(r"\x{{{:x}}}", u32::from(literal)));
    } else {
        written.push(literal);
    }
}

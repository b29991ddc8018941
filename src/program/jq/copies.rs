//! How many copies of what it is given a filter may put into what it makes, judged by its tokens.
//!
//! What a filter makes is put together from what is in scope (its input, variables) and from its text. Copies beside each
//! other add up; along pipes they multiply, so that a short text can ask for very many. The bound is a rough one: every
//! place that names something in scope counts as a whole copy of it. What goes on by itself is told apart elsewhere.

use std::collections::HashMap;
use std::slice::Iter;

use jaq_core::load::lex::{Tok, Token};

use super::growth::{KEYWORDS, inner, is_operator, mentions};

/// More copies than this may be more than there is memory for, however small the input.
pub(super) const MANY: u64 = 256;

/// What a filter of jq's own makes of a text in which every character has to be escaped, again and again.
const ESCAPED: u64 = 4;

/// `..` has a value once for each level above it; few nest deeper.
const LEVELS: u64 = 16;

/// What holds nothing of what is in scope.
const CONSTANTS: [&str; 5] = ["empty", "false", "length", "null", "true"];

/// A bound on what a filter gives.
#[derive(Debug, Clone, Copy)]
struct Yield {
    /// Copies of what is in scope, in all outputs together.
    copies: u64,
    outputs: u64,
}

impl Yield {
    const CONSTANT: Self = Self::copies(0);
    const COPY: Self = Self::copies(1);

    /// So many copies in one output.
    const fn copies(copies: u64) -> Self {
        Self { copies, outputs: 1 }
    }

    /// Each output of one together with each of the other.
    fn beside(self, other: Self) -> Self {
        let own = self.copies.saturating_mul(other.outputs);
        let others = other.copies.saturating_mul(self.outputs);
        Self {
            copies: own.saturating_add(others),
            outputs: self.outputs.saturating_mul(other.outputs),
        }
    }

    /// The outputs of one, then those of the other.
    fn then(self, other: Self) -> Self {
        Self {
            copies: self.copies.saturating_add(other.copies),
            outputs: self.outputs.saturating_add(other.outputs),
        }
    }

    /// Each output given to another filter, whose scope may still hold what was there before.
    fn into(self, next: Self) -> Self {
        let scope = self.copies.max(self.outputs).max(1);
        Self {
            copies: scope.saturating_mul(next.copies.max(1)),
            outputs: self.outputs.saturating_mul(next.outputs),
        }
    }
}

/// What commas mean where they stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Commas {
    /// One output after another.
    Outputs,
    /// One member beside another.
    Members,
}

/// A definition: what it gives, and how often its body names its parameters.
#[derive(Clone, Copy)]
struct Definition {
    gives: Yield,
    uses: u32,
}

impl Definition {
    /// What a call gives: each parameter may stand for as much as all arguments.
    fn called_with(self, arguments: Yield) -> Yield {
        let times = arguments
            .copies
            .max(arguments.outputs)
            .saturating_pow(self.uses);
        Yield {
            copies: self.gives.copies.max(1).saturating_mul(times),
            outputs: self.gives.outputs.saturating_mul(times),
        }
    }
}

/// How many copies of what it is given a filter may make.
pub(super) fn copies(tokens: &[Token<&str>]) -> u64 {
    let given = Reader::new().all(tokens, Commas::Outputs);
    given.copies.max(given.outputs)
}

/// Reads filters; knows the definitions that it came by. One name may have several, of which the greatest counts.
struct Reader<'s> {
    definitions: HashMap<&'s str, Definition>,
    /// What a variable counts as.
    variable: Yield,
}

/// The tokens that are still to be read.
type Tokens<'t, 's> = Iter<'t, Token<&'s str>>;

impl<'s> Reader<'s> {
    fn new() -> Self {
        Self {
            definitions: HashMap::new(),
            variable: Yield::COPY,
        }
    }

    /// All that stands in these tokens: one filter, or several with semicolons between them.
    fn all(&mut self, tokens: &[Token<&'s str>], commas: Commas) -> Yield {
        let mut tokens = tokens.iter();
        let mut given = Yield::CONSTANT;
        while !tokens.as_slice().is_empty() {
            given = given.beside(self.filter(&mut tokens, commas).0);
        }
        given
    }

    /// One filter, up to the word or the semicolon that ends it, which is returned.
    fn filter(&mut self, tokens: &mut Tokens<'_, 's>, commas: Commas) -> (Yield, Option<&'s str>) {
        let all = tokens.as_slice();
        let mut chain = Chain::default();
        while let Some(token) = tokens.next() {
            let at = all.len() - tokens.as_slice().len() - 1;
            match token.0 {
                "then" | "elif" | "else" | "end" | ";" if !is_key(tokens) => {
                    return (chain.given(), Some(token.0));
                }
                "|" => chain.pipe(),
                "," if commas == Commas::Outputs => chain.comma(),
                _ => {
                    let before = at.checked_sub(1).map(|before| &all[before]);
                    let term = self.term(token, before, tokens);
                    chain.term = chain.term.beside(term);
                }
            }
        }
        (chain.given(), None)
    }

    /// What a token adds, with those behind it that belong to it.
    fn term(
        &mut self,
        token: &Token<&'s str>,
        before: Option<&Token<&'s str>>,
        behind: &mut Tokens<'_, 's>,
    ) -> Yield {
        let goes_on = before.is_some_and(|before| !is_operator(before));
        match &token.1 {
            Tok::Word if is_key(behind) => Yield::CONSTANT,
            Tok::Word => self.word(token.0, behind),
            Tok::Var => self.variable,
            Tok::Fmt => Yield::copies(ESCAPED),
            Tok::Sym if token.0 == ".." => Yield::copies(LEVELS),
            Tok::Sym if token.0.starts_with('.') && !goes_on => Yield::COPY,
            Tok::Num | Tok::Sym => Yield::CONSTANT,
            Tok::Str(_) => self.string(token, before),
            Tok::Block(inside) if token.0.starts_with('{') => self.all(inside, Commas::Members),
            Tok::Block(inside) => {
                let given = self.all(inside, Commas::Outputs);
                match (token.0.starts_with('['), goes_on) {
                    // A list.
                    (true, false) => Yield::copies(given.copies),
                    // An index.
                    (true, true) => Yield { copies: 0, ..given },
                    (false, _) => given,
                }
            }
        }
    }

    fn string(&mut self, token: &Token<&'s str>, before: Option<&Token<&'s str>>) -> Yield {
        let text = inner(token).fold(Yield::CONSTANT, |text, part| {
            text.beside(self.all(part, Commas::Outputs))
        });
        match before {
            Some(Token(_, Tok::Fmt)) => text.into(Yield::copies(ESCAPED)),
            _ => text,
        }
    }

    fn word(&mut self, word: &'s str, behind: &mut Tokens<'_, 's>) -> Yield {
        match word {
            "def" => {
                self.define(behind);
                Yield::CONSTANT
            }
            "as" => {
                while behind.as_slice().first().is_some_and(|next| next.0 != "|") {
                    behind.next();
                }
                Yield::CONSTANT
            }
            "if" => self.condition(behind),
            "reduce" | "foreach" => self.fold(behind),
            "tojson" => Yield::copies(ESCAPED),
            _ if KEYWORDS.contains(&word) || CONSTANTS.contains(&word) => Yield::CONSTANT,
            _ => self.call(word, behind),
        }
    }

    /// A definition, up to its semicolon.
    fn define(&mut self, behind: &mut Tokens<'_, 's>) {
        let Some(Token(name, _)) = behind.next() else {
            return;
        };
        let parameters = match behind.as_slice().first() {
            Some(Token(_, Tok::Block(parameters))) => {
                behind.next();
                &parameters[..]
            }
            _ => &[],
        };
        let body = behind.as_slice();
        let (gives, _) = self.filter(behind, Commas::Outputs);
        let body = &body[..body.len() - behind.as_slice().len()];
        let is_name = |token: &&Token<&str>| matches!(token.1, Tok::Word | Tok::Var);
        let uses = parameters.iter().filter(is_name);
        let uses = uses.map(|parameter| mentions(body, parameter.0)).sum();
        let known = self.definitions.entry(name).or_insert(Definition {
            gives: Yield::CONSTANT,
            uses: 0,
        });
        known.gives.copies = known.gives.copies.max(gives.copies);
        known.gives.outputs = known.gives.outputs.max(gives.outputs);
        known.uses = known.uses.max(uses);
    }

    /// What follows `if`, up to its `end`.
    fn condition(&mut self, behind: &mut Tokens<'_, 's>) -> Yield {
        let mut given = Yield::CONSTANT;
        loop {
            let (part, end) = self.filter(behind, Commas::Outputs);
            given = given.beside(part);
            if matches!(end, None | Some("end")) {
                return given;
            }
        }
    }

    /// What follows `reduce` and `foreach`. One that makes more than one copy of what it has so far makes as many again
    /// with each value.
    fn fold(&mut self, behind: &mut Tokens<'_, 's>) -> Yield {
        let source: Vec<_> = behind
            .by_ref()
            .take_while(|token| token.0 != "as")
            .collect();
        let body = behind.find_map(|token| match &token.1 {
            Tok::Block(body) if token.0.starts_with('(') => Some(body),
            _ => None,
        });
        let mut given = Yield::CONSTANT;
        for (at, token) in source.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| source[before]);
            given = given.beside(self.term(token, before, &mut [].iter()));
        }
        let mut parts = body.map_or(&[][..], Vec::as_slice).iter();
        let (start, _) = self.filter(&mut parts, Commas::Outputs);
        let update = self.update(&mut parts);
        let (extract, _) = self.filter(&mut parts, Commas::Outputs);
        if update.copies.max(update.outputs) > 1 {
            return Yield::copies(u64::MAX);
        }
        given.beside(start).beside(extract)
    }

    /// What the update of a fold makes of what there is so far; variables hold none of it unless it makes them.
    fn update(&mut self, parts: &mut Tokens<'_, 's>) -> Yield {
        let body = parts.as_slice();
        let outer = self.variable;
        if mentions(body, "as") + mentions(body, "def") == 0 {
            self.variable = Yield::CONSTANT;
        }
        let (update, _) = self.filter(parts, Commas::Outputs);
        self.variable = outer;
        update
    }

    /// A call; jq's own filters give no more than a copy of their input, or what their arguments give.
    fn call(&mut self, name: &str, behind: &mut Tokens<'_, 's>) -> Yield {
        let mut arguments = Yield::CONSTANT;
        if let Some(Token(text, Tok::Block(inside))) = behind.as_slice().first()
            && text.starts_with('(')
        {
            behind.next();
            arguments = self.all(inside, Commas::Outputs);
        }
        match self.definitions.get(name) {
            Some(definition) => definition.called_with(arguments),
            None => Yield {
                copies: arguments.copies.max(1),
                ..arguments
            },
        }
    }
}

/// What was read of a filter so far: `piped | earlier, term`.
struct Chain {
    piped: Option<Yield>,
    earlier: Option<Yield>,
    term: Yield,
}

impl Default for Chain {
    fn default() -> Self {
        Self {
            piped: None,
            earlier: None,
            term: Yield::CONSTANT,
        }
    }
}

impl Chain {
    fn comma(&mut self) {
        self.earlier = Some(self.outputs());
        self.term = Yield::CONSTANT;
    }

    fn pipe(&mut self) {
        *self = Self {
            piped: Some(self.given()),
            ..Self::default()
        };
    }

    fn outputs(&self) -> Yield {
        let earlier = self.earlier;
        earlier.map_or(self.term, |earlier| earlier.then(self.term))
    }

    fn given(&self) -> Yield {
        let outputs = self.outputs();
        self.piped.map_or(outputs, |piped| piped.into(outputs))
    }
}

/// Whether what stands before these tokens is the key of an object.
fn is_key(behind: &Tokens<'_, '_>) -> bool {
    behind.as_slice().first().is_some_and(|next| next.0 == ":")
}

#[cfg(test)]
mod tests {
    use jaq_core::load::Lexer;

    use super::*;

    #[track_caller]
    fn case(text: &str, expected: u64) {
        let tokens = Lexer::new(text).lex().unwrap();
        assert_eq!(copies(&tokens), expected, "{text}");
    }

    #[test]
    fn copies_add_up_beside_each_other_and_multiply_along_pipes() {
        case(".a.b[0][\"c\"]?", 1);
        case(". + .", 2);
        case("[., .] | [., .] | [., .]", 8);
        case("{a: ., b: {c: .}} | [.]", 2);
        case("\"\\(.)\\(. | \"\\(.)\\(.)\")\"", 3);
        case("(. + .) + (. + .)", 4);
        case("map([., .]) | map([., .])", 4);
        case(". as {a: $x} | [$x, $x]", 2);
        case("if .a then . else [., .] end | [., .]", 8);
        case("tojson | @json", ESCAPED * ESCAPED);
        case("\"[]\" | [1, 2] | test(\"a\")", 1);
    }

    #[test]
    fn what_stands_beside_several_outputs_is_there_for_each() {
        case(".[0, 0] | .", 2);
        case("(0, 0) as $x | (0, 0) as $y | .", 4);
        case("(0, 0) + (0, 0) + (0, 0)", 8);
        case("\"\\(1, 2)\\(.)\"", 2);
        case("{a: (1, 2), b: (1, 2)}", 4);
        case("if (0, 0) then 1, . else 2 end | .", 4);
    }

    #[test]
    fn definitions_count_where_they_are_called() {
        case("def d: [., .]; .", 1);
        case("def d: [., .]; d | d | d", 8);
        case("def d: [., .]; def e: d | d; [e, e]", 8);
        case("def twice(f): f | f; twice([., .]) | twice([., .])", 16);
        case("def d($x): [$x, $x]; d(.)", 2);
        case("def d: def e: [., .]; e | e; d", 4);
    }

    #[test]
    fn folds_that_double_are_without_bound() {
        case("reduce .[] as $x (0; . + $x)", 1);
        case("reduce .[] as {a: $x} ({}; .[$x] += $x)", 1);
        case("foreach (.a, .b)[] as [$x] (0; . + $x; [., $x])", 6);
        for text in [
            "reduce .[] as $x (.; [., .])",
            "reduce .[] as $x (.; . as $y | [$y, $y])",
            "reduce .[] as $x (0; (., .))",
        ] {
            case(text, u64::MAX);
        }
    }

    #[test]
    fn no_number_of_copies_is_too_many_to_count() {
        case(&vec!["[., .]"; 80].join(" | "), u64::MAX);
    }
}

//! Keywords that judge a value by themselves: its type, its choices, its bounds.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::Walk;
use crate::json::{self, number_text};
use crate::schema::assertion::has_format;
use crate::schema::convert::is_same;
use crate::schema::node::Keywords;
use crate::schema::number::{compare, is_multiple};

impl Walk<'_> {
    pub(super) fn wrong_type(&mut self, keywords: &Keywords, value: &Value) -> bool {
        let Some(types) = &keywords.types else {
            return false;
        };
        if types.known.iter().any(|known| known.admits(value)) {
            return false;
        }
        let expected = types.names.join(" or ");
        self.report(
            "type",
            format!("expected {expected}, got {}", json::kind(value)),
        );
        true
    }

    /// `enum` and `const`.
    pub(super) fn values(&mut self, keywords: &Keywords, value: &Value) {
        if let Some(members) = &keywords.enumeration
            && !members.iter().any(|member| is_same(member, value))
        {
            self.report("enum", one_of(members));
        }
        if let Some(constant) = &keywords.constant
            && !is_same(constant, value)
        {
            self.report("const", format!("expected {}", json::compact(constant)));
        }
    }

    pub(super) fn string(&mut self, keywords: &Keywords, text: &str, value: &Value) {
        let bounds = (&keywords.min_length, &keywords.max_length);
        self.count("Length", bounds, text.chars().count(), "characters");
        if let Some(pattern) = &keywords.pattern
            && !pattern.matches(text)
        {
            self.report("pattern", format!("expected to match {}", pattern.source()));
        }
        if let Some(format) = &keywords.format
            && !has_format(value, format)
        {
            self.report("format", format!("expected format {format}"));
        }
    }

    /// Bounds of a count: `minLength` and `maxLength` and their like.
    pub(super) fn count(
        &mut self,
        what: &str,
        (least, most): (&Option<Number>, &Option<Number>),
        count: usize,
        things: &str,
    ) {
        if let Some(least) = least.as_ref().filter(|least| is_below(count, least)) {
            self.report(
                &format!("min{what}"),
                format!("expected at least {} {things}", number_text(least)),
            );
        }
        if let Some(most) = most.as_ref().filter(|most| is_above(count, most)) {
            self.report(
                &format!("max{what}"),
                format!("expected at most {} {things}", number_text(most)),
            );
        }
    }

    pub(super) fn number(&mut self, keywords: &Keywords, value: &Number) {
        use Ordering::{Equal, Greater, Less};
        let bounds = [
            ("minimum", &keywords.minimum, ">=", &[Greater, Equal][..]),
            ("maximum", &keywords.maximum, "<=", &[Less, Equal]),
            (
                "exclusiveMinimum",
                &keywords.exclusive_minimum,
                ">",
                &[Greater],
            ),
            (
                "exclusiveMaximum",
                &keywords.exclusive_maximum,
                "<",
                &[Less],
            ),
        ];
        for (keyword, bound, sign, allowed) in bounds {
            if let Some(bound) = bound
                && !allowed.contains(&compare(value, bound))
            {
                self.report(keyword, format!("expected {sign} {}", number_text(bound)));
            }
        }
        if let Some(step) = &keywords.multiple_of
            && !is_multiple(value, step)
        {
            self.report(
                "multipleOf",
                format!("expected a multiple of {}", number_text(step)),
            );
        }
    }
}

/// A choice, as compact JSON; of many values the first ones.
pub(super) fn one_of(values: &[Value]) -> String {
    const SHOWN: usize = 20;
    let shown: Vec<String> = values.iter().take(SHOWN).map(json::compact).collect();
    let shown = shown.join(",");
    match values.len().saturating_sub(SHOWN) {
        0 => format!("expected one of [{shown}]"),
        more => format!("expected one of [{shown}, ... and {more} more]"),
    }
}

pub(super) fn is_below(count: usize, bound: &Number) -> bool {
    compare(&count.into(), bound) == Ordering::Less
}

pub(super) fn is_above(count: usize, bound: &Number) -> bool {
    compare(&count.into(), bound) == Ordering::Greater
}

pub(super) fn is_count(number: &Number, count: u64) -> bool {
    compare(number, &count.into()) == Ordering::Equal
}

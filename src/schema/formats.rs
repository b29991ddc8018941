//! The formats that the `jsonschema` crate does not know, or only with the tables of its `idna` feature.
//!
//! All others it judges as the reference does.

use std::net::{Ipv4Addr, Ipv6Addr};

use fluent_uri::Iri;

use super::idn;

/// The check of a format that the validator has to be given.
pub(super) fn check(name: &str) -> Option<fn(&str) -> bool> {
    match name {
        "idn-email" => Some(is_email),
        "idn-hostname" => Some(idn::is_hostname),
        "json-pointer-uri-fragment" => Some(is_pointer_fragment),
        "url" => Some(is_url),
        _ => None,
    }
}

/// An absolute address (RFC 3987; people write other letters than ASCII into them), which names a host if its
/// scheme is one that cannot do without.
fn is_url(text: &str) -> bool {
    let Ok(address) = Iri::parse(text) else {
        return false;
    };
    let scheme = address.scheme().as_str().to_ascii_lowercase();
    let has_host = address
        .authority()
        .is_some_and(|authority| !authority.host().is_empty());
    has_host || !matches!(scheme.as_str(), "http" | "https" | "ws" | "wss" | "ftp")
}

/// `#` and a JSON Pointer, percent-encoded (RFC 6901, section 6).
fn is_pointer_fragment(text: &str) -> bool {
    let Some(pointer) = text.strip_prefix('#') else {
        return false;
    };
    let Some(decoded) = percent_decoded(pointer) else {
        return false;
    };
    is_pointer(&decoded)
}

/// The bytes that a fragment stands for, if it is one (RFC 3986, section 3.5).
fn percent_decoded(fragment: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        decoded.push(match first {
            b'%' => {
                let (digits, behind) = rest.split_at_checked(2)?;
                rest = behind;
                hexadecimal(digits)?
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => *first,
            other if b"-._~!$&'()*+,;=:@/?".contains(other) => *first,
            _ => return None,
        });
    }
    Some(decoded)
}

fn hexadecimal(digits: &[u8]) -> Option<u8> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    let value = digits
        .iter()
        .try_fold(0, |sum, digit| Some(sum * 16 + value(*digit)?))?;
    u8::try_from(value).ok()
}

fn is_pointer(bytes: &[u8]) -> bool {
    let is_rooted = bytes.is_empty() || bytes[0] == b'/';
    let mut escapes = bytes.split(|byte| *byte == b'~').skip(1);
    is_rooted
        && str::from_utf8(bytes).is_ok()
        && escapes.all(|rest| matches!(rest.first(), Some(b'0' | b'1')))
}

/// A mailbox (RFC 5321, section 4.1.2) with other letters than ASCII (RFC 6531, section 3.3).
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let is_domain = is_mail_domain(domain) || is_address_literal(domain);
    local.len() <= 64 && is_local_part(local) && is_domain
}

fn is_local_part(local: &str) -> bool {
    let quoted = local
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    match quoted {
        Some(quoted) => is_quoted_content(quoted),
        None => local
            .split('.')
            .all(|atom| !atom.is_empty() && atom.chars().all(is_atom_text)),
    }
}

fn is_atom_text(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || "!#$%&'*+-/=?^_`{|}~".contains(character)
        || !character.is_ascii()
}

fn is_quoted_content(quoted: &str) -> bool {
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        let is_text = match character {
            '\\' => matches!(characters.next(), Some(' '..='~')),
            '"' => false,
            ' '..='~' => true,
            other => !other.is_ascii(),
        };
        if !is_text {
            return false;
        }
    }
    true
}

/// A domain of labels; those that are no ASCII are not judged, mail servers convert them first.
fn is_mail_domain(domain: &str) -> bool {
    let is_letter = |character: char| character.is_ascii_alphanumeric() || !character.is_ascii();
    let is_label = |label: &str| {
        label.len() <= 63
            && label.starts_with(is_letter)
            && label.ends_with(is_letter)
            && label
                .chars()
                .all(|character| character == '-' || is_letter(character))
    };
    domain.len() <= 253 && domain.split('.').all(is_label)
}

fn is_address_literal(domain: &str) -> bool {
    let Some(literal) = domain
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    else {
        return false;
    };
    match literal.split_at_checked("IPv6:".len()) {
        Some((tag, address)) if tag.eq_ignore_ascii_case("IPv6:") => {
            address.parse::<Ipv6Addr>().is_ok()
        }
        _ => literal.parse::<Ipv4Addr>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(name: &str, accepted: &[&str], rejected: &[&str]) {
        let check = check(name).expect(name);
        for text in accepted {
            assert!(check(text), "{name} should accept {text:?}");
        }
        for text in rejected {
            assert!(!check(text), "{name} should reject {text:?}");
        }
    }

    #[test]
    fn url_names_a_host_where_its_scheme_needs_one() {
        case(
            "url",
            &[
                "https://example.com",
                "http://localhost:3000/x",
                "mailto:a@b.c",
                "http://[::1]:80/",
                "https://é.com/ü",
                "file:///etc",
            ],
            &[
                "",
                "example.com",
                "/a",
                "http://",
                "HTTP:///x",
                "http:x",
                "http://a b/",
                "http://[::1",
                "http://a/%zz",
                "://a",
            ],
        );
    }

    #[test]
    fn pointer_fragment_is_an_encoded_pointer() {
        case(
            "json-pointer-uri-fragment",
            &[
                "#", "#/", "#/a", "#/a~1b~0", "#/a%20b", "#/%7E0", "#/%C3%A9",
            ],
            &[
                "", "/a", "#a", "#/~", "#/~2", "#/%7E", "#/é", "#/a b", "#/%", "#/%4", "#/%+1",
                "#/%FF", "#/a#b",
            ],
        );
    }

    #[test]
    fn email_may_have_other_letters_than_ascii() {
        case(
            "idn-email",
            &[
                "é@example.com",
                "实例@实例.测试",
                "a@b",
                "\"δ ο@\\\"κ\"@example.com",
                "x@[127.0.0.1]",
                "x@[IPv6:::1]",
                "user@cafe\u{301}.com",
            ],
            &[
                "",
                "a",
                "é@",
                "@b",
                "a b@c",
                ".a@b",
                "a..b@c",
                "a@b_c",
                "a@-b",
                "a@b..c",
                "a@[127.0.0.300]",
                "a@[::1]",
                "user＠example.com",
                "\"a\"b\"@c",
                "\"a\\\"@c",
            ],
        );
        let long = "a".repeat(64);
        case(
            "idn-email",
            &[&format!("{long}@b")],
            &[&format!("{long}a@b"), &format!("a@{long}")],
        );
    }
}

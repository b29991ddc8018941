//! URI references inside one schema document: RFC 3986, section 5, on text alone.
//!
//! Nothing is ever fetched, so nothing is checked or normalised beyond what makes two spellings of one
//! `$id` meet. A base without a scheme is taken as it is: schemas name themselves `tool.json` too.

/// The five parts of a URI reference; `None` is "not there", which is not the same as empty.
#[derive(Clone, Copy)]
struct Parts<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
    query: Option<&'a str>,
}

/// Resolves `reference` against `base`: the absolute URI without a fragment, and the fragment.
pub(super) fn resolve(base: &str, reference: &str) -> (String, Option<String>) {
    let (reference, fragment) = split_fragment(reference);
    let fragment = fragment.map(percent_decoded);
    if reference.is_empty() {
        return (base.to_owned(), fragment);
    }
    let base = parts(base);
    let relative = parts(reference);
    let target = if relative.scheme.is_some() {
        compose(relative, &without_dots(relative.path))
    } else if relative.authority.is_some() {
        let parts = Parts {
            scheme: base.scheme,
            ..relative
        };
        compose(parts, &without_dots(relative.path))
    } else if relative.path.is_empty() {
        let query = relative.query.or(base.query);
        compose(Parts { query, ..base }, base.path)
    } else {
        let path = if relative.path.starts_with('/') {
            relative.path.to_owned()
        } else {
            merged(base, relative.path)
        };
        compose(
            Parts {
                query: relative.query,
                ..base
            },
            &without_dots(&path),
        )
    };
    (target, fragment)
}

/// Splits a reference at its first `#`.
pub(super) fn split_fragment(reference: &str) -> (&str, Option<&str>) {
    match reference.split_once('#') {
        Some((before, fragment)) => (before, Some(fragment)),
        None => (reference, None),
    }
}

fn parts(uri: &str) -> Parts<'_> {
    let (scheme, rest) = match uri.find([':', '/', '?']) {
        Some(at) if uri.as_bytes()[at] == b':' && at > 0 => (Some(&uri[..at]), &uri[at + 1..]),
        _ => (None, uri),
    };
    let (rest, query) = match rest.split_once('?') {
        Some((before, query)) => (before, Some(query)),
        None => (rest, None),
    };
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find('/').unwrap_or(rest.len());
            (Some(&rest[..end]), &rest[end..])
        }
        None => (None, rest),
    };
    Parts {
        scheme,
        authority,
        path,
        query,
    }
}

/// Puts a relative path in the place of what follows the last slash of the base.
fn merged(base: Parts<'_>, path: &str) -> String {
    if base.authority.is_some() && base.path.is_empty() {
        return format!("/{path}");
    }
    let folder = base
        .path
        .rfind('/')
        .map_or("", |slash| &base.path[..=slash]);
    format!("{folder}{path}")
}

fn without_dots(path: &str) -> String {
    if !path
        .split('/')
        .any(|segment| segment == "." || segment == "..")
    {
        return path.to_owned();
    }
    let rooted = path.starts_with('/');
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(usize::from(rooted)).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            _ => kept.push(segment),
        }
    }
    format!("{}{}", if rooted { "/" } else { "" }, kept.join("/"))
}

fn compose(parts: Parts<'_>, path: &str) -> String {
    let mut uri = String::new();
    if let Some(scheme) = parts.scheme {
        uri.push_str(scheme);
        uri.push(':');
    }
    if let Some(authority) = parts.authority {
        uri.push_str("//");
        uri.push_str(authority);
    }
    uri.push_str(path);
    if let Some(query) = parts.query {
        uri.push('?');
        uri.push_str(query);
    }
    uri
}

/// Undoes percent-encoding; a `%` that encodes nothing stays.
fn percent_decoded(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let encoded = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(encoded.unwrap_or(bytes[at]));
        at += if encoded.is_some() { 3 } else { 1 };
    }
    String::from_utf8(decoded).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::resolve;

    #[track_caller]
    fn case(base: &str, reference: &str, uri: &str, fragment: Option<&str>) {
        let (found, found_fragment) = resolve(base, reference);
        assert_eq!(
            (found.as_str(), found_fragment.as_deref()),
            (uri, fragment),
            "{reference} against {base}"
        );
    }

    #[test]
    fn references_resolve_as_the_rfc_says() {
        let base = "http://a/b/c/d;p?q";
        case(base, "g:h", "g:h", None);
        case(base, "g", "http://a/b/c/g", None);
        case(base, "./g", "http://a/b/c/g", None);
        case(base, "g/", "http://a/b/c/g/", None);
        case(base, "/g", "http://a/g", None);
        case(base, "//g", "http://g", None);
        case(base, "?y", "http://a/b/c/d;p?y", None);
        case(base, "#s", "http://a/b/c/d;p?q", Some("s"));
        case(base, "g#s", "http://a/b/c/g", Some("s"));
        case(base, "", "http://a/b/c/d;p?q", None);
        case(base, ".", "http://a/b/c/", None);
        case(base, "..", "http://a/b/", None);
        case(base, "../g", "http://a/b/g", None);
        case(base, "../../../g", "http://a/g", None);
        case("http://a", "g", "http://a/g", None);
    }

    #[test]
    fn a_base_may_be_relative_or_a_urn() {
        case("", "n.json", "n.json", None);
        case("", "#/$defs/a%25b", "", Some("/$defs/a%b"));
        case("schemas/tool.json", "n.json", "schemas/n.json", None);
        case("urn:example:tool", "#/x", "urn:example:tool", Some("/x"));
        case("urn:example:tool", "other.json", "urn:other.json", None);
    }

    #[test]
    fn a_percent_sign_that_encodes_nothing_stays() {
        case("", "#%zz", "", Some("%zz"));
        case("", "#a%", "", Some("a%"));
        case("", "#%ff", "", Some("%ff"));
    }
}

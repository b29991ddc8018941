//! Keys as the tokens of JSON Pointers, and back (RFC 6901).

/// A key as one token of a JSON Pointer: `~` is `~0`, `/` is `~1`.
pub fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The key that one token of a JSON Pointer stands for.
pub fn unescaped(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_comes_back() {
        for (key, token) in [("a", "a"), ("a/b~c", "a~1b~0c"), ("~1", "~01"), ("", "")] {
            assert_eq!(escaped(key), token);
            assert_eq!(unescaped(token), key);
        }
    }
}

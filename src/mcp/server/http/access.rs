//! Who may come in.

use std::fmt;

use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use subtle::ConstantTimeEq as _;

use super::body::{self, Refusal};

/// The names under which a server on loopback is asked; any other means that a page lets a browser ask.
pub(super) const LOOPBACK_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
const SCHEME: &str = "bearer ";

/// Who may come in: on loopback everybody who names the server so, with a token only who knows it.
///
/// Pages of browsers may come from this machine alone, wherever the server listens.
#[derive(Debug)]
pub struct Access {
    token: Option<Token>,
    is_loopback: bool,
}

/// A secret that clients send as `Authorization: Bearer TOKEN`. Never shown.
pub struct Token(String);

impl Token {
    /// A token of printable ASCII without spaces, as a header can carry it; `None` if the text is none.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        let is_one = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_one.then_some(Self(text))
    }

    /// In a time that does not depend on how much of it is right.
    fn is(&self, given: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(given).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Access {
    /// For a server that only this machine can reach.
    pub fn loopback(token: Option<Token>) -> Self {
        Self {
            token,
            is_loopback: true,
        }
    }

    /// For a server that others can reach: only with a token.
    pub fn anywhere(token: Token) -> Self {
        Self {
            token: Some(token),
            is_loopback: false,
        }
    }

    pub(super) fn is_for_any_host(&self) -> bool {
        // A browser that was led here does not know the token.
        !self.is_loopback
    }

    /// The pages that may ask: those of this machine.
    #[expect(
        clippy::unused_self,
        reason = "which pages may ask is a matter of access, whatever it is"
    )]
    pub(super) fn origins(&self) -> Vec<String> {
        let hosts = ["localhost", "127.0.0.1", "[::1]"];
        let of =
            |scheme: &'static str| hosts.iter().map(move |host| format!("{scheme}://{host}:*"));
        of("http").chain(of("https")).collect()
    }

    /// Whether the token is the right one, if there must be one.
    pub(super) fn admit(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let Some(token) = &self.token else {
            return Ok(());
        };
        let given = headers.get(AUTHORIZATION).and_then(bearer);
        match given {
            Some(given) if token.is(given) => Ok(()),
            Some(_) => Err(unauthorized(
                "Bearer realm=\"pitool\", error=\"invalid_token\"",
            )),
            None => Err(unauthorized("Bearer realm=\"pitool\"")),
        }
    }
}

/// The token in a header; the name of the scheme is of no case.
fn bearer(value: &HeaderValue) -> Option<&[u8]> {
    let (scheme, token) = value.as_bytes().split_at_checked(SCHEME.len())?;
    scheme
        .eq_ignore_ascii_case(SCHEME.as_bytes())
        .then(|| token.trim_ascii())
}

fn unauthorized(challenge: &'static str) -> Refusal {
    let text = "unauthorized: send the token as \"Authorization: Bearer TOKEN\"\n";
    let mut response = body::text(StatusCode::UNAUTHORIZED, text.to_owned());
    let challenge = HeaderValue::from_static(challenge);
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    Box::new(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(token: Option<&str>, header: Option<&'static str>, expected: Option<&str>) {
        let access = Access::loopback(token.map(|token| Token::new(token).unwrap()));
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert(AUTHORIZATION, HeaderValue::from_static(header));
        }
        let refused = access.admit(&headers).err();
        let challenge = refused.map(|refused| {
            assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
            refused.headers()[WWW_AUTHENTICATE]
                .to_str()
                .unwrap()
                .to_owned()
        });
        assert_eq!(challenge.as_deref(), expected);
    }

    #[test]
    fn only_the_token_opens() {
        let (none, wrong) = (
            Some("Bearer realm=\"pitool\""),
            Some("Bearer realm=\"pitool\", error=\"invalid_token\""),
        );
        case(None, None, None);
        case(Some("t0k"), Some("Bearer t0k"), None);
        case(Some("t0k"), Some("bearer  t0k "), None);
        case(Some("t0k"), None, none);
        case(Some("t0k"), Some("Basic t0k"), none);
        case(Some("t0k"), Some("Bearer"), none);
        case(Some("t0k"), Some("Bearer t0"), wrong);
        case(Some("t0k"), Some("Bearer T0k"), wrong);
        case(Some("t0k"), Some("Bearer "), wrong);
    }

    #[test]
    fn tokens_are_what_a_header_can_carry() {
        assert!(Token::new("").is_none() && Token::new("a b").is_none());
        assert!(Token::new("ä").is_none() && Token::new("a\n").is_none());
        assert!(Token::new("a-B.7~+/=").is_some());
        assert_eq!(format!("{:?}", Token::new("secret")), "Some(Token)");
    }
}

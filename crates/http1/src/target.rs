//! The request target's four forms (RFC 9112 3.2) and the authority that Host or target carry (RFC 3986 3.2).

use model::address::Scheme;
use model::request::Method;

use crate::error::RequestError;
use crate::fields::Span;
use crate::scan::{end_of_host, end_of_target, find};

/// Where the parts of a target lie in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// Of the absolute form.
    pub scheme: Option<Scheme>,
    /// Of the absolute form; it then wins over Host (RFC 9112 3.2.2).
    pub authority: Option<Span>,
    /// Empty stands for `/` (or for `*` when `is_asterisk`).
    pub path: Span,
    /// Without the question mark.
    pub query: Option<Span>,
    /// `OPTIONS *`, also as `OPTIONS http://host`.
    pub is_asterisk: bool,
}

/// Parses a target.
pub(crate) fn parse(text: &[u8], method: Method) -> Result<Target, RequestError> {
    if text.is_empty() || end_of_target(text) < text.len() {
        return Err(RequestError::Target);
    }
    match text {
        [b'/', ..] => Ok(path_and_query(text, 0)),
        b"*" if method == Method::Options => Ok(Target { is_asterisk: true, ..Target::default() }),
        _ => absolute(text, method),
    }
}

/// A target with a scheme. Whether the connection is one for it only the caller knows.
fn absolute(text: &[u8], method: Method) -> Result<Target, RequestError> {
    let begins = |(word, _): &(&[u8], Scheme)| text.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word));
    let (word, scheme) = SCHEMES.into_iter().find(begins).ok_or(RequestError::Target)?;
    let rest = text.get(word.len()..).unwrap_or_default();
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    let (_, tail) = rest.split_at(end);
    let at = word.len() + end;
    let mut target = path_and_query(tail, at);
    target.scheme = Some(scheme);
    target.authority = Some(Span::new(word.len(), at));
    target.is_asterisk = tail.is_empty() && method == Method::Options;
    Ok(target)
}

fn path_and_query(text: &[u8], start: usize) -> Target {
    let mark = find(text, b'?');
    let path = Span::new(start, start + mark);
    let query = (mark < text.len()).then(|| Span::new(start + mark + 1, start + text.len()));
    Target { scheme: None, authority: None, path, query, is_asterisk: false }
}

/// Splits `host[:port]`; refuses user information, an empty host, a port that is no number and anything else that is
/// no authority of an http URI.
pub(crate) fn authority(text: &[u8]) -> Result<(&[u8], Option<u16>), RequestError> {
    let (host, port) = if text.first() == Some(&b'[') {
        let end = text.iter().position(|&byte| byte == b']').ok_or(RequestError::Authority)?;
        let (host, after) = text.split_at(end + 1);
        let address = host.get(1..end).and_then(|inner| std::str::from_utf8(inner).ok());
        address.and_then(|a| a.parse::<std::net::Ipv6Addr>().ok()).ok_or(RequestError::Authority)?;
        match after {
            [] => (host, None),
            [b':', port @ ..] => (host, Some(port)),
            [_, ..] => return Err(RequestError::Authority),
        }
    } else {
        let colon = find(text, b':');
        let host = text.get(..colon).unwrap_or_default();
        if host.is_empty() || end_of_host(host) < host.len() {
            return Err(RequestError::Authority);
        }
        (host, text.get(colon + 1..))
    };
    let port = match port {
        // `host:` is a host with the default port (RFC 3986 6.2.3).
        None | Some([]) => None,
        Some(digits) => {
            let number = crate::syntax::digits(digits).and_then(|number| u16::try_from(number).ok());
            Some(number.ok_or(RequestError::Authority)?)
        }
    };
    Ok((host, port))
}

const SCHEMES: [(&[u8], Scheme); 2] = [(b"http://", Scheme::Http), (b"https://", Scheme::Https)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_split_or_refused() {
        let good: [(&str, (&str, Option<u16>)); 6] = [
            ("a.test", ("a.test", None)),
            ("a.test:80", ("a.test", Some(80))),
            ("a.test:", ("a.test", None)),
            ("[::1]", ("[::1]", None)),
            ("[::1]:8080", ("[::1]", Some(8080))),
            ("A_b-c.test", ("A_b-c.test", None)),
        ];
        for (text, (host, port)) in good {
            assert_eq!(authority(text.as_bytes()), Ok((host.as_bytes(), port)), "{text}");
        }
        for text in [
            "", ":80", "a:x", "a:65536", "a:-1", "user@a", "u:p@a", "a b", "a/b", "a,b", "[::1", "[x]", "[::1]x",
            "::1", "a\u{e9}", "a\\b", "a?b",
        ] {
            assert_eq!(authority(text.as_bytes()), Err(RequestError::Authority), "{text}");
        }
    }
}

//! Paths that stand in transforms: parsed once, then sent as they are.

use serde::{Deserialize, Serialize};

/// A path, or segments of one, as it is sent: begins with `/`, has no dot segment, everything else is escaped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathText(String);

impl PathText {
    /// Parses a path. What may not stand in one is escaped; a query, `#`, a backslash, controls and dot segments are
    /// refused, with the reason.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if !text.starts_with('/') {
            return Err("a path starts with /");
        }
        let mut out = String::with_capacity(text.len());
        let bytes = text.as_bytes();
        for (at, &byte) in bytes.iter().enumerate() {
            let is_escape = || {
                let digits = bytes.get(at + 1..at + 3);
                digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            };
            match byte {
                b'?' | b'#' => return Err("a path has neither query nor fragment"),
                b'\\' | 0..b' ' | 0x7f => return Err("a path has no backslash and no control characters"),
                b'%' if !is_escape() => return Err("a % in a path is followed by two hex digits"),
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'%' => out.push(char::from(byte)),
                _ if b"/-._~!$&'()*+,;=:@".contains(&byte) => out.push(char::from(byte)),
                _ => push_escaped(&mut out, byte),
            }
        }
        let folded = out.to_ascii_lowercase().replace("%2e", ".");
        if ["%5c", "%00", "%2f.", ".%2f"].iter().any(|bad| folded.contains(bad)) {
            return Err("a path has no escaped backslash, NUL or slash before a dot");
        }
        let is_dots = |segment: &str| matches!(segment.split(';').next(), Some("." | ".."));
        if folded.split('/').any(is_dots) {
            return Err("a path has no dot segments");
        }
        Ok(Self(out))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Appends a byte as `%XX`.
pub fn push_escaped(out: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.push('%');
    for digit in [byte >> 4, byte & 15] {
        // Four bits are below the number of digits.
        out.push(char::from(DIGITS.get(usize::from(digit)).copied().unwrap_or(b'0')));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_escaped_or_refused() {
        for (text, expected) in [
            ("/a/b", Ok("/a/b")),
            ("/a b/ä%20", Ok("/a%20b/%C3%A4%20")),
            ("/a//", Ok("/a//")),
            ("a", Err(())),
            ("/a?b", Err(())),
            ("/a#b", Err(())),
            ("/a\\b", Err(())),
            ("/a/../b", Err(())),
            ("/%2e%2E/b", Err(())),
            ("/..;x", Err(())),
            ("/a%2f..", Err(())),
            ("/%5c", Err(())),
            ("/%zz", Err(())),
        ] {
            assert_eq!(PathText::parse(text).map(|path| path.0).map_err(|_| ()), expected.map(str::to_owned), "{text}");
        }
    }
}

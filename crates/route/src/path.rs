//! The form in which paths are matched, and the paths that have no safe form.
//!
//! A path is forwarded byte for byte and matched on those same bytes, segment by segment, with one equivalence: an
//! escape stands for its byte (`/%61dmin` is `/admin`, RFC 3986 6.2.2.2), save `%2F`, which stays inside of its segment.
//! Literals compare without ASCII case. An empty segment (`//`) is a segment; one trailing slash says nothing.
//!
//! So that no destination can read a path otherwise than the table did, [`check`] refuses (400) what servers are known
//! to resolve in different ways:
//!
//! - dot segments, plain or escaped, also before `;` and between `%2F` (`/..`, `/%2e%2e`, `/..;/`, `/..%2fadmin`);
//! - a backslash, plain or escaped;
//! - NUL and other controls, plain or escaped; blanks and `#`;
//! - an escape that is none (`%zz`).
//!
//! `%2F` and `;` in ordinary segments, `//`, `%20` and escaped bytes that are no UTF-8 pass unchanged. A deny rule on
//! `/admin/{**rest}` therefore does not cover `/admin%2Fx`: a destination that takes `%2F` for a slash needs its own rule.

use std::fmt;

/// Why a path is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// It does not start with a slash (and is not the `*` of OPTIONS).
    NoSlash,
    /// It holds a `.` or `..` segment.
    DotSegment,
    /// It holds a backslash.
    Backslash,
    /// It holds a control, a blank or `#`.
    Character,
    /// A `%` without two hex digits after it.
    Escape,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSlash => "the path does not start with a slash",
            Self::DotSegment => "the path holds a dot segment",
            Self::Backslash => "the path holds a backslash",
            Self::Character => "the path holds a character that has no place in it",
            Self::Escape => "the path holds a percent sign without two hex digits",
        })
    }
}

impl std::error::Error for PathError {}

/// Whether a request's path (without query) may be matched and forwarded.
pub fn check(path: &str) -> Result<(), PathError> {
    if path == "*" {
        return Ok(());
    }
    let bytes = path.as_bytes();
    if bytes.first() != Some(&b'/') {
        return Err(PathError::NoSlash);
    }
    // Nearly all paths consist of bytes that no rule speaks of.
    if is_all_plain(bytes) {
        return Ok(());
    }
    // Dots in the current segment, counted until something else than a dot comes.
    let mut dots = Dots::Only(0);
    let mut rest = bytes;
    while let Some((unit, after)) = next_unit(rest)? {
        rest = after;
        dots = match unit {
            // An escaped slash ends a segment here: a destination that decodes it sees a slash.
            b'/' | b';' => {
                dots.check()?;
                if unit == b'/' { Dots::Only(0) } else { Dots::Mixed }
            }
            b'.' => dots.more(),
            b'\\' => return Err(PathError::Backslash),
            0..b' ' | 0x7f => return Err(PathError::Character),
            _ => Dots::Mixed,
        };
    }
    dots.check()
}

/// Eight bytes at a time, without a branch for each of them.
fn is_all_plain(bytes: &[u8]) -> bool {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let all = |bytes: &[u8]| bytes.iter().fold(true, |all, &byte| all & PLAIN[usize::from(byte)]);
    chunks.iter().all(|chunk| all(chunk)) && all(rest)
}

/// One load tells of a byte whether some rule speaks of it.
static PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = byte > b' ' as usize && !matches!(byte as u8, b'.' | b'%' | b'\\' | b'#' | b';' | 0x7f);
        byte += 1;
    }
    table
};

/// What the current segment consists of so far.
#[derive(Clone, Copy)]
enum Dots {
    Only(u8),
    Mixed,
}

impl Dots {
    fn more(self) -> Self {
        match self {
            Self::Only(n) => Self::Only(n.saturating_add(1)),
            Self::Mixed => Self::Mixed,
        }
    }

    fn check(self) -> Result<(), PathError> {
        match self {
            Self::Only(1 | 2) => Err(PathError::DotSegment),
            Self::Only(_) | Self::Mixed => Ok(()),
        }
    }
}

/// The next byte, its escape undone, and what follows.
fn next_unit(bytes: &[u8]) -> Result<Option<(u8, &[u8])>, PathError> {
    match bytes {
        [] => Ok(None),
        [b'%', high, low, rest @ ..] => match (hex(*high), hex(*low)) {
            (Some(high), Some(low)) => Ok(Some((high << 4 | low, rest))),
            (None, _) | (_, None) => Err(PathError::Escape),
        },
        [b'%', ..] => Err(PathError::Escape),
        [b'#' | b' ', ..] => Err(PathError::Character),
        [byte, rest @ ..] => Ok(Some((*byte, rest))),
    }
}

pub(crate) fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// The segments of a path: what stands between its slashes, one trailing slash left out. `*` has none and matches only
/// routes without a path.
pub(crate) fn segments(path: &str) -> Segments<'_> {
    let rest = path.strip_prefix('/').unwrap_or("");
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    // `//` is one empty segment, `/` is none.
    let is_none = rest.is_empty() && path.len() < 2;
    Segments { rest: (!is_none).then_some(rest) }
}

/// Walks over segments; copied to go on from one place twice.
#[derive(Clone, Copy)]
pub(crate) struct Segments<'a> {
    rest: Option<&'a str>,
}

impl<'a> Iterator for Segments<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest?;
        match rest.split_once('/') {
            Some((segment, after)) => {
                self.rest = Some(after);
                Some(segment)
            }
            None => {
                self.rest = None;
                Some(rest)
            }
        }
    }
}

/// The normal form of one segment, byte by byte: escapes undone but `%2F`, ASCII in lower case.
pub(crate) fn normal(segment: &str) -> impl Iterator<Item = u8> + '_ {
    let mut rest = segment.as_bytes();
    std::iter::from_fn(move || {
        let (unit, after) = match rest {
            [] => return None,
            [b'%', high, low, after @ ..] => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) if high << 4 | low != b'/' => (high << 4 | low, after),
                // `%2F` stays as it is; so does what is no escape ([`check`] has refused it before).
                (Some(_) | None, Some(_) | None) => (b'%', rest.get(1..).unwrap_or_default()),
            },
            [byte, after @ ..] => (*byte, after),
        };
        rest = after;
        Some(unit.to_ascii_lowercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_servers_read_in_different_ways_are_refused() {
        for (path, why) in [
            ("/api/..%2fadmin", PathError::DotSegment),
            ("/api/%2e%2e/admin", PathError::DotSegment),
            ("/api/%2E./admin", PathError::DotSegment),
            ("/api//../admin", PathError::DotSegment),
            ("/api/./x", PathError::DotSegment),
            ("/.", PathError::DotSegment),
            ("/..", PathError::DotSegment),
            ("/..;/admin", PathError::DotSegment),
            ("/api%2f..", PathError::DotSegment),
            ("/api/..%3Bx/admin", PathError::DotSegment),
            ("/api\\..\\admin", PathError::Backslash),
            ("/api/..%5cadmin", PathError::Backslash),
            ("/api%00", PathError::Character),
            ("/api%0a", PathError::Character),
            ("/a b", PathError::Character),
            ("/a#frag", PathError::Character),
            ("/%zz", PathError::Escape),
            ("/a%2", PathError::Escape),
            ("/a%", PathError::Escape),
            ("api", PathError::NoSlash),
            ("", PathError::NoSlash),
        ] {
            assert_eq!(check(path), Err(why), "{path}");
        }
    }

    #[test]
    fn ordinary_paths_pass() {
        for path in [
            "/",
            "*",
            "//admin",
            "/%61dmin",
            "/admin;x",
            "/a%2Fb",
            "/a%20b",
            "/%ff%fe",
            "/...",
            "/a/.well-known",
            "/a..b",
            "/a/",
        ] {
            assert_eq!(check(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn a_path_splits_into_segments_and_one_trailing_slash_says_nothing() {
        for (path, expected) in [
            ("/", vec![]),
            ("*", vec![]),
            ("/a", vec!["a"]),
            ("/a/", vec!["a"]),
            ("/a//", vec!["a", ""]),
            ("//", vec![""]),
            ("//a", vec!["", "a"]),
            ("/a/b", vec!["a", "b"]),
        ] {
            assert_eq!(segments(path).collect::<Vec<_>>(), expected, "{path}");
        }
    }

    #[test]
    fn the_normal_form_undoes_escapes_but_the_slash() {
        for (segment, form) in
            [("%61dmin", "admin"), ("ADMIN", "admin"), ("a%2Fb", "a%2fb"), ("a%2fb", "a%2fb"), ("a%20b", "a b")]
        {
            assert_eq!(normal(segment).collect::<Vec<_>>(), form.as_bytes(), "{segment}");
        }
    }
}

//! A file of secret keys that many processes share, so that what one of them sealed another one opens: session tickets
//! of all sites behind one VIP.
//!
//! One key a line, 64 hexadecimal digits; empty lines and lines that begin with `#` are passed over. The first key
//! seals, all of them open. So a key is rotated in two steps: append the new one everywhere, then move it to the top; the
//! old one goes when nothing that it sealed is worth opening any more. What a key is used for is mixed into what is
//! derived from it (HKDF, RFC 5869): one file may serve several purposes.

use std::fmt;
use std::path::Path;

use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};

use super::read;

/// The keys of a file; at least one.
#[derive(Debug)]
pub(super) struct SharedKeys(Vec<SharedKey>);

/// One key.
pub(super) struct SharedKey(Prk);

/// Why a file is none of keys.
#[derive(Debug, thiserror::Error)]
pub(super) enum SharedKeysError {
    /// It cannot be read.
    #[error("cannot read the keys: {0}")]
    Read(#[from] std::io::Error),
    /// A line is no key.
    #[error("line {0} is no key")]
    Line(usize),
    /// It has no key.
    #[error("there is no key in it")]
    Empty,
    /// It has more than [`MAX_KEYS`].
    #[error("there are more than {MAX_KEYS} keys in it")]
    Many,
}

impl SharedKeys {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self, SharedKeysError> {
        Self::parse(&read::read(path)?)
    }

    pub(super) fn parse(text: &[u8]) -> Result<Self, SharedKeysError> {
        let mut keys = Vec::new();
        for (number, line) in (1..).zip(text.split(|&byte| byte == b'\n')) {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            keys.push(SharedKey::parse(line).ok_or(SharedKeysError::Line(number))?);
        }
        match keys.len() {
            0 => Err(SharedKeysError::Empty),
            1..=MAX_KEYS => Ok(Self(keys)),
            _ => Err(SharedKeysError::Many),
        }
    }

    /// All of them, the one that seals first.
    pub(super) fn into_iter(self) -> impl Iterator<Item = SharedKey> {
        self.0.into_iter()
    }
}

impl SharedKey {
    fn new(secret: &[u8]) -> Self {
        Self(Salt::new(HKDF_SHA256, b"lazaret shared keys").extract(secret))
    }

    fn parse(line: &[u8]) -> Option<Self> {
        let mut secret = [0; SECRET];
        if line.len() != 2 * SECRET {
            return None;
        }
        for (byte, pair) in secret.iter_mut().zip(line.chunks_exact(2)) {
            let digit = |at: usize| char::from(*pair.get(at)?).to_digit(16);
            *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
        }
        Some(Self::new(&secret))
    }

    /// Bytes that follow from the key and `purpose` alone; `None` when `out` is longer than HKDF gives.
    pub(super) fn derive(&self, purpose: &[&[u8]], out: &mut [u8]) -> Option<()> {
        self.0.expand(purpose, Length(out.len())).ok()?.fill(out).ok()
    }
}

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedKey")
    }
}

/// How much is asked of HKDF.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Bytes of a key.
const SECRET: usize = 32;
/// More are no rotation but an accident; each ticket that nobody knows is tried against all of them.
const MAX_KEYS: usize = 16;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_has_one_key_a_line_and_says_which_line_is_none() {
        let (one, two) = ("ab".repeat(32), "CD".repeat(32));
        let keys = SharedKeys::parse(format!("# first seals\n{one}\n\n {two}\r\n").as_bytes()).unwrap();
        assert_eq!(keys.into_iter().count(), 2);
        let wrong = |text: String| SharedKeys::parse(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(wrong(String::new()), "there is no key in it");
        assert_eq!(wrong(format!("{one}\n{}\n", "zz".repeat(32))), "line 2 is no key");
        assert_eq!(wrong("abcd".to_owned()), "line 1 is no key");
        assert_eq!(wrong(format!("{one}\n").repeat(17)), "there are more than 16 keys in it");
    }

    #[test]
    fn what_is_derived_depends_on_the_key_and_the_purpose() {
        let derive = |key: &str, purpose: &[u8]| {
            let mut out = [0; 32];
            let key = SharedKey::parse(key.as_bytes()).unwrap();
            key.derive(&[purpose], &mut out).unwrap();
            out
        };
        let (one, two) = ("ab".repeat(32), "cd".repeat(32));
        assert_eq!(derive(&one, b"x"), derive(&one.to_uppercase(), b"x"));
        assert_ne!(derive(&one, b"x"), derive(&one, b"y"));
        assert_ne!(derive(&one, b"x"), derive(&two, b"x"));
        assert!(!format!("{:?}", SharedKey::parse(one.as_bytes())).contains("171"));
    }
}

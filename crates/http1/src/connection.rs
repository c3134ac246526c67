//! `Connection` (RFC 9110 7.6.1, RFC 9112 9.3): what it says of this connection, and which fields it ends.

use crate::fields::{Fate, Field, Known, Section};
use crate::syntax::list;

/// HTTP/1.0 or HTTP/1.1; nothing else is spoken here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    #[default]
    Http11,
}

impl Version {
    /// From `HTTP/1.x`. `None`: another version.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        match text {
            b"HTTP/1.1" => Some(Self::Http11),
            b"HTTP/1.0" => Some(Self::Http10),
            _ => None,
        }
    }
}

/// Whether a connection carries another message after this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Persistence {
    /// It does.
    KeepAlive,
    /// It does not.
    #[default]
    Close,
}

/// Too many options in one head.
pub(crate) struct TooManyOptions;

/// Reads all `Connection` fields: marks the fields they name and tells whether the connection persists.
pub(crate) fn read(section: &mut Section, bytes: &[u8], version: Version) -> Result<Persistence, TooManyOptions> {
    let (mut close, mut keep_alive) = (false, false);
    let fields = if section.has(Known::Connection) { section.as_mut_slice() } else { &mut [] };
    let mut options = 0;
    for index in 0..fields.len() {
        let Some(value) = fields.get(index).filter(|f| f.known == Known::Connection).map(|f| f.value.of(bytes)) else {
            continue;
        };
        // The one option that most say needs no look at lists.
        if value.eq_ignore_ascii_case(b"keep-alive") {
            keep_alive = true;
            continue;
        }
        for option in list(value) {
            options += 1;
            if options > MAX_OPTIONS {
                return Err(TooManyOptions);
            }
            if option.eq_ignore_ascii_case(b"close") {
                close = true;
            } else if option.eq_ignore_ascii_case(b"keep-alive") {
                keep_alive = true;
            } else if !option.is_empty() {
                nominate(fields, bytes, option);
            }
        }
    }
    Ok(match (close, version) {
        (true, _) => Persistence::Close,
        (false, Version::Http11) => Persistence::KeepAlive,
        (false, Version::Http10) if keep_alive => Persistence::KeepAlive,
        (false, Version::Http10) => Persistence::Close,
    })
}

fn nominate(fields: &mut [Field], bytes: &[u8], option: &[u8]) {
    for field in fields {
        if field.known.is_removable() && field.name.of(bytes).eq_ignore_ascii_case(option) {
            field.fate = Fate::Nominated;
        }
    }
}

/// Each option is compared with each field; this bounds the product.
const MAX_OPTIONS: usize = 32;

//! What bodies are made of while they are on the way, free of the framing of any version.

use bytes::Bytes;
use http::HeaderMap;

/// A part of a body.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    /// Content. Its length is at most that of one read of the side it came from.
    Data(Bytes),
    /// Trailers, the last frame of its body: judged by the side it came from, so that none of them belongs in a head
    /// (RFC 9110 6.5.1).
    Trailers(HeaderMap),
}

/// Whether a body goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It ends with this.
    Here,
    /// Something may follow: a frame, or the end alone.
    Later,
}

impl Frame {
    /// Bytes of content.
    pub(crate) fn content(&self) -> usize {
        match self {
            Self::Data(bytes) => bytes.len(),
            Self::Trailers(_) => 0,
        }
    }
}

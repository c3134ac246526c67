//! A body's tracker: says how many of the bytes at hand belong to the message, and when it is over.
//!
//! What it has taken is clean framing and may be passed on byte for byte to an HTTP/1.1 hop ([`Body::advance`]); for an
//! HTTP/1.0 client the content is taken out piece by piece ([`Body::piece`]).

use std::fmt;

use crate::chunked::{Chunked, Part};
use crate::framing::{RequestFraming, ResponseFraming};

/// Tracks one body.
#[derive(Clone, Debug)]
pub struct Body(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Length(u64),
    Chunked(Chunked),
    /// A fault that was met after good bytes; told by the next call.
    Faulty(BodyError),
    Close,
    Closed,
}

/// What belongs to the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advance {
    /// So many of the bytes at hand.
    pub taken: usize,
    /// Of them so many are content.
    pub content: u64,
}

/// One run of content or framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// So many bytes of content.
    Content(usize),
    /// So many bytes of framing.
    Framing(usize),
}

/// Why a body cannot be passed on further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BodyError {
    /// A chunk's size line or end is malformed.
    Chunk,
    /// A trailer line is malformed.
    Trailer,
    /// A trailer that belongs in a head (RFC 9110 6.5.1).
    ForbiddenTrailer,
    /// Chunk extensions or trailers longer than allowed.
    TooLong,
    /// The connection ended before the body did.
    Cut,
}

impl Body {
    /// For a request.
    pub fn of_request(framing: RequestFraming) -> Self {
        match framing {
            RequestFraming::None => Self::none(),
            RequestFraming::Length(length) => Self(Kind::Length(length)),
            RequestFraming::Chunked => Self(Kind::Chunked(Chunked::new())),
        }
    }

    /// For a response.
    pub fn of_response(framing: ResponseFraming) -> Self {
        match framing {
            ResponseFraming::None => Self::none(),
            ResponseFraming::Length(length) => Self(Kind::Length(length)),
            ResponseFraming::Chunked => Self(Kind::Chunked(Chunked::new())),
            ResponseFraming::Close => Self(Kind::Close),
        }
    }

    /// A body that is over before it began.
    pub fn none() -> Self {
        Self(Kind::Length(0))
    }

    /// Whether the body is complete: the next byte belongs to another message.
    pub fn is_done(&self) -> bool {
        match &self.0 {
            Kind::Length(left) => *left == 0,
            Kind::Chunked(chunked) => chunked.is_done(),
            Kind::Closed => true,
            Kind::Close | Kind::Faulty(_) => false,
        }
    }

    /// Whether the next run of framing belongs to the trailer section, the empty line at its end included.
    pub fn is_in_trailers(&self) -> bool {
        match &self.0 {
            Kind::Chunked(chunked) => chunked.is_in_trailers(),
            Kind::Length(_) | Kind::Faulty(_) | Kind::Close | Kind::Closed => false,
        }
    }

    /// Takes as many of `bytes` as belong to the body. When a fault comes after good bytes, the good ones are taken
    /// first and the next call tells the fault.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<Advance, BodyError> {
        let mut advance = Advance { taken: 0, content: 0 };
        while let Some(rest) = bytes.get(advance.taken..).filter(|rest| !rest.is_empty()) {
            if self.is_done() {
                break;
            }
            match self.piece(rest) {
                Ok(Piece::Content(run)) => {
                    advance.taken += run;
                    advance.content += run as u64;
                }
                Ok(Piece::Framing(run)) => advance.taken += run,
                Err(error) if advance.taken == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(advance)
    }

    /// The next run of content or framing at the start of `bytes`. Nothing is taken once the body is done.
    pub fn piece(&mut self, bytes: &[u8]) -> Result<Piece, BodyError> {
        match &mut self.0 {
            Kind::Length(left) => {
                let run = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= run as u64;
                Ok(Piece::Content(run))
            }
            Kind::Chunked(chunked) => match chunked.read(bytes) {
                Ok(Part::Data(run)) => Ok(Piece::Content(run)),
                Ok(Part::Framing(run)) => Ok(Piece::Framing(run)),
                Err(error) => {
                    self.0 = Kind::Faulty(error);
                    Err(error)
                }
            },
            Kind::Faulty(error) => Err(*error),
            Kind::Close => Ok(Piece::Content(bytes.len())),
            Kind::Closed => Ok(Piece::Content(0)),
        }
    }

    /// Content that follows without any framing in between: the rest of a body of known length, [`u64::MAX`] for one that
    /// ends with the connection, nothing of a chunked one.
    pub fn unframed(&self) -> u64 {
        match &self.0 {
            Kind::Length(left) => *left,
            Kind::Close => u64::MAX,
            Kind::Chunked(_) | Kind::Faulty(_) | Kind::Closed => 0,
        }
    }

    /// So many bytes of [`Body::unframed`] content passed unseen.
    pub fn pass_over(&mut self, bytes: u64) {
        match &mut self.0 {
            Kind::Length(left) => *left = left.saturating_sub(bytes),
            Kind::Close | Kind::Chunked(_) | Kind::Faulty(_) | Kind::Closed => {}
        }
    }

    /// The connection ended in order: complete only for a body that ends with it.
    pub fn end_of_input(&mut self) -> Result<(), BodyError> {
        match self.0 {
            Kind::Close => {
                self.0 = Kind::Closed;
                Ok(())
            }
            _ if self.is_done() => Ok(()),
            Kind::Length(_) | Kind::Chunked(_) | Kind::Faulty(_) | Kind::Closed => Err(BodyError::Cut),
        }
    }
}

/// Longest trailer section, bytes with all line ends but the empty line's.
pub const MAX_TRAILERS: usize = 16 * 1024;

impl BodyError {
    /// Kebab-case word for the log and the answer.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chunk => "chunk",
            Self::Trailer => "trailer",
            Self::ForbiddenTrailer => "forbidden-trailer",
            Self::TooLong => "chunk-overhead",
            Self::Cut => "cut",
        }
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for BodyError {}

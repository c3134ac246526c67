//! The chunked coding (RFC 9112 7.1), byte by byte, with everything that a peer can make long bounded.
//!
//! ```text
//!        hex            CR            LF
//!  Size ─────> Size ────────> SizeLf ──┬─ n > 0 ─> Data ─ n bytes ─> DataCr ─ CR ─> DataLf ─ LF ─> Size
//!    │ ;          ^  CR ┘               └─ n = 0 ─> Trailer ─ CR ─> EndLf ─ LF ─> Done
//!    └─> Extension ─┘                                │  ^
//!                                              token │  │ CR LF
//!                                                    v  │
//!                                                   Name ─ : ─> Value
//! ```
//! A trailer section is checked as strictly as a head's fields; names that belong in a head (framing, routing,
//! credentials) are refused (RFC 9110 6.5.1).

use crate::body::{BodyError, MAX_TRAILERS};
use crate::fields::may_be_trailer;
use crate::syntax::{is_token, is_value};

/// Reads one chunked body.
#[derive(Clone, Debug)]
pub(crate) struct Chunked {
    state: State,
    /// Bytes left of the chunk, or the size as far as it was read.
    left: u64,
    digits: u8,
    /// Bytes of the current size line beyond its digits, or of the trailer section.
    spent: usize,
    name: [u8; NAME],
    name_len: usize,
}

/// What the first bytes of an input are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// So many bytes of content.
    Data(usize),
    /// So many bytes of framing.
    Framing(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    Trailer,
    Name,
    Value,
    ValueLf,
    EndLf,
    Done,
}

impl Chunked {
    pub(crate) fn new() -> Self {
        Self { state: State::Size, left: 0, digits: 0, spent: 0, name: [0; NAME], name_len: 0 }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether the next byte belongs to the trailer section, the empty line at its end included.
    pub(crate) fn is_in_trailers(&self) -> bool {
        match self.state {
            State::Trailer | State::Name | State::Value | State::ValueLf | State::EndLf => true,
            State::Size
            | State::Extension
            | State::SizeLf
            | State::Data
            | State::DataCr
            | State::DataLf
            | State::Done => false,
        }
    }

    /// Reads the next run of content, of framing or of trailers; 0 bytes only when `bytes` is empty or the body is done.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<Part, BodyError> {
        if self.state == State::Data {
            let run = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
            self.left -= run as u64;
            if self.left == 0 {
                self.state = State::DataCr;
            }
            return Ok(Part::Data(run));
        }
        let mut read = 0;
        for &byte in bytes {
            if matches!(self.state, State::Data | State::Done) {
                break;
            }
            let before = self.state;
            self.state = self.step(byte)?;
            read += 1;
            if before == State::SizeLf && self.state == State::Trailer {
                break;
            }
        }
        Ok(Part::Framing(read))
    }

    fn step(&mut self, byte: u8) -> Result<State, BodyError> {
        match (self.state, byte) {
            (State::Size, b'\r') if self.digits > 0 => Ok(State::SizeLf),
            (State::Size, b';') if self.digits > 0 => self.spend(MAX_EXTENSION, State::Extension),
            (State::Size, _) => self.size_digit(byte),
            (State::Extension, b'\r') => Ok(State::SizeLf),
            (State::Extension, _) if is_value(byte) => self.spend(MAX_EXTENSION, State::Extension),
            (State::SizeLf, b'\n') => {
                self.digits = 0;
                self.spent = 0;
                Ok(if self.left == 0 { State::Trailer } else { State::Data })
            }
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => Ok(State::Size),
            (State::Trailer, b'\r') => Ok(State::EndLf),
            (State::Trailer | State::Name, _) if is_token(byte) => self.name_byte(byte),
            (State::Name, b':') => self.end_of_name(),
            (State::Value, b'\r') => self.spend(MAX_TRAILERS, State::ValueLf),
            (State::Value, _) if is_value(byte) => self.spend(MAX_TRAILERS, State::Value),
            (State::ValueLf, b'\n') => self.spend(MAX_TRAILERS, State::Trailer),
            (State::EndLf, b'\n') => Ok(State::Done),
            (State::Trailer | State::Name | State::Value | State::ValueLf | State::EndLf, _) => Err(BodyError::Trailer),
            (State::Extension | State::SizeLf | State::Data | State::DataCr | State::DataLf | State::Done, _) => {
                Err(BodyError::Chunk)
            }
        }
    }

    fn size_digit(&mut self, byte: u8) -> Result<State, BodyError> {
        let digit = char::from(byte).to_digit(16).ok_or(BodyError::Chunk)?;
        // Sixteen digits fill 64 bits; leading zeros do not make a size longer than that either.
        if self.digits == MAX_DIGITS {
            return Err(BodyError::Chunk);
        }
        self.digits += 1;
        self.left = (self.left << 4) | u64::from(digit);
        Ok(State::Size)
    }

    fn name_byte(&mut self, byte: u8) -> Result<State, BodyError> {
        if self.state == State::Trailer {
            self.name_len = 0;
        }
        if let Some(place) = self.name.get_mut(self.name_len) {
            *place = byte.to_ascii_lowercase();
        }
        self.name_len += 1;
        self.spend(MAX_TRAILERS, State::Name)
    }

    fn end_of_name(&mut self) -> Result<State, BodyError> {
        // A name longer than the buffer is longer than every forbidden one.
        let name = self.name.get(..self.name_len).unwrap_or_default();
        if !may_be_trailer(name) {
            return Err(BodyError::ForbiddenTrailer);
        }
        self.spend(MAX_TRAILERS, State::Value)
    }

    fn spend(&mut self, limit: usize, next: State) -> Result<State, BodyError> {
        self.spent += 1;
        if self.spent > limit { Err(BodyError::TooLong) } else { Ok(next) }
    }
}

const MAX_DIGITS: u8 = 16;
/// Extensions are used by nobody; a peer that sends long ones wants to be slow.
const MAX_EXTENSION: usize = 256;
/// One more than the longest name that is looked for.
const NAME: usize = 26;

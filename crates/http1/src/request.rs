//! A request's head (RFC 9112 3): parsed in place, judged whole.
//!
//! ```text
//! bytes ──> RequestHead::parse ─┬─ Parsed::Partial   read more, call again
//!                               ├─ Parsed::Complete  RequestHead::view(bytes) ──> facts for routing, forward::request
//!                               └─ RequestError      answer its status, close
//! ```
//! A head that parses is fit to be forwarded: its target, Host, framing and Connection have been judged.

mod view;

use model::request::Method;

use crate::connection::{self, Persistence, Version};
use crate::error::{FieldError, RequestError};
use crate::fields::{Known, Section, Span};
use crate::framing::{Declared, FramingError, RequestFraming, declared};
use crate::limits::HeadLimits;
use crate::scan::{end_of_line, end_of_name, find};
use crate::syntax::list;
use crate::target::{self, Target};
use crate::upgrade;

pub use self::view::Request;

/// Whether a head is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// All of it.
    Complete,
    /// More bytes are needed.
    Partial,
}

/// The offsets and facts of one request's head. Reused from request to request; keeps its memory.
#[derive(Clone, Debug)]
pub struct RequestHead {
    len: usize,
    method: Method,
    method_name: Span,
    version: Version,
    /// The request target, and behind it the authority where it comes from Host.
    text: String,
    /// Where the target lies in the head.
    target_place: Span,
    /// Its parts, in `text`.
    target: Target,
    /// In `text`.
    authority: Span,
    host: String,
    port: Option<u16>,
    fields: Section,
    framing: RequestFraming,
    persistence: Persistence,
    expects_continue: bool,
    wants_trailers: bool,
    offers_upgrade: bool,
}

impl Default for RequestHead {
    fn default() -> Self {
        Self {
            len: 0,
            method: Method::Other,
            method_name: Span::default(),
            version: Version::default(),
            text: String::new(),
            target_place: Span::default(),
            target: Target::default(),
            authority: Span::default(),
            host: String::new(),
            port: None,
            fields: Section::default(),
            framing: RequestFraming::default(),
            persistence: Persistence::default(),
            expects_continue: false,
            wants_trailers: false,
            offers_upgrade: false,
        }
    }
}

impl RequestHead {
    /// Parses the head at the start of `bytes`; body or next request may follow it.
    ///
    /// One empty line before the request line is skipped (RFC 9112 2.2). After an error, [`RequestHead::view`] has no
    /// meaning.
    pub fn parse(&mut self, bytes: &[u8], limits: &HeadLimits) -> Result<Parsed, RequestError> {
        let start = match bytes {
            [] | [b'\r'] => return Ok(Parsed::Partial),
            [b'\r', b'\n', ..] => 2,
            _ => 0,
        };
        let text = bytes.get(start..).unwrap_or_default();
        let window = text.get(..text.len().min(limits.line.saturating_add(2))).unwrap_or_default();
        let Some(line) = start_line(window)? else {
            let is_full = text.len() > limits.line.saturating_add(1);
            return if is_full { Err(RequestError::RequestLineTooLong) } else { Ok(Parsed::Partial) };
        };
        self.read_line(line, start)?;
        let Some(end) = self.fields.parse(bytes, start + line.len() + 2, limits)? else {
            return Ok(Parsed::Partial);
        };
        self.len = end;
        self.judge(bytes)?;
        Ok(Parsed::Complete)
    }

    /// Length of the head in bytes, the empty line at its end (and one before it) included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was parsed yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The head joined with the bytes it was parsed from.
    pub fn view<'a>(&'a self, bytes: &'a [u8]) -> Request<'a> {
        Request { bytes, head: self }
    }

    fn read_line(&mut self, line: &[u8], start: usize) -> Result<(), RequestError> {
        let method_end = end_of_name(line);
        let (method, rest) = match line.split_at_checked(method_end) {
            Some((method, [b' ', rest @ ..])) if !method.is_empty() => (method, rest),
            _ => return Err(RequestError::RequestLine),
        };
        let target_end = find(rest, b' ');
        let version = rest.get(target_end + 1..).ok_or(RequestError::RequestLine)?;
        let target = rest.get(..target_end).unwrap_or_default();
        self.version = Version::parse(version).ok_or_else(|| version_error(version))?;
        let kind = Method::from_bytes(method);
        if kind == Method::Connect {
            return Err(RequestError::Connect);
        }
        self.method = kind;
        self.method_name = Span::new(start, start + method_end);
        let target_start = start + method_end + 1;
        self.target_place = Span::new(target_start, target_start + target.len());
        self.target = target::parse(target, kind)?;
        Ok(())
    }

    /// The rules that need all fields.
    fn judge(&mut self, bytes: &[u8]) -> Result<(), RequestError> {
        self.persistence = connection::read(&mut self.fields, bytes, self.version)
            .map_err(|connection::TooManyOptions| RequestError::ConnectionOptions)?;
        self.framing = match declared(&self.fields, bytes, self.version).map_err(framing_error)? {
            Declared::Nothing => RequestFraming::None,
            Declared::Length(length) => RequestFraming::Length(length),
            Declared::Chunked => RequestFraming::Chunked,
        };
        self.judge_host(bytes)?;
        self.judge_rest(bytes)
    }

    /// RFC 9112 3.2: exactly one Host in HTTP/1.1, never two; an absolute target replaces it.
    fn judge_host(&mut self, bytes: &[u8]) -> Result<(), RequestError> {
        let from_field = self.fields.only(Known::Host).map(|field| field.value.of(bytes));
        if from_field.is_none() && (self.version == Version::Http11 || self.fields.has(Known::Host)) {
            return Err(RequestError::HostCount);
        }
        self.host.clear();
        self.port = None;
        self.authority = Span::default();
        let target = self.target_place.of(bytes);
        let of_field = from_field.map(target::authority).transpose()?;
        let of_target = self.target.authority.map(|place| target::authority(place.of(target))).transpose()?;
        let behind = match (self.target.authority, from_field) {
            (Some(place), _) => {
                self.authority = place;
                &[]
            }
            (None, Some(field)) => {
                self.authority = Span::new(target.len(), target.len() + field.len());
                field
            }
            (None, None) => &[],
        };
        self.keep_text(target, behind);
        if let Some((host, port)) = of_target.or(of_field) {
            self.port = port;
            // The host is the beginning of the authority.
            self.host.push_str(self.authority.of_text(&self.text).get(..host.len()).unwrap_or_default());
            self.host.make_ascii_lowercase();
        }
        Ok(())
    }

    /// Both are ASCII. The check is made once here, and not by each question that is answered as text.
    fn keep_text(&mut self, target: &[u8], authority: &[u8]) {
        let mut bytes = std::mem::take(&mut self.text).into_bytes();
        bytes.clear();
        bytes.extend_from_slice(target);
        bytes.extend_from_slice(authority);
        self.text = String::from_utf8(bytes).unwrap_or_default();
    }

    fn judge_rest(&mut self, bytes: &[u8]) -> Result<(), RequestError> {
        self.expects_continue = false;
        self.wants_trailers = false;
        self.offers_upgrade = false;
        if ![Known::Expect, Known::Te, Known::Upgrade].into_iter().any(|known| self.fields.has(known)) {
            return Ok(());
        }
        self.offers_upgrade = upgrade::is_offered(self.fields.as_slice(), bytes, self.version);
        for field in self.fields.as_slice() {
            match field.known {
                // HTTP/1.0 knows no expectations (RFC 9110 10.1.1).
                Known::Expect if self.version == Version::Http11 => {
                    if !field.value.of(bytes).eq_ignore_ascii_case(b"100-continue") {
                        return Err(RequestError::Expectation);
                    }
                    self.expects_continue = self.framing.has_body();
                }
                Known::Te => {
                    self.wants_trailers |= list(field.value.of(bytes)).any(|te| te.eq_ignore_ascii_case(b"trailers"));
                }
                Known::Other
                | Known::Upgrade
                | Known::Host
                | Known::Connection
                | Known::ContentLength
                | Known::TransferEncoding
                | Known::Expect
                | Known::KeepAlive
                | Known::Hop
                | Known::Forwarded
                | Known::ForwardedFor
                | Known::ForwardedProto
                | Known::ForwardedHost
                | Known::ForwardedPrefix
                | Known::AltSvc
                | Known::RetryAfter
                | Known::Attempt
                | Known::GrpcTimeout
                | Known::Date => {}
            }
        }
        Ok(())
    }
}

impl RequestFraming {
    /// Whether a body follows, of length 0 or more than 0 bytes that is not known before.
    pub fn has_body(self) -> bool {
        !matches!(self, Self::None | Self::Length(0))
    }
}

/// The line up to its CRLF. `None`: its end is not there.
pub(crate) fn start_line(window: &[u8]) -> Result<Option<&[u8]>, FieldError> {
    let end = end_of_line(window);
    match window.split_at_checked(end) {
        Some((line, [b'\r', b'\n', ..])) => Ok(Some(line)),
        Some((_, [] | [b'\r'])) | None => Ok(None),
        Some(_) => Err(FieldError::LineEnd),
    }
}

/// A text of the head's grammar, which is ASCII.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// `HTTP/` DIGIT `.` DIGIT that is not ours is a version (505); anything else is no request line (400).
fn version_error(text: &[u8]) -> RequestError {
    match text {
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor] if major.is_ascii_digit() && minor.is_ascii_digit() => {
            RequestError::Version
        }
        _ => RequestError::RequestLine,
    }
}

fn framing_error(error: FramingError) -> RequestError {
    match error {
        FramingError::ContentLength => RequestError::ContentLength,
        FramingError::TransferEncoding => RequestError::TransferEncoding,
        FramingError::UnknownCoding => RequestError::UnknownCoding,
    }
}

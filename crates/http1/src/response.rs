//! A response's head (RFC 9112 4): the same strict pass, and where its body ends (RFC 9112 6.3).

use std::time::Duration;

use crate::connection::{self, Persistence, Version};
use crate::error::ResponseError;
use crate::fields::{Field, Known, Section, Span};
use crate::framing::{Declared, FramingError, ResponseFraming, declared};
use crate::limits::HeadLimits;
use crate::request::{Parsed, start_line};
use crate::scan::end_of_value;
use crate::syntax::{digits, list};

/// What the request was, as far as it decides where the response ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// HEAD: no body, whatever the fields say.
    Head,
    /// Any other.
    Other,
}

/// The offsets and facts of one response's head. Reused; keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct ResponseHead {
    len: usize,
    version: Version,
    status: u16,
    reason: Span,
    fields: Section,
    framing: ResponseFraming,
    declared_length: Option<u64>,
    persistence: Persistence,
    keep_alive_timeout: Option<Duration>,
}

impl ResponseHead {
    /// Parses the head at the start of `bytes`; its body may follow.
    pub fn parse(&mut self, bytes: &[u8], limits: &HeadLimits, kind: RequestKind) -> Result<Parsed, ResponseError> {
        let window = bytes.get(..bytes.len().min(limits.line.saturating_add(2))).unwrap_or_default();
        let Some(line) = start_line(window)? else {
            // What does not start like HTTP never will: no need to wait for the end of its line.
            let start = window.get(..window.len().min(PREFIX.len())).unwrap_or_default();
            return if !PREFIX.starts_with(start) {
                Err(ResponseError::StatusLine)
            } else if bytes.len() > limits.line.saturating_add(1) {
                Err(ResponseError::StatusLineTooLong)
            } else {
                Ok(Parsed::Partial)
            };
        };
        self.read_line(line)?;
        let Some(end) = self.fields.parse(bytes, line.len() + 2, limits)? else {
            return Ok(Parsed::Partial);
        };
        self.len = end;
        self.persistence = connection::read(&mut self.fields, bytes, self.version)
            .map_err(|connection::TooManyOptions| ResponseError::ConnectionOptions)?;
        self.judge_framing(bytes, kind)?;
        self.keep_alive_timeout = self.fields.values(bytes, Known::KeepAlive).next().and_then(timeout);
        Ok(Parsed::Complete)
    }

    /// Length of the head in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was parsed yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// 1xx: an answer before the answer.
    pub fn is_interim(&self) -> bool {
        (100..200).contains(&self.status)
    }

    /// How the body ends.
    pub fn framing(&self) -> ResponseFraming {
        self.framing
    }

    /// Whether the connection may carry another request once the body is read: HTTP/1.1 without `close`, or HTTP/1.0
    /// with `keep-alive`, and a body that does not end with the connection.
    pub fn persistence(&self) -> Persistence {
        match self.framing {
            ResponseFraming::Close => Persistence::Close,
            ResponseFraming::None | ResponseFraming::Length(_) | ResponseFraming::Chunked => self.persistence,
        }
    }

    /// N of `Keep-Alive: timeout=N`: the destination closes the idle connection after so long.
    pub fn keep_alive_timeout(&self) -> Option<Duration> {
        self.keep_alive_timeout
    }

    /// The head joined with the bytes it was parsed from.
    pub fn view<'a>(&'a self, bytes: &'a [u8]) -> Response<'a> {
        Response { bytes, head: self }
    }

    fn read_line(&mut self, line: &[u8]) -> Result<(), ResponseError> {
        let (version, rest) = line.split_at_checked(VERSION_LEN).ok_or(ResponseError::StatusLine)?;
        let is_http = version.starts_with(PREFIX);
        let version = Version::parse(version);
        self.version = version.ok_or(if is_http { ResponseError::Version } else { ResponseError::StatusLine })?;
        let (code, reason) = match rest {
            [b' ', a, b, c] => ([*a, *b, *c], &[][..]),
            [b' ', a, b, c, b' ', reason @ ..] => ([*a, *b, *c], reason),
            _ => return Err(ResponseError::StatusLine),
        };
        // Three digits, so the number fits.
        self.status = digits(&code).filter(|&code| code >= 100).ok_or(ResponseError::StatusLine)? as u16;
        if end_of_value(reason) < reason.len() {
            return Err(ResponseError::StatusLine);
        }
        self.reason = Span::new(line.len() - reason.len(), line.len());
        Ok(())
    }

    fn judge_framing(&mut self, bytes: &[u8], kind: RequestKind) -> Result<(), ResponseError> {
        let is_bodyless = self.is_interim() || self.status == 204;
        self.declared_length = None;
        if is_bodyless {
            // RFC 9110 8.6: these must not carry either field; ones that do are not passed on.
            self.framing = ResponseFraming::None;
            return Ok(());
        }
        let declared = declared(&self.fields, bytes, self.version).map_err(framing_error)?;
        if let Declared::Length(length) = declared {
            self.declared_length = Some(length);
        }
        self.framing = match declared {
            _ if kind == RequestKind::Head || self.status == 304 => ResponseFraming::None,
            Declared::Nothing => ResponseFraming::Close,
            Declared::Length(length) => ResponseFraming::Length(length),
            Declared::Chunked => ResponseFraming::Chunked,
        };
        Ok(())
    }
}

/// A parsed head and its bytes.
#[derive(Clone, Copy)]
pub struct Response<'a> {
    bytes: &'a [u8],
    head: &'a ResponseHead,
}

impl<'a> Response<'a> {
    /// The status.
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// The version of the destination.
    pub fn version(&self) -> Version {
        self.head.version
    }

    /// The reason phrase as it came, often empty.
    pub fn reason(&self) -> &'a [u8] {
        self.head.reason.of(self.bytes)
    }

    /// How the body ends.
    pub fn framing(&self) -> ResponseFraming {
        self.head.framing
    }

    /// What `Content-Length` says, also where no body follows (HEAD, 304).
    pub fn declared_length(&self) -> Option<u64> {
        self.head.declared_length
    }

    /// Whether a `Retry-After` is there.
    pub fn has_retry_after(&self) -> bool {
        self.head.fields.has(Known::RetryAfter)
    }

    /// The status line with its end, where it is the one that would be written.
    pub(crate) fn line(&self) -> Option<Span> {
        let is_same = self.head.version == Version::Http11 && !self.head.reason.is_empty();
        is_same.then(|| Span::default().through(self.head.reason, "\r\n".len()))
    }

    pub(crate) fn section(&self) -> (&'a [u8], &'a Section) {
        (self.bytes, &self.head.fields)
    }

    /// All fields with name and value, in order, whatever becomes of them.
    pub fn fields(&self) -> impl Iterator<Item = (Field, &'a [u8], &'a [u8])> + use<'a> {
        let bytes = self.bytes;
        self.head.fields.as_slice().iter().map(move |field| (*field, field.name.of(bytes), field.value.of(bytes)))
    }
}

impl model::request::Fields for Response<'_> {
    fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        for (_, found, value) in self.fields() {
            if found.eq_ignore_ascii_case(name.as_bytes()) {
                visit(value);
            }
        }
    }
}

/// The number in `timeout=N`.
fn timeout(value: &[u8]) -> Option<Duration> {
    list(value).find_map(|parameter| {
        let (name, number) = parameter.split_at_checked("timeout=".len())?;
        if name.eq_ignore_ascii_case(b"timeout=") { digits(number).map(Duration::from_secs) } else { None }
    })
}

fn framing_error(error: FramingError) -> ResponseError {
    match error {
        FramingError::ContentLength => ResponseError::ContentLength,
        FramingError::TransferEncoding | FramingError::UnknownCoding => ResponseError::TransferEncoding,
    }
}

const PREFIX: &[u8] = b"HTTP/";
const VERSION_LEN: usize = "HTTP/1.1".len();

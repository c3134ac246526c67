//! Field lines (RFC 9112 5): one strict pass that leaves offsets, and the names that a proxy has to know.

use crate::error::FieldError;
use crate::limits::HeadLimits;
use crate::syntax::{end_of_value, is_token};

/// A part of a head, by offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    start: u32,
    len: u32,
}

impl Span {
    /// From offsets. Heads are far shorter than 4 GiB: their limits are checked first.
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, len: end.saturating_sub(start) as u32 }
    }

    /// The bytes it stands for; empty when `bytes` is not the head it was made from.
    pub fn of(self, bytes: &[u8]) -> &[u8] {
        let start = self.start as usize;
        bytes.get(start..start + self.len as usize).unwrap_or_default()
    }

    /// Whether it holds no byte.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// One field line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name as it came.
    pub name: Span,
    /// Its value, trimmed.
    pub value: Span,
    /// What the name means to a proxy.
    pub known: Known,
    /// Whether `Connection` names it: it ends here (RFC 9110 7.6.1).
    pub fate: Fate,
}

/// Whether a field goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// As its name has it.
    ByName,
    /// Named by `Connection`: it ends here.
    Nominated,
}

/// Field names that mean something to a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// No meaning here: goes on as it is.
    Other,
    /// `Host`.
    Host,
    /// `Connection`.
    Connection,
    /// `Content-Length`.
    ContentLength,
    /// `Transfer-Encoding`.
    TransferEncoding,
    /// `TE`.
    Te,
    /// `Upgrade`.
    Upgrade,
    /// `Expect`.
    Expect,
    /// `Keep-Alive`.
    KeepAlive,
    /// `Proxy-Connection`, `Proxy-Authenticate`, `Proxy-Authorization`, `Proxy-Authentication-Info`,
    /// `HTTP2-Settings`, and `Proxy`, which some CGI servers take for an environment variable: all end here. So does
    /// each name here that is written with underscores (`X_Forwarded_For`): such servers take both for the same.
    Hop,
    /// `Forwarded`.
    Forwarded,
    /// `X-Forwarded-For`.
    ForwardedFor,
    /// `X-Forwarded-Proto`.
    ForwardedProto,
    /// `X-Forwarded-Host`.
    ForwardedHost,
    /// `Alt-Svc`.
    AltSvc,
    /// `Retry-After`.
    RetryAfter,
    /// `Date`.
    Date,
}

impl Known {
    /// The meaning of a name, case ignored.
    pub fn of(name: &[u8]) -> Self {
        let candidates: &[(&[u8], Self)] = match name.len() {
            2 => &[(b"te", Self::Te)],
            4 => &[(b"host", Self::Host), (b"date", Self::Date)],
            5 => &[(b"proxy", Self::Hop)],
            6 => &[(b"expect", Self::Expect)],
            7 => &[(b"upgrade", Self::Upgrade), (b"alt-svc", Self::AltSvc)],
            9 => &[(b"forwarded", Self::Forwarded)],
            10 => &[(b"connection", Self::Connection), (b"keep-alive", Self::KeepAlive)],
            11 => &[(b"retry-after", Self::RetryAfter)],
            14 => &[(b"content-length", Self::ContentLength), (b"http2-settings", Self::Hop)],
            15 => &[(b"x-forwarded-for", Self::ForwardedFor)],
            16 => &[(b"x-forwarded-host", Self::ForwardedHost), (b"proxy-connection", Self::Hop)],
            17 => &[(b"transfer-encoding", Self::TransferEncoding), (b"x-forwarded-proto", Self::ForwardedProto)],
            18 => &[(b"proxy-authenticate", Self::Hop)],
            19 => &[(b"proxy-authorization", Self::Hop)],
            25 => &[(b"proxy-authentication-info", Self::Hop)],
            _ => &[],
        };
        match candidates.iter().find(|(text, _)| name.eq_ignore_ascii_case(text)) {
            Some((_, known)) => *known,
            None if candidates.iter().any(|(text, _)| is_double(name, text)) => Self::Hop,
            None => Self::Other,
        }
    }

    /// Whether `Connection` may name it. Framing, Host and `Connection` itself are not the sender's to remove.
    pub(crate) fn is_removable(self) -> bool {
        !matches!(self, Self::Host | Self::Connection | Self::ContentLength | Self::TransferEncoding)
    }
}

/// Whether a field may stand behind a body (RFC 9110 6.5.1), case ignored: none that frames or routes a message, bears
/// credentials, controls the request or says how to read the content, and none that means something to a proxy.
pub fn may_be_trailer(name: &[u8]) -> bool {
    Known::of(name) == Known::Other && !NO_TRAILERS.iter().any(|text| name.eq_ignore_ascii_case(text))
}

/// Whether `name` is `text` with an underscore in place of a dash, case ignored.
fn is_double(name: &[u8], text: &[u8]) -> bool {
    let is_same = |(&byte, &known): (&u8, &u8)| byte.eq_ignore_ascii_case(&known) || (byte == b'_' && known == b'-');
    name.len() == text.len() && name.iter().zip(text).all(is_same)
}

/// Parses field lines from `start` up to and with the empty line. `Ok(None)`: more bytes are needed.
pub(crate) fn parse(
    bytes: &[u8],
    start: usize,
    limits: &HeadLimits,
    fields: &mut Vec<Field>,
) -> Result<Option<usize>, FieldError> {
    fields.clear();
    let mut at = start;
    loop {
        let line = bytes.get(at..).unwrap_or_default();
        if at - start > limits.bytes {
            return Err(FieldError::TooLarge);
        }
        // What is full and still not complete cannot become complete within the limit.
        let partial = || if bytes.len() - start >= limits.bytes { Err(FieldError::TooLarge) } else { Ok(None) };
        match line {
            [] | [b'\r'] => return partial(),
            [b'\r', b'\n', ..] => {
                let end = at + 2;
                return if end - start > limits.bytes { Err(FieldError::TooLarge) } else { Ok(Some(end)) };
            }
            [b'\r' | b'\n', ..] => return Err(FieldError::LineEnd),
            [b' ' | b'\t', ..] => return Err(FieldError::Folded),
            [_, ..] => {}
        }
        let Some(colon) = line.iter().position(|&byte| !is_token(byte)) else { return partial() };
        match line.get(colon) {
            Some(b':') if colon > 0 => {}
            Some(b' ' | b'\t') => return Err(FieldError::BlankBeforeColon),
            _ => return Err(FieldError::Name),
        }
        let after = line.get(colon + 1..).unwrap_or_default();
        let Some(length) = end_of_value(after) else { return partial() };
        match after.get(length..) {
            Some([b'\r', b'\n', ..]) => {}
            Some([b'\r']) => return partial(),
            Some([b'\r' | b'\n', ..]) => return Err(FieldError::LineEnd),
            _ => return Err(FieldError::Value),
        }
        if fields.len() == limits.fields {
            return Err(FieldError::TooMany);
        }
        let raw = after.get(..length).unwrap_or_default();
        let blanks = raw.iter().take_while(|&&b| b == b' ' || b == b'\t').count();
        let tail = raw.iter().rev().take_while(|&&b| b == b' ' || b == b'\t').count();
        let value = at + colon + 1 + blanks;
        let name = Span::new(at, at + colon);
        fields.push(Field {
            name,
            value: Span::new(value, (at + colon + 1 + length).saturating_sub(tail).max(value)),
            known: Known::of(name.of(bytes)),
            fate: Fate::ByName,
        });
        at += colon + 1 + length + 2;
    }
}

/// The values of the fields with a known name, in order.
pub(crate) fn values<'a>(fields: &'a [Field], bytes: &'a [u8], known: Known) -> impl Iterator<Item = &'a [u8]> {
    fields.iter().filter(move |field| field.known == known).map(|field| field.value.of(bytes))
}

/// Beyond those that mean something to a proxy: request control, credentials and payload processing.
const NO_TRAILERS: [&[u8]; 14] = [
    b"authorization",
    b"cache-control",
    b"content-encoding",
    b"content-range",
    b"content-type",
    b"cookie",
    b"if-match",
    b"if-none-match",
    b"if-unmodified-since",
    b"max-forwards",
    b"range",
    b"set-cookie",
    b"trailer",
    b"x-real-ip",
];

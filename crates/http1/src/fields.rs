//! Field lines (RFC 9112 5): one strict pass that leaves offsets, and the names that a proxy has to know.

use crate::error::FieldError;
use crate::limits::HeadLimits;
use crate::scan::{end_of_name, end_of_value};

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

    /// The bytes from the start of this one to the end of `last`, and so many behind it.
    pub(crate) fn through(self, last: Self, more: usize) -> Self {
        Self::new(self.start as usize, (last.start + last.len) as usize + more)
    }

    /// The text it stands for.
    pub(crate) fn of_text(self, text: &str) -> &str {
        let start = self.start as usize;
        text.get(start..start + self.len as usize).unwrap_or_default()
    }

    /// The two together, where `next` begins where this one ends.
    pub(crate) fn joined(self, next: Self) -> Option<Self> {
        self.is_followed_by(next).then(|| self.through(next, 0))
    }

    /// Whether `next` begins where this one ends.
    fn is_followed_by(self, next: Self) -> bool {
        self.start + self.len == next.start
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
    /// Whether the line came as it would be written.
    pub(crate) form: Form,
}

impl Field {
    /// The whole line with its end, where it came as it would be written.
    pub(crate) fn line(&self) -> Option<Span> {
        match self.form {
            Form::Usual => Some(self.name.through(self.value, CRLF)),
            Form::Other => None,
        }
    }
}

/// How a field line is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Name, colon, one blank, value, CRLF: writing it anew gives the same bytes.
    Usual,
    /// With other blanks.
    Other,
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
    /// `X-Forwarded-Prefix`.
    ForwardedPrefix,
    /// `Alt-Svc`.
    AltSvc,
    /// `Retry-After`.
    RetryAfter,
    /// `Lazaret-Attempt`, the mark of a request that a proxy repeats.
    Attempt,
    /// `Date`.
    Date,
}

impl Known {
    /// The meaning of a name (a token), case ignored.
    pub fn of(name: &[u8]) -> Self {
        let Some(first) = name.first() else { return Self::Other };
        // Length and first letter leave one candidate, and for most names none.
        match (name.len(), first | 0x20) {
            (2, b't') => Self::Te.if_named(name, b"te"),
            (4, b'h') => Self::Host.if_named(name, b"host"),
            (4, b'd') => Self::Date.if_named(name, b"date"),
            (5, b'p') => Self::Hop.if_named(name, b"proxy"),
            (6, b'e') => Self::Expect.if_named(name, b"expect"),
            (7, b'u') => Self::Upgrade.if_named(name, b"upgrade"),
            (7, b'a') => Self::AltSvc.if_named(name, b"alt-svc"),
            (9, b'f') => Self::Forwarded.if_named(name, b"forwarded"),
            (10, b'c') => Self::Connection.if_named(name, b"connection"),
            (10, b'k') => Self::KeepAlive.if_named(name, b"keep-alive"),
            (11, b'r') => Self::RetryAfter.if_named(name, b"retry-after"),
            (14, b'c') => Self::ContentLength.if_named(name, b"content-length"),
            (14, b'h') => Self::Hop.if_named(name, b"http2-settings"),
            (15, b'l') => Self::Attempt.if_named(name, b"lazaret-attempt"),
            (15, b'x') => Self::ForwardedFor.if_named(name, b"x-forwarded-for"),
            (16, b'x') => Self::ForwardedHost.if_named(name, b"x-forwarded-host"),
            (16, b'p') => Self::Hop.if_named(name, b"proxy-connection"),
            (17, b't') => Self::TransferEncoding.if_named(name, b"transfer-encoding"),
            (17, b'x') => Self::ForwardedProto.if_named(name, b"x-forwarded-proto"),
            (18, b'p') => Self::Hop.if_named(name, b"proxy-authenticate"),
            (18, b'x') => Self::ForwardedPrefix.if_named(name, b"x-forwarded-prefix"),
            (19, b'p') => Self::Hop.if_named(name, b"proxy-authorization"),
            (25, b'p') => Self::Hop.if_named(name, b"proxy-authentication-info"),
            _ => Self::Other,
        }
    }

    /// This when `name` is `text`, case ignored.
    fn if_named<const N: usize>(self, name: &[u8], text: &[u8; N]) -> Self {
        let Some(start) = name.first_chunk::<N>() else { return Self::Other };
        // A name is a token (RFC 9110 5.6.2): of those the bytes that differ from one of `text` in this bit alone are
        // its capitals. All bytes are compared together.
        let differing = start.iter().zip(text).fold(0, |all, (&byte, &known)| all | ((byte | 0x20) ^ known));
        if differing == 0 {
            self
        } else if is_double(name, text) {
            Self::Hop
        } else {
            Self::Other
        }
    }

    const COUNT: usize = Self::Date as usize + 1;

    /// All of them, in their order.
    pub(crate) const ALL: [Self; Self::COUNT] = [
        Self::Other,
        Self::Host,
        Self::Connection,
        Self::ContentLength,
        Self::TransferEncoding,
        Self::Te,
        Self::Upgrade,
        Self::Expect,
        Self::KeepAlive,
        Self::Hop,
        Self::Forwarded,
        Self::ForwardedFor,
        Self::ForwardedProto,
        Self::ForwardedHost,
        Self::ForwardedPrefix,
        Self::AltSvc,
        Self::RetryAfter,
        Self::Attempt,
        Self::Date,
    ];

    fn bit(self) -> u32 {
        Kinds::of(self).0
    }

    /// Whether `Connection` may name it. Framing, Host and `Connection` itself are not the sender's to remove.
    pub(crate) fn is_removable(self) -> bool {
        !matches!(self, Self::Host | Self::Connection | Self::ContentLength | Self::TransferEncoding)
    }
}

/// A set of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kinds(u32);

impl Kinds {
    pub(crate) const NONE: Self = Self(0);

    pub(crate) const fn of(known: Known) -> Self {
        Self(1 << known as u32)
    }

    pub(crate) const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
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

/// The fields of one head. Reused; keeps its memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    fields: Vec<Field>,
    /// A bit for each [`Known`] that is among them: most questions are about fields that are not there.
    seen: u32,
    /// A bit for each [`Known`] that is among them more than once.
    repeated: u32,
    /// Where the last one of each [`Known`] is; it counts where `seen` has its bit.
    places: [u32; Known::COUNT],
    /// Whether some line is not as it would be written, or ends here because `Connection` names it.
    is_uneven: bool,
}

impl Section {
    /// Parses field lines from `start` up to and with the empty line. `Ok(None)`: more bytes are needed.
    pub(crate) fn parse(
        &mut self,
        bytes: &[u8],
        start: usize,
        limits: &HeadLimits,
    ) -> Result<Option<usize>, FieldError> {
        self.fields.clear();
        self.seen = 0;
        self.repeated = 0;
        self.is_uneven = false;
        let section = bytes.get(start..).unwrap_or_default();
        let mut rest = section;
        loop {
            let at = bytes.len() - rest.len();
            if at - start > limits.bytes {
                return Err(FieldError::TooLarge);
            }
            let colon = end_of_name(rest);
            let (name, after) = match rest.split_at_checked(colon) {
                Some((name, [b':', after @ ..])) if !name.is_empty() => (name, after),
                _ => return no_field(rest, colon, section, limits).map(|end| end.map(|end| start + end)),
            };
            let length = end_of_value(after);
            let Some((raw, next)) = after.split_at_checked(length) else { return partial(section, limits) };
            let [b'\r', b'\n', next @ ..] = next else { return no_end(next, section, limits) };
            if self.fields.len() == limits.fields {
                return Err(FieldError::TooMany);
            }
            let (value, form) = trim(raw, at + colon + 1);
            if form == Form::Other {
                self.is_uneven = true;
            }
            let known = Known::of(name);
            if known != Known::Other {
                self.note(known);
            }
            self.fields.push(Field { name: Span::new(at, at + colon), value, known, fate: Fate::ByName, form });
            rest = next;
        }
    }

    /// The field that comes next means something.
    fn note(&mut self, known: Known) {
        self.repeated |= self.seen & known.bit();
        self.seen |= known.bit();
        if let Some(place) = self.places.get_mut(known as usize) {
            // Heads have far fewer lines: their limits are checked first.
            *place = self.fields.len() as u32;
        }
    }

    /// The one field with this name; `None` when there is none, or more than one.
    #[inline]
    pub(crate) fn only(&self, known: Known) -> Option<&Field> {
        let is_alone = self.seen & !self.repeated & known.bit() != 0;
        let place = self.places.get(known as usize).filter(|_| is_alone)?;
        self.fields.get(*place as usize)
    }

    /// The lines from the one at `first` on as they came, where all of them go on and none is of the kinds that end here:
    /// they can be copied as one. `None`: each is to be asked.
    pub(crate) fn whole(&self, first: usize, ending: Kinds) -> Option<Span> {
        if self.is_uneven || self.seen & ending.0 != 0 {
            return None;
        }
        let (first, last) = (self.fields.get(first)?, self.fields.last()?);
        Some(first.name.through(last.value, CRLF))
    }

    /// Whether such a field is there.
    pub(crate) fn has(&self, known: Known) -> bool {
        self.seen & known.bit() != 0
    }

    /// The fields with a known name, in order.
    pub(crate) fn all(&self, known: Known) -> impl Iterator<Item = &Field> {
        let fields = if self.has(known) { self.fields.as_slice() } else { &[] };
        fields.iter().filter(move |field| field.known == known)
    }

    /// Their values.
    pub(crate) fn values<'b>(&self, bytes: &'b [u8], known: Known) -> impl Iterator<Item = &'b [u8]> {
        self.all(known).map(|field| field.value.of(bytes))
    }

    /// All of them, in order.
    pub(crate) fn as_slice(&self) -> &[Field] {
        &self.fields
    }

    /// The same, to mark those that end here.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [Field] {
        self.is_uneven = true;
        &mut self.fields
    }
}

/// A line that does not begin with a name and a colon: the empty line at the section's end, or a fault, or there is more
/// to come.
#[cold]
fn no_field(line: &[u8], name: usize, section: &[u8], limits: &HeadLimits) -> Result<Option<usize>, FieldError> {
    match line {
        [b'\r', b'\n', rest @ ..] => {
            let end = section.len() - rest.len();
            if end > limits.bytes { Err(FieldError::TooLarge) } else { Ok(Some(end)) }
        }
        [] | [b'\r'] => partial(section, limits),
        [b'\r' | b'\n', ..] => Err(FieldError::LineEnd),
        [b' ' | b'\t', ..] => Err(FieldError::Folded),
        [_, ..] => match line.get(name) {
            None => partial(section, limits),
            Some(b' ' | b'\t') => Err(FieldError::BlankBeforeColon),
            Some(_) => Err(FieldError::Name),
        },
    }
}

/// A value that does not end as a line does.
#[cold]
fn no_end(rest: &[u8], section: &[u8], limits: &HeadLimits) -> Result<Option<usize>, FieldError> {
    match rest {
        [] | [b'\r'] => partial(section, limits),
        [b'\r' | b'\n', ..] => Err(FieldError::LineEnd),
        [_, ..] => Err(FieldError::Value),
    }
}

/// What is full and still not complete cannot become complete within the limit.
#[cold]
fn partial(section: &[u8], limits: &HeadLimits) -> Result<Option<usize>, FieldError> {
    if section.len() >= limits.bytes { Err(FieldError::TooLarge) } else { Ok(None) }
}

/// The value in `raw`, which begins at `start`, without blanks around it, and how it is spelled. It holds no control but
/// tabs.
#[inline(always)]
fn trim(raw: &[u8], start: usize) -> (Span, Form) {
    // Of bytes that may stand in a value only blank and tab are not beyond the blank.
    if let ([b' ', rest @ ..], Some(last)) = (raw, raw.last())
        && rest.first().is_some_and(|first| *first > b' ')
        && *last > b' '
    {
        return (Span::new(start + 1, start + raw.len()), Form::Usual);
    }
    trim_all(raw, start)
}

#[cold]
fn trim_all(raw: &[u8], start: usize) -> (Span, Form) {
    let is_blank = |byte: &u8| *byte == b' ' || *byte == b'\t';
    let before = raw.iter().take_while(|byte| is_blank(byte)).count();
    let behind = raw.iter().rev().take_while(|byte| is_blank(byte)).count();
    let length = raw.len().saturating_sub(before + behind);
    (Span::new(start + before, start + before + length), Form::Other)
}

const CRLF: usize = 2;

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

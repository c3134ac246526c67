//! The names that a proxy has to know, what they mean to it, and sets of them.

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
    /// `grpc-timeout`, how long the caller of a gRPC method waits.
    GrpcTimeout,
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
            (12, b'g') => Self::GrpcTimeout.if_named(name, b"grpc-timeout"),
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

    pub(super) const COUNT: usize = Self::Date as usize + 1;

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
        Self::GrpcTimeout,
        Self::Date,
    ];

    pub(super) fn bit(self) -> u32 {
        Kinds::of(self).0
    }

    /// Whether `Connection` may name it. Framing, Host and `Connection` itself are not the sender's to remove.
    pub(crate) fn is_removable(self) -> bool {
        !matches!(self, Self::Host | Self::Connection | Self::ContentLength | Self::TransferEncoding)
    }
}

/// A set of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kinds(pub(super) u32);

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

//! TLS of listeners: which certificates, which clients, which versions.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// TLS of a listener. Present means that nothing else is spoken there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ListenerTls {
    /// At least one. SNI chooses (RFC 6066 3); the first serves clients that name none, or none of these.
    pub certificates: Vec<CertificateFiles>,
    /// Oldest version spoken.
    pub min_version: TlsVersion,
    /// Whether clients show a certificate.
    pub client_auth: ClientAuth,
    /// File with the keys of session tickets, shared by all sites of a VIP, read again when it changes; `None`: keys of
    /// this process alone.
    pub ticket_keys: Option<PathBuf>,
    /// What is offered by ALPN (RFC 7301), in order of preference; never empty.
    pub protocols: Vec<Alpn>,
}

/// A certificate chain and its private key, PEM files that are read again when they change.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CertificateFiles {
    /// The chain, the leaf first.
    pub certificate: PathBuf,
    /// The leaf's key.
    pub key: PathBuf,
}

/// Versions of TLS that are spoken at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    #[default]
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3 (RFC 8446).
    #[serde(rename = "1.3")]
    Tls13,
}

/// Whether clients show a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// They are not asked.
    #[default]
    Off,
    /// They are asked; one that is shown must be of an authority in this file.
    Optional(PathBuf),
    /// Without one of an authority in this file there is no connection.
    Required(PathBuf),
}

/// A protocol that is offered by ALPN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Alpn {
    /// HTTP/2 (RFC 9113).
    #[serde(rename = "h2")]
    Http2,
    /// HTTP/1.1 (RFC 9112).
    #[serde(rename = "http/1.1")]
    Http11,
}

impl Alpn {
    /// The registered identifier.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http2 => "h2",
            Self::Http11 => "http/1.1",
        }
    }
}

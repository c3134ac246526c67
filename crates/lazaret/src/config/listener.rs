//! TLS and entry of a listener, as code says them.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// `tls` of a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ListenerTlsConfig {
    /// At least one; SNI chooses, the first serves everybody else.
    pub certificates: Vec<CertificateConfig>,
    /// `1.2` (unless set) or `1.3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_version: Option<String>,
    /// Who judges clients' certificates; they are not asked unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_auth: Option<ClientAuthConfig>,
    /// File with the keys of session tickets, shared by all sites of a VIP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket_keys: Option<String>,
    /// `h2`, `http/1.1`, in order of preference; both unless set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protocols: Vec<String>,
}

/// A certificate chain and its key: paths of PEM files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CertificateConfig {
    /// The chain, the leaf first.
    pub certificate: String,
    /// The leaf's key.
    pub key: String,
}

/// `client_auth` of a listener's TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClientAuthConfig {
    /// `required` or `optional`.
    pub mode: String,
    /// PEM file with the authorities of clients' certificates.
    pub ca: String,
}

/// Writes the networks as `{from: [...]}`.
pub(super) fn proxy_protocol<S: Serializer>(from: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry("from", from)?;
    map.end()
}

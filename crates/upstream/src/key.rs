//! What one connection must have in common with another one, so that it may be used in its place.
//!
//! One destination of one cluster (its slot), where it is, and everything that decided how the connection began: the
//! name that TLS verified, by whom, the certificate that we showed, the protocol, the address that it starts from. Two
//! clusters never share a connection, even to the same address and port: a server that finds SNI and Host at odds
//! answers 421 (RFC 9110 7.4), and what was not verified must not serve who verifies.

use std::net::SocketAddr;

use model::address::{Scheme, Url};
use model::cluster::UpstreamTls;
use model::id::Slot;
use model::upstream::{Outbound, UpstreamHttp};

use crate::connect::Target;

/// Whose connections, and how they begin.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The destination's place in the records. It can be given to another destination later.
    pub slot: Slot,
    /// Where it is; its host is the server's name unless `tls` has another.
    pub address: &'a Url,
    /// The address behind the name, when it is known already.
    pub literal: Option<SocketAddr>,
    /// Settings of TLS; they count when `address` is https.
    pub tls: &'a UpstreamTls,
    /// The HTTP that is spoken.
    pub http: UpstreamHttp,
    /// Where connections start.
    pub outbound: &'a Outbound,
}

/// A key that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnedKey {
    scheme: Scheme,
    host: String,
    port: u16,
    literal: Option<SocketAddr>,
    tls: Option<UpstreamTls>,
    http: UpstreamHttp,
    outbound: Outbound,
}

impl<'a> Key<'a> {
    /// Settings of TLS; `None`: plain.
    pub fn tls(&self) -> Option<&'a UpstreamTls> {
        match self.address.scheme {
            Scheme::Http => None,
            Scheme::Https => Some(self.tls),
        }
    }

    /// Where to connect. Whom the connection stands for is its user's to say.
    pub fn target(&self) -> Target<'a> {
        Target {
            host: &self.address.host,
            port: self.address.port,
            literal: self.literal,
            tls: self.tls(),
            http: self.http,
            sources: &self.outbound.source_addresses,
            on_behalf: None,
        }
    }

    pub(crate) fn owned(self) -> OwnedKey {
        OwnedKey {
            scheme: self.address.scheme,
            host: self.address.host.clone(),
            port: self.address.port,
            literal: self.literal,
            tls: self.tls().cloned(),
            http: self.http,
            outbound: self.outbound.clone(),
        }
    }
}

impl OwnedKey {
    /// Whether a connection of this key may be used for `key` of the same slot.
    #[inline]
    pub(crate) fn fits(&self, key: &Key<'_>) -> bool {
        self.port == key.address.port
            && self.literal == key.literal
            && self.http == key.http
            && self.scheme == key.address.scheme
            && self.host == key.address.host
            && self.tls.as_ref() == key.tls()
            && self.outbound == *key.outbound
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use model::cluster::Verify;
    use model::tls::CertificateFiles;
    use model::upstream::SendProxy;

    use super::*;

    #[test]
    fn every_setting_that_shapes_a_connection_tells_keys_apart() {
        let url = |text: &str| Url::parse(text).unwrap();
        let (address, tls, outbound) = (url("https://a.test:1/"), UpstreamTls::default(), Outbound::default());
        let http = UpstreamHttp::Http1;
        let key = Key { slot: Slot(1), address: &address, literal: None, tls: &tls, http, outbound: &outbound };
        let kept = key.owned();
        assert!(kept.fits(&key) && kept.fits(&Key { address: &url("https://a.test:1/other/path"), ..key }));
        for address in ["http://a.test:1/", "https://b.test:1/", "https://a.test:2/"] {
            assert!(!kept.fits(&Key { address: &url(address), ..key }), "{address}");
        }
        assert!(!kept.fits(&Key { literal: Some("127.0.0.1:1".parse().unwrap()), ..key }));
        assert!(!kept.fits(&Key { http: UpstreamHttp::Http2, ..key }));
        let files = CertificateFiles { certificate: "a".into(), key: "b".into() };
        for tls in [
            UpstreamTls { ca: Some("ca".into()), ..UpstreamTls::default() },
            UpstreamTls { server_name: Some("b.test".to_owned()), ..UpstreamTls::default() },
            UpstreamTls { verify: Verify::DangerousNone, ..UpstreamTls::default() },
            UpstreamTls { client_certificate: Some(files), ..UpstreamTls::default() },
        ] {
            assert!(!kept.fits(&Key { tls: &tls, ..key }), "{tls:?}");
        }
        for outbound in [
            Outbound { source_addresses: vec!["10.0.0.1".parse().unwrap()], ..Outbound::default() },
            Outbound { proxy_protocol: SendProxy::V2, ..Outbound::default() },
        ] {
            assert!(!kept.fits(&Key { outbound: &outbound, ..key }), "{outbound:?}");
        }
    }

    #[test]
    fn settings_of_tls_do_not_count_without_tls() {
        let address = Url::parse("http://a.test:1/").unwrap();
        let (tls, other) =
            (UpstreamTls::default(), UpstreamTls { verify: Verify::DangerousNone, ..UpstreamTls::default() });
        let outbound = Outbound::default();
        let key = Key {
            slot: Slot(1),
            address: &address,
            literal: None,
            tls: &tls,
            http: UpstreamHttp::Http1,
            outbound: &outbound,
        };
        assert!(key.owned().fits(&Key { tls: &other, ..key }));
        assert!(key.target().tls.is_none());
    }
}

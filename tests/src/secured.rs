//! Clients that speak TLS to a listener, and the certificates that it shows them.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};
use testkit::certificates::{Authority, Leaf};

/// What a client offers in its handshake, under the name `a.test`.
pub struct Offer<'a> {
    /// Whom it trusts.
    pub authority: &'a Authority,
    /// Versions of TLS.
    pub versions: &'static [&'static SupportedProtocolVersion],
    /// ALPN.
    pub protocols: Vec<&'static str>,
    /// What it shows when it is asked for a certificate.
    pub certificate: Option<&'a Leaf>,
}

/// What one request over a connection of its own brought.
pub struct Shown {
    /// The leaf of the listener's chain.
    pub leaf: CertificateDer<'static>,
    /// The answer's text; empty when ALPN chose HTTP/2, over which nothing is asked here.
    pub text: String,
}

impl<'a> Offer<'a> {
    /// Both versions, HTTP/1.1, no certificate.
    pub fn new(authority: &'a Authority) -> Self {
        Self { authority, versions: rustls::ALL_VERSIONS, protocols: vec!["http/1.1"], certificate: None }
    }

    /// It in the words of rustls.
    pub fn config(&self) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(self.authority.pem().as_bytes()) {
            roots.add(root.expect("valid PEM")).expect("a valid root");
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(self.versions);
        let builder = builder.expect("the provider has them").with_root_certificates(roots);
        let mut config = match self.certificate {
            None => builder.with_no_client_auth(),
            Some(leaf) => {
                let key = PrivateKeyDer::from_pem_slice(leaf.key.as_bytes()).expect("valid PEM");
                builder.with_client_auth_cert(vec![der(leaf)], key).expect("its own key")
            }
        };
        config.alpn_protocols = self.protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Arc::new(config)
    }

    /// Asks for `path`.
    ///
    /// # Errors
    /// The handshake was refused, the connection broke off, or it did not end by close_notify within 10 s.
    pub fn ask(&self, to: SocketAddr, path: &str) -> io::Result<Shown> {
        let tcp = TcpStream::connect(to)?;
        tcp.set_read_timeout(Some(Duration::from_secs(10)))?;
        let name = ServerName::try_from("a.test").expect("a name");
        let connection = ClientConnection::new(self.config(), name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, tcp);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        let mut text = String::new();
        if stream.conn.alpn_protocol() == Some(b"h2") {
            // In TLS 1.3 a certificate of the client is judged after the client's handshake is over: what comes next
            // is SETTINGS or an alert.
            stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")?;
            stream.read_exact(&mut [0; 9])?;
        } else {
            write!(stream, "GET {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")?;
            stream.read_to_string(&mut text)?;
        }
        let leaf = stream.conn.peer_certificates().and_then(<[_]>::first).cloned();
        Ok(Shown { leaf: leaf.ok_or(io::ErrorKind::InvalidData)?.into_owned(), text })
    }
}

/// A certificate as it is shown.
pub fn der(leaf: &Leaf) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(leaf.certificate.as_bytes()).expect("valid PEM")
}

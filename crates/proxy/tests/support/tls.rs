//! Listeners over TLS, and clients that offer what a test wants them to.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use model::tls::{Alpn, CertificateFiles, ClientAuth, ListenerTls, TlsVersion};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned, SupportedProtocolVersion};
use testkit::certificates::{Authority, Leaf};
use testkit::destination::Destination;

use super::{Proxy, Setup, setup};

/// A certificate in files of this name.
pub fn files(folder: &Path, leaf: &Leaf, name: &str) -> CertificateFiles {
    let (certificate, key) = leaf.write(folder, name);
    CertificateFiles { certificate, key }
}

/// Of these certificates, and nothing else that is not there unless asked for.
pub fn tls(certificates: Vec<CertificateFiles>) -> ListenerTls {
    ListenerTls {
        certificates,
        min_version: TlsVersion::Tls12,
        client_auth: ClientAuth::Off,
        ticket_keys: None,
        protocols: vec![Alpn::Http11],
    }
}

/// Before this destination.
pub fn secured(destination: &Destination, tls: ListenerTls) -> Setup {
    setup(&[destination.addr()]).listening(|listener| listener.tls = Some(tls))
}

/// What a client offers.
pub struct Offer<'a> {
    pub authority: &'a Authority,
    pub versions: &'static [&'static SupportedProtocolVersion],
    pub protocols: Vec<&'static str>,
    pub certificate: Option<Leaf>,
}

impl<'a> Offer<'a> {
    /// HTTP/1.1 over any version, without a certificate.
    pub fn new(authority: &'a Authority) -> Self {
        Self { authority, versions: rustls::ALL_VERSIONS, protocols: vec!["http/1.1"], certificate: None }
    }

    /// As rustls wants it.
    pub fn config(&self) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(self.authority.pem().as_bytes()) {
            roots.add(root.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(self.versions).unwrap();
        let builder = builder.with_root_certificates(roots);
        let mut config = match &self.certificate {
            None => builder.with_no_client_auth(),
            Some(leaf) => {
                let chain: Result<_, _> = CertificateDer::pem_slice_iter(leaf.certificate.as_bytes()).collect();
                let key = PrivateKeyDer::from_pem_slice(leaf.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain.unwrap(), key).unwrap()
            }
        };
        config.alpn_protocols = self.protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}

/// That version alone.
pub static TLS12: &[&SupportedProtocolVersion] = &[&rustls::version::TLS12];
/// That version alone.
pub static TLS13: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// One request over a connection of its own; the leaf that was shown, how hands were shaken, and the status.
pub fn ask(
    addr: SocketAddr,
    name: &str,
    config: &Arc<ClientConfig>,
) -> std::io::Result<(CertificateDer<'static>, HandshakeKind, String)> {
    let tcp = TcpStream::connect(addr)?;
    tcp.set_read_timeout(Some(Duration::from_secs(10)))?;
    let connection = ClientConnection::new(Arc::clone(config), ServerName::try_from(name.to_owned()).unwrap()).unwrap();
    let mut stream = StreamOwned::new(connection, tcp);
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    // Ends in order only when the proxy sends close_notify.
    stream.read_to_string(&mut text)?;
    let leaf = stream.conn.peer_certificates().unwrap()[0].clone().into_owned();
    Ok((leaf, stream.conn.handshake_kind().unwrap(), text.lines().next().unwrap_or_default().to_owned()))
}

/// The leaf that is shown to who asks for this name.
pub fn shown(proxy: &Proxy, name: &str, config: &Arc<ClientConfig>) -> CertificateDer<'static> {
    ask(proxy.addr, name, config).unwrap().0
}

/// A leaf as it is sent.
pub fn der(leaf: &Leaf) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(leaf.certificate.as_bytes()).unwrap()
}

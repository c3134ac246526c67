//! A strict TLS origin that speaks what ALPN chooses: it answers 421 when Host and SNI differ (RFC 9110 15.5.20), else
//! with what it knows of the connection.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use model::tls::CertificateFiles;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use testkit::certificates::Authority;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A listening origin; it ends with the test's process.
pub struct Origin {
    pub address: SocketAddr,
    /// Who vouches for it.
    pub ca: PathBuf,
    /// What it accepts of clients.
    pub client: CertificateFiles,
    _folder: tempfile::TempDir,
}

impl Origin {
    /// Named a.test and b.test; chooses of these protocols.
    pub fn start(protocols: &[&str]) -> Self {
        let authority = Authority::new();
        let folder = tempfile::tempdir().unwrap();
        let ca = authority.write(folder.path());
        let (certificate, key) = authority.issue(&["client.test"]).write(folder.path(), "client");
        let acceptor = TlsAcceptor::from(Arc::new(config(&authority, protocols)));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(serve(listener, acceptor));
        });
        Self { address, ca, client: CertificateFiles { certificate, key }, _folder: folder }
    }
}

fn config(authority: &Authority, protocols: &[&str]) -> ServerConfig {
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(authority.pem().as_bytes()) {
        roots.add(root.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let verifier = verifier.allow_unauthenticated().build().unwrap();
    let leaf = authority.issue(&["a.test", "b.test"]);
    let chain: Result<_, _> = CertificateDer::pem_slice_iter(leaf.certificate.as_bytes()).collect();
    let key = PrivateKeyDer::from_pem_slice(leaf.key.as_bytes()).unwrap();
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_client_cert_verifier(verifier).with_single_cert(chain.unwrap(), key).unwrap();
    config.alpn_protocols = protocols.iter().map(|one| one.as_bytes().to_vec()).collect();
    config
}

async fn serve(listener: std::net::TcpListener, acceptor: TlsAcceptor) {
    let listener = TcpListener::from_std(listener).unwrap();
    let mut number = 0;
    while let Ok((stream, _)) = listener.accept().await {
        number += 1;
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let tls = stream.get_ref().1;
            let protocol = String::from_utf8_lossy(tls.alpn_protocol().unwrap_or(b"-")).into_owned();
            let name = tls.server_name().unwrap_or("-").to_owned();
            let shown = if tls.peer_certificates().is_some() { "known" } else { "unknown" };
            let known = Known { text: format!("{number} {name} {shown} {protocol}"), name };
            if protocol == "h2" { http2(stream, known).await } else { http1(stream, known).await }
        });
    }
}

struct Known {
    name: String,
    text: String,
}

impl Known {
    fn status(&self, host: &str) -> u16 {
        if host.split(':').next() == Some(&self.name) { 200 } else { 421 }
    }
}

async fn http1(mut stream: TlsStream<TcpStream>, known: Known) {
    let mut head = Vec::new();
    while let Ok(byte) = stream.read_u8().await {
        head.push(byte);
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        let text = String::from_utf8(std::mem::take(&mut head)).unwrap();
        let host = text.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap_or_default();
        let (status, length) = (known.status(host), known.text.len());
        let answer = format!("HTTP/1.1 {status} x\r\nContent-Length: {length}\r\n\r\n{}", known.text);
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn http2(stream: TlsStream<TcpStream>, known: Known) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let status = known.status(request.uri().host().unwrap_or_default());
        let response = http::Response::builder().status(status).body(()).unwrap();
        if let Ok(mut send) = respond.send_response(response, false) {
            let _ = send.send_data(Bytes::from(known.text.clone()), true);
        }
    }
}

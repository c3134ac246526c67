//! What a route may tell of the client's connection: its scheme, over TLS in either version of HTTP.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use model::route::RouteAction;
use model::tls::{Alpn, CertificateFiles, ClientAuth, ListenerTls, TlsVersion};
use rustls::pki_types::ServerName;
use support::http2::{H2, run};
use support::setup;
use testkit::certificates::Authority;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

#[test]
fn a_redirect_keeps_the_scheme_of_a_listener_with_tls() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let (certificate, key) = authority.issue(&["a.test"]).write(folder.path(), "site");
    let mut setup = setup(&[]).listening(|listener| {
        listener.tls = Some(ListenerTls {
            certificates: vec![CertificateFiles { certificate, key }],
            min_version: TlsVersion::Tls12,
            client_auth: ClientAuth::Off,
            ticket_keys: None,
            protocols: vec![Alpn::Http2, Alpn::Http11],
        });
    });
    let to = "{scheme}://www.{host}{path}".to_owned();
    setup.routes[0].action = RouteAction::Redirect { to, status: 308 };
    let proxy = setup.start();
    for protocol in ["h2", "http/1.1"] {
        let mut config = (*authority.client_config()).clone();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let location = run(async {
            let tcp = TcpStream::connect(proxy.addr).await.unwrap();
            let name = ServerName::try_from("a.test").unwrap();
            let mut stream = TlsConnector::from(std::sync::Arc::new(config)).connect(name, tcp).await.unwrap();
            if protocol == "h2" {
                let (send, connection) = h2::client::handshake(stream).await.unwrap();
                let client = H2 { send, driver: tokio::spawn(connection) };
                let request = http::Request::get("https://a.test/x").body(()).unwrap();
                return client.call(request).await.value("location").unwrap().to_owned();
            }
            stream.write_all(b"GET /x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").await.unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            text.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap().to_owned()
        });
        assert_eq!(location, "https://www.a.test/x", "{protocol}");
    }
}

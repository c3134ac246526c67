//! The certificate that every peer shows: made once, ECDSA P-256, by openssl.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Makes `site.pem`, `site.key` and, for HAProxy, `both.pem` in `folder`, unless they are there.
pub(crate) fn make(folder: &Path) -> Result<()> {
    let (certificate, key, both) = (folder.join("site.pem"), folder.join("site.key"), folder.join("both.pem"));
    if both.exists() {
        return Ok(());
    }
    let status = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3650"])
        .args(["-subj", "/CN=www.example.test", "-addext", "subjectAltName=DNS:www.example.test"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("openssl makes the certificate")?;
    ensure!(status.success(), "openssl made no certificate: {status}");
    std::fs::write(&both, [std::fs::read(&certificate)?, std::fs::read(&key)?].concat())?;
    Ok(())
}

/// A client that trusts it and speaks this protocol alone. Sessions are never resumed: each connection pays for its
/// handshake.
pub(crate) fn client(folder: &Path, protocol: &str) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.join("site.pem")).map_err(|error| anyhow::anyhow!("{error}"))?)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

//! TLS towards destinations: rustls with aws-lc-rs, HTTP/1.1 by ALPN, TLS 1.2 and 1.3.
//!
//! Certificates are verified by the platform's roots, by the authorities of a `ca` file in their place, or not at all
//! (`dangerous`). Settings that are equal share one client configuration, and with it the tickets of past sessions.

mod dangerous;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use model::cluster::{UpstreamTls, Verify};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier as PlatformVerifier;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The TLS settings in use. Clones share them, over threads.
#[derive(Clone)]
pub struct Tls {
    provider: Arc<CryptoProvider>,
    known: Arc<Mutex<HashMap<Trust, Known>>>,
}

/// What tells one client configuration from another; `server_name` is a matter of each connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Trust {
    Platform,
    Authorities(PathBuf),
    Nobody,
}

struct Known {
    /// The `ca` file as it was read; empty for the others.
    authorities: Vec<u8>,
    config: Arc<ClientConfig>,
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The `ca` file cannot be read.
    #[error("{}: cannot read the certificate authorities: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The `ca` file is no PEM, or one of its certificates is none.
    #[error("{}: certificate {number}: {reason}", path.display())]
    Certificate {
        /// Which file.
        path: PathBuf,
        /// Which of its certificates, from 1.
        number: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The `ca` file has no certificate in it.
    #[error("{}: there is no certificate (BEGIN CERTIFICATE) in it", path.display())]
    Empty {
        /// Which file.
        path: PathBuf,
    },
    /// The platform has no roots.
    #[error("the platform's certificate authorities cannot be used ({0}); a `ca` file takes their place")]
    Platform(rustls::Error),
    /// The name cannot stand in a certificate.
    #[error("{0:?} is no name that a certificate can hold for")]
    Name(String),
    /// The cryptography does not fit.
    #[error("TLS cannot be set up: {0}")]
    Setup(rustls::Error),
}

impl Default for Tls {
    fn default() -> Self {
        Self::new()
    }
}

impl Tls {
    /// No settings yet.
    pub fn new() -> Self {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        Self { provider, known: Arc::default() }
    }

    /// Reads what the settings name and makes them ready, again when a `ca` file has changed. Called when a
    /// configuration is taken over, so that a bad file refuses it; connections made meanwhile are not disturbed.
    pub fn prepare(&self, settings: &UpstreamTls) -> Result<(), TlsError> {
        if let Some(name) = &settings.server_name {
            server_name(name)?;
        }
        let trust = Trust::of(settings);
        let authorities = trust.read()?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get(&trust).is_none_or(|known| known.authorities != authorities) {
            let config = Arc::new(self.config(&trust, &authorities)?);
            known.insert(trust, Known { authorities, config });
        }
        Ok(())
    }

    /// The client side for one connection to `host`.
    pub fn client(&self, settings: &UpstreamTls, host: &str) -> Result<Client, TlsError> {
        let name = server_name(settings.server_name.as_deref().unwrap_or(host))?;
        let trust = Trust::of(settings);
        if let Some(config) = self.known_config(&trust) {
            return Ok(Client { config, name });
        }
        self.prepare(settings)?;
        let config = self.known_config(&trust).ok_or_else(|| TlsError::Name(host.to_owned()))?;
        Ok(Client { config, name })
    }

    fn known_config(&self, trust: &Trust) -> Option<Arc<ClientConfig>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(trust).map(|known| Arc::clone(&known.config))
    }

    fn config(&self, trust: &Trust, authorities: &[u8]) -> Result<ClientConfig, TlsError> {
        let provider = Arc::clone(&self.provider);
        let verifier: Arc<dyn ServerCertVerifier> = match trust {
            Trust::Platform => Arc::new(PlatformVerifier::new(provider).map_err(TlsError::Platform)?),
            Trust::Nobody => Arc::new(dangerous::NoVerifier::new(provider)),
            Trust::Authorities(path) => {
                let roots = Arc::new(roots(path, authorities)?);
                WebPkiServerVerifier::builder_with_provider(roots, provider)
                    .build()
                    .map_err(|error| TlsError::Setup(rustls::Error::General(error.to_string())))?
            }
        };
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Setup)?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// The client side of one connection.
pub struct Client {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Client {
    /// Shakes hands over `stream`. Without a time limit of its own.
    pub async fn handshake<S: AsyncRead + AsyncWrite + Unpin>(self, stream: S) -> io::Result<TlsStream<S>> {
        TlsConnector::from(self.config).connect(self.name, stream).await
    }
}

impl Trust {
    fn of(settings: &UpstreamTls) -> Self {
        match (settings.verify, &settings.ca) {
            (Verify::DangerousNone, _) => Self::Nobody,
            (Verify::Full, Some(path)) => Self::Authorities(path.clone()),
            (Verify::Full, None) => Self::Platform,
        }
    }

    fn read(&self) -> Result<Vec<u8>, TlsError> {
        match self {
            Self::Platform | Self::Nobody => Ok(Vec::new()),
            Self::Authorities(path) => {
                std::fs::read(path).map_err(|source| TlsError::Read { path: path.clone(), source })
            }
        }
    }
}

fn roots(path: &Path, pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let bad = |number, reason| TlsError::Certificate { path: path.to_owned(), number, reason };
    let mut roots = RootCertStore::empty();
    for (index, certificate) in CertificateDer::pem_slice_iter(pem).enumerate() {
        let certificate = certificate.map_err(|error| bad(index + 1, error.to_string()))?;
        roots.add(certificate).map_err(|error| bad(index + 1, error.to_string()))?;
    }
    if roots.is_empty() { Err(TlsError::Empty { path: path.to_owned() }) } else { Ok(roots) }
}

fn server_name(name: &str) -> Result<ServerName<'static>, TlsError> {
    // A closing dot is part of a name, never of a certificate.
    let bare = name.strip_suffix('.').unwrap_or(name);
    ServerName::try_from(bare.to_owned()).map_err(|_| TlsError::Name(name.to_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn ca(path: &Path) -> UpstreamTls {
        UpstreamTls { ca: Some(path.to_owned()), ..UpstreamTls::default() }
    }

    #[test]
    fn bad_authorities_are_named_with_their_file_and_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let tls = Tls::new();
        let said = |tls: &Tls| tls.prepare(&ca(&path)).unwrap_err().to_string();
        assert!(said(&tls).contains("ca.pem: cannot read the certificate authorities: "), "{}", said(&tls));
        std::fs::write(&path, "nothing\n").unwrap();
        assert!(said(&tls).ends_with("ca.pem: there is no certificate (BEGIN CERTIFICATE) in it"));
        std::fs::write(&path, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
        assert!(said(&tls).contains("ca.pem: certificate 1: "), "{}", said(&tls));
    }

    #[test]
    fn equal_settings_share_a_configuration_until_the_file_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let write = || testkit::certificates::Authority::new().write(folder.path());
        write();
        let tls = Tls::new();
        let first = tls.client(&ca(&path), "a").unwrap().config;
        let other = UpstreamTls { server_name: Some("b".to_owned()), ..ca(&path) };
        tls.prepare(&other).unwrap();
        assert!(Arc::ptr_eq(&first, &tls.client(&other, "a").unwrap().config));
        write();
        tls.prepare(&other).unwrap();
        assert!(!Arc::ptr_eq(&first, &tls.client(&ca(&path), "a").unwrap().config));
    }

    #[test]
    fn a_name_that_no_certificate_can_hold_for_is_refused() {
        let settings = UpstreamTls { verify: Verify::DangerousNone, ..UpstreamTls::default() };
        assert!(matches!(Tls::new().client(&settings, "a b"), Err(TlsError::Name(_))));
        assert!(Tls::new().client(&settings, "::1").is_ok());
        assert!(Tls::new().client(&settings, "a.test.").is_ok());
    }
}

//! TLS towards destinations: rustls with aws-lc-rs, TLS 1.2 and 1.3, the version of HTTP by ALPN (RFC 7301).
//!
//! Certificates are verified by the platform's roots, by the authorities of a `ca` file in their place, or not at all
//! (`dangerous`). Settings that are equal share one client configuration, and with it the tickets of past sessions: so a
//! session that was begun without verification, under another certificate of ours or for another protocol is never
//! resumed by a cluster that asks for more.

mod dangerous;
mod files;

pub use files::read_whole;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use model::cluster::{UpstreamTls, Verify};
use model::tls::{Alpn, CertificateFiles};
use model::upstream::UpstreamHttp;
use rustls::ClientConfig;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::Verifier as PlatformVerifier;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The TLS settings in use. Clones share them, over threads.
#[derive(Clone)]
pub struct Tls {
    provider: Arc<CryptoProvider>,
    known: Arc<Mutex<HashMap<Profile, Known>>>,
}

/// What tells one client configuration from another; `server_name` is a matter of each connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Profile {
    trust: Trust,
    client_certificate: Option<CertificateFiles>,
    http: UpstreamHttp,
}

/// Who vouches for a destination.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Trust {
    Platform,
    Authorities(PathBuf),
    Nobody,
}

struct Known {
    /// The files as they were read.
    files: Files,
    config: Arc<ClientConfig>,
}

/// Contents of the files that a profile names; empty where it names none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Files {
    authorities: Vec<u8>,
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{}: cannot read {what}: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The file is no PEM, or one of its certificates is none.
    #[error("{}: certificate {number}: {reason}", path.display())]
    Certificate {
        /// Which file.
        path: PathBuf,
        /// Which of its certificates, from 1.
        number: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The file has no certificate in it.
    #[error("{}: there is no certificate (BEGIN CERTIFICATE) in it", path.display())]
    Empty {
        /// Which file.
        path: PathBuf,
    },
    /// The file has no private key in it that can be used.
    #[error("{}: no private key that can be used: {reason}", path.display())]
    Key {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Certificate and key are not of one another.
    #[error("{}: the key does not belong to the certificate: {reason}", path.display())]
    Pair {
        /// The key's file.
        path: PathBuf,
        /// What was said about them.
        reason: String,
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

impl TlsError {
    /// The file that is no good, where it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Read { path, .. }
            | Self::Certificate { path, .. }
            | Self::Empty { path }
            | Self::Key { path, .. }
            | Self::Pair { path, .. } => Some(path),
            Self::Platform(_) | Self::Name(_) | Self::Setup(_) => None,
        }
    }
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

    /// Reads what the settings name and makes them ready, again when a file has changed. Called when a configuration is
    /// taken over, so that a bad file refuses it; connections made meanwhile are not disturbed.
    pub fn prepare(&self, settings: &UpstreamTls, http: UpstreamHttp) -> Result<(), TlsError> {
        if let Some(name) = &settings.server_name {
            server_name(name)?;
        }
        let profile = Profile::of(settings, http);
        let files = profile.read()?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get(&profile).is_none_or(|known| known.files != files) {
            let config = Arc::new(self.config(&profile, &files)?);
            known.insert(profile, Known { files, config });
        }
        Ok(())
    }

    /// The client side for one connection to `host`.
    pub fn client(&self, settings: &UpstreamTls, http: UpstreamHttp, host: &str) -> Result<Client, TlsError> {
        let name = server_name(settings.server_name.as_deref().unwrap_or(host))?;
        let profile = Profile::of(settings, http);
        if let Some(config) = self.known_config(&profile) {
            return Ok(Client { config, name });
        }
        self.prepare(settings, http)?;
        let config = self.known_config(&profile).ok_or_else(|| TlsError::Name(host.to_owned()))?;
        Ok(Client { config, name })
    }

    fn known_config(&self, profile: &Profile) -> Option<Arc<ClientConfig>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(profile).map(|known| Arc::clone(&known.config))
    }

    fn config(&self, profile: &Profile, files: &Files) -> Result<ClientConfig, TlsError> {
        let provider = Arc::clone(&self.provider);
        let verifier: Arc<dyn ServerCertVerifier> = match &profile.trust {
            Trust::Platform => Arc::new(PlatformVerifier::new(provider).map_err(TlsError::Platform)?),
            Trust::Nobody => Arc::new(dangerous::NoVerifier::new(provider)),
            Trust::Authorities(path) => {
                let roots = Arc::new(files::roots(path, &files.authorities)?);
                WebPkiServerVerifier::builder_with_provider(roots, provider)
                    .build()
                    .map_err(|error| TlsError::Setup(rustls::Error::General(error.to_string())))?
            }
        };
        let builder = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Setup)?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &profile.client_certificate {
            None => builder.with_no_client_auth(),
            Some(paths) => {
                let chain = files::chain(&paths.certificate, &files.certificate)?;
                let key = files::key(&paths.key, &files.key)?;
                let pair = builder.with_client_auth_cert(chain, key);
                pair.map_err(|error| TlsError::Pair { path: paths.key.clone(), reason: error.to_string() })?
            }
        };
        let offered: &[Alpn] = match profile.http {
            UpstreamHttp::Http1 => &[Alpn::Http11],
            UpstreamHttp::Http2 => &[Alpn::Http2],
            UpstreamHttp::Http2OrHttp1 => &[Alpn::Http2, Alpn::Http11],
        };
        config.alpn_protocols = offered.iter().map(|one| one.as_str().as_bytes().to_vec()).collect();
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

impl Profile {
    fn of(settings: &UpstreamTls, http: UpstreamHttp) -> Self {
        let trust = match (settings.verify, &settings.ca) {
            (Verify::DangerousNone, _) => Trust::Nobody,
            (Verify::Full, Some(path)) => Trust::Authorities(path.clone()),
            (Verify::Full, None) => Trust::Platform,
        };
        Self { trust, client_certificate: settings.client_certificate.clone(), http }
    }

    fn read(&self) -> Result<Files, TlsError> {
        let authorities = match &self.trust {
            Trust::Platform | Trust::Nobody => Vec::new(),
            Trust::Authorities(path) => files::read(path, "the certificate authorities")?,
        };
        let (certificate, key) = match &self.client_certificate {
            None => (Vec::new(), Vec::new()),
            Some(paths) => (
                files::read(&paths.certificate, "the client certificate")?,
                files::read(&paths.key, "its private key")?,
            ),
        };
        Ok(Files { authorities, certificate, key })
    }
}

fn server_name(name: &str) -> Result<ServerName<'static>, TlsError> {
    // A closing dot is part of a name, never of a certificate.
    let bare = name.strip_suffix('.').unwrap_or(name);
    ServerName::try_from(bare.to_owned()).map_err(|_| TlsError::Name(name.to_owned()))
}

#[cfg(test)]
mod tests;

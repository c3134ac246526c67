//! The PEM files that TLS settings name.

use std::io;
use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::TlsError;

/// Reads a file that should hold `what`.
pub(super) fn read(path: &Path, what: &'static str) -> Result<Vec<u8>, TlsError> {
    read_whole(path).map_err(|source| TlsError::Read { path: path.to_owned(), what, source })
}

/// Reads a regular file of at most 4 MiB whole.
pub fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    ::files::read_whole(path, MAX_BYTES)
}

/// Authorities.
pub(super) fn roots(path: &Path, pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for (index, certificate) in chain(path, pem)?.into_iter().enumerate() {
        roots.add(certificate).map_err(|error| bad(path, index, error.to_string()))?;
    }
    Ok(roots)
}

/// Certificates in their order; at least one.
pub(super) fn chain(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let mut chain = Vec::new();
    for (index, certificate) in CertificateDer::pem_slice_iter(pem).enumerate() {
        chain.push(certificate.map_err(|error| bad(path, index, error.to_string()))?);
    }
    if chain.is_empty() { Err(TlsError::Empty { path: path.to_owned() }) } else { Ok(chain) }
}

/// The first private key: PKCS #8, PKCS #1 or SEC 1.
pub(super) fn key(path: &Path, pem: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(pem)
        .map_err(|error| TlsError::Key { path: path.to_owned(), reason: error.to_string() })
}

fn bad(path: &Path, index: usize, reason: String) -> TlsError {
    TlsError::Certificate { path: path.to_owned(), number: index + 1, reason }
}

const MAX_BYTES: usize = 4 * 1024 * 1024;

//! One certificate of a listener: its chain, its key, the names it holds for.

use std::sync::Arc;
use std::time::Duration;

use model::tls::CertificateFiles;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, Error, InconsistentKeys, RootCertStore};

use super::fault::{Fault, FileKey};
use super::read::read;

/// A certificate that can be shown.
#[derive(Debug)]
pub(super) struct Certificate {
    pub(super) key: Arc<CertifiedKey>,
    /// DNS names of its subjectAltName, `*.` ones included.
    pub(super) names: Vec<String>,
}

/// Reads a certificate and its key; `at` is its place in the list. Gives a warning with it when its time is over.
#[expect(clippy::wildcard_enum_match_arm, reason = "the enum is another crate's and may grow")]
pub(super) fn load(
    files: &CertificateFiles,
    at: usize,
    provider: &CryptoProvider,
) -> Result<(Certificate, Option<Fault>), Fault> {
    let chain = chain(files, at)?;
    let key = private_key(files, at)?;
    let leaf = chain.first().cloned().ok_or_else(|| empty(files, at))?;
    let key = CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => Fault {
            key: FileKey::Key(at),
            message: format!("{}: not the key of {}", files.key.display(), files.certificate.display()),
            mend: "name the key that the certificate was issued for; the leaf stands first in its file",
        },
        Error::InvalidCertificate(_) => no_certificate(files, at, &error.to_string()),
        error => Fault {
            key: FileKey::Key(at),
            message: format!("{}: the key cannot be used: {error}", files.key.display()),
            mend: "RSA from 2048 bits, ECDSA on P-256, P-384 or P-521, and Ed25519 can be used",
        },
    })?;
    let parsed = webpki::EndEntityCert::try_from(&leaf);
    let parsed = parsed.map_err(|error| no_certificate(files, at, &error.to_string()))?;
    let names = parsed.valid_dns_names().map(str::to_ascii_lowercase).collect();
    Ok((Certificate { key: Arc::new(key), names }, out_of_time(&leaf, files, at, provider)))
}

fn chain(files: &CertificateFiles, at: usize) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let bytes = read(&files.certificate).map_err(|error| Fault {
        key: FileKey::Certificate(at),
        message: format!("{}: cannot read the certificate: {error}", files.certificate.display()),
        mend: "name a PEM file that this user can read",
    })?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let chain = chain.map_err(|error| no_certificate(files, at, &error.to_string()))?;
    if chain.is_empty() { Err(empty(files, at)) } else { Ok(chain) }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the enum is another crate's and may grow")]
fn private_key(files: &CertificateFiles, at: usize) -> Result<PrivateKeyDer<'static>, Fault> {
    let fault = |message: String, mend| Fault { key: FileKey::Key(at), message, mend };
    let name = files.key.display();
    let bytes = read(&files.key).map_err(|error| {
        fault(format!("{name}: cannot read the key: {error}"), "name a PEM file that this user can read")
    })?;
    let holds = |words: &[u8]| bytes.windows(words.len()).any(|window| window == words);
    if holds(b"BEGIN ENCRYPTED PRIVATE KEY") || holds(b"Proc-Type: 4,ENCRYPTED") {
        let mend = "there is no place for a passphrase: write it plain (openssl pkey -in KEY -out PLAIN, mode 0600)";
        return Err(fault(format!("{name}: the key is encrypted"), mend));
    }
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
        pem::Error::NoItemsFound => {
            fault(format!("{name}: there is no private key in it"), "expected PEM with BEGIN PRIVATE KEY")
        }
        error => fault(format!("{name}: no private key: {error}"), "expected PEM with BEGIN PRIVATE KEY"),
    })
}

fn empty(files: &CertificateFiles, at: usize) -> Fault {
    Fault {
        key: FileKey::Certificate(at),
        message: format!("{}: there is no certificate in it", files.certificate.display()),
        mend: "expected PEM with BEGIN CERTIFICATE, the leaf first",
    }
}

fn no_certificate(files: &CertificateFiles, at: usize, why: &str) -> Fault {
    Fault {
        key: FileKey::Certificate(at),
        message: format!("{}: no certificate: {why}", files.certificate.display()),
        mend: "expected PEM with BEGIN CERTIFICATE, the leaf first",
    }
}

/// A word when clients will refuse it for its dates. It is shown all the same: that is for the client to judge.
fn out_of_time(
    leaf: &CertificateDer<'_>,
    files: &CertificateFiles,
    at: usize,
    provider: &CryptoProvider,
) -> Option<Fault> {
    let parsed = ParsedCertificate::try_from(leaf).ok()?;
    // Dates are looked at before anything else, so no authority is needed to ask for them.
    let judge = |now| {
        let none = RootCertStore::empty();
        let algorithms = provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &none, &[], now, algorithms).err()
    };
    let now = UnixTime::now();
    let soon = UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs()) + RENEW_BEFORE);
    let is_over = |error: &Error| {
        use CertificateError::{Expired, ExpiredContext};
        matches!(error, Error::InvalidCertificate(Expired | ExpiredContext { .. }))
    };
    let is_early = |error: &Error| {
        use CertificateError::{NotValidYet, NotValidYetContext};
        matches!(error, Error::InvalidCertificate(NotValidYet | NotValidYetContext { .. }))
    };
    let today = judge(now);
    let what = if today.as_ref().is_some_and(is_over) {
        "the certificate has expired"
    } else if today.as_ref().is_some_and(is_early) {
        "the certificate is not valid yet"
    } else if judge(soon).as_ref().is_some_and(is_over) {
        "the certificate expires within 3 days"
    } else {
        return None;
    };
    Some(Fault {
        key: FileKey::Certificate(at),
        message: format!("{}: {what}", files.certificate.display()),
        mend: "renew it: files are read again when they change",
    })
}

/// Whoever renews by themselves has done so by then.
const RENEW_BEFORE: Duration = Duration::from_secs(3 * 86_400);

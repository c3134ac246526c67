//! From a listener's settings to what rustls serves with.

use std::path::PathBuf;
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use model::tls::{Alpn, ClientAuth, ListenerTls, TlsVersion};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ProducesTickets, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};

use super::certificate;
use super::fault::{Fault, FileKey};
use super::names::Names;
use super::read::{Stamps, is_open_to_all, read};
use super::shared_keys::SharedKeys;
use super::tickets::{Judged, Tickets};

/// What the settings come to with the files as they were read.
pub(super) struct Contents {
    pub(super) config: Arc<ServerConfig>,
    /// The files before they were read: a change while they were read is seen later.
    pub(super) stamps: Stamps,
    judged: Judged,
    /// Sessions of this process survive a renewed certificate.
    tickets: Arc<dyn ProducesTickets>,
}

/// Reads what the settings name. `former` lends the keys of tickets that stand in no file.
///
/// # Errors
/// All that is wrong with them.
pub(super) fn load(
    settings: &ListenerTls,
    provider: &Arc<CryptoProvider>,
    former: Option<&Contents>,
) -> Result<(Contents, Vec<Fault>), Vec<Fault>> {
    let stamps = stamps(settings);
    let (mut faults, mut warnings, mut certificates) = (Vec::new(), Vec::new(), Vec::new());
    for (at, files) in settings.certificates.iter().enumerate() {
        match certificate::load(files, at, provider) {
            Ok((certificate, warning)) => {
                certificates.push(certificate);
                warnings.extend(warning);
                if is_open_to_all(&files.key) {
                    warnings.push(open_to_all(FileKey::Key(at), &files.key));
                }
            }
            Err(fault) => faults.push(fault),
        }
    }
    let clients = clients(&settings.client_auth, provider).map_err(|fault| faults.push(fault)).ok();
    let judged = clients.as_ref().map(|(_, judged)| *judged).unwrap_or_default();
    let tickets = tickets(settings, judged, former).map_err(|fault| faults.push(fault)).ok();
    if let Some(path) = settings.ticket_keys.as_ref().filter(|path| is_open_to_all(path)) {
        warnings.push(open_to_all(FileKey::TicketKeys, path));
    }
    let (Some((verifier, _)), Some(tickets), Some(names), true) =
        (clients, tickets, Names::new(certificates), faults.is_empty())
    else {
        return Err(faults);
    };
    let versions: &[_] = match settings.min_version {
        TlsVersion::Tls12 => &[&rustls::version::TLS13, &rustls::version::TLS12],
        TlsVersion::Tls13 => &[&rustls::version::TLS13],
    };
    let builder = ServerConfig::builder_with_provider(Arc::clone(provider)).with_protocol_versions(versions);
    let builder = builder.map_err(|error| vec![unusable(&error.to_string())])?;
    let mut config = match verifier {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    }
    .with_cert_resolver(Arc::new(names));
    config.alpn_protocols = settings.protocols.iter().map(|protocol| id(*protocol)).collect();
    // Early data stays off: it can be played again (RFC 8446 8).
    config.ticketer = Arc::clone(&tickets);
    Ok((Contents { config: Arc::new(config), stamps, judged, tickets }, warnings))
}

/// The state of every file that the settings name.
pub(super) fn stamps(settings: &ListenerTls) -> Stamps {
    let mut paths: Vec<PathBuf> = Vec::new();
    for files in &settings.certificates {
        paths.extend([files.certificate.clone(), files.key.clone()]);
    }
    match &settings.client_auth {
        ClientAuth::Off => {}
        ClientAuth::Optional(path) | ClientAuth::Required(path) => paths.push(path.clone()),
    }
    paths.extend(settings.ticket_keys.clone());
    Stamps::of(paths)
}

/// Who judges clients' certificates, and a digest of how.
fn clients(
    auth: &ClientAuth,
    provider: &Arc<CryptoProvider>,
) -> Result<(Option<Arc<dyn ClientCertVerifier>>, Judged), Fault> {
    let (path, word): (_, &[u8]) = match auth {
        ClientAuth::Off => return Ok((None, digest(&[b"off"]))),
        ClientAuth::Optional(path) => (path, b"optional"),
        ClientAuth::Required(path) => (path, b"required"),
    };
    let fault = |what: String| Fault {
        key: FileKey::ClientAuthorities,
        message: format!("{}: {what}", path.display()),
        mend: "expected a PEM file with the certificates of the authorities that issue those of clients",
    };
    let pem = read(path).map_err(|error| fault(format!("cannot read the authorities: {error}")))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| fault(format!("no certificate: {error}")))?;
        roots.add(certificate).map_err(|error| fault(format!("no certificate of an authority: {error}")))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let builder = match auth {
        ClientAuth::Off | ClientAuth::Required(_) => builder,
        ClientAuth::Optional(_) => builder.allow_unauthenticated(),
    };
    let verifier = builder.build().map_err(|error| fault(error.to_string()))?;
    Ok((Some(verifier), digest(&[word, &pem])))
}

fn tickets(
    settings: &ListenerTls,
    judged: Judged,
    former: Option<&Contents>,
) -> Result<Arc<dyn ProducesTickets>, Fault> {
    let Some(path) = &settings.ticket_keys else {
        return match former.filter(|former| former.judged == judged) {
            Some(former) => Ok(Arc::clone(&former.tickets)),
            None => rustls::crypto::aws_lc_rs::Ticketer::new().map_err(|error| unusable(&error.to_string())),
        };
    };
    let keys = SharedKeys::read(path).map_err(|error| Fault {
        key: FileKey::TicketKeys,
        message: format!("{}: {error}", path.display()),
        mend: "expected one key a line, 64 hexadecimal digits: openssl rand -hex 32 > FILE, then chmod 0600",
    })?;
    match Tickets::shared(keys, judged) {
        Some(tickets) => Ok(tickets),
        None => Err(unusable("keys cannot be derived")),
    }
}

fn digest(parts: &[&[u8]]) -> Judged {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let mut out = Judged::default();
    // SHA-256 gives as much as this takes.
    for (byte, from) in out.iter_mut().zip(context.finish().as_ref()) {
        *byte = *from;
    }
    out
}

fn id(protocol: Alpn) -> Vec<u8> {
    protocol.as_str().as_bytes().to_vec()
}

fn open_to_all(key: FileKey, path: &std::path::Path) -> Fault {
    Fault {
        key,
        message: format!("{}: everybody on this host can read the secret", path.display()),
        mend: "take the right from the others: chmod o-r",
    }
}

fn unusable(why: &str) -> Fault {
    Fault {
        key: FileKey::Certificate(0),
        message: format!("TLS cannot be set up: {why}"),
        mend: "this is a fault of the cryptography, not of the file",
    }
}

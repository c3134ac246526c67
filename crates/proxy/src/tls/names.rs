//! Which certificate a client is shown: the one for the name it asks for (SNI, RFC 6066 3).
//!
//! An exact name wins over a wildcard; a wildcard stands for one label (RFC 9525 6.3). Of several certificates for a
//! name the first holds. A client that names none, or none of these, is shown the first certificate: it decides itself
//! whether it can do with that.

use std::collections::HashMap;
use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::certificate::Certificate;

/// The certificates of a listener by name.
#[derive(Debug)]
pub(super) struct Names {
    first: Arc<CertifiedKey>,
    exact: HashMap<String, Arc<CertifiedKey>>,
    /// By what follows `*.`.
    wildcard: HashMap<String, Arc<CertifiedKey>>,
}

impl Names {
    /// `None` without any certificate.
    pub(super) fn new(certificates: Vec<Certificate>) -> Option<Self> {
        let first = Arc::clone(&certificates.first()?.key);
        let mut names = Self { first, exact: HashMap::new(), wildcard: HashMap::new() };
        for certificate in certificates {
            for name in certificate.names {
                let key = Arc::clone(&certificate.key);
                match name.strip_prefix("*.") {
                    Some(parent) => names.wildcard.entry(parent.to_owned()).or_insert(key),
                    None => names.exact.entry(name).or_insert(key),
                };
            }
        }
        Some(names)
    }

    /// The certificate for a name.
    fn find(&self, name: &str) -> &Arc<CertifiedKey> {
        let name = name.to_ascii_lowercase();
        let by_wildcard = || self.wildcard.get(name.split_once('.')?.1);
        self.exact.get(&name).or_else(by_wildcard).unwrap_or(&self.first)
    }
}

impl ResolvesServerCert for Names {
    fn resolve(&self, client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(client.server_name().map_or(&self.first, |name| self.find(name))))
    }
}

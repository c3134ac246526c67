//! Certificates made on the spot: an authority of the test's own and what it issues.
//!
//! ```no_run
//! let authority = testkit::certificates::Authority::new();
//! let leaf = authority.issue(&["app.test", "127.0.0.1"]);
//! let folder = tempfile::tempdir().unwrap();
//! let (certificate, key) = leaf.write(folder.path(), "app");
//! let roots = authority.write(folder.path());
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// A certificate authority that nobody else trusts.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// A fresh one; no two are alike.
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names are valid names");
        params.distinguished_name = name("Lazaret test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a self-signed certificate").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Issues a certificate for host names and IP addresses.
    pub fn issue(&self, names: &[&str]) -> Leaf {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("host names or addresses");
        params.distinguished_name = name("Lazaret test leaf");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a signed certificate");
        Leaf { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    /// Its own certificate.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Writes its own certificate to `ca.pem` in `folder`.
    pub fn write(&self, folder: &Path) -> PathBuf {
        write(folder.join("ca.pem"), &self.pem)
    }

    /// A client configuration that trusts this authority alone.
    pub fn client_config(&self) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(self.pem.as_bytes()) {
            roots.add(certificate.expect("valid PEM")).expect("a valid root");
        }
        let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        Arc::new(builder.expect("the provider has them").with_root_certificates(roots).with_no_client_auth())
    }
}

/// A certificate with its key.
pub struct Leaf {
    /// The certificate as PEM.
    pub certificate: String,
    /// Its private key as PEM (PKCS #8).
    pub key: String,
}

impl Leaf {
    /// Writes `<name>.pem` and `<name>.key` to `folder`; their paths in this order.
    pub fn write(&self, folder: &Path, name: &str) -> (PathBuf, PathBuf) {
        let certificate = write(folder.join(format!("{name}.pem")), &self.certificate);
        let key = write(folder.join(format!("{name}.key")), &self.key);
        (certificate, key)
    }

    /// A server configuration that shows this certificate and asks clients for none.
    pub fn server_config(&self) -> Arc<ServerConfig> {
        let chain = CertificateDer::pem_slice_iter(self.certificate.as_bytes());
        let chain = chain.collect::<Result<Vec<_>, _>>().expect("valid PEM");
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).expect("valid PEM");
        let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let builder = builder.expect("the provider has them").with_no_client_auth();
        Arc::new(builder.with_single_cert(chain, key).expect("key and certificate belong together"))
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn name(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    name
}

fn write(path: PathBuf, text: &str) -> PathBuf {
    std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    path
}

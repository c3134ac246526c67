//! TLS of listeners: rustls with aws-lc-rs, TLS 1.2 and 1.3.
//!
//! ```text
//!   start, reload:  ListenerTls ── prepare: read, parse, match ──> Prepared ── commit ──> Secured (one per settings)
//!   every 2 s:      files changed? ── refresh ── good ──> swapped  ─────────────────────────^   │
//!                                          └── bad ──> the former stays, and says so            v
//!   a connection:                                                             its handshake keeps what it began with
//! ```
//! [`ServerTls`] is shared by all workers and the control thread. What is in use is an immutable rustls configuration
//! behind one swap, so neither a renewed certificate nor a reload touches a socket or a handshake in flight.

mod fault;

mod read;

mod certificate;
mod names;

mod shared_keys;
mod tickets;

mod settings;

mod secured;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::listener::Listener;
use model::tls::ListenerTls;
use rustls::crypto::CryptoProvider;

pub use fault::ListenerFault;
pub(crate) use secured::Secured;

use settings::Contents;

/// TLS of all listeners. Clones share it, over threads.
#[derive(Clone)]
pub struct ServerTls {
    provider: Arc<CryptoProvider>,
    known: Arc<Mutex<Known>>,
}

/// Listeners with equal settings share certificates, tickets and the rest.
#[derive(Default)]
struct Known {
    current: HashMap<ListenerTls, Arc<Secured>>,
    /// Of the configuration before: a worker may look them up until it was told of the current one.
    former: HashMap<ListenerTls, Arc<Secured>>,
}

/// What the listeners of a configuration name, read and ready. Dropped, it leaves everything as it is.
pub struct Prepared {
    contents: Vec<(ListenerTls, Contents)>,
    /// What is worth a word: a certificate that has expired, a key file that others can read.
    pub warnings: Vec<ListenerFault>,
}

/// What looking at the files again came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Certificates or keys that changed are in use, in words.
    pub taken: Vec<String>,
    /// What is worth a word about them.
    pub warnings: Vec<String>,
    /// What changed and cannot be used; what was in use stays. Told once for each change.
    pub refused: Vec<String>,
    /// Whether anything in use is older than its file because that cannot be used.
    pub is_stale: bool,
}

impl Default for ServerTls {
    fn default() -> Self {
        Self::new()
    }
}

impl ServerTls {
    /// No settings yet.
    pub fn new() -> Self {
        Self { provider: Arc::new(rustls::crypto::aws_lc_rs::default_provider()), known: Arc::default() }
    }

    /// Reads every file that the listeners name. Blocks for as long as the disk does.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub fn prepare(&self, listeners: &[Listener]) -> Result<Prepared, Vec<ListenerFault>> {
        let mut prepared = Prepared { contents: Vec::new(), warnings: Vec::new() };
        let mut faults = Vec::new();
        for listener in listeners {
            let Some(wanted) = &listener.tls else { continue };
            if prepared.contents.iter().any(|(known, _)| known == wanted) {
                continue;
            }
            let of_listener = |fault| ListenerFault { listener: listener.id.clone(), fault };
            let former = self.find(wanted);
            match settings::load(wanted, &self.provider, former.as_deref().map(Secured::contents).as_deref()) {
                Ok((contents, warnings)) => {
                    prepared.warnings.extend(warnings.into_iter().map(of_listener));
                    prepared.contents.push((wanted.clone(), contents));
                }
                Err(found) => faults.extend(found.into_iter().map(of_listener)),
            }
        }
        if faults.is_empty() { Ok(prepared) } else { Err(faults) }
    }

    /// Takes over what was made ready: new handshakes see it.
    pub fn commit(&self, prepared: Prepared) {
        let mut known = self.lock();
        let former = std::mem::take(&mut known.current);
        known.current = prepared
            .contents
            .into_iter()
            .map(|(settings, contents)| match former.get(&settings) {
                Some(secured) => {
                    secured.replace(contents);
                    (settings, Arc::clone(secured))
                }
                None => {
                    let secured = Secured::new(settings.clone(), contents);
                    (settings, Arc::new(secured))
                }
            })
            .collect();
        known.former = former;
    }

    /// Looks whether files have changed, and takes those that can be used. A change counts once it is the same at two
    /// looks, so that a certificate and its key are not read while they are being written. Blocks as the disk does.
    pub fn refresh(&self) -> Refreshed {
        let all: Vec<Arc<Secured>> = self.lock().current.values().cloned().collect();
        let mut refreshed = Refreshed::default();
        for secured in all {
            secured.refresh(&self.provider, &mut refreshed);
        }
        refreshed
    }

    /// What serves listeners with these settings; `None` before they were committed.
    pub(crate) fn find(&self, settings: &ListenerTls) -> Option<Arc<Secured>> {
        let known = self.lock();
        known.current.get(settings).or_else(|| known.former.get(settings)).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        // The maps are replaced whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

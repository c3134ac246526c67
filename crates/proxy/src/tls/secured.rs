//! What serves the handshakes of one set of settings, swapped whole when a file changes.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use model::tls::ListenerTls;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;

use super::Refreshed;
use super::read::Stamps;
use super::settings::{self, Contents};

/// The settings, and what they come to now.
pub(crate) struct Secured {
    settings: ListenerTls,
    contents: ArcSwap<Contents>,
    looks: Mutex<Looks>,
}

/// What the files looked like.
#[derive(Default)]
struct Looks {
    /// At the last look; a change is taken when the next one finds the same.
    last: Option<Stamps>,
    /// When they were last found to be unusable.
    refused: Option<Stamps>,
}

impl Secured {
    pub(super) fn new(settings: ListenerTls, contents: Contents) -> Self {
        Self { settings, contents: ArcSwap::from_pointee(contents), looks: Mutex::default() }
    }

    /// What a handshake that begins now goes by, to its end.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.contents.load().config)
    }

    pub(super) fn contents(&self) -> Arc<Contents> {
        self.contents.load_full()
    }

    pub(super) fn replace(&self, contents: Contents) {
        *self.looks.lock().unwrap_or_else(PoisonError::into_inner) = Looks::default();
        self.contents.store(Arc::new(contents));
    }

    /// Looks at the files, and takes them when they have changed and can be used.
    pub(super) fn refresh(&self, provider: &Arc<CryptoProvider>, refreshed: &mut Refreshed) {
        let found = settings::stamps(&self.settings);
        let in_use = self.contents();
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        if found == in_use.stamps {
            *looks = Looks::default();
            return;
        }
        let is_settled = looks.last.as_ref() == Some(&found);
        let is_known = looks.refused.as_ref() == Some(&found);
        looks.last = Some(found.clone());
        refreshed.is_stale |= is_known;
        if !is_settled || is_known {
            return;
        }
        match settings::load(&self.settings, provider, Some(&in_use)) {
            Ok((contents, warnings)) => {
                *looks = Looks::default();
                self.contents.store(Arc::new(contents));
                refreshed.taken.push(self.describe());
                refreshed.warnings.extend(warnings.iter().map(ToString::to_string));
            }
            Err(faults) => {
                looks.refused = Some(found);
                refreshed.is_stale = true;
                refreshed.refused.extend(faults.iter().map(ToString::to_string));
            }
        }
    }

    fn describe(&self) -> String {
        let names: Vec<_> =
            self.settings.certificates.iter().map(|one| one.certificate.display().to_string()).collect();
        names.join(", ")
    }
}

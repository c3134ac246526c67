//! The flight recorder's folder over reloads: opened before anything is taken over, changed after everything is.

use std::sync::Arc;

use ::config::Loaded;
use model::config::Recorder;
use monitor::Spool;
use monitor::spool::Folder;
use recorder::Author;
use telemetry::metrics::Metrics;

use crate::error::Error;
use crate::places;

/// Who writes, and where to.
#[derive(Clone)]
pub(super) struct Spooling {
    author: Author,
    metrics: Arc<Metrics>,
    spool: Option<Spool>,
}

impl Spooling {
    /// Nowhere yet.
    pub(super) fn new(instance: &control::Instance, metrics: Arc<Metrics>) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { author: Author { version, instance: instance.as_str().to_owned() }, metrics, spool: None }
    }

    /// Where a configuration says: a folder that cannot be used is refused. Blocks for as long as the disk does.
    pub(super) fn open(&self, loaded: &Loaded) -> Result<Self, Error> {
        let mut opened = Self { spool: None, ..self.clone() };
        if let Some(Recorder { folder: Some(path), size, .. }) = &loaded.config.recorder {
            let folder = Folder::open(path, *size)
                .map_err(|error| Error::Config(places::folder_refused(loaded, path, &error)))?;
            let spool = Spool::start(folder, self.author.clone(), Arc::clone(&self.metrics));
            opened.spool = Some(spool.map_err(|source| Error::start("the recorder's thread", source))?);
        }
        Ok(opened)
    }

    /// For the monitor.
    pub(super) fn spool(&self) -> Option<Spool> {
        self.spool.clone()
    }
}

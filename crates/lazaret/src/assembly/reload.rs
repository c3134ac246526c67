//! Taking another configuration over: all or nothing, and never half of it.
//!
//! ```text
//!   read, resolve, check ──> bind new listeners ──> monitor takes it over ──> in force
//!            │ refused              │ refused              │ refused
//!            └──────────────────────┴──────────────────────┴──> the one before stays; the journal says so
//! ```

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::sync::Arc;

use ::io::real::Real;
use config::{Loaded, Style, render};
use model::config::{AccessLog, Config, ControlSocket};
use proxy::{ServerTls, Workers};
use source::file::File;

use super::spooling::Spooling;
use crate::builder::Lazaret;
use crate::error::Error;
use crate::listener_tls;
use crate::pipeline::Pipeline;
use crate::places;
use crate::running::{Addresses, ReloadError};

/// What reloads need to remember.
pub(super) struct Reloads {
    file: Option<File>,
    pipeline: Pipeline,
    config: Arc<Config>,
    fixed: Fixed,
    /// Where the listeners accept.
    addresses: Addresses,
    server_tls: ServerTls,
    spooling: Spooling,
}

impl Reloads {
    pub(super) fn new(
        lazaret: Lazaret,
        config: Arc<Config>,
        addresses: Addresses,
        server_tls: ServerTls,
        spooling: Spooling,
    ) -> Self {
        let fixed = Fixed::of(&config);
        Self { file: lazaret.file, pipeline: lazaret.pipeline, config, fixed, addresses, server_tls, spooling }
    }

    /// Where the flight recorder writes.
    pub(super) fn spooling(&self) -> &Spooling {
        &self.spooling
    }

    /// The configuration in force.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// Reads the file again.
    pub(super) async fn reload(
        &mut self,
        monitor: &monitor::Handle,
        workers: &mut Workers<Real>,
    ) -> Result<String, ReloadError> {
        let file = self.file.clone().ok_or(ReloadError::NoFile)?;
        // Reading blocks for as long as the disk does, and the control thread has probes to run.
        let loaded = match tokio::task::spawn_blocking(move || file.load()).await {
            Ok(Ok(loaded)) => loaded,
            Ok(Err(report)) => {
                let text = render(&report.source, &report.diagnostics, Style::Plain);
                return Err(refuse(monitor, text).await);
            }
            Err(error) => return Err(refuse(monitor, error.to_string()).await),
        };
        if let Err(error) = self.pipeline.check(&loaded.config) {
            return Err(refuse(monitor, error.to_string()).await);
        }
        for warning in &loaded.warnings {
            tracing::warn!(target: "config", "{warning}");
        }
        self.take_over(loaded, monitor, workers).await
    }

    /// Takes over one that was built in code.
    pub(super) async fn apply(
        &mut self,
        lazaret: Lazaret,
        monitor: &monitor::Handle,
        workers: &mut Workers<Real>,
    ) -> Result<String, ReloadError> {
        self.take_over(lazaret.loaded, monitor, workers).await
    }

    async fn take_over(
        &mut self,
        loaded: Loaded,
        monitor: &monitor::Handle,
        workers: &mut Workers<Real>,
    ) -> Result<String, ReloadError> {
        let tls = self.server_tls.clone();
        // One that stays goes on as it is.
        let spooling = (loaded.config.recorder != self.config.recorder).then(|| self.spooling.clone());
        let (loaded, secured, spooling) = match tokio::task::spawn_blocking(move || {
            let secured = listener_tls::prepare(&tls, &loaded).map_err(Error::Config);
            let spooling = spooling.map(|spooling| spooling.open(&loaded)).transpose();
            (loaded, secured.and_then(|secured| Ok((secured, spooling?))))
        })
        .await
        {
            Ok((loaded, Ok((secured, spooling)))) => (loaded, secured, spooling),
            Ok((_, Err(error))) => return Err(refuse(monitor, error.to_string()).await),
            Err(error) => return Err(refuse(monitor, error.to_string()).await),
        };
        let config = Arc::new(loaded.config.clone());
        let listeners = match workers.prepare_listeners(&config.listeners) {
            Ok(listeners) => listeners,
            Err(error) => return Err(refuse(monitor, error.to_string()).await),
        };
        let summary = match monitor.configure(Arc::clone(&config)).await {
            Ok(summary) => summary,
            // The monitor has noted it in the journal.
            Err(error) => return Err(ReloadError::Refused(places::cluster_refused(&loaded, error).to_string())),
        };
        // Before the listeners, which look it up.
        listener_tls::commit(&self.server_tls, secured);
        workers.take_over(listeners);
        if let Some(spooling) = spooling {
            // Only a monitor that has ended cannot; then there is nothing to write.
            let _ = monitor.spool_to(spooling.spool()).await;
            self.spooling = spooling;
        }
        self.addresses.set(workers.addresses());
        let waiting = self.fixed.unlike(&config);
        self.config = config;
        let note = match waiting.as_slice() {
            [] => return Ok(summary),
            [one] => format!("{one} changes with a restart only"),
            [most @ .., last] => format!("{} and {last} change with a restart only", most.join(", ")),
        };
        tracing::warn!(target: "lazaret", "{note}");
        Ok(format!("{summary}; {note}"))
    }
}

/// The parts of the configuration that only a restart changes, as this process began with them.
struct Fixed {
    workers: Option<NonZeroU16>,
    control_address: SocketAddr,
    control_socket: ControlSocket,
    access_log: AccessLog,
}

impl Fixed {
    fn of(config: &Config) -> Self {
        Self {
            workers: config.workers,
            control_address: config.control.address,
            control_socket: config.control.socket.clone(),
            access_log: config.access_log.clone(),
        }
    }

    /// The keys of those that a configuration wants otherwise.
    fn unlike(&self, config: &Config) -> Vec<&'static str> {
        let other = Self::of(config);
        let keys = [
            ("workers", self.workers != other.workers),
            ("control.address", self.control_address != other.control_address),
            ("control.socket", self.control_socket != other.control_socket),
            ("access_log", self.access_log != other.access_log),
        ];
        keys.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
    }
}

/// Notes the refusal in the journal and makes it the answer.
async fn refuse(monitor: &monitor::Handle, text: String) -> ReloadError {
    let summary = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("refused").to_owned();
    if monitor.refused(summary).await.is_err() {
        return ReloadError::Stopping;
    }
    ReloadError::Refused(text)
}

//! One configuration after the other: checked, kept waiting for the addresses of its names, taken over.
//!
//! ```text
//!   Configure ── check ──> parked ── names answered, or FIRST_ANSWERS over ──> in force ── answer
//!                  └─ refused ─────────────────────────────────────────────────────────> answer
//! ```

use std::sync::Arc;
use std::time::Duration;

use ::io::Io;
use bridge::Reach;
use health::Input;
use model::config::Config;
use model::time::Timestamp;
use tokio::sync::oneshot;
use upstream::Resolve;

use super::Monitor;
use crate::handle::ConfigureError;
use crate::prepare::prepare;
use crate::summary;

/// A configuration that waits for the first answers to its names.
pub(super) struct Parked {
    config: Arc<Config>,
    reply: oneshot::Sender<Result<String, ConfigureError>>,
    until: Timestamp,
}

impl<I: Io, R: Resolve> Monitor<I, R> {
    pub(super) fn check(&mut self, now: Timestamp, config: &Config) -> Result<(), ConfigureError> {
        prepare(&self.tls, config).inspect_err(|error| {
            self.core.handle(now, Input::ConfigRefused { summary: error.to_string() });
        })
    }

    /// Lets a configuration wait for the first answers to its names.
    pub(super) fn park(
        &mut self,
        now: Timestamp,
        config: Arc<Config>,
        reply: oneshot::Sender<Result<String, ConfigureError>>,
    ) {
        // One after the other: the one that waits has waited for long enough.
        if let Some(parked) = self.parked.take() {
            self.take_parked(now, parked);
        }
        self.names.configured(now, &config, Some(&self.written));
        self.parked = Some(Parked { config, reply, until: now + FIRST_ANSWERS });
    }

    /// Takes the configuration that waits over, once its names are answered or its wait is over.
    pub(super) fn unpark(&mut self, now: Timestamp) {
        let is_ready = |parked: &mut Parked| self.names.is_settled() || parked.until <= now;
        if let Some(parked) = self.parked.take_if(is_ready) {
            self.take_parked(now, parked);
        }
    }

    fn take_parked(&mut self, now: Timestamp, Parked { config, reply, .. }: Parked) {
        self.names.configured(now, &config, None);
        let _ = self.names.take_change();
        let summary = summary::change(&self.written, &config);
        self.written = config;
        self.take_over(now, summary.clone());
        self.carry_out();
        let _ = reply.send(Ok(summary));
    }

    /// Addresses of names have changed: the same configuration, for other destinations.
    pub(super) fn readdress(&mut self, now: Timestamp) {
        let expanded = self.names.expand(&self.written);
        if let Some(summary) = summary::addresses(self.publisher.config(), &expanded) {
            self.take_over(now, summary);
        }
    }

    fn take_over(&mut self, now: Timestamp, summary: String) {
        // What was seen so far belongs to the configuration before.
        self.drain(Reach::All);
        self.publisher.configure(self.names.expand(&self.written));
        self.core.limit(super::recording::limits(&self.written));
        // Its event brings a Publish, also when no health changed.
        self.core.handle(now, Input::Configured { clusters: self.publisher.clusters(), summary });
    }
}

/// How long a configuration waits for the first answers to its names.
const FIRST_ANSWERS: Duration = Duration::from_secs(2);

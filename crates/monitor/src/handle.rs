//! What other threads ask of the monitor. Handles are cheap to clone; the monitor ends with the last one.
//!
//! Commands go over one channel of `DEPTH`, in order; each call waits for the monitor's answer. Dropping a call
//! midway does not undo its command.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use health::{HealthSet, SavedHealth};
use model::config::Config;
use model::id::ClusterId;
use model::time::Timestamp;
use recorder::Standing;
use tokio::sync::{mpsc, oneshot};
use upstream::tls::TlsError;

use crate::spool::Spool;

/// The way to a running monitor.
#[derive(Clone)]
pub struct Handle {
    commands: mpsc::Sender<Command>,
    pulse: Pulse,
}

/// Why a configuration was not taken over; the one before stays.
#[derive(Debug, thiserror::Error)]
pub enum ConfigureError {
    /// TLS towards a cluster's destinations cannot be set up.
    #[error("cluster {cluster}: {source}")]
    Tls {
        /// Whose.
        cluster: ClusterId,
        /// What is wrong.
        source: TlsError,
    },
    /// The monitor has ended.
    #[error(transparent)]
    Gone(#[from] Gone),
}

/// The monitor has ended: nobody answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the health monitor has ended")]
pub struct Gone;

impl Handle {
    /// Waits for the monitor's first turn: the event of the first configuration is in the journal, its snapshot is
    /// published, and the first probes are on their way.
    pub async fn begun(&self) -> Result<(), Gone> {
        self.ask(Command::Begun).await
    }

    /// Takes a configuration over: all or nothing. It is in force, and published, when this returns; says in one line
    /// what changed, as the journal does.
    pub async fn configure(&self, config: Arc<Config>) -> Result<String, ConfigureError> {
        self.ask(|reply| Command::Configure { config, reply }).await?
    }

    /// Notes in the journal that a configuration was refused, and why, in one line.
    pub async fn refused(&self, summary: String) -> Result<(), Gone> {
        self.ask(|reply| Command::Refused { summary, reply }).await
    }

    /// Sets a value from outside; traffic sees it when this returns. Unknown destinations are ignored.
    pub async fn set_health(&self, set: HealthSet) -> Result<(), Gone> {
        self.ask(|reply| Command::SetHealth { set, reply }).await
    }

    /// Begins a planned stop: every node is reported unhealthy from here on; traffic goes on.
    pub async fn drain(&self) -> Result<(), Gone> {
        self.ask(Command::Drain).await
    }

    /// Sends no probe from here on, and tells what is known: another process is about to probe in this one's place.
    /// Traffic goes on being judged. What a probe that was in flight would have said is not known.
    pub async fn suspend(&self) -> Result<SavedHealth, Gone> {
        self.ask(Command::Suspend).await
    }

    /// Probes again: the other process did not come to it.
    pub async fn resume(&self) -> Result<(), Gone> {
        self.ask(Command::Resume).await
    }

    /// What the health core was told of late, as a file for `recorder::Recording::read`; else why nothing is kept. The
    /// file says who saved it, and when: milliseconds since 1970.
    pub async fn record(&self, instance: String, saved_at_unix_ms: u64) -> Result<Result<Vec<u8>, Standing>, Gone> {
        self.ask(|reply| Command::Record { instance, saved_at_unix_ms, reply }).await
    }

    /// The flight recorder writes there from here on, or nowhere, and begins anew.
    pub async fn spool_to(&self, spool: Option<Spool>) -> Result<(), Gone> {
        self.ask(|reply| Command::SpoolTo { spool, reply }).await
    }

    /// Ends the monitor; probes in flight are given up.
    pub async fn shutdown(&self) -> Result<(), Gone> {
        self.ask(Command::Shutdown).await
    }

    /// When the monitor's loop last turned. It turns ten times a second: when this is old, the control thread hangs.
    pub fn turned_at(&self) -> Timestamp {
        self.pulse.read()
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, Gone> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| Gone)?;
        answer.await.map_err(|_| Gone)
    }
}

/// One command, with the way back. Whoever asked may be gone by then; that is no error.
pub(crate) enum Command {
    Begun(oneshot::Sender<()>),
    Configure { config: Arc<Config>, reply: oneshot::Sender<Result<String, ConfigureError>> },
    Refused { summary: String, reply: oneshot::Sender<()> },
    SetHealth { set: HealthSet, reply: oneshot::Sender<()> },
    Drain(oneshot::Sender<()>),
    Suspend(oneshot::Sender<SavedHealth>),
    Resume(oneshot::Sender<()>),
    Record { instance: String, saved_at_unix_ms: u64, reply: oneshot::Sender<Result<Vec<u8>, Standing>> },
    SpoolTo { spool: Option<Spool>, reply: oneshot::Sender<()> },
    Shutdown(oneshot::Sender<()>),
}

/// When the loop last turned, for other threads.
#[derive(Clone, Default)]
pub(crate) struct Pulse(Arc<AtomicU64>);

impl Pulse {
    pub(crate) fn beat(&self, now: Timestamp) {
        self.0.store(now.as_nanos(), Ordering::Relaxed);
    }

    fn read(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

pub(crate) fn channel() -> (Handle, mpsc::Receiver<Command>, Pulse) {
    let (commands, receiver) = mpsc::channel(DEPTH);
    let pulse = Pulse::default();
    (Handle { commands, pulse: pulse.clone() }, receiver, pulse)
}

/// Commands that wait; further callers wait for room.
const DEPTH: usize = 64;

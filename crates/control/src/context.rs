//! What the API stands on: the process that it reports on, the journal, the metrics, and a way to hand commands over.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::config::Config;
use model::health::Switch;
use model::id::{ListenerId, Slot, WorkerId};
use model::time::Timestamp;
use model::view::HealthView;
use telemetry::journal::Journal;
use telemetry::metrics::Metrics;
use tokio::sync::{mpsc, oneshot};

/// Everything that handlers need. Shared by `Arc`.
pub struct Context {
    /// The process that is reported on.
    pub process: Box<dyn Process>,
    /// Its events.
    pub journal: Arc<Journal>,
    /// Its counters.
    pub metrics: Arc<Metrics>,
    /// Its name.
    pub instance: Instance,
    /// Who carries out changing calls.
    pub commands: mpsc::Sender<Command>,
    is_ready: AtomicBool,
}

/// A running process, as the API sees it.
pub trait Process: Send + Sync + 'static {
    /// Configuration and health of one and the same snapshot.
    fn published(&self) -> Published;
    /// Now, on the clock of the published times.
    fn now(&self) -> Timestamp;
    /// When the health core last ran its timers. `None`: as the published view says, which is renewed only when there
    /// is something to publish.
    fn core_ran_at(&self) -> Option<Timestamp> {
        None
    }
    /// Requests in flight at a destination, all workers together.
    fn in_flight(&self, slot: Slot) -> u32;
    /// Whether it does its work.
    fn vitals(&self) -> Vitals;
    /// Upgrades that came to nothing.
    fn failed_upgrades(&self) -> FailedUpgrades {
        FailedUpgrades::default()
    }
}

/// Configuration and health that belong together.
#[derive(Clone)]
pub struct Published {
    /// The configuration in force.
    pub config: Arc<Config>,
    /// The health of its clusters.
    pub health: Arc<HealthView>,
}

impl From<&exchange::snapshot::Snapshot> for Published {
    fn from(snapshot: &exchange::snapshot::Snapshot) -> Self {
        Self { config: Arc::clone(&snapshot.config), health: Arc::clone(&snapshot.health) }
    }
}

/// Upgrades that came to nothing since the process started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedUpgrades {
    /// How many.
    pub count: u64,
    /// Why the last of them did.
    pub last: Option<String>,
}

/// Whether the process does its work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vitals {
    /// A planned stop is under way: every node is reported unhealthy, and nothing else counts as trouble.
    pub is_draining: bool,
    /// What keeps it from carrying traffic. The APISIX part answers 503 while there is any.
    pub troubles: Vec<Trouble>,
}

/// What keeps a process from carrying traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A listener that should accept does not.
    ListenerDown(ListenerId),
    /// A worker has not ticked for so long (2 s and more).
    WorkerStuck(WorkerId, Duration),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ListenerDown(listener) => write!(f, "listener {listener} does not accept"),
            Self::WorkerStuck(worker, age) => {
                write!(f, "worker {} has not ticked for {} ms", worker.0, age.as_millis())
            }
        }
    }
}

/// A changing call.
#[derive(Debug)]
pub enum Command {
    /// Read the configuration anew and take it over, all or nothing.
    Reload {
        /// Takes the result.
        reply: oneshot::Sender<ReloadReply>,
    },
    /// Give what the flight recorder holds, as a file.
    Record {
        /// The process's name, for the file.
        instance: Instance,
        /// Now, milliseconds since 1970.
        unix_ms: u64,
        /// Takes the file.
        reply: oneshot::Sender<RecordReply>,
    },
}

impl Command {
    /// Answers that it is not the time for it.
    pub fn busy(self) {
        // Who asked may be gone by now.
        match self {
            Self::Reload { reply } => drop(reply.send(ReloadReply::Busy)),
            Self::Record { reply, .. } => drop(reply.send(RecordReply::Busy)),
        }
    }
}

/// What saving the recording came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordReply {
    /// The file.
    Saved(Vec<u8>),
    /// Nothing is kept, for this reason.
    Nothing(&'static str),
    /// Not now: a planned stop is under way.
    Busy,
}

/// What a reload came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReloadReply {
    /// It is in force.
    Applied {
        /// What changed, in one line.
        summary: String,
    },
    /// It is not; the one before stays.
    Refused {
        /// The whole report, as `lazaret check` prints it.
        report: String,
    },
    /// Not now: a planned stop, or another reload, is under way.
    Busy,
}

/// The name of this process among all that ever ran: 16 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance(Arc<str>);

impl Instance {
    /// A random one.
    pub fn random() -> Self {
        // The standard library seeds each RandomState from the system's randomness.
        Self(format!("{:016x}", RandomState::new().hash_one(std::process::id())).into())
    }

    /// A given one, for tests: digits and letters alone.
    pub fn named(name: &str) -> Self {
        Self(name.into())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Context {
    /// Joins the parts.
    pub fn new(
        process: impl Process,
        journal: Arc<Journal>,
        metrics: Arc<Metrics>,
        instance: Instance,
        commands: mpsc::Sender<Command>,
    ) -> Arc<Self> {
        let is_ready = AtomicBool::new(false);
        Arc::new(Self { process: Box::new(process), journal, metrics, instance, commands, is_ready })
    }

    /// When the health core last ran its timers, as far as is known.
    pub(crate) fn core_ran_at(&self, published: &Published) -> Timestamp {
        self.process.core_ran_at().map_or(published.health.at, |at| at.max(published.health.at))
    }

    /// Whether each destination under an active check has had one judged probe. Once true it stays so: what a reload
    /// adds does not make a serving process unready.
    pub fn is_ready(&self) -> bool {
        if self.is_ready.load(Ordering::Relaxed) {
            return true;
        }
        let is_ready = is_probed(&self.process.published());
        if is_ready {
            self.is_ready.store(true, Ordering::Relaxed);
        }
        is_ready
    }
}

fn is_probed(published: &Published) -> bool {
    let of = |id| published.health.clusters.iter().find(|cluster| cluster.id == id);
    published.config.clusters.iter().filter(|cluster| cluster.health_check.active.is_some()).all(|cluster| {
        of(cluster.id.clone()).is_some_and(|health| {
            health.active == Switch::On && health.destinations.iter().all(|destination| destination.probed_at.is_some())
        })
    })
}

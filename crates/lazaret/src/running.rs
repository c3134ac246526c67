//! A proxy that runs on threads of its own, and what its owner may ask of it.
//!
//! All calls are plain and blocking, so that they work in a program with or without an async runtime. Dropping a
//! [`Running`] ends it at once; [`Running::stop`] lets it finish what is in flight.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use board::Board;
use control::FailedUpgrades;
use exchange::snapshot::Snapshot;
use health::HealthSet;
use model::health::{CheckKind, Health};
use model::id::{DestinationKey, ListenerId};
use model::view::HealthView;
use telemetry::journal::Journal;
use tokio::sync::mpsc;

use crate::builder::Lazaret;

/// A running proxy.
pub struct Running {
    pub(crate) orders: mpsc::UnboundedSender<Order>,
    pub(crate) thread: Option<JoinHandle<()>>,
    pub(crate) facts: Facts,
}

/// What is known of it from outside.
#[derive(Clone)]
pub(crate) struct Facts {
    pub(crate) board: Arc<Board<Snapshot>>,
    pub(crate) journal: Arc<Journal>,
    pub(crate) listeners: Addresses,
    pub(crate) control: SocketAddr,
    pub(crate) is_handed_over: Arc<AtomicBool>,
    pub(crate) failed_upgrades: Failed,
}

/// Upgrades that came to nothing. Copies are the same.
#[derive(Clone, Default)]
pub(crate) struct Failed(Arc<Mutex<FailedUpgrades>>);

impl Failed {
    /// All of them.
    pub(crate) fn upgrades(&self) -> FailedUpgrades {
        self.lock().clone()
    }

    fn note(&self, why: String) {
        let mut failed = self.lock();
        failed.count += 1;
        failed.last = Some(why);
    }

    fn lock(&self) -> MutexGuard<'_, FailedUpgrades> {
        // Nothing panics between its two changes.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the listeners accept, as the last reload left it. Copies are the same.
#[derive(Clone, Default)]
pub(crate) struct Addresses(Arc<Mutex<BTreeMap<ListenerId, SocketAddr>>>);

impl Addresses {
    /// These are all.
    pub(crate) fn set<'a>(&self, addresses: impl Iterator<Item = (&'a ListenerId, SocketAddr)>) {
        *self.lock() = addresses.map(|(id, address)| (id.clone(), address)).collect();
    }

    fn of(&self, listener: &str) -> Option<SocketAddr> {
        self.lock().get(&ListenerId::from(listener)).copied()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ListenerId, SocketAddr>> {
        // It is replaced whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the owner asks of the control thread.
pub(crate) enum Order {
    /// Read the file again and take it over.
    Reload(SyncSender<Result<String, ReloadError>>),
    /// Take this one over.
    Reconfigure(Box<Lazaret>, SyncSender<Result<String, ReloadError>>),
    /// Set a value.
    SetHealth(HealthSet, SyncSender<()>),
    /// Open log files anew.
    ReopenLogs,
    /// Hand over to the process at the other end.
    HandOver(UnixStream, SyncSender<Result<(), HandOverError>>),
    /// Begin a planned stop.
    Stop,
}

/// Why a configuration was not taken over; the one before stays whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReloadError {
    /// It is refused; the report as `lazaret check` prints it.
    #[error("{0}")]
    Refused(String),
    /// The configuration was built in code: there is no file to read again.
    #[error("there is no file to read again")]
    NoFile,
    /// A planned stop is under way, or the proxy has ended.
    #[error("the proxy is stopping")]
    Stopping,
    /// An upgrade is under way.
    #[error("an upgrade is under way")]
    Busy,
}

/// Why another process did not take over; this one goes on as before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandOverError {
    /// The other process says why it does not take over, or said what was not expected.
    #[error("the new process did not take over: {0}")]
    Successor(String),
    /// The other process ended without a word.
    #[error("the new process ended before it took over")]
    Ended,
    /// Another one is just taking over.
    #[error("an upgrade is under way")]
    Busy,
    /// A planned stop is under way, or the proxy has ended.
    #[error("the proxy is stopping")]
    Stopping,
}

impl From<std::io::Error> for HandOverError {
    fn from(error: std::io::Error) -> Self {
        let kind = error.kind();
        if matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) {
            Self::Ended
        } else if kind == ErrorKind::WouldBlock {
            Self::Successor("it said nothing for a minute".to_owned())
        } else {
            Self::Successor(error.to_string())
        }
    }
}

impl Running {
    /// Where a listener accepts now, with the port that was found when port 0 was asked for.
    pub fn address(&self, listener: &str) -> Option<SocketAddr> {
        self.facts.listeners.of(listener)
    }

    /// Where the control API answers.
    pub fn control_address(&self) -> SocketAddr {
        self.facts.control
    }

    /// Everybody's health now.
    pub fn view(&self) -> Arc<HealthView> {
        Arc::clone(&self.facts.board.load().health)
    }

    /// Sets values from outside.
    pub fn health(&self) -> HealthHandle {
        HealthHandle { orders: self.orders.clone() }
    }

    /// What happened, for readers that come and go.
    pub fn journal(&self) -> &Arc<Journal> {
        &self.facts.journal
    }

    /// Attempts that a destination has served and that came to [`crate::OutcomeClass::Ok`].
    pub fn served(&self, slot: model::id::Slot) -> u64 {
        self.facts.board.count(slot, crate::OutcomeClass::Ok)
    }

    /// Reads the file again: all or nothing. Says what changed.
    pub fn reload(&self) -> Result<String, ReloadError> {
        self.reloader().reload()
    }

    /// The right to reload, for another thread.
    pub fn reloader(&self) -> Reloader {
        Reloader { orders: self.orders.clone() }
    }

    /// The right to hand over, for another thread.
    pub fn upgrader(&self) -> Upgrader {
        Upgrader { orders: self.orders.clone(), failed: self.facts.failed_upgrades.clone() }
    }

    /// Whether another process has taken over: this one finishes what is in flight and ends.
    pub fn is_handed_over(&self) -> bool {
        self.facts.is_handed_over.load(Ordering::Acquire)
    }

    /// Takes another configuration over: all or nothing. Custom parts registered with the new one replace those of the
    /// same name only at a restart; what was registered at the start stays.
    pub fn reconfigure(&self, lazaret: Lazaret) -> Result<String, ReloadError> {
        ask(&self.orders, |reply| Order::Reconfigure(Box::new(lazaret), reply))
    }

    /// Opens log files anew, after somebody has moved them away.
    pub fn reopen_logs(&self) {
        // A proxy that has ended has no logs.
        let _ = self.orders.send(Order::ReopenLogs);
    }

    /// Begins a planned stop: every node is reported unhealthy, then (after `drain.lead`) nothing more is accepted, and
    /// what is in flight may end within `drain.grace`. Returns at once; [`Self::wait`] waits for the end.
    pub fn begin_stop(&self) {
        // One that has ended needs no stop.
        let _ = self.orders.send(Order::Stop);
    }

    /// A planned stop, whole.
    pub fn stop(self) {
        self.begin_stop();
        self.wait();
    }

    /// Waits for the end.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            // A control thread that panicked has ended, too.
            let _ = thread.join();
        }
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

/// Reloads a running proxy. Cheap to clone.
#[derive(Clone)]
pub struct Reloader {
    orders: mpsc::UnboundedSender<Order>,
}

impl Reloader {
    /// See [`Running::reload`].
    pub fn reload(&self) -> Result<String, ReloadError> {
        ask(&self.orders, Order::Reload)
    }
}

/// Hands a running proxy over. Cheap to clone.
#[derive(Clone)]
pub struct Upgrader {
    orders: mpsc::UnboundedSender<Order>,
    failed: Failed,
}

impl Upgrader {
    /// Hands listening sockets, the control API and what is known of destinations over to the process at the other end
    /// of `stream`, which calls [`crate::Inheritance::from_predecessor`]. Returns when it serves; this one then finishes
    /// what is in flight within `drain.upgrade_grace` and ends.
    ///
    /// Who waits for the upgrade elsewhere hears of a failure by [`Self::note_failed`].
    pub fn hand_over(&self, stream: UnixStream) -> Result<(), HandOverError> {
        let (reply, answer) = sync_channel(1);
        self.orders.send(Order::HandOver(stream, reply)).map_err(|_| HandOverError::Stopping)?;
        answer.recv().map_err(|_| HandOverError::Stopping)?
    }

    /// Tells by the control API (`GET /api/process`) that an upgrade came to nothing, and why.
    pub fn note_failed(&self, why: impl std::fmt::Display) {
        self.failed.note(why.to_string());
    }
}

fn ask(
    orders: &mpsc::UnboundedSender<Order>,
    order: impl FnOnce(SyncSender<Result<String, ReloadError>>) -> Order,
) -> Result<String, ReloadError> {
    let (reply, answer) = sync_channel(1);
    orders.send(order(reply)).map_err(|_| ReloadError::Stopping)?;
    answer.recv().map_err(|_| ReloadError::Stopping)?
}

/// Sets the two values of destinations from outside: for programs that know more than any check. Cheap to clone.
#[derive(Clone)]
pub struct HealthHandle {
    orders: mpsc::UnboundedSender<Order>,
}

impl HealthHandle {
    /// Sets the active value. It stands until the next probe says otherwise.
    pub fn set_active(&self, destination: &DestinationKey, health: Health) {
        self.set(destination, CheckKind::Active, health, None);
    }

    /// Sets the passive value. An Unhealthy one becomes Unknown again after `reactivation`, or after the cluster's
    /// period.
    pub fn set_passive(&self, destination: &DestinationKey, health: Health, reactivation: Option<Duration>) {
        self.set(destination, CheckKind::Passive, health, reactivation);
    }

    /// Traffic sees the value when this returns. Unknown destinations, and those whose check is off, are left alone.
    fn set(&self, destination: &DestinationKey, check: CheckKind, health: Health, reactivation: Option<Duration>) {
        let (reply, answer) = sync_channel(1);
        let set = HealthSet { destination: destination.clone(), check, health, reactivation };
        if self.orders.send(Order::SetHealth(set, reply)).is_ok() {
            // A proxy that ends meanwhile has no values to set.
            let _ = answer.recv();
        }
    }
}

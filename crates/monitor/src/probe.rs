//! Probes: one task each, on connections of their own.
//!
//! At most `FRESH` probes younger than `HANGING_AFTER` run at once; older ones are hanging and are counted apart
//! (`HANGING`), so that destinations that hang never delay the probes of those that answer. A probe's timeout starts
//! when it does, not while it waits for its turn.
//!
//! ```text
//!   start ──> waits for one of FRESH ──> runs ──1 s──> hands it on, takes one of HANGING ──> ends by its timeout
//! ```

mod grpc;
mod http;
mod http2;
mod message;
mod tcp;

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use ::io::Io;
use ::io::deadline::Deadline;
use health::{ProbeOrder, Probed, Ticket};
use model::active::ProbeKind;
use model::address::Located;
use model::id::{DestinationKey, Slot};
use model::outcome::FailureKind;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use upstream::{Connector, Resolve};

pub use self::message::{BuiltInBuilder, ProbeBuilder, ProbeMessage};

/// How a probe ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeEnd {
    /// How it failed; `None`: it passed.
    pub failure: Option<FailureKind>,
    /// The answer's status, when one came.
    pub status: Option<u16>,
}

impl ProbeEnd {
    /// Passed.
    pub fn passed(status: Option<u16>) -> Self {
        Self { failure: None, status }
    }

    /// Failed.
    pub fn failed(failure: FailureKind, status: Option<u16>) -> Self {
        Self { failure: Some(failure), status }
    }
}

/// Sends HTTP probes in place of the built-in client. The monitor cuts it off at the probe's timeout.
pub trait ProbeSender: Send + Sync {
    /// Sends `message` to the order's destination and judges what comes back. Runs on the control thread, so it must
    /// not block.
    fn send(&self, order: &ProbeOrder, message: ProbeMessage) -> Pin<Box<dyn Future<Output = ProbeEnd>>>;
}

/// The probes in flight.
pub(crate) struct Probes<I, R> {
    kit: Kit<I, R>,
    running: JoinSet<ProbeEnd>,
    tasks: BTreeMap<Ticket, AbortHandle>,
    orders: BTreeMap<Id, Running>,
    probed: BTreeSet<Slot>,
}

/// A probe that ended.
pub(crate) struct Ended {
    pub(crate) destination: DestinationKey,
    pub(crate) probed: Probed,
}

struct Running {
    ticket: Ticket,
    slot: Slot,
    destination: DestinationKey,
}

/// What every probe's task needs.
struct Kit<I, R> {
    connector: Connector<I, R>,
    builder: Arc<dyn ProbeBuilder>,
    sender: Option<Arc<dyn ProbeSender>>,
    fresh: Arc<Semaphore>,
    hanging: Arc<Semaphore>,
}

impl<I: Io, R: Resolve> Probes<I, R> {
    pub(crate) fn new(
        connector: Connector<I, R>,
        builder: Option<Arc<dyn ProbeBuilder>>,
        sender: Option<Arc<dyn ProbeSender>>,
    ) -> Self {
        Self::with_limits(connector, builder, sender, FRESH, HANGING)
    }

    fn with_limits(
        connector: Connector<I, R>,
        builder: Option<Arc<dyn ProbeBuilder>>,
        sender: Option<Arc<dyn ProbeSender>>,
        fresh: usize,
        hanging: usize,
    ) -> Self {
        let kit = Kit {
            connector,
            builder: builder.unwrap_or_else(|| Arc::new(BuiltInBuilder)),
            sender,
            fresh: Arc::new(Semaphore::new(fresh)),
            hanging: Arc::new(Semaphore::new(hanging)),
        };
        Self { kit, running: JoinSet::new(), tasks: BTreeMap::new(), orders: BTreeMap::new(), probed: BTreeSet::new() }
    }

    /// Starts a probe. Must be called within a `LocalSet`.
    pub(crate) fn start(&mut self, order: ProbeOrder) {
        let ticket = order.ticket;
        let running = Running { ticket, slot: order.slot, destination: order.destination.clone() };
        let is_only_one = self.probed.insert(order.slot);
        debug_assert!(is_only_one, "two probes of one destination in flight: {}", order.destination);
        let task = self.running.spawn_local(self.kit.clone().run(order));
        self.orders.insert(task.id(), running);
        self.tasks.insert(ticket, task);
    }

    /// Gives a probe up. Its end is not told.
    pub(crate) fn cancel(&mut self, ticket: Ticket) {
        if let Some(task) = self.tasks.remove(&ticket) {
            task.abort();
            if let Some(running) = self.orders.remove(&task.id()) {
                self.probed.remove(&running.slot);
            }
        }
    }

    /// Gives all of them up; their ends are not told. Gives their tickets.
    pub(crate) fn cancel_all(&mut self) -> Vec<Ticket> {
        let tickets: Vec<_> = self.tasks.keys().copied().collect();
        tickets.iter().for_each(|ticket| self.cancel(*ticket));
        tickets
    }

    /// The next probe that ends; never while none is in flight. Cancel safe.
    pub(crate) async fn next(&mut self) -> Ended {
        loop {
            let joined = match self.running.join_next_with_id().await {
                None => pending().await,
                Some(joined) => joined,
            };
            if let Some(ended) = self.ended(joined) {
                return ended;
            }
        }
    }

    /// A probe that has ended already.
    pub(crate) fn try_next(&mut self) -> Option<Ended> {
        while let Some(joined) = self.running.try_join_next_with_id() {
            let ended = self.ended(joined);
            if ended.is_some() {
                return ended;
            }
        }
        None
    }

    /// `None` for one that was given up.
    fn ended(&mut self, joined: Result<(Id, ProbeEnd), JoinError>) -> Option<Ended> {
        // A task that panicked (a sender written by others) says nothing about the destination.
        let (id, end) = joined.unwrap_or_else(|error| (error.id(), ProbeEnd::failed(FailureKind::Local, None)));
        let Running { ticket, slot, destination } = self.orders.remove(&id)?;
        self.tasks.remove(&ticket);
        self.probed.remove(&slot);
        Some(Ended { destination, probed: Probed { ticket, failure: end.failure, status: end.status } })
    }
}

impl<I: Io, R: Resolve> Kit<I, R> {
    async fn run(self, order: ProbeOrder) -> ProbeEnd {
        let io = self.connector.io().clone();
        // Never closed, so there is always a permit to come.
        let mut fresh = self.fresh.clone().acquire_owned().await.ok();
        let deadline = Deadline::new(io.clone(), io.now() + order.timeout);
        let mut probe = pin!(self.probe(&order, &deadline));
        tokio::select! {
            end = &mut probe => return end,
            () = io.sleep(HANGING_AFTER) => {}
        }
        // When even these are used up it keeps its turn: then others wait.
        let hanging = self.hanging.clone().try_acquire_owned();
        if hanging.is_ok() {
            fresh = None;
        }
        let end = probe.await;
        drop((fresh, hanging));
        end
    }

    async fn probe(&self, order: &ProbeOrder, deadline: &Deadline<I>) -> ProbeEnd {
        if order.base.located == Located::Nowhere {
            return ProbeEnd::failed(FailureKind::Dns, None);
        }
        match order.kind {
            ProbeKind::Tcp => tcp::probe(&self.connector, order, deadline).await,
            ProbeKind::Grpc => grpc::probe(&self.connector, order, deadline).await,
            ProbeKind::Http => {
                let message = self.builder.build(order);
                match &self.sender {
                    None => http::probe(&self.connector, order, &message, deadline).await,
                    Some(sender) => {
                        let sent = deadline.within(sender.send(order, message)).await;
                        sent.unwrap_or(ProbeEnd::failed(FailureKind::HeadTimeout, None))
                    }
                }
            }
        }
    }
}

impl<I: Io, R: Resolve> Clone for Kit<I, R> {
    fn clone(&self) -> Self {
        Self {
            connector: self.connector.clone(),
            builder: Arc::clone(&self.builder),
            sender: self.sender.clone(),
            fresh: Arc::clone(&self.fresh),
            hanging: Arc::clone(&self.hanging),
        }
    }
}

/// Probes younger than [`HANGING_AFTER`] at once.
const FRESH: usize = 1024;
/// Older ones at once.
const HANGING: usize = 4096;
/// A probe without an end for so long hangs.
const HANGING_AFTER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;

//! A traffic thread: its runtime, its listeners, its tick.
//!
//! ```text
//!   Workers ──commands──> main task ──spawn, abort──> accept task per listener ──spawn──> task per connection
//!                            └──spawn──> tick task: board tick, sweep of the pool, turns of clusters that are gone
//! ```
//! The channel of commands is unbounded and carries a handful of messages in a process's life.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ::io::Io;
use exchange::Snapshot;
use model::id::{ListenerId, Slot, WorkerId};
use model::listener::Listener;
use telemetry::metrics::WorkerMetrics;
use telemetry::reopen::ReopenFile;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;
use upstream::pool::Pool;
use upstream::{Connector, Resolve, Tls};

use crate::faults::{Fault, Faults};
use crate::limits::Limits;
use crate::listener::{ListenerCell, accept};
use crate::local::{Local, scratch};
use crate::presence::Presence;
use crate::seats::Seats;
use crate::wall::Date;

/// What a worker is told.
pub(crate) enum Command<I: Io> {
    /// Accept here.
    Listen(Box<Listener>, I::Bound),
    /// The listeners of these ids have another configuration, maybe under another id.
    Update(Vec<(ListenerId, Listener)>),
    /// Accept no longer there.
    Close(ListenerId),
    /// Finish what is in flight within this time, then end.
    Drain(Duration),
}

/// What a worker starts with.
pub(crate) struct Start<I: Io, R> {
    pub(crate) id: WorkerId,
    pub(crate) io: I,
    pub(crate) resolver: R,
    pub(crate) tls: Tls,
    pub(crate) board: Arc<board::Board<Snapshot>>,
    pub(crate) metrics: WorkerMetrics,
    pub(crate) access_log: Option<ReopenFile>,
    pub(crate) instance: Arc<str>,
    pub(crate) seed: u64,
    pub(crate) faults: Faults,
    pub(crate) limits: Arc<Limits>,
    pub(crate) commands: UnboundedReceiver<Command<I>>,
}

/// The thread's body. Fails only when the system refuses a runtime, or the worker's number is taken.
pub(crate) fn run<I: Io, R: Resolve>(start: Start<I, R>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default())?;
    let board = start.board.worker(start.id).ok_or_else(|| io::Error::other("this worker runs already"))?;
    let local = Rc::new(Local {
        connector: Connector::new(start.io.clone(), start.resolver, start.tls),
        io: start.io,
        board,
        metrics: start.metrics,
        access_log: start.access_log,
        instance: start.instance,
        picks: RefCell::new(exchange::Worker::new(start.seed)),
        pool: RefCell::new(Pool::new()),
        scratch: scratch(),
        workspaces: RefCell::default(),
        seats: Seats::default(),
        presence: Presence::default(),
        faults: start.faults,
        date: Date::default(),
        limits: start.limits,
    });
    runtime.block_on(main(local, start.commands));
    // Dropping the runtime ends what did not finish within the grace.
    Ok(())
}

async fn main<I: Io, R: Resolve>(local: Rc<Local<I, R>>, mut commands: UnboundedReceiver<Command<I>>) {
    let ticking = tokio::task::spawn_local(tick(Rc::clone(&local)));
    let mut listeners: BTreeMap<ListenerId, Place> = BTreeMap::new();
    let grace = loop {
        match commands.recv().await {
            // Nobody is left who could say more: end at once.
            None => break Duration::ZERO,
            Some(Command::Drain(grace)) => break grace,
            Some(Command::Listen(config, bound)) => {
                let id = config.id.clone();
                let place = match Accepting::start(&local, *config, bound) {
                    Ok(accepting) => Place::Accepts(accepting),
                    Err(error) => {
                        tracing::error!(target: "proxy", %error, listener = %id, "cannot listen");
                        Place::Faulty(local.faults.enter(&id))
                    }
                };
                if let Some(former) = listeners.insert(id, place) {
                    former.close(&local);
                }
            }
            Some(Command::Update(kept)) => {
                // Two of them may have changed their names.
                let kept: Vec<_> = kept.into_iter().map(|(id, config)| (listeners.remove(&id), config)).collect();
                for (place, config) in kept {
                    let Some(place) = place else { continue };
                    let id = config.id.clone();
                    let place = match place {
                        Place::Accepts(accepting) => {
                            accepting.cell.update(config);
                            Place::Accepts(accepting)
                        }
                        Place::Faulty(_) => Place::Faulty(local.faults.enter(&id)),
                    };
                    listeners.insert(id, place);
                }
            }
            Some(Command::Close(id)) => {
                if let Some(place) = listeners.remove(&id) {
                    place.close(&local);
                }
            }
        }
    };
    for (_, place) in listeners {
        if let Place::Accepts(accepting) = place {
            accepting.task.abort();
        }
    }
    local.presence.drain();
    let until = local.io.instant(local.io.now() + grace);
    let _ = tokio::time::timeout_at(until, local.presence.emptied()).await;
    ticking.abort();
}

/// What became of a listener.
enum Place {
    /// It accepts.
    Accepts(Accepting),
    /// The system did not let it.
    Faulty(#[expect(dead_code, reason = "says so for as long as it lives")] Fault),
}

impl Place {
    fn close<I: Io, R>(self, local: &Local<I, R>) {
        match self {
            Self::Accepts(accepting) => accepting.close(local),
            Self::Faulty(_) => {}
        }
    }
}

/// A listener that accepts.
struct Accepting {
    cell: Rc<ListenerCell>,
    task: JoinHandle<()>,
}

impl Accepting {
    fn start<I: Io, R: Resolve>(local: &Rc<Local<I, R>>, config: Listener, bound: I::Bound) -> io::Result<Self> {
        let listener = local.io.listen(bound)?;
        let cell = Rc::new(ListenerCell::new(config));
        let task = tokio::task::spawn_local(accept(Rc::clone(local), listener, Rc::clone(&cell)));
        Ok(Self { cell, task })
    }

    fn close<I: Io, R>(self, local: &Local<I, R>) {
        self.task.abort();
        self.cell.close();
        local.presence.wake_all();
    }
}

async fn tick<I: Io, R>(local: Rc<Local<I, R>>) {
    let mut known = Arc::clone(&local.board.snapshot().config);
    loop {
        let now = local.io.now();
        local.board.tick(now);
        let snapshot = local.board.snapshot();
        if !Arc::ptr_eq(&known, &snapshot.config) {
            known = Arc::clone(&snapshot.config);
            local.picks.borrow_mut().retain(&known);
            // Destinations that are gone keep no idle connection.
            let living = snapshot.clusters.iter().flat_map(|cluster| &cluster.destinations);
            let living: BTreeSet<Slot> = living.map(|destination| destination.slot).collect();
            local.pool.borrow_mut().retain(|slot| living.contains(&slot));
        }
        drop(snapshot);
        local.pool.borrow_mut().sweep(now);
        local.io.sleep_until(now + TICK).await;
    }
}

/// Far below the 2 s after which a worker counts as hanging.
const TICK: Duration = Duration::from_millis(500);

//! A traffic thread: its runtime, its listeners, its tick.
//!
//! ```text
//!   Workers ──commands──> main task ──spawn, abort──> accept task per socket ──spawn──> task per connection
//!                            ├──spawn──> tick task: board tick, sweep of the pool, turns of clusters that are gone
//!                            └──spawn──> log task: hands over lines of the access log that have waited long enough
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
use model::time::Timestamp;
use telemetry::metrics::WorkerMetrics;
use telemetry::reopen::ReopenFile;
use tokio::sync::mpsc::UnboundedReceiver;
use upstream::h2::Connections;
use upstream::pool::Pool;
use upstream::{Connector, Resolve, Tls};

use crate::accepting::{IDLE, Place};
use crate::access_log::AccessLog;
use crate::awake::Awake;
use crate::buffering::Store;
use crate::faults::Faults;
use crate::limits::Limits;
use crate::local::{Local, scratch};
use crate::presence::Presence;
use crate::request_id::Ids;
use crate::seats::Seats;
use crate::sums::Sums;
use crate::tls::ServerTls;
use crate::wall::Date;

/// What a worker is told.
pub(crate) enum Command<I: Io> {
    /// Accept here; one socket or several of the same address.
    Listen(Box<Listener>, Vec<I::Bound>),
    /// The listeners of these ids have another configuration, maybe under another id.
    Update(Vec<(ListenerId, Listener)>),
    /// Accept no longer there.
    Close(ListenerId),
    /// Accept no longer anywhere, finish what is in flight, then end. A second one only changes the times.
    Drain(Drain),
}

/// How a worker ends.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    /// What is not finished within this time is cut off.
    pub grace: Duration,
    /// Connections without a request in hand may send one more within this time: it is answered with
    /// `Connection: close`. Closing them at once would cut off requests that are on their way.
    pub idle: Duration,
}

impl Drain {
    /// For a process that goes: idle connections have a second.
    pub fn within(grace: Duration) -> Self {
        Self { grace, idle: IDLE.min(grace) }
    }

    /// For a process whose listeners others go on serving: there is no hurry, idle connections end in their own time.
    pub fn at_leisure(grace: Duration) -> Self {
        Self { grace, idle: grace }
    }
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
    pub(crate) server_tls: ServerTls,
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
        sums: Sums::default(),
        access_log: start.access_log.map(AccessLog::new),
        instance: start.instance,
        picks: RefCell::new(exchange::Worker::new(start.seed)),
        pool: RefCell::new(Pool::new()),
        streams: Connections::new(),
        scratch: scratch(),
        workspaces: RefCell::default(),
        seats: Seats::default(),
        stream_seats: Seats::default(),
        outlet: RefCell::default(),
        presence: Presence::default(),
        awake: Awake::default(),
        server_tls: start.server_tls,
        faults: start.faults,
        pipes: Rc::default(),
        store: Store::default(),
        date: Date::default(),
        limits: start.limits,
        ids: Ids::default(),
    });
    runtime.block_on(main(local, start.commands));
    // Dropping the runtime ends what did not finish within the grace.
    Ok(())
}

async fn main<I: Io, R: Resolve>(local: Rc<Local<I, R>>, mut commands: UnboundedReceiver<Command<I>>) {
    let ticking = tokio::task::spawn_local(tick(Rc::clone(&local)));
    let logging = tokio::task::spawn_local(log(Rc::clone(&local)));
    let mut listeners: BTreeMap<ListenerId, Place<I>> = BTreeMap::new();
    let drain = loop {
        match commands.recv().await {
            // Nobody is left who could say more: end at once.
            None => break Drain { grace: Duration::ZERO, idle: Duration::ZERO },
            Some(Command::Drain(drain)) => break drain,
            Some(Command::Listen(config, bound)) => {
                let id = config.id.clone();
                let place = Place::open(&local, *config, bound);
                if let Some(former) = listeners.insert(id, place) {
                    former.close(&local).await;
                }
            }
            Some(Command::Update(kept)) => {
                // Two of them may have changed their names.
                let kept: Vec<_> = kept
                    .into_iter()
                    .map(|(id, config)| {
                        if id != config.id {
                            local.metrics.forget_listener(&id);
                        }
                        (listeners.remove(&id), config)
                    })
                    .collect();
                for (place, config) in kept {
                    let Some(place) = place else { continue };
                    listeners.insert(config.id.clone(), place.update(&local, config));
                }
            }
            Some(Command::Close(id)) => {
                local.metrics.forget_listener(&id);
                if let Some(place) = listeners.remove(&id) {
                    place.close(&local).await;
                }
            }
        }
    };
    for (_, place) in listeners {
        place.end(&local).await;
    }
    finish(&local, drain, &mut commands).await;
    ticking.abort();
    logging.abort();
}

async fn log<I: Io, R>(local: Rc<Local<I, R>>) {
    if let Some(log) = &local.access_log {
        log.keep_fresh(&local.io).await;
    }
}

/// Waits until the last connection has ended, as long as it may take.
async fn finish<I: Io, R>(local: &Local<I, R>, mut drain: Drain, commands: &mut UnboundedReceiver<Command<I>>) {
    local.presence.drain();
    let mut began = local.io.now();
    loop {
        let idle_until = if local.presence.has_dismissed_idle() { Timestamp::MAX } else { began + drain.idle };
        tokio::select! {
            () = local.presence.emptied() => return,
            () = local.io.sleep_until(began + drain.grace) => return,
            () = local.io.sleep_until(idle_until) => local.presence.dismiss_idle(),
            command = commands.recv() => match command {
                None => return,
                Some(Command::Drain(other)) => (began, drain) = (local.io.now(), other),
                Some(Command::Listen(..) | Command::Update(_) | Command::Close(_)) => {}
            },
        }
    }
}

async fn tick<I: Io, R>(local: Rc<Local<I, R>>) {
    let mut known = Arc::clone(&local.board.snapshot().config);
    loop {
        let now = local.io.now();
        local.awake.tick(now);
        local.board.tick(now);
        let snapshot = local.board.snapshot();
        if !Arc::ptr_eq(&known, &snapshot.config) {
            known = Arc::clone(&snapshot.config);
            local.picks.borrow_mut().retain(&known);
            // Destinations that are gone keep no idle connection.
            let living = snapshot.clusters.iter().flat_map(|cluster| &cluster.destinations);
            let living: BTreeSet<Slot> = living.map(|destination| destination.slot).collect();
            local.pool.borrow_mut().retain(|slot| living.contains(&slot));
            local.streams.retain(|slot| living.contains(&slot));
        }
        drop(snapshot);
        local.pool.borrow_mut().sweep(now);
        local.streams.sweep(now);
        local.io.sleep_until(now + Awake::TICK).await;
    }
}

//! All traffic threads: started together, told together.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use ::io::{Io, Share};
use board::Board;
use exchange::Snapshot;
use model::id::{ListenerId, WorkerId};
use model::listener::Listener;
use telemetry::metrics::Metrics;
use telemetry::reopen::ReopenFile;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use upstream::{Resolve, Tls};

use crate::worker::{Command, Start, run};

/// What the threads need.
pub struct Context<I, R> {
    /// The network and the clock.
    pub io: I,
    /// Names of destinations.
    pub resolver: R,
    /// TLS towards destinations.
    pub tls: Tls,
    /// The snapshot that requests walk over, and the records they leave. It says how many workers there are.
    pub board: Arc<Board<Snapshot>>,
    /// Where they count.
    pub metrics: Arc<Metrics>,
    /// One line per exchange.
    pub access_log: Option<ReopenFile>,
    /// This process's name in health documents, for the self-check.
    pub instance: Arc<str>,
    /// Where random choices come from; each worker gets another sequence.
    pub seed: u64,
}

/// Why traffic cannot start, or a listener cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be bound.
    #[error("listener {listener}: cannot bind {address}: {source}")]
    Bind {
        /// Whose.
        listener: ListenerId,
        /// Which.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// A thread cannot be started.
    #[error("cannot start a traffic thread: {0}")]
    Thread(io::Error),
}

/// The running threads. Dropping it ends them at once; [`Workers::drain`] ends them in order.
pub struct Workers<I: Io> {
    io: I,
    threads: Vec<Thread<I>>,
    listeners: BTreeMap<ListenerId, Listening>,
}

struct Thread<I: Io> {
    commands: UnboundedSender<Command<I>>,
    handle: JoinHandle<()>,
}

struct Listening {
    config: Listener,
    /// With the port that was found.
    bound: SocketAddr,
}

/// Sockets of a listener, one per worker.
struct Bound<I: Io> {
    config: Listener,
    address: SocketAddr,
    sockets: Vec<I::Bound>,
}

impl<I: Io + Send> Workers<I>
where
    I::Bound: Send,
{
    /// Binds all listeners, then starts the threads: when an address cannot be had, nothing has started.
    pub fn start<R: Resolve + Send>(context: Context<I, R>, listeners: &[Listener]) -> Result<Self, StartError> {
        let count = context.board.workers();
        let bound = bind_all(&context.io, listeners, count)?;
        let mut threads = Vec::with_capacity(count);
        for number in 0..u32::try_from(count).unwrap_or(u32::MAX) {
            threads.push(start_thread(&context, number).map_err(StartError::Thread)?);
        }
        let mut workers = Self { io: context.io, threads, listeners: BTreeMap::new() };
        workers.listen(bound);
        Ok(workers)
    }

    /// Takes over another list of listeners: binds new ones, ends those that are gone, and gives the others their new
    /// configuration without touching their sockets. When one cannot be bound nothing changes.
    pub fn apply_listeners(&mut self, listeners: &[Listener]) -> Result<(), StartError> {
        let is_kept = |wanted: &Listener| {
            self.listeners.get(&wanted.id).is_some_and(|running| running.config.address == wanted.address)
        };
        let (kept, new): (Vec<&Listener>, Vec<&Listener>) = listeners.iter().partition(|wanted| is_kept(wanted));
        let bound = bind_all(&self.io, new, self.threads.len())?;
        let gone: Vec<ListenerId> =
            self.listeners.keys().filter(|id| listeners.iter().all(|wanted| wanted.id != **id)).cloned().collect();
        for id in gone {
            self.listeners.remove(&id);
            self.tell(|_| Command::Close(id.clone()));
        }
        for config in kept {
            self.tell(|_| Command::Update(config.clone()));
            if let Some(listening) = self.listeners.get_mut(&config.id) {
                listening.config = config.clone();
            }
        }
        self.listen(bound);
        Ok(())
    }

    /// Where clients are accepted, by listener, with the port that was found where port 0 was asked for.
    pub fn addresses(&self) -> impl Iterator<Item = (&ListenerId, SocketAddr)> {
        self.listeners.iter().map(|(id, listening)| (id, listening.bound))
    }

    /// Stops accepting and finishes what is in flight within `grace`. Does not wait: [`Workers::join`] does.
    pub fn drain(&self, grace: Duration) {
        self.tell(|_| Command::Drain(grace));
    }

    /// Whether all threads have ended.
    pub fn is_finished(&self) -> bool {
        self.threads.iter().all(|thread| thread.handle.is_finished())
    }

    /// Waits for the threads. Blocks; without a [`Workers::drain`] before, they end at once.
    pub fn join(self) {
        for thread in self.threads {
            drop(thread.commands);
            if thread.handle.join().is_err() {
                tracing::error!(target: "proxy", "a traffic thread has panicked");
            }
        }
    }

    fn listen(&mut self, bound: Vec<Bound<I>>) {
        for Bound { config, address, sockets } in bound {
            for (thread, socket) in self.threads.iter().zip(sockets) {
                // A thread that ended takes no commands; its end was logged.
                let _ = thread.commands.send(Command::Listen(config.clone(), socket));
            }
            self.listeners.insert(config.id.clone(), Listening { config, bound: address });
        }
    }

    fn tell(&self, command: impl Fn(usize) -> Command<I>) {
        for (number, thread) in self.threads.iter().enumerate() {
            let _ = thread.commands.send(command(number));
        }
    }
}

fn start_thread<I, R>(context: &Context<I, R>, number: u32) -> io::Result<Thread<I>>
where
    I: Io + Send,
    I::Bound: Send,
    R: Resolve + Send,
{
    let (commands, receiver) = unbounded_channel();
    let start = Start {
        id: WorkerId(number),
        io: context.io.clone(),
        resolver: context.resolver.clone(),
        tls: context.tls.clone(),
        board: Arc::clone(&context.board),
        metrics: context.metrics.worker(),
        access_log: context.access_log.clone(),
        instance: Arc::clone(&context.instance),
        seed: context.seed.wrapping_add(u64::from(number)),
        commands: receiver,
    };
    let body = move || {
        if let Err(error) = run(start) {
            tracing::error!(target: "proxy", %error, worker = number, "a traffic thread has ended");
        }
    };
    let handle = std::thread::Builder::new().name(format!("worker-{number}")).spawn(body)?;
    Ok(Thread { commands, handle })
}

fn bind_all<'l, I: Io>(
    io: &I,
    listeners: impl IntoIterator<Item = &'l Listener>,
    count: usize,
) -> Result<Vec<Bound<I>>, StartError> {
    let mut all = Vec::new();
    for config in listeners {
        let failed = |source| StartError::Bind { listener: config.id.clone(), address: config.address, source };
        let mut sockets = Vec::with_capacity(count);
        let mut address = config.address;
        for number in 0..count {
            let share = if number == 0 { Share::First } else { Share::Join };
            let socket = io.bind(address, share).map_err(failed)?;
            if number == 0 {
                address = io.bound_addr(&socket).map_err(failed)?;
            }
            sockets.push(socket);
        }
        all.push(Bound { config: config.clone(), address, sockets });
    }
    Ok(all)
}

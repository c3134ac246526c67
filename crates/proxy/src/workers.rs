//! All traffic threads: started together, told together.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use ::io::Io;
use board::Board;
use exchange::Snapshot;
use model::id::{ListenerId, WorkerId};
use model::listener::Listener;
use telemetry::metrics::Metrics;
use telemetry::reopen::ReopenFile;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use upstream::{Resolve, Tls};

use crate::faults::Faults;
use crate::limits::Limits;
use crate::sockets::{self, Bound, Sockets};
use crate::tls::ServerTls;
use crate::worker::{Command, Drain, Start, run};

/// What the threads need.
pub struct Context<I, R> {
    /// The network and the clock.
    pub io: I,
    /// Names of destinations.
    pub resolver: R,
    /// TLS towards destinations.
    pub tls: Tls,
    /// TLS of listeners; what a configuration names is committed there before the configuration is taken over here.
    pub server_tls: ServerTls,
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
    listeners: BTreeMap<ListenerId, Listening<I>>,
    faults: Faults,
}

struct Thread<I: Io> {
    commands: UnboundedSender<Command<I>>,
    handle: JoinHandle<()>,
}

struct Listening<I: Io> {
    config: Listener,
    /// With the port that was found.
    bound: SocketAddr,
    /// Each of its sockets once, to be handed over. Workers accept on descriptors of their own.
    sockets: Vec<I::Bound>,
}

/// Another list of listeners, ready to be taken over: what can fail is done. Dropped, it leaves everything as it is.
pub struct Listeners<I: Io> {
    /// Those that keep their sockets, by their ids before; the address is the same, the rest may be new, the id included.
    kept: Vec<(ListenerId, Listener)>,
    gone: Vec<ListenerId>,
    new: Vec<Bound<I>>,
}

impl<I: Io + Send> Workers<I>
where
    I::Bound: Send,
{
    /// Binds all listeners, then starts the threads: when an address cannot be had, nothing has started.
    pub fn start<R: Resolve + Send>(context: Context<I, R>, listeners: &[Listener]) -> Result<Self, StartError> {
        let sockets = Sockets::bind(&context.io, listeners, Vec::new(), context.board.workers())?;
        Self::start_with(context, sockets)
    }

    /// Starts the threads with what is bound already.
    pub fn start_with<R: Resolve + Send>(context: Context<I, R>, sockets: Sockets<I>) -> Result<Self, StartError> {
        let count = context.board.workers();
        let (faults, limits) = (Faults::default(), Limits::new());
        let queues = Arc::clone(&limits.queues);
        context.board.watch(Box::new(move || queues.changed()));
        let mut threads = Vec::with_capacity(count);
        for number in 0..u32::try_from(count).unwrap_or(u32::MAX) {
            threads.push(start_thread(&context, number, &faults, &limits).map_err(StartError::Thread)?);
        }
        let mut workers = Self { io: context.io, threads, listeners: BTreeMap::new(), faults };
        workers.listen(sockets.bound);
        Ok(workers)
    }

    /// Makes another list of listeners ready: binds the addresses that are new. When one cannot be had nothing has
    /// changed.
    pub fn prepare_listeners(&self, listeners: &[Listener]) -> Result<Listeners<I>, StartError> {
        let (mut kept, mut new) = (Vec::new(), Vec::new());
        for wanted in listeners {
            match self.at(wanted) {
                Some(id) => kept.push((id.clone(), wanted.clone())),
                None => new.push(wanted),
            }
        }
        let is_gone = |id: &&ListenerId| kept.iter().all(|(before, _)| before != *id);
        let gone = self.listeners.keys().filter(is_gone).cloned().collect();
        Ok(Listeners { gone, new: sockets::bind_all(&self.io, new, &mut Vec::new(), self.threads.len())?, kept })
    }

    /// Takes over what was made ready since the last call: ends those that are gone, begins new ones, and gives the
    /// others their new configuration without touching their sockets.
    pub fn take_over(&mut self, listeners: Listeners<I>) {
        let Listeners { kept, gone, new } = listeners;
        for id in gone {
            self.listeners.remove(&id);
            self.tell(|_| Command::Close(id.clone()));
        }
        let running: Vec<_> = kept.iter().map(|(before, _)| self.listeners.remove(before)).collect();
        for ((_, config), running) in kept.iter().zip(running) {
            if let Some(running) = running {
                self.listeners.insert(config.id.clone(), Listening { config: config.clone(), ..running });
            }
        }
        self.tell(|_| Command::Update(kept.clone()));
        self.listen(new);
    }

    /// Who listens at the address already. Where the system chose the port, that is this very listener or nobody.
    fn at(&self, wanted: &Listener) -> Option<&ListenerId> {
        let is_there = |listening: &Listening<I>| listening.config.address == wanted.address;
        if let Some((id, _)) = self.listeners.get_key_value(&wanted.id).filter(|(_, running)| is_there(running)) {
            return Some(id);
        }
        let mut others = self.listeners.iter().filter(|_| wanted.address.port() != 0);
        others.find(|(_, running)| is_there(running)).map(|(id, _)| id)
    }

    /// Where clients are accepted, by listener, with the port that was found where port 0 was asked for.
    pub fn addresses(&self) -> impl Iterator<Item = (&ListenerId, SocketAddr)> {
        self.listeners.iter().map(|(id, listening)| (id, listening.bound))
    }

    /// Every listening socket once, with where it listens. Connections go on waiting in it for as long as any process
    /// holds a descriptor of it.
    pub fn sockets(&self) -> impl Iterator<Item = (SocketAddr, &I::Bound)> {
        let each = |listening: &'_ Listening<I>| listening.bound;
        self.listeners.values().flat_map(move |one| one.sockets.iter().map(move |socket| (each(one), socket)))
    }

    /// The listeners that do not accept though they should; the set lives on with the threads.
    pub fn faults(&self) -> Faults {
        self.faults.clone()
    }

    /// Stops accepting and finishes what is in flight. Who waits in a queue is served first. Does not wait:
    /// [`Workers::join`] does. Called again, it sets other times.
    pub fn drain(&mut self, drain: Drain) {
        // Ours go first: a worker's is then the last one of this process, and is closed right after a look at its queue.
        self.listeners.clear();
        self.tell(|_| Command::Drain(drain));
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
        for Bound { config, address, kept, shares } in bound {
            for (thread, sockets) in self.threads.iter().zip(shares) {
                // A thread that ended takes no commands; its end was logged.
                let _ = thread.commands.send(Command::Listen(Box::new(config.clone()), sockets));
            }
            self.listeners.insert(config.id.clone(), Listening { config, bound: address, sockets: kept });
        }
    }

    fn tell(&self, command: impl Fn(usize) -> Command<I>) {
        for (number, thread) in self.threads.iter().enumerate() {
            let _ = thread.commands.send(command(number));
        }
    }
}

fn start_thread<I, R>(
    context: &Context<I, R>,
    number: u32,
    faults: &Faults,
    limits: &Arc<Limits>,
) -> io::Result<Thread<I>>
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
        faults: faults.clone(),
        limits: Arc::clone(limits),
        server_tls: context.server_tls.clone(),
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

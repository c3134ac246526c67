//! The control thread: starts the parts in order, carries out orders, ends the parts in order.
//!
//! ```text
//!   serving ── Stop ──> lead: nodes unhealthy, still accepting ──> grace: nothing accepted, in flight ends ──> over
//!      ├────── owner gone ──────────────────────────────────────────────────────────────────────────────────────^
//!      └────── HandOver (see `upgrade`): another process serves, in flight ends ────────────────────────────────^
//! ```

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use ::io::real::Real;
use config::Loaded;
use control::{Command, RecordReply, ReloadReply};
use model::config::AccessLog;
use monitor::{Monitor, Names};
use proxy::{ServerTls, Sockets, Workers};
use recorder::Standing;
use telemetry::journal::Journal;
use telemetry::metrics::Metrics;
use telemetry::reopen::ReopenFile;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use upstream::{Connector, NameServers, SystemResolver, Tls};

use super::process::ThisProcess;
use super::reload::Reloads;
use super::spooling::Spooling;
use super::upgrade::Wish;
use super::{shared, workers};
use crate::builder::Lazaret;
use crate::error::Error;
use crate::inheritance::Inheritance;
use crate::inheritance::hand_over::{Generation, Predecessor};
use crate::inheritance::manager::Store;
use crate::listener_tls;
use crate::memory;
use crate::places;
use crate::running::{Addresses, Facts, Failed, Order, ReloadError};

/// How often the end of the traffic threads is looked for.
pub(super) const POLL: Duration = Duration::from_millis(20);

/// How long the start waits for the first answers to the names of destinations. One that has none is no reason not to
/// start.
const FIRST_ANSWERS: Duration = Duration::from_secs(1);

/// The body of the control thread.
pub(super) fn thread(
    lazaret: Lazaret,
    inheritance: Inheritance,
    orders: mpsc::UnboundedReceiver<Order>,
    started: &SyncSender<Result<Facts, Error>>,
) {
    let runtime = match tokio::runtime::LocalRuntime::new() {
        Ok(runtime) => runtime,
        Err(source) => {
            let _ = started.send(Err(Error::start("the control thread's runtime", source)));
            return;
        }
    };
    // Whoever waits for the start has nothing else to do; a failed send means that the whole process is ending.
    runtime.block_on(async {
        match Supervisor::start(lazaret, inheritance).await {
            Ok((supervisor, facts)) => {
                let _ = started.send(Ok(facts));
                supervisor.run(orders).await;
            }
            Err(error) => {
                let _ = started.send(Err(error));
            }
        }
    });
}

/// The running parts.
pub(super) struct Supervisor {
    pub(super) io: Real,
    pub(super) monitor: monitor::Handle,
    pub(super) workers: Workers<Real>,
    pub(super) reloads: Reloads,
    access_log: Option<ReopenFile>,
    is_draining: Arc<AtomicBool>,
    pub(super) is_handed_over: Arc<AtomicBool>,
    /// Changing calls of the control API.
    pub(super) commands: mpsc::Receiver<Command>,
    /// Ends the control API when it is dropped or sent to.
    pub(super) control_stop: Option<oneshot::Sender<()>>,
    control: JoinHandle<()>,
    /// For who takes over.
    pub(super) control_sockets: control::listen::Shared,
    /// Old processes that still finish, oldest first.
    pub(super) generations: Vec<Generation>,
    /// What the service manager keeps.
    store: Store,
}

impl Supervisor {
    async fn start(lazaret: Lazaret, mut inheritance: Inheritance) -> Result<(Self, Facts), Error> {
        let config = shared(&lazaret);
        let inherited = inheritance.take_control(&config.control);
        let Inheritance { io, sockets: inherited_sockets, predecessor, store, control: _ } = inheritance;
        let mut control_listeners = control::Listeners::bind_with(&config.control, inherited)
            .map_err(|error| places::control_refused(&lazaret.loaded, error))?;
        let control_sockets = control_listeners.share().map_err(|source| Error::start("the control API", source))?;
        let control_address =
            control_listeners.tcp.local_addr().map_err(|source| Error::start("the control API", source))?;
        let server_tls = ServerTls::new();
        listener_tls::commit(&server_tls, listener_tls::prepare(&server_tls, &lazaret.loaded).map_err(Error::Config)?);
        let access_log = open(&lazaret.loaded)?;
        for warning in places::warnings(&lazaret.loaded) {
            tracing::warn!(target: "lazaret", "{warning}");
        }
        let metrics = Metrics::new();
        if let Some(file) = &access_log {
            metrics.watch_log("access", file.clone());
        }
        let journal = Journal::new(Arc::clone(&metrics));
        let instance = control::Instance::random();
        let seed = fastrand::u64(..);
        let spooling = Spooling::new(&instance, Arc::clone(&metrics)).open(&lazaret.loaded)?;
        let (resolver, tls) = (SystemResolver::new(), Tls::new());
        // Bound before anything is waited for: connections that come meanwhile wait in the sockets' queues.
        let failed = |error| Error::start("traffic", other(error));
        let sockets = Sockets::bind(&io.for_traffic(), &config.listeners, inherited_sockets, workers(&config));
        let sockets = sockets.map_err(failed)?;
        let mut names = Names::new(seed, Rc::new(NameServers::new(resolver.clone())));
        names.start(&io, &metrics, &config, FIRST_ANSWERS).await;
        let context = monitor::Context {
            connector: Connector::new(io, resolver.clone(), tls.clone()),
            journal: Arc::clone(&journal),
            metrics: Arc::clone(&metrics),
            workers: workers(&config),
            seed,
            names,
            spool: spooling.spool(),
            extensions: lazaret.extensions.clone(),
        };
        let mut monitor = Monitor::new(context, Arc::clone(&config))
            .map_err(|error| places::cluster_refused(&lazaret.loaded, error))?;
        let board = monitor.board();
        let handle = monitor.handle().ok_or(monitor::Gone)?;
        let traffic = proxy::Context {
            io: io.for_traffic(),
            resolver,
            tls,
            server_tls: server_tls.clone(),
            board: Arc::clone(&board),
            metrics: Arc::clone(&metrics),
            access_log: access_log.clone(),
            instance: instance.as_str().into(),
            seed,
        };
        for address in sockets.unclaimed(&traffic.io) {
            tracing::warn!(target: "lazaret", %address, "no listener is configured for an inherited socket: closed");
        }
        // All that can fail is done: from here on it is about who serves.
        let handed = |source| Error::start("the hand-over", source);
        if let Some(predecessor) = &predecessor {
            match predecessor.ready().map_err(handed)? {
                Some(saved) => monitor.restore(saved),
                None => tracing::warn!(
                    target: "lazaret",
                    "what the process before knows of destinations cannot be read by this version: all begin unknown"
                ),
            }
        }
        let workers = Workers::start_with(traffic, sockets).map_err(failed)?;
        let generations = predecessor.map(Predecessor::serving).transpose().map_err(handed)?.unwrap_or_default();
        control_listeners.take_over();
        let is_draining = Arc::new(AtomicBool::new(false));
        let failed_upgrades = Failed::default();
        let process = ThisProcess {
            io,
            board: Arc::clone(&board),
            monitor: handle.clone(),
            faults: workers.faults(),
            is_draining: Arc::clone(&is_draining),
            failed_upgrades: failed_upgrades.clone(),
        };
        let (sender, commands) = mpsc::channel(COMMANDS);
        tokio::task::spawn_local(memory::give_back());
        tokio::task::spawn_local(listener_tls::watch(server_tls.clone(), Arc::clone(&metrics)));
        let api = control::Context::new(process, Arc::clone(&journal), metrics, instance, sender);
        let (control_stop, stopped) = oneshot::channel();
        tokio::task::spawn_local(monitor.run());
        // Who started it finds the configuration's event in the journal.
        handle.begun().await?;
        let control = tokio::task::spawn_local(serve(api, control_listeners, stopped));
        let addresses = Addresses::default();
        addresses.set(workers.addresses());
        let is_handed_over = Arc::new(AtomicBool::new(false));
        let facts = Facts {
            board,
            journal,
            listeners: addresses.clone(),
            control: control_address,
            is_handed_over: Arc::clone(&is_handed_over),
            failed_upgrades,
        };
        for (id, address) in workers.addresses() {
            tracing::info!(target: "lazaret", listener = id.as_str(), %address, "listening");
        }
        tracing::info!(target: "lazaret", %control_address, "control API");
        let reloads = Reloads::new(lazaret, config, addresses, server_tls, spooling);
        let mut supervisor = Self {
            io,
            monitor: handle,
            workers,
            reloads,
            access_log,
            is_draining,
            is_handed_over,
            commands,
            control_stop: Some(control_stop),
            control,
            control_sockets,
            generations,
            store,
        };
        supervisor.store.keep(supervisor.workers.sockets());
        Ok((supervisor, facts))
    }

    async fn run(mut self, mut orders: mpsc::UnboundedReceiver<Order>) {
        loop {
            tokio::select! {
                order = orders.recv() => match order {
                    Some(Order::Stop) => break self.stop(&mut orders).await,
                    Some(Order::HandOver(stream, reply)) => match self.hand_over(stream, &mut orders).await {
                        (Ok(successor), _) => {
                            self.note_handed_over();
                            let _ = reply.send(Ok(()));
                            break self.finish(successor, &mut orders).await;
                        }
                        (Err(error), wish) => {
                            let _ = reply.send(Err(error));
                            if wish == Wish::Stop {
                                break self.stop(&mut orders).await;
                            }
                        }
                    },
                    Some(order) => self.obey(order).await,
                    // The owner has dropped it: end at once.
                    None => break,
                },
                Some(command) = self.commands.recv() => self.command(command).await,
            }
        }
        self.end().await;
    }

    /// What takes a moment and changes nothing about who serves.
    pub(super) async fn obey(&mut self, order: Order) {
        match order {
            Order::Reload(reply) => {
                let done = self.reload().await;
                let _ = reply.send(done);
            }
            Order::Reconfigure(lazaret, reply) => {
                let done = self.reloads.apply(*lazaret, &self.monitor, &mut self.workers).await;
                self.store.keep(self.workers.sockets());
                let _ = reply.send(done);
            }
            Order::SetHealth(set, reply) => {
                let is_set = self.monitor.set_health(set).await.is_ok();
                let _ = reply.send(());
                tracing::debug!(target: "lazaret", is_set, "health set from outside");
            }
            Order::ReopenLogs => {
                if let Some(file) = &self.access_log {
                    file.reopen();
                }
            }
            // Both end this life: the loop sees to them.
            Order::Stop | Order::HandOver(..) => {}
        }
    }

    async fn command(&mut self, command: Command) {
        match command {
            Command::Reload { reply } => {
                let answer = match self.reload().await {
                    Ok(summary) => ReloadReply::Applied { summary },
                    Err(ReloadError::Stopping | ReloadError::Busy) => ReloadReply::Busy,
                    Err(error @ (ReloadError::Refused(_) | ReloadError::NoFile)) => {
                        ReloadReply::Refused { report: error.to_string() }
                    }
                };
                let _ = reply.send(answer);
            }
            Command::Record { instance, unix_ms, reply } => {
                let answer = match self.monitor.record(instance.as_str().to_owned(), unix_ms).await {
                    Ok(Ok(file)) => RecordReply::Saved(file),
                    Ok(Err(Standing::TooLarge)) => RecordReply::Nothing(
                        "nothing is recorded: the state of all destinations takes a quarter of recorder.size or more; raise it",
                    ),
                    Ok(Err(Standing::Off | Standing::On { .. })) => {
                        RecordReply::Nothing("nothing is recorded: the configuration says recorder: off")
                    }
                    Err(monitor::Gone) => RecordReply::Busy,
                };
                let _ = reply.send(answer);
            }
        }
    }

    async fn reload(&mut self) -> Result<String, ReloadError> {
        let done = self.reloads.reload(&self.monitor, &mut self.workers).await;
        self.store.keep(self.workers.sockets());
        done
    }

    /// The planned stop. Everything but a further stop is refused meanwhile; the control API goes on answering.
    async fn stop(&mut self, orders: &mut mpsc::UnboundedReceiver<Order>) {
        let drain = self.reloads.config().drain;
        self.is_draining.store(true, Ordering::Relaxed);
        if self.monitor.drain().await.is_err() {
            tracing::error!(target: "lazaret", "the health monitor ended before the stop");
        }
        let lead = tokio::time::sleep(drain.lead);
        let grace = async {
            lead.await;
            self.workers.drain(proxy::Drain::within(drain.grace));
            while !self.workers.is_finished() {
                tokio::time::sleep(POLL).await;
            }
        };
        tokio::pin!(grace);
        loop {
            tokio::select! {
                () = &mut grace => return,
                // Dropping an order's reply tells the asker that the proxy is stopping.
                order = orders.recv() => if order.is_none() { return },
                Some(command) = self.commands.recv() => command.busy(),
            }
        }
    }

    async fn end(self) {
        // Both may be gone already; their ends are what is wanted.
        let _ = self.monitor.shutdown().await;
        self.workers.join();
        if let Some(stop) = self.control_stop {
            let _ = stop.send(());
        }
        let _ = self.control.await;
        if let Some(file) = &self.access_log {
            file.flush(FLUSH);
        }
        if let Some(spool) = self.reloads.spooling().spool() {
            spool.flush(FLUSH);
        }
    }
}

/// Changing calls that wait.
const COMMANDS: usize = 16;
/// The access log's last lines, and the recorder's last piece, are waited for so long each.
const FLUSH: Duration = Duration::from_secs(2);

async fn serve(api: Arc<control::Context>, listeners: control::Listeners, stopped: oneshot::Receiver<()>) {
    let stop = async {
        // Sent or dropped: either way the process ends.
        let _ = stopped.await;
    };
    if let Err(error) = control::serve(api, listeners, stop).await {
        tracing::error!(target: "lazaret", %error, "the control API has ended");
    }
}

fn open(loaded: &Loaded) -> Result<Option<ReopenFile>, Error> {
    match &loaded.config.access_log {
        AccessLog::Off => Ok(None),
        AccessLog::Stdout => ReopenFile::stdout().map(Some).map_err(|error| Error::start("the access log", error)),
        AccessLog::File(path) => {
            let refused = |error| Error::Config(places::access_log_refused(loaded, path, &error));
            ReopenFile::open(path).map(Some).map_err(refused)
        }
    }
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> std::io::Error {
    std::io::Error::other(error)
}

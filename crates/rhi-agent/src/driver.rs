//! The loop around the core: feed what happened, carry out what comes back.
//!
//! ```text
//!  signals ─────────────┐
//!  poll tasks ──(64)────┤                       ┌──> poll tasks (one JoinSet per cycle; the next cycle aborts the last)
//!  netlink queue ─(64)──┼──> driver: core ──────┼──> netlink queue (unbounded: one job per address at most)
//!  netlink monitor ─(1)─┤    handle, drain      ├──> log lines
//!  status socket ─(16)──┤                       └──> replies to asks, sd_notify
//!  core's next deadline ┘
//! ```
//!
//! Numbers are channel depths. Owners: the driver alone owns the core, the locks and the configuration. Every branch of
//! the select waits on a channel or a sleep, which are cancel safe; nothing in the loop itself waits for anything else,
//! so that a hanging poll, kernel or client of the socket never delays a decision.

use std::collections::BTreeMap;
use std::future::pending;
use std::path::Path;

use model::vip::RhiConfig;
use rhi::core::{Input, Output};
use rhi::status::Identity;
use rhi::{Core, Event};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::clock::Clock;
use crate::lock::{Lock, LockError};
use crate::netlink::addresses::Addresses;
use crate::netlink::queue::{self, Job};
use crate::poll::{self, Answered};
use crate::socket::{self, Ask, SocketFile};
use crate::{logs, notify};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM, SIGINT: a planned stop.
    Stop,
    /// SIGHUP: read the configuration again and open the logs anew.
    Reload,
    /// SIGUSR1: open the logs anew.
    Reopen,
}

/// What the program lends to the driver.
pub struct Hooks {
    /// Reads and checks the configuration file.
    pub load: Box<dyn Fn() -> Result<RhiConfig, String> + Send>,
    /// Opens the log files anew.
    pub reopen_logs: Box<dyn Fn() + Send>,
}

/// Starts the listening for signals.
pub fn signals() -> std::io::Result<mpsc::Receiver<Signal>> {
    let (sender, receiver) = mpsc::channel(16);
    for (kind, meaning) in [
        (SignalKind::terminate(), Signal::Stop),
        (SignalKind::interrupt(), Signal::Stop),
        (SignalKind::hangup(), Signal::Reload),
        (SignalKind::user_defined1(), Signal::Reopen),
    ] {
        let mut stream = signal(kind)?;
        let sender = sender.clone();
        tokio::spawn(async move { while stream.recv().await.is_some() && sender.send(meaning).await.is_ok() {} });
    }
    Ok(receiver)
}

/// Runs until a planned stop is done. `changes` says that the kernel's addresses changed (see
/// [`crate::netlink::monitor`]).
pub async fn run<A: Addresses>(
    config: RhiConfig,
    addresses: A,
    changes: mpsc::Receiver<()>,
    signals: mpsc::Receiver<Signal>,
    hooks: Hooks,
) -> Result<(), LockError> {
    let lock = Lock::take(&config.interface)?;
    let (jobs, queued) = mpsc::unbounded_channel();
    let (kernel_answers, kernel) = mpsc::channel(64);
    let (poll_answers, polls) = mpsc::channel(64);
    let (asks, asked) = mpsc::channel(16);
    let queue = tokio::spawn(queue::run(addresses, queued, kernel_answers));
    let (status_server, _socket_file) = serve_status(&config.status_socket, asks);
    let clock = Clock::start();
    let driver = Driver {
        locks: BTreeMap::from([(config.interface.clone(), lock)]),
        core: Core::new(clock.now(), config),
        clock,
        hooks,
        instance: instance(),
        config_stale: false,
        jobs,
        poll_answers,
        running_polls: JoinSet::new(),
    };
    driver.turn(Inputs { kernel, polls, changes, signals, asked }).await;
    queue.abort();
    status_server.abort();
    Ok(())
}

/// The status socket is for people; without it the daemon does its work all the same.
fn serve_status(path: &Path, asks: mpsc::Sender<Ask>) -> (JoinHandle<()>, Option<SocketFile>) {
    match socket::bind(path) {
        Ok((listener, file)) => (tokio::spawn(socket::serve(listener, asks)), Some(file)),
        Err(error) => {
            tracing::warn!(target: "rhi_agent", path = %path.display(), %error, "no status socket");
            // The channel stays open, so that the driver's branch for it just never has anything.
            let keep = async move {
                pending::<()>().await;
                drop(asks);
            };
            (tokio::spawn(keep), None)
        }
    }
}

struct Inputs {
    kernel: mpsc::Receiver<Input>,
    polls: mpsc::Receiver<Answered>,
    changes: mpsc::Receiver<()>,
    signals: mpsc::Receiver<Signal>,
    asked: mpsc::Receiver<Ask>,
}

struct Driver {
    core: Core,
    clock: Clock,
    hooks: Hooks,
    locks: BTreeMap<String, Lock>,
    instance: String,
    config_stale: bool,
    jobs: mpsc::UnboundedSender<Job>,
    poll_answers: mpsc::Sender<Answered>,
    running_polls: JoinSet<()>,
}

/// Whether the loop goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Turn,
    End,
}

impl Driver {
    async fn turn(mut self, mut inputs: Inputs) {
        let mut watchdog = notify::watchdog_interval().map(|period| {
            let mut ticks = interval(period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });
        while self.drain() == Next::Turn {
            let timeout = self.core.poll_timeout().map(|at| self.clock.instant(at));
            tokio::select! {
                Some(input) = inputs.kernel.recv() => self.feed(input),
                Some(Answered { cycle, upstream, answer }) = inputs.polls.recv() => {
                    self.feed(Input::PollAnswered { cycle, upstream, answer });
                }
                Some(()) = inputs.changes.recv() => self.feed(Input::AddressesChanged),
                Some(signal) = inputs.signals.recv() => self.on_signal(signal),
                Some(ask) = inputs.asked.recv() => self.on_ask(ask),
                () = due(timeout) => self.feed(Input::TimerDue),
                () = tick(watchdog.as_mut()) => notify::alive(),
            }
        }
    }

    fn feed(&mut self, input: Input) {
        self.core.handle(self.clock.now(), input);
    }

    fn drain(&mut self) -> Next {
        let mut next = Next::Turn;
        while let Some(output) = self.core.poll_output() {
            match output {
                Output::Poll { cycle, upstreams, deadline } => {
                    let url = &self.core.config().control_url;
                    let deadline = self.clock.instant(deadline);
                    self.running_polls = poll::start(url, cycle, upstreams, deadline, &self.poll_answers);
                }
                Output::ReadAddresses { interfaces } => self.order(Job::Read(interfaces)),
                Output::AddAddress(key) => self.order(Job::Add(key)),
                Output::RemoveAddress(key) => self.order(Job::Remove(key)),
                Output::Event(event) => self.write(&event),
                Output::Stopped => next = Next::End,
            }
        }
        let needed = self.core.interfaces();
        self.locks.retain(|interface, _| needed.contains(interface));
        next
    }

    fn order(&self, job: Job) {
        // The queue lives as long as the driver; should it have died, the core's commands stay under way and the
        // status shows it, which is better than to end and leave the addresses to nobody.
        if self.jobs.send(job).is_err() {
            tracing::error!(target: "rhi_agent", "the netlink task is gone");
        }
    }

    fn write(&self, event: &Event) {
        logs::write(event);
        // Whatever is ordered after this service may now trust the interface: no stale VIP is on it any more.
        if let Event::Running { .. } = event {
            notify::ready();
        }
        if let Event::Decided { .. } | Event::Running { .. } = event {
            let (announced, of) = self.core.announced();
            notify::status(&format!("{announced} of {of} VIPs announced"));
        }
    }

    fn on_signal(&mut self, signal: Signal) {
        match signal {
            Signal::Stop => {
                notify::stopping();
                self.feed(Input::Stop);
            }
            Signal::Reload => {
                (self.hooks.reopen_logs)();
                // The reason is in the log already.
                let _ = self.reload();
            }
            Signal::Reopen => (self.hooks.reopen_logs)(),
        }
    }

    fn on_ask(&mut self, ask: Ask) {
        // Who asked may have gone; then nobody waits for the reply.
        match ask {
            Ask::Status(reply) => {
                let _ = reply.send(self.status());
            }
            Ask::Reload(reply) => {
                let _ = reply.send(self.reload());
            }
        }
    }

    fn status(&self) -> apisix::rhi::RhiStatus {
        let clock = self.clock;
        let wall_clock = move |at| clock.wall(at);
        let identity = Identity {
            instance: &self.instance,
            version: env!("CARGO_PKG_VERSION"),
            wall_clock: &wall_clock,
            config_stale: self.config_stale,
        };
        self.core.status(self.clock.now(), &identity)
    }

    /// All or nothing: a file that is refused, or an interface that another daemon has, changes nothing.
    fn reload(&mut self) -> Result<(), String> {
        notify::reloading();
        let result = self.try_reload();
        self.config_stale = result.is_err();
        if let Err(why) = &result {
            tracing::error!(target: "rhi_agent", "configuration refused, the old one stays: {why}");
        }
        notify::ready();
        result
    }

    fn try_reload(&mut self) -> Result<(), String> {
        let config = (self.hooks.load)()?;
        if !self.locks.contains_key(&config.interface) {
            let lock = Lock::take(&config.interface).map_err(|error| error.to_string())?;
            self.locks.insert(config.interface.clone(), lock);
        }
        let old = self.core.config();
        let paths =
            |config: &RhiConfig| (config.main_log.clone(), config.error_log.clone(), config.status_socket.clone());
        if paths(old) != paths(&config) {
            tracing::warn!(target: "rhi_agent", "main_log, error_log and status_socket change with the next start");
        }
        self.feed(Input::ConfigChanged(Box::new(config)));
        Ok(())
    }
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

async fn tick(ticks: Option<&mut tokio::time::Interval>) {
    match ticks {
        Some(ticks) => {
            ticks.tick().await;
        }
        None => pending().await,
    }
}

/// Different in each process: its number and the time of its start.
fn instance() -> String {
    format!("{:x}-{:x}", std::process::id(), jiff::Timestamp::now().as_nanosecond())
}

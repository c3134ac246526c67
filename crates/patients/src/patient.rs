//! A patient: its listener, its switch and its counts.
//!
//! ```text
//!   Patient ──watch──> run: bind, accept ──spawn──> one task per connection (connection.rs)
//!                       ^  │                             │
//!                       └──┴── Die, Refuse: drop the        └── Die: reset; Refuse: finish and close
//!                              listener
//! ```

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::behaviour::Behaviour;
use crate::connection::serve;
use crate::script::Script;
use crate::work::{Places, Work};

/// A running destination on 127.0.0.1 (or where it was told to be). It ends when dropped.
///
/// Must be made within a tokio runtime, which then carries it.
pub struct Patient {
    name: Arc<str>,
    addr: SocketAddr,
    switch: Arc<watch::Sender<Switches>>,
    counters: Arc<Counters>,
    running: Vec<JoinHandle<()>>,
    probed_at: SocketAddr,
    playing: std::sync::Mutex<Option<JoinHandle<()>>>,
}

/// What a patient has seen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted.
    pub connections: u64,
    /// Requests for anything but `/health`.
    pub requests: u64,
    /// Requests for `/health`.
    pub probes: u64,
}

impl Patient {
    /// One on a free port, serving without delay.
    pub async fn start(name: &str) -> io::Result<Self> {
        Self::start_at(name, SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// One at a given address.
    pub async fn start_at(name: &str, addr: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(addr).await?;
        Self::open(name, vec![listener], None)
    }

    /// One on a free port that works. It listens on a second one, too ([`Self::probed_at`]).
    pub async fn work(name: &str, work: Work) -> io::Result<Self> {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listeners = vec![TcpListener::bind(any).await?, TcpListener::bind(any).await?];
        Self::open(name, listeners, Some(Arc::new(Places::new(work))))
    }

    fn open(name: &str, listeners: Vec<TcpListener>, places: Option<Arc<Places>>) -> io::Result<Self> {
        let (switch, switches) = watch::channel(Switches::default());
        let (name, counters): (Arc<str>, _) = (Arc::from(name), Arc::new(Counters::default()));
        let inside = Inside { name: Arc::clone(&name), switches, counters: Arc::clone(&counters), places };
        let (mut addresses, mut running) = (Vec::new(), Vec::new());
        for listener in listeners {
            let addr = listener.local_addr()?;
            addresses.push(addr);
            running.push(tokio::spawn(run(listener, addr, inside.clone())));
        }
        let (Some(addr), Some(probed_at)) = (addresses.first().copied(), addresses.last().copied()) else {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        };
        let playing = std::sync::Mutex::default();
        Ok(Self { name, addr, switch: Arc::new(switch), counters, running, probed_at, playing })
    }

    /// Its name, which its answers carry in `X-Patient` and in their body.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it listens (or would, were it not dead).
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Where probes may be sent instead, so that their connections can be told from those of traffic even while nobody listens:
    /// a second port that lives and dies with the first. The same as [`Self::addr`] for one that does not work.
    pub fn probed_at(&self) -> SocketAddr {
        self.probed_at
    }

    /// `http://address/`.
    pub fn url(&self) -> String {
        format!("http://{}/", self.addr)
    }

    /// What it does with traffic at present.
    pub fn behaviour(&self) -> Behaviour {
        self.switch.borrow().traffic
    }

    /// Behaves so from now on. Ends a running script.
    pub fn set(&self, behaviour: Behaviour) {
        self.stop_playing();
        set(&self.switch, &self.name, behaviour);
    }

    /// Makes `/health` behave otherwise than the rest ([`Behaviour::Die`] has no effect there); `None`: like the rest.
    pub fn set_health(&self, behaviour: Option<Behaviour>) {
        self.switch.send_modify(|switches| switches.health = behaviour);
    }

    /// Follows a script from now on, in place of a running one.
    pub fn play(&self, script: Script) {
        self.stop_playing();
        let (switch, name) = (Arc::clone(&self.switch), Arc::clone(&self.name));
        let playing = tokio::spawn(async move {
            let mut now = Duration::ZERO;
            for step in script.0 {
                tokio::time::sleep(step.at.saturating_sub(now)).await;
                now = now.max(step.at);
                set(&switch, &name, step.behaviour);
            }
        });
        *self.playing() = Some(playing);
    }

    /// What it has seen so far.
    pub fn counts(&self) -> Counts {
        self.counters.read()
    }

    fn stop_playing(&self) {
        if let Some(playing) = self.playing().take() {
            playing.abort();
        }
    }

    fn playing(&self) -> std::sync::MutexGuard<'_, Option<JoinHandle<()>>> {
        self.playing.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Patient {
    fn drop(&mut self) {
        self.stop_playing();
        self.running.iter().for_each(JoinHandle::abort);
        // Connections end with the behaviour of a killed process.
        self.switch.send_modify(|switches| switches.traffic = Behaviour::Die);
    }
}

/// What the tasks of a patient watch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Switches {
    pub(crate) traffic: Behaviour,
    pub(crate) health: Option<Behaviour>,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) connections: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) probes: AtomicU64,
}

impl Counters {
    fn read(&self) -> Counts {
        Counts {
            connections: self.connections.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
            probes: self.probes.load(Ordering::Relaxed),
        }
    }
}

fn set(switch: &watch::Sender<Switches>, name: &str, behaviour: Behaviour) {
    tracing::info!(target: "patients", patient = name, %behaviour, "behaves");
    switch.send_modify(|switches| switches.traffic = behaviour);
}

/// What the listener and each connection of a patient have.
#[derive(Clone)]
pub(crate) struct Inside {
    pub(crate) name: Arc<str>,
    pub(crate) switches: watch::Receiver<Switches>,
    pub(crate) counters: Arc<Counters>,
    /// Of one that works.
    pub(crate) places: Option<Arc<Places>>,
}

/// Listens while alive, and again once it comes back.
async fn run(listener: TcpListener, addr: SocketAddr, inside: Inside) {
    let mut switches = inside.switches.clone();
    let mut listener = Some(listener);
    loop {
        let is_dead = matches!(switches.borrow_and_update().traffic, Behaviour::Die | Behaviour::Refuse);
        if is_dead {
            listener = None;
        } else if listener.is_none() {
            listener = bind_again(addr, &inside.name).await;
        }
        let changed = match &listener {
            Some(listener) => tokio::select! {
                changed = switches.changed() => changed,
                accepted = listener.accept() => {
                    match accepted {
                        Ok((stream, _)) => {
                            inside.counters.connections.fetch_add(1, Ordering::Relaxed);
                            tokio::spawn(serve(stream, inside.clone()));
                        }
                        // No descriptor is free; the next accept would fail as fast.
                        Err(_) => tokio::time::sleep(RETRY_AFTER).await,
                    }
                    Ok(())
                }
            },
            None if is_dead => switches.changed().await,
            None => {
                tokio::time::sleep(RETRY_AFTER).await;
                Ok(())
            }
        };
        if changed.is_err() {
            return;
        }
    }
}

async fn bind_again(addr: SocketAddr, name: &str) -> Option<TcpListener> {
    match TcpListener::bind(addr).await {
        Ok(listener) => Some(listener),
        Err(error) => {
            tracing::warn!(target: "patients", patient = name, %addr, %error, "cannot listen yet");
            None
        }
    }
}

const RETRY_AFTER: Duration = Duration::from_millis(20);

//! A destination whose health a test turns, and which remembers when it was probed.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use testkit::destination::{Act, Destination, Moment, answer};
use testkit::gathering::Gathering;

/// Answers `/health` with [`Probed::turn`]'s status and everything else with 200 and its own name.
pub struct Probed {
    destination: Destination,
    health: Arc<AtomicU16>,
    content: Arc<AtomicU16>,
    slow_ms: Arc<AtomicU64>,
    probes: Arc<Mutex<Vec<Instant>>>,
}

impl Probed {
    /// Starts one in good health. Its content is its name.
    pub fn start(name: &str) -> Self {
        Self::start_with(name, Vec::new())
    }

    /// One whose content waits for the other requests of its group. Probes do not.
    pub fn gathering(name: &str, gathering: &Gathering) -> Self {
        Self::start_with(name, vec![Act::Gather(gathering.clone())])
    }

    /// `first` is what comes before each answer with content.
    fn start_with(name: &str, first: Vec<Act>) -> Self {
        let (health, content) = (Arc::new(AtomicU16::new(200)), Arc::new(AtomicU16::new(200)));
        let slow_ms = Arc::new(AtomicU64::new(0));
        let probes = Arc::new(Mutex::new(Vec::new()));
        let destination = Destination::start({
            let (health, content, probes) = (Arc::clone(&health), Arc::clone(&content), Arc::clone(&probes));
            let slow_ms = Arc::clone(&slow_ms);
            let name = name.to_owned();
            move |moment| match moment {
                Moment::Accepted => Vec::new(),
                Moment::Request(request) if request.message.target().starts_with("/health") => {
                    probes.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
                    let pause = Act::Pause(Duration::from_millis(slow_ms.load(Ordering::SeqCst)));
                    [vec![pause], answer(health.load(Ordering::SeqCst), &name)].concat()
                }
                Moment::Request(_) => [first.clone(), answer(content.load(Ordering::SeqCst), &name)].concat(),
            }
        });
        Self { destination, health, content, slow_ms, probes }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.destination.addr()
    }

    /// `http://127.0.0.1:port/`.
    pub fn url(&self) -> String {
        self.destination.url()
    }

    /// From now on `/health` answers so.
    pub fn turn(&self, status: u16) {
        self.health.store(status, Ordering::SeqCst);
    }

    /// From now on `/health` answers after this time.
    pub fn slow_down(&self, by: Duration) {
        self.slow_ms.store(by.as_millis().try_into().unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// How `/health` answers now.
    pub fn health(&self) -> u16 {
        self.health.load(Ordering::SeqCst)
    }

    /// From now on everything else answers so.
    pub fn turn_content(&self, status: u16) {
        self.content.store(status, Ordering::SeqCst);
    }

    /// When it was probed, oldest first.
    pub fn probes(&self) -> Vec<Instant> {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Probes since `since`.
    pub fn probes_since(&self, since: Instant) -> Vec<Instant> {
        self.probes().into_iter().filter(|&at| at >= since).collect()
    }

    /// Requests that were no probes.
    pub fn served(&self) -> usize {
        let requests = self.destination.requests();
        requests.iter().filter(|request| !request.message.target().starts_with("/health")).count()
    }

    /// Everything it got.
    pub fn destination(&self) -> &Destination {
        &self.destination
    }
}

/// The times between neighbours.
pub fn gaps(moments: &[Instant]) -> Vec<Duration> {
    moments.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// The middle one.
pub fn median(mut spans: Vec<Duration>) -> Duration {
    spans.sort();
    spans.get(spans.len() / 2).copied().unwrap_or_default()
}

//! A load of everything at once, each answer of which must belong to its request: clients of HTTP/1.1 and HTTP/2, some of
//! which leave in the middle, and destinations of which some reset.

mod destination;
mod http1;
mod http2;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub use destination::Echo;

/// What came of a load.
#[derive(Debug, Default)]
pub struct Tally {
    /// Whole answers that were their request's.
    pub right: AtomicU64,
    /// Answers that were another request's, or changed on the way.
    pub wrong: AtomicU64,
    /// Exchanges that the client left in the middle.
    pub left: AtomicU64,
    /// 5xx of the proxy, and connections that broke off.
    pub failed: AtomicU64,
    /// Failures among requests that may be repeated (GET).
    pub failed_gets: AtomicU64,
}

impl Tally {
    /// One more.
    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// The count now.
    pub fn of(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }
}

/// Runs `clients` clients of each kind for so long; `meanwhile` is called over and over by this thread.
pub fn run(proxy: SocketAddr, clients: usize, length: Duration, tally: &Tally, mut meanwhile: impl FnMut()) {
    let until = Instant::now() + length;
    std::thread::scope(|scope| {
        for number in 0..clients {
            scope.spawn(move || http1::client(proxy, number as u64, until, tally));
        }
        scope.spawn(move || http2::clients(proxy, clients as u64, until, tally));
        while Instant::now() < until {
            meanwhile();
        }
    });
}

/// The content of the answer to `id`: its number, over and over, so that a byte of another one shows.
fn content(id: u64) -> Vec<u8> {
    let length = usize::try_from(id * 2_654_435_761 % 40_000).unwrap_or_default();
    let word = format!("{id}.");
    word.bytes().cycle().take(length.max(word.len())).collect()
}

/// Of a hundred, the share of clients that leave and of destinations that reset.
const SHARE: usize = 5;

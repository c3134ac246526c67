//! Idle connections to destinations, one pool per worker.
//!
//! Last in, first out: the connection used last is the least likely to have been closed meanwhile, and the ones beyond
//! today's need grow old and go. Whether a connection still lives is asked of the readiness that the runtime knows
//! already, by a read that nobody is woken for: no system call, no task per idle connection. A connection on which
//! anything can be read while it is idle (its end, an error, bytes nobody asked for) is never used again.
//!
//! A destination's connections are told apart by their [`Key`]: under other settings those made before are closed.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use model::id::Slot;
use model::time::Timestamp;
use tokio::io::{AsyncRead, ReadBuf};

use crate::key::{Key, OwnedKey};

/// Idle connections of one worker, by destination.
pub struct Pool<S> {
    stacks: Vec<Stack<S>>,
    len: usize,
}

/// How long and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// A connection is closed after so long without use.
    pub idle: Duration,
    /// Most connections per destination; `None`: no cap.
    pub most: Option<u32>,
    /// The destination closes an idle connection after so long (`Keep-Alive: timeout`): ours goes a second before.
    pub announced: Option<Duration>,
}

struct Stack<S> {
    /// Whose they are; `None`: nobody's yet.
    key: Option<OwnedKey>,
    /// The newest at the back.
    idle: VecDeque<Idle<S>>,
}

struct Idle<S> {
    stream: S,
    until: Timestamp,
}

impl<S> Default for Pool<S> {
    fn default() -> Self {
        Self { stacks: Vec::new(), len: 0 }
    }
}

impl<S: AsyncRead + Unpin> Pool<S> {
    /// An empty pool.
    pub fn new() -> Self {
        Self::default()
    }

    /// Connections that lie idle.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none lies idle.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The connection that was used last and is still good. Of one that `is_known_quiet` holds for the runtime need not be
    /// asked.
    pub fn take(&mut self, key: &Key<'_>, now: Timestamp, is_known_quiet: impl Fn(&S) -> bool) -> Option<S> {
        let stack = self.stacks.get_mut(key.slot.index())?;
        if !stack.fits(key) {
            self.len -= stack.idle.len();
            stack.idle.clear();
            return None;
        }
        while let Some(mut idle) = stack.idle.pop_back() {
            self.len -= 1;
            if idle.until > now && (is_known_quiet(&idle.stream) || is_quiet(&mut idle.stream)) {
                return Some(idle.stream);
            }
        }
        None
    }

    /// Keeps a connection whose last response was read to its end and no byte further.
    pub fn put(&mut self, key: &Key<'_>, stream: S, keep: Keep, now: Timestamp) {
        let slot = key.slot;
        let announced = keep.announced.map_or(Duration::MAX, |timeout| timeout.saturating_sub(EARLIER));
        let span = keep.idle.min(announced);
        if span.is_zero() || keep.most == Some(0) {
            return;
        }
        if self.stacks.len() <= slot.index() {
            self.stacks.resize_with(slot.index() + 1, || Stack { key: None, idle: VecDeque::new() });
        }
        let Some(stack) = self.stacks.get_mut(slot.index()) else { return };
        if !stack.fits(key) {
            self.len -= stack.idle.len();
            stack.idle.clear();
            stack.key = Some(key.owned());
        }
        if keep.most.is_some_and(|most| stack.idle.len() >= most as usize) && stack.idle.pop_front().is_some() {
            self.len -= 1;
        }
        stack.idle.push_back(Idle { stream, until: now + span });
        self.len += 1;
    }

    /// Closes what is too old or has been closed by the other side. For a tick, once a second or so.
    pub fn sweep(&mut self, now: Timestamp) {
        for stack in &mut self.stacks {
            let before = stack.idle.len();
            stack.idle.retain_mut(|idle| idle.until > now && is_quiet(&mut idle.stream));
            self.len -= before - stack.idle.len();
        }
    }

    /// Closes those of all other destinations.
    pub fn retain(&mut self, mut is_kept: impl FnMut(Slot) -> bool) {
        for (index, stack) in (0..).zip(&mut self.stacks) {
            if !stack.idle.is_empty() && !is_kept(Slot(index)) {
                self.len -= stack.idle.len();
                stack.idle.clear();
            }
        }
    }

    /// Closes all.
    pub fn clear(&mut self) {
        self.stacks.clear();
        self.len = 0;
    }
}

impl<S> Stack<S> {
    #[inline]
    fn fits(&self, key: &Key<'_>) -> bool {
        self.key.as_ref().is_some_and(|kept| kept.fits(key))
    }
}

/// Whether nothing can be read.
fn is_quiet<S: AsyncRead + Unpin>(stream: &mut S) -> bool {
    let mut byte = [0; 1];
    let mut buffer = ReadBuf::new(&mut byte);
    let mut context = Context::from_waker(Waker::noop());
    Pin::new(stream).poll_read(&mut context, &mut buffer).is_pending()
}

/// A destination counts its timeout from the moment it sent, we from the moment we read.
const EARLIER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::sync::LazyLock;

    use model::address::Url;
    use model::cluster::UpstreamTls;
    use model::upstream::{Outbound, UpstreamHttp};

    use super::*;
    use tokio::io::{AsyncWriteExt, DuplexStream, duplex};

    const KEEP: Keep = Keep { idle: Duration::from_secs(30), most: Some(2), announced: None };

    static ADDRESS: LazyLock<Url> = LazyLock::new(|| Url::parse("http://a.test/").unwrap());
    static TLS: LazyLock<UpstreamTls> = LazyLock::new(UpstreamTls::default);
    static OUTBOUND: LazyLock<Outbound> = LazyLock::new(Outbound::default);

    fn key(slot: u32) -> Key<'static> {
        let http = UpstreamHttp::Http1;
        Key { slot: Slot(slot), address: &ADDRESS, literal: None, tls: &TLS, http, outbound: &OUTBOUND }
    }

    fn unknown(_: &DuplexStream) -> bool {
        false
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_secs(seconds)
    }

    fn pool_of(count: usize, keep: Keep) -> (Pool<DuplexStream>, Vec<DuplexStream>) {
        let mut pool = Pool::new();
        let others = (0..count).map(|_| {
            let (ours, theirs) = duplex(64);
            pool.put(&key(3), ours, keep, at(0));
            theirs
        });
        let others = others.collect();
        (pool, others)
    }

    #[tokio::test]
    async fn the_newest_comes_first_and_the_oldest_goes_beyond_the_cap() {
        let (mut pool, mut others) = pool_of(3, KEEP);
        assert_eq!(pool.len(), 2);
        let mut newest = pool.take(&key(3), at(1), unknown).unwrap();
        newest.write_all(b"x").await.unwrap();
        let mut seen = [0; 1];
        tokio::io::AsyncReadExt::read_exact(&mut others[2], &mut seen).await.unwrap();
        assert_eq!(others[0].write_all(b"x").await.unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
        assert!(pool.take(&key(4), at(1), unknown).is_none());
    }

    #[tokio::test]
    async fn what_has_an_end_or_a_byte_to_read_is_not_used() {
        let (mut pool, mut others) = pool_of(2, KEEP);
        others[1].write_all(b"HTTP/1.1 408 x\r\n").await.ok();
        drop(others.remove(0));
        assert!(pool.take(&key(3), at(1), unknown).is_none());
        assert!(pool.is_empty());
    }

    #[tokio::test]
    async fn idle_time_ends_a_second_before_the_announced_timeout() {
        let keep = Keep { announced: Some(Duration::from_secs(5)), ..KEEP };
        for (now, is_there) in [(3, true), (4, false)] {
            let (mut pool, _others) = pool_of(1, keep);
            assert_eq!(pool.take(&key(3), at(now), unknown).is_some(), is_there, "{now}");
        }
        let (pool, _others) = pool_of(1, Keep { announced: Some(Duration::from_secs(1)), ..KEEP });
        assert!(pool.is_empty());
    }

    #[tokio::test]
    async fn another_destination_in_the_same_slot_never_gets_a_connection_made_before() {
        let (mut pool, _others) = pool_of(1, KEEP);
        let other = Url::parse("http://b.test/").unwrap();
        assert!(pool.take(&Key { address: &other, ..key(3) }, at(1), unknown).is_none());
        assert!(pool.is_empty());
    }

    #[tokio::test]
    async fn connections_of_a_destination_that_is_gone_are_closed() {
        let (mut pool, mut others) = pool_of(2, KEEP);
        pool.retain(|slot| slot == Slot(3));
        assert_eq!(pool.len(), 2);
        pool.retain(|_| false);
        assert!(pool.is_empty() && pool.take(&key(3), at(1), unknown).is_none());
        assert_eq!(others[0].write_all(b"x").await.unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn a_sweep_closes_the_old_and_the_closed() {
        let (mut pool, mut others) = pool_of(2, KEEP);
        drop(others.remove(0));
        pool.sweep(at(1));
        assert_eq!(pool.len(), 1);
        pool.sweep(at(30));
        assert!(pool.is_empty());
    }
}

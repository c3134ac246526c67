//! Names to addresses.
//!
//! The system's resolver blocks, and a name server that does not answer blocks it for many seconds. So lookups run on
//! threads of their own, `LOOKUPS` at most, one per name; all who ask for the same name meanwhile wait for the same
//! lookup, and nobody waits longer than `PATIENCE`. A lookup that hangs keeps its thread until the system gives up,
//! but delays only its own name.
//!
//! ```text
//!   resolve(name) ──> fresh answer in the cache? ──yes──> answer
//!                        │no
//!                        └──> lookup running? ──no──> start a thread ──┐
//!                                 └──yes───────────────────────────────┴──> wait for its answer, PATIENCE at most
//! ```

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// Finds the addresses of a name.
pub trait Resolve: Clone + 'static {
    /// The addresses of `name`, in the resolver's order.
    fn resolve(&self, name: &str) -> impl Future<Output = Result<Arc<[IpAddr]>, ResolveError>>;
}

/// Why a name has no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The resolver says so, in its words.
    #[error("the name was not found: {0}")]
    NotFound(Arc<str>),
    /// No answer in time.
    #[error("no answer to the name in time")]
    Timeout,
    /// As many lookups as allowed are hanging.
    #[error("too many lookups are waiting for an answer")]
    Busy,
}

/// The system's resolver (files, DNS: whatever `getaddrinfo` does) with a small cache. Clones share it, over threads.
#[derive(Clone, Default)]
pub struct SystemResolver {
    names: Arc<Mutex<Names>>,
}

#[derive(Default)]
struct Names {
    known: HashMap<Box<str>, Name>,
    running: usize,
}

enum Name {
    /// Answered at that time.
    Answered(Instant, Answer),
    /// A thread is looking.
    Looking(watch::Receiver<Option<Answer>>),
}

type Answer = Result<Arc<[IpAddr]>, ResolveError>;

impl SystemResolver {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer, or where it will come.
    fn ask(&self, name: &str) -> Result<Answer, watch::Receiver<Option<Answer>>> {
        let mut names = self.names();
        match names.known.get(name) {
            Some(Name::Answered(at, answer)) if at.elapsed() < lifetime(answer) => return Ok(answer.clone()),
            Some(Name::Looking(answer)) => return Err(answer.clone()),
            Some(Name::Answered(..)) | None => {}
        }
        if names.running >= LOOKUPS {
            return Ok(Err(ResolveError::Busy));
        }
        if names.known.len() >= CACHED {
            names.known.retain(|_, name| matches!(name, Name::Looking(_)));
        }
        let (sender, receiver) = watch::channel(None);
        let (resolver, owned) = (self.clone(), Box::<str>::from(name));
        let thread = std::thread::Builder::new().name("resolve".to_owned()).spawn(move || {
            let answer = look_up(&owned);
            let mut names = resolver.names();
            names.running -= 1;
            names.known.insert(owned, Name::Answered(Instant::now(), answer.clone()));
            drop(names);
            sender.send_replace(Some(answer));
        });
        if let Err(error) = thread {
            return Ok(Err(ResolveError::NotFound(error.to_string().into())));
        }
        names.running += 1;
        names.known.insert(name.into(), Name::Looking(receiver.clone()));
        Err(receiver)
    }
}

impl Resolve for SystemResolver {
    async fn resolve(&self, name: &str) -> Answer {
        let mut coming = match self.ask(name) {
            Ok(answer) => return answer,
            Err(coming) => coming,
        };
        match tokio::time::timeout(PATIENCE, coming.wait_for(Option::is_some)).await {
            Ok(Ok(answer)) => answer.clone().unwrap_or(Err(ResolveError::Timeout)),
            Ok(Err(_)) | Err(_) => Err(ResolveError::Timeout),
        }
    }
}

fn look_up(name: &str) -> Answer {
    match (name, 0).to_socket_addrs() {
        Ok(found) => {
            let mut addresses = Vec::new();
            for address in found.map(|address| address.ip()) {
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
            Ok(addresses.into())
        }
        Err(error) => Err(ResolveError::NotFound(error.to_string().into())),
    }
}

fn lifetime(answer: &Answer) -> Duration {
    if answer.is_ok() { REFRESH } else { REFRESH_FAILED }
}

/// Names from a table: for tests and demonstrations.
#[derive(Clone, Debug, Default)]
pub struct TableResolver {
    names: Arc<BTreeMap<String, Vec<IpAddr>>>,
}

impl TableResolver {
    /// Knows these names; all others are not found.
    pub fn new(names: impl IntoIterator<Item = (&'static str, Vec<IpAddr>)>) -> Self {
        Self { names: Arc::new(names.into_iter().map(|(name, found)| (name.to_owned(), found)).collect()) }
    }
}

impl Resolve for TableResolver {
    async fn resolve(&self, name: &str) -> Answer {
        match self.names.get(name) {
            Some(found) => Ok(found.as_slice().into()),
            None => Err(ResolveError::NotFound("not in the table".into())),
        }
    }
}

/// Lookups that run at the same time, one thread each.
const LOOKUPS: usize = 32;
/// Nobody waits longer for a lookup.
const PATIENCE: Duration = Duration::from_secs(5);
/// An answer is good for so long. `getaddrinfo` does not tell the record's own lifetime.
const REFRESH: Duration = Duration::from_secs(10);
/// A failure is good for so long.
const REFRESH_FAILED: Duration = Duration::from_secs(1);
/// Names kept; beyond it the cache starts anew.
const CACHED: usize = 4096;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[tokio::test]
    async fn the_system_knows_localhost_and_says_why_it_does_not_know_a_name() {
        let resolver = SystemResolver::new();
        let found = resolver.resolve("localhost").await.unwrap();
        assert!(found.iter().all(IpAddr::is_loopback) && !found.is_empty());
        // RFC 6761: the name is never found.
        assert!(matches!(resolver.resolve("nowhere.invalid").await, Err(ResolveError::NotFound(_))));
    }

    #[tokio::test]
    async fn many_who_ask_for_one_name_share_one_lookup() {
        let resolver = SystemResolver::new();
        let (one, two) = tokio::join!(resolver.resolve("localhost"), resolver.resolve("localhost"));
        let again = resolver.resolve("localhost").await.unwrap();
        assert!(Arc::ptr_eq(&one.unwrap(), &again) && Arc::ptr_eq(&two.unwrap(), &again));
        assert_eq!(resolver.names().running, 0);
    }

    #[tokio::test]
    async fn when_all_lookups_hang_a_new_name_fails_at_once_and_a_known_one_does_not() {
        let resolver = SystemResolver::new();
        resolver.resolve("localhost").await.unwrap();
        resolver.names().running = LOOKUPS;
        assert_eq!(resolver.resolve("other.invalid").await, Err(ResolveError::Busy));
        assert!(resolver.resolve("localhost").await.is_ok());
    }
}

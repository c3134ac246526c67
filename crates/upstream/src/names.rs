//! Lookups that know more than `getaddrinfo` tells: how long an answer is good, and whether a name does not exist or the
//! server did not say.
//!
//! One resolver for the process, on the control thread: traffic never waits for it. It asks the name servers of the
//! configuration, else those of `/etc/resolv.conf`, with that file's search list and options; `/etc/hosts` goes first.
//! Both files are read when the configuration is. Without a usable `resolv.conf` the system's own resolver is asked,
//! which tells no lifetime: its answers count as good for `UNTOLD`.
//!
//! Nothing is cached here: whoever asks decides when to ask again.

use std::cell::RefCell;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use model::upstream::Family;

use crate::resolve::{Resolve, ResolveError, SystemResolver};

/// What a lookup came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookedUp {
    /// Addresses, good for so long.
    Found(Vec<IpAddr>, Duration),
    /// The name exists without addresses.
    Empty,
    /// There is no such name.
    NoName,
    /// No usable answer, and why.
    Failed(String),
}

/// Looks names up.
pub trait LookUp {
    /// The addresses of `name`. Answers within [`PATIENCE`].
    fn look_up<'a>(&'a self, name: &'a str, family: Family) -> Pin<Box<dyn Future<Output = LookedUp> + 'a>>;

    /// Asks these servers from now on; none: the system's.
    fn use_servers(&self, servers: &[SocketAddr]);
}

/// Asks name servers.
pub struct NameServers {
    system: SystemResolver,
    /// `None`: there is no usable `resolv.conf`.
    resolver: RefCell<Option<TokioResolver>>,
}

impl NameServers {
    /// `system` is asked where there is no usable `resolv.conf`.
    pub fn new(system: SystemResolver) -> Self {
        Self { system, resolver: RefCell::new(None) }
    }

    async fn ask(&self, name: &str, family: Family) -> LookedUp {
        let resolver = self.resolver.borrow().clone();
        let Some(resolver) = resolver else { return self.ask_system(name).await };
        let Ok(name) = Name::from_str_relaxed(name) else { return LookedUp::NoName };
        match family {
            Family::V4 => records(&resolver, &name, RecordType::A).await,
            Family::V6 => records(&resolver, &name, RecordType::AAAA).await,
            // A lookup that fails says nothing about the family: only a clear "no IPv4" leads on to IPv6.
            Family::Auto => match records(&resolver, &name, RecordType::A).await {
                LookedUp::Empty => records(&resolver, &name, RecordType::AAAA).await,
                other @ (LookedUp::Found(..) | LookedUp::NoName | LookedUp::Failed(_)) => other,
            },
            Family::Both => {
                let (v4, v6) =
                    tokio::join!(records(&resolver, &name, RecordType::A), records(&resolver, &name, RecordType::AAAA));
                joined(v4, v6)
            }
        }
    }

    async fn ask_system(&self, name: &str) -> LookedUp {
        match self.system.resolve(name).await {
            Ok(found) if found.is_empty() => LookedUp::Empty,
            Ok(found) => LookedUp::Found(found.to_vec(), UNTOLD),
            // `getaddrinfo` does not tell reliably whether the name or the answer is missing.
            Err(error @ (ResolveError::NotFound(_) | ResolveError::Timeout | ResolveError::Busy)) => {
                LookedUp::Failed(error.to_string())
            }
        }
    }
}

impl LookUp for NameServers {
    fn look_up<'a>(&'a self, name: &'a str, family: Family) -> Pin<Box<dyn Future<Output = LookedUp> + 'a>> {
        Box::pin(async move {
            let asked = tokio::time::timeout(PATIENCE, self.ask(name, family)).await;
            asked.unwrap_or_else(|_| LookedUp::Failed("no answer in time".to_owned()))
        })
    }

    fn use_servers(&self, servers: &[SocketAddr]) {
        let resolver = match build(servers) {
            Ok(resolver) => Some(resolver),
            Err(error) => {
                tracing::warn!(target: "upstream", %error, "no usable resolv.conf: names are looked up by the system's resolver");
                None
            }
        };
        *self.resolver.borrow_mut() = resolver;
    }
}

fn build(servers: &[SocketAddr]) -> Result<TokioResolver, NetError> {
    let mut builder = if servers.is_empty() {
        TokioResolver::builder_tokio()?
    } else {
        let mut config = ResolverConfig::default();
        for server in servers {
            let at = |mut connection: ConnectionConfig| {
                connection.port = server.port();
                connection
            };
            let connections = vec![at(ConnectionConfig::udp()), at(ConnectionConfig::tcp())];
            config.add_name_server(NameServerConfig::new(server.ip(), true, connections));
        }
        let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        builder.options_mut().timeout = ONE_TRY;
        builder.options_mut().attempts = 1;
        builder
    };
    builder.options_mut().cache_size = 0;
    builder.build()
}

async fn records(resolver: &TokioResolver, name: &Name, kind: RecordType) -> LookedUp {
    let lookup = match resolver.lookup(name.clone(), kind).await {
        Ok(lookup) => lookup,
        Err(error) => return failure(&error),
    };
    let (mut found, mut ttl) = (Vec::new(), u32::MAX);
    for record in lookup.answers() {
        // An alias on the way is good for no longer than the addresses behind it, and no longer than itself.
        ttl = ttl.min(record.ttl);
        if let Some(ip) = address(&record.data) {
            found.push(ip);
        }
    }
    if found.is_empty() { LookedUp::Empty } else { LookedUp::Found(found, Duration::from_secs(u64::from(ttl))) }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "RData is not ours and not exhaustive")]
fn address(data: &RData) -> Option<IpAddr> {
    match data {
        RData::A(address) => Some(IpAddr::V4(address.0)),
        RData::AAAA(address) => Some(IpAddr::V6(address.0)),
        _ => None,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "NetError is not ours and not exhaustive")]
fn failure(error: &NetError) -> LookedUp {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(none)) => match none.response_code {
            ResponseCode::NXDomain => LookedUp::NoName,
            ResponseCode::NoError => LookedUp::Empty,
            code => LookedUp::Failed(format!("the name server said: {code}")),
        },
        other => LookedUp::Failed(other.to_string()),
    }
}

/// Both families together. While one of them is unknown, so is the whole.
fn joined(v4: LookedUp, v6: LookedUp) -> LookedUp {
    match (v4, v6) {
        (LookedUp::Failed(why), _) | (_, LookedUp::Failed(why)) => LookedUp::Failed(why),
        (LookedUp::Found(mut found, ttl), LookedUp::Found(others, other_ttl)) => {
            found.extend(others);
            LookedUp::Found(found, ttl.min(other_ttl))
        }
        (found @ LookedUp::Found(..), LookedUp::Empty | LookedUp::NoName)
        | (LookedUp::Empty | LookedUp::NoName, found @ LookedUp::Found(..)) => found,
        (LookedUp::Empty, LookedUp::Empty | LookedUp::NoName) | (LookedUp::NoName, LookedUp::Empty) => LookedUp::Empty,
        (LookedUp::NoName, LookedUp::NoName) => LookedUp::NoName,
    }
}

/// No lookup takes longer.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// How long one question to a configured server may take; it is asked once more after that.
const ONE_TRY: Duration = Duration::from_secs(2);
/// The lifetime of answers that tell none.
const UNTOLD: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ip: &str) -> LookedUp {
        LookedUp::Found(ip.parse().into_iter().collect(), Duration::from_secs(9))
    }

    #[test]
    fn while_one_family_is_unknown_both_are() {
        let failed = || LookedUp::Failed("silence".to_owned());
        assert_eq!(joined(found("10.0.0.1"), failed()), failed());
        assert_eq!(joined(failed(), LookedUp::NoName), failed());
        assert_eq!(joined(LookedUp::Empty, found("::1")), found("::1"));
        assert_eq!(joined(LookedUp::NoName, LookedUp::Empty), LookedUp::Empty);
        let both = LookedUp::Found(vec!["10.0.0.1".parse().unwrap(), "::1".parse().unwrap()], Duration::from_secs(9));
        assert_eq!(joined(found("10.0.0.1"), found("::1")), both);
    }

    #[tokio::test]
    async fn localhost_needs_no_server() {
        let servers = NameServers::new(SystemResolver::new());
        servers.use_servers(&["127.0.0.1:1".parse().unwrap()]);
        assert!(matches!(servers.look_up("localhost", Family::Auto).await, LookedUp::Found(found, _)
            if found == ["127.0.0.1".parse::<IpAddr>().unwrap()]));
    }
}

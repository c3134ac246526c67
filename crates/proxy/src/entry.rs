//! From an accepted connection to one that HTTP can be read from.
//!
//! ```text
//!   accepted ──> [PROXY header] ──> access list ──> limit per client ──> [TLS handshake] ──> HTTP
//!                   │ from whom?        │                │                    │
//!                   └───────────────────┴────────────────┴────────────────────┴──> closed, counted
//! ```
//! Whoever is refused here is closed without an answer: what it would understand is not known yet, and an answer costs
//! more than the refusal saves. The exception is plain HTTP at a TLS port, a mistake that deserves a word.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::task::Poll;
use std::time::Duration;

use ::io::Io;
use http1::proxy_header::{self, ProxyHeader};
use model::entry::{Entry, ProxyProtocol};
use model::time::Timestamp;
use model::tls::Alpn;

use crate::ahead::Ahead;
use crate::client::Client;
use crate::handshake::{self, Shaken};
use crate::limits::Permit;
use crate::listener::View;
use crate::local::{Local, address_of};
use crate::timer::Timer;
use crate::wire::Wire;

/// A connection that came through.
pub(crate) struct Admitted<I: Io> {
    pub(crate) client: Box<Client<I>>,
    pub(crate) speaks: Speaks,
}

/// What is remembered of how a connection came in.
pub(crate) struct Arrival {
    /// Who connected, when it stands for another.
    pub(crate) relay: Option<IpAddr>,
    /// The address that the client connected to, as that one says.
    pub(crate) server: Option<SocketAddr>,
    /// Its place among those of its client, held to its end.
    _place: Option<Permit>,
}

/// What the client will speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    /// What its first bytes tell: nothing was agreed on.
    Open,
    /// This, by ALPN.
    Agreed(Alpn),
    /// Plain HTTP where TLS is spoken: to be told so.
    PlainAtTls,
}

/// Lets a connection in; `None`: it is closed.
pub(crate) async fn admit<I: Io, R>(
    local: &Local<I, R>,
    view: &View,
    stream: I::Stream,
    peer: SocketAddr,
) -> Option<Admitted<I>> {
    let entry = &view.config.entry;
    if *entry == Entry::default() && view.config.tls.is_none() {
        let client = Box::new(Client::new(local.io.clone(), Wire::Plain(stream), peer));
        return Some(Admitted { client, speaks: Speaks::Open });
    }
    // Apart from the connection's own task, which then keeps none of the memory that this takes.
    Box::pin(walk(local, view, stream, peer)).await
}

async fn walk<I: Io, R>(local: &Local<I, R>, view: &View, stream: I::Stream, peer: SocketAddr) -> Option<Admitted<I>> {
    let start = local.io.now();
    let entry = &view.config.entry;
    let mut timer = Timer::new(local.io.clone());
    let mut stream = Ahead::new(stream, Vec::new());
    let (mut client, mut server) = (peer, None);
    match &entry.proxy_protocol {
        ProxyProtocol::Off => {}
        ProxyProtocol::Required { from } => {
            let address = address_of(peer);
            if !from.is_empty() && !from.iter().any(|network| network.contains(&address)) {
                return refuse(local, view, address, "proxy-peer", "it may send no PROXY header");
            }
            let due = start + view.config.limits.header_timeout;
            match proxy_header(local, &mut stream, &mut timer, due).await {
                Ok(named) => (client, server) = named.map_or((peer, None), |(client, server)| (client, Some(server))),
                Err((reason, why)) => return refuse(local, view, address, reason, why),
            }
        }
    }
    let address = address_of(client);
    if !entry.access.admits(address) {
        return refuse(local, view, address, "denied", "allow and deny of the listener");
    }
    let place = match entry.limit_connections {
        None => None,
        Some(limit) => match local.limits.connect(&view.config.id, address, limit) {
            Some(place) => Some(place),
            None => return refuse(local, view, address, "limit-connections", "it has as many as it may have"),
        },
    };
    let (wire, input, speaks) = match &view.secured {
        None if view.config.tls.is_some() => {
            // Nothing plain is ever spoken there.
            return refuse(local, view, address, "tls-not-ready", "the listener's TLS is not ready");
        }
        None => {
            let (stream, input) = stream.into_parts();
            (Wire::Plain(stream), input, Speaks::Open)
        }
        Some(secured) => {
            let due = start + view.config.limits.tls_handshake;
            match handshake::shake(local, secured, stream, &mut timer, due).await {
                Shaken::Done(stream) => {
                    local.metrics.handshake(&view.config.id, handshake::kind(&stream));
                    let agreed = stream.get_ref().1.alpn_protocol();
                    let speaks = match agreed {
                        Some(b"h2") => Speaks::Agreed(Alpn::Http2),
                        Some(_) => Speaks::Agreed(Alpn::Http11),
                        None => Speaks::Open,
                    };
                    (Wire::Tls(stream), Vec::new(), speaks)
                }
                Shaken::Plain(stream) => {
                    local.metrics.handshake(&view.config.id, "plain-http");
                    let (stream, input) = stream.into_parts();
                    (Wire::Plain(stream), input, Speaks::PlainAtTls)
                }
                Shaken::Failed(reason, error) => {
                    local.metrics.handshake(&view.config.id, reason);
                    let error = error.map(|error| error.to_string()).unwrap_or_default();
                    let listener = view.config.id.as_str();
                    tracing::debug!(target: "proxy", listener, client = %address, reason, error, "TLS handshake failed");
                    return None;
                }
            }
        }
    };
    let relay = (client != peer).then(|| address_of(peer));
    let mut client = Box::new(Client::new(local.io.clone(), wire, client));
    client.input = input;
    if relay.is_some() || server.is_some() || place.is_some() {
        client.arrival = Some(Box::new(Arrival { relay, server, _place: place }));
    }
    Some(Admitted { client, speaks })
}

/// Reads the PROXY header; the client that it names, and the address that this one connected to.
async fn proxy_header<I: Io, R>(
    local: &Local<I, R>,
    stream: &mut Ahead<I::Stream>,
    timer: &mut Timer<I>,
    due: Timestamp,
) -> Result<Option<(SocketAddr, SocketAddr)>, (&'static str, &'static str)> {
    poll_fn(|context| {
        loop {
            match proxy_header::parse(stream.left()) {
                Ok(ProxyHeader::Complete { length, client, server }) => {
                    stream.pass_over(length);
                    return Poll::Ready(Ok(client.zip(server)));
                }
                Ok(ProxyHeader::Partial) => {}
                Err(error) => return Poll::Ready(Err(("proxy-header", error.as_str()))),
            }
            let mut scratch = local.scratch.borrow_mut();
            match stream.poll_more(context, &mut scratch) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(("proxy-header", "the connection ended"))),
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => {
                    drop(scratch);
                    return timer.poll(context, due).map(|()| Err(("proxy-header-timeout", "no whole PROXY header")));
                }
            }
        }
    })
    .await
}

/// Counts a refusal and says so, though not once for each of a crowd.
fn refuse<I: Io, R, T>(
    local: &Local<I, R>,
    view: &View,
    address: IpAddr,
    reason: &'static str,
    why: &'static str,
) -> Option<T> {
    local.metrics.refused_connection(&view.config.id, reason);
    if let Some(untold) = view.told.may_tell(local.io.now()) {
        let listener = view.config.id.as_str();
        tracing::info!(target: "proxy", listener, client = %address, reason, untold, "connection refused: {why}");
    }
    None
}

/// When something was told last, so that a crowd does not flood the log.
#[derive(Debug, Default)]
pub(crate) struct Told {
    last: RefCell<Option<Timestamp>>,
    untold: Cell<u64>,
}

impl Told {
    /// How many were not told since the last time; `None`: this one is not, either.
    fn may_tell(&self, now: Timestamp) -> Option<u64> {
        let mut last = self.last.borrow_mut();
        if last.is_some_and(|last| now.since(last) < TELL_EVERY) {
            self.untold.set(self.untold.get().saturating_add(1));
            return None;
        }
        *last = Some(now);
        Some(self.untold.take())
    }
}

/// Per listener and worker.
const TELL_EVERY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_crowd_one_a_second_is_told_with_the_number_of_the_others() {
        let told = Told::default();
        let at = |millis| Timestamp::ZERO + Duration::from_millis(millis);
        assert_eq!(told.may_tell(at(0)), Some(0));
        assert_eq!(told.may_tell(at(1)), None);
        assert_eq!(told.may_tell(at(999)), None);
        assert_eq!(told.may_tell(at(1000)), Some(2));
        assert_eq!(told.may_tell(at(2000)), Some(0));
    }
}

//! The client's side of a connection: reading heads, watching for its end, writing.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ::io::{Io, Stream as _};
use http1::error::RequestError;
use http1::limits::HeadLimits;
use http1::proxy_header::OnBehalf;
use http1::request::Parsed;
use model::address::Scheme;
use model::time::Timestamp;
use tokio::io::AsyncWrite;

use crate::entry::Arrival;
use crate::local::{Local, Workspace};
use crate::timer::Timer;
use crate::transfer::{SMALL, Wake, poll_read, poll_read_woken, poll_send_small};
use crate::tunnel::Tunnel;
use crate::wire::Wire;

/// A client's connection.
pub(crate) struct Client<I: Io> {
    pub(crate) stream: Wire<I::Stream>,
    /// The address of the peer, or of whom it stands for by its PROXY header; canonical.
    pub(crate) address: IpAddr,
    /// The port that belongs to it.
    port: u16,
    /// How it came in, where that was not the plain way.
    pub(crate) arrival: Option<Box<Arrival>>,
    /// Read, and part of no message yet.
    pub(crate) input: Vec<u8>,
    pub(crate) timer: Timer<I>,
    /// Bytes that were sent, all exchanges together.
    pub(crate) sent: u64,
    /// All that was to be sent was taken, but a TLS session holds some of it.
    pub(crate) is_unflushed: bool,
    /// What the connection was switched to. Its turn leaves it here.
    pub(crate) tunnel: Option<Box<Tunnel<I::Stream>>>,
}

/// What waiting for a head comes to.
pub(crate) enum Head {
    /// It lies in the workspace.
    Complete(Box<Workspace>),
    /// It is refused; the workspace holds what was read of it.
    Refused(Box<Workspace>, RequestError),
    /// It did not come to its end in time.
    TimedOut,
    /// Nothing more comes: the client closed, or waited for too long between two requests.
    Over,
}

/// When the wait for a head ends.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// With no byte yet.
    pub(crate) idle_until: Timestamp,
    /// From the first byte on.
    pub(crate) head: Duration,
}

impl<I: Io> Client<I> {
    /// A connection that was just accepted.
    pub(crate) fn new(io: I, stream: Wire<I::Stream>, peer: SocketAddr) -> Self {
        let address = crate::local::address_of(peer);
        Self {
            stream,
            address,
            port: peer.port(),
            arrival: None,
            input: Vec::new(),
            timer: Timer::new(io),
            sent: 0,
            is_unflushed: false,
            tunnel: None,
        }
    }

    /// Reads one head into a workspace. Without a byte of it nothing is held.
    pub(crate) async fn read_head<R>(
        &mut self,
        local: &Local<I, R>,
        limits: &HeadLimits,
        patience: Patience,
        is_closing: impl Fn() -> bool,
    ) -> Head {
        let mut due = patience.idle_until;
        let scheme = self.scheme();
        let mut work: Option<Box<Workspace>> = None;
        if !self.input.is_empty() {
            let held = work.insert(local.workspace());
            std::mem::swap(&mut held.head, &mut self.input);
            due = local.io.now() + patience.head;
            if let Some(verdict) = parse(held, &mut self.input, limits, scheme) {
                return finish(work, verdict);
            }
        }
        // Right behind an exchange there is hardly ever another request.
        let mut wake = Wake::Same;
        let verdict = poll_fn(|context| {
            loop {
                let mut scratch = local.scratch.borrow_mut();
                match poll_read_woken(&mut self.stream, context, &mut scratch, &mut wake) {
                    Poll::Ready(Ok([])) | Poll::Ready(Err(_)) => return Poll::Ready(None),
                    Poll::Ready(Ok(bytes)) => {
                        let is_first = work.is_none();
                        let held = work.get_or_insert_with(|| local.workspace());
                        held.head.extend_from_slice(bytes);
                        // No line can have ended without a line end; parsing again would only cost.
                        let has_line =
                            bytes.last() == Some(&b'\n') || bytes.contains(&b'\n') || held.head.len() > limits.line;
                        if has_line && let Some(verdict) = parse(held, &mut self.input, limits, scheme) {
                            return Poll::Ready(Some(verdict));
                        }
                        if is_first {
                            due = local.io.now() + patience.head;
                        }
                    }
                    Poll::Pending => {
                        drop(scratch);
                        wake = Wake::New;
                        if work.is_none() && is_closing() {
                            return Poll::Ready(None);
                        }
                        ready!(self.timer.poll(context, due));
                        let is_late = work.is_some();
                        return Poll::Ready(is_late.then_some(Verdict::Late));
                    }
                }
            }
        })
        .await;
        match verdict {
            Some(verdict) => finish(work, verdict),
            None => Head::Over,
        }
    }

    /// Looks whether the client has gone, and keeps what it sends meanwhile (up to a bound, beyond which it is not
    /// looked at).
    pub(crate) fn poll_gone(&mut self, context: &mut Context<'_>, scratch: &mut [u8]) -> Poll<()> {
        while let Some(room) = AHEAD.checked_sub(self.input.len()).filter(|room| *room > 0) {
            let most = scratch.len().min(room);
            match ready!(poll_read(&mut self.stream, context, scratch.get_mut(..most).unwrap_or_default())) {
                Ok([]) | Err(_) => return Poll::Ready(()),
                Ok(bytes) => self.input.extend_from_slice(bytes),
            }
        }
        Poll::Pending
    }

    /// Sends `bytes` from `at` on, as far as the client takes them.
    pub(crate) fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
        at: &mut usize,
    ) -> Poll<io::Result<()>> {
        let before = *at;
        let result = poll_send_small(&mut self.stream, context, bytes, at);
        self.sent += (*at - before) as u64;
        self.is_unflushed = result.is_pending() && *at >= bytes.len();
        result
    }

    /// Sends of a small message what is taken at once. A failure shows with the next write.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> usize {
        let taken = if (1..=SMALL).contains(&bytes.len()) { self.stream.try_write(bytes).unwrap_or(0) } else { 0 };
        self.sent += taken as u64;
        taken
    }

    /// Sends all of `bytes` by `due`, or says that it was not to be done.
    pub(crate) async fn send(&mut self, bytes: &[u8], due: Timestamp) -> Result<(), ()> {
        let mut at = 0;
        poll_fn(|context| {
            if let Poll::Ready(result) = self.poll_send(context, bytes, &mut at) {
                return Poll::Ready(result.map_err(|_| ()));
            }
            self.timer.poll(context, due).map(Err)
        })
        .await
    }

    /// Ends our side and reads on for a while, so that the client can take the answer although it is still sending
    /// (RFC 9112 9.6): closing at once would reset the connection and the answer with it.
    pub(crate) async fn linger<R>(mut self, local: &Local<I, R>) {
        let due = local.io.now() + LINGER;
        let is_shut = poll_fn(|context| {
            if let Poll::Ready(result) = Pin::new(&mut self.stream).poll_shutdown(context) {
                return Poll::Ready(result.is_ok());
            }
            self.timer.poll(context, due).map(|()| false)
        });
        if !is_shut.await {
            return;
        }
        poll_fn(|context| {
            loop {
                let mut scratch = local.scratch.borrow_mut();
                match poll_read(&mut self.stream, context, &mut scratch) {
                    Poll::Ready(Ok([])) | Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Ready(Ok(_)) => {}
                    Poll::Pending => {
                        drop(scratch);
                        return self.timer.poll(context, due);
                    }
                }
            }
        })
        .await;
    }

    /// Whether it has had no answer yet.
    pub(crate) fn is_new(&self) -> bool {
        self.sent == 0
    }

    /// Ends the connection in order: over TLS the client is told that nothing was cut off (RFC 8446 6.1).
    pub(crate) async fn close<R>(mut self: Box<Self>, local: &Local<I, R>) {
        match &self.stream {
            Wire::Plain(_) => return,
            Wire::Tls(_) => {}
        }
        let due = local.io.now() + LINGER;
        poll_fn(|context| {
            if Pin::new(&mut self.stream).poll_shutdown(context).is_ready() {
                return Poll::Ready(());
            }
            self.timer.poll(context, due)
        })
        .await;
    }

    /// The scheme that the client used.
    pub(crate) fn scheme(&self) -> Scheme {
        match &self.stream {
            Wire::Plain(_) => Scheme::Http,
            Wire::Tls(_) => Scheme::Https,
        }
    }

    /// Whom connections that serve this client stand for. Asks the kernel where no relay has said it.
    pub(crate) fn on_behalf(&self) -> OnBehalf {
        let client = SocketAddr::new(self.address, self.port);
        let named = self.arrival.as_ref().and_then(|arrival| arrival.server);
        // Of a broken connection there is nothing to tell, and nobody to serve either.
        let unknown =
            || if client.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
        let server = named.or_else(|| self.stream.local_addr().ok()).unwrap_or_else(unknown);
        OnBehalf::Client { client, server }
    }

    /// Whether the peer sits on this host, and whom it stands for, too: what a relay says makes nobody local.
    pub(crate) fn is_local(&self) -> bool {
        let own = self.stream.local_addr().ok().map(crate::local::address_of);
        let is_here = |address: IpAddr| {
            address.is_loopback()
                || own == Some(address)
                // Only an address of this host can be bound.
                || std::net::UdpSocket::bind((address, 0)).is_ok()
        };
        let relay = self.arrival.as_ref().and_then(|arrival| arrival.relay);
        is_here(self.address) && relay.is_none_or(is_here)
    }
}

/// What a look at the bytes of a head comes to.
enum Verdict {
    Complete,
    Refused(RequestError),
    Late,
}

/// Parses; what lies behind the head goes to `rest`.
fn parse(work: &mut Workspace, rest: &mut Vec<u8>, limits: &HeadLimits, scheme: Scheme) -> Option<Verdict> {
    match work.request.parse(&work.head, limits) {
        Ok(Parsed::Partial) => None,
        Ok(Parsed::Complete) if work.request.view(&work.head).scheme().is_some_and(|named| named != scheme) => {
            Some(Verdict::Refused(RequestError::TargetScheme))
        }
        Ok(Parsed::Complete) => {
            let end = work.request.len();
            rest.clear();
            rest.extend_from_slice(work.head.get(end..).unwrap_or_default());
            work.head.truncate(end);
            Some(Verdict::Complete)
        }
        Err(error) => Some(Verdict::Refused(error)),
    }
}

fn finish(work: Option<Box<Workspace>>, verdict: Verdict) -> Head {
    match (work, verdict) {
        (Some(work), Verdict::Complete) => Head::Complete(work),
        (Some(work), Verdict::Refused(error)) => Head::Refused(work, error),
        (_, Verdict::Late) => Head::TimedOut,
        (None, Verdict::Complete | Verdict::Refused(_)) => Head::Over,
    }
}

/// So much of the client's next requests is read while one is served.
const AHEAD: usize = 64 * 1024;
const LINGER: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use ::io::sim::Sim;
    use ::io::{Listener as _, Share};
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn of_the_next_requests_no_more_is_read_ahead_than_the_bound() {
        let sim = Sim::new();
        let address = "10.0.0.1:80".parse().unwrap();
        let listener = sim.listen(sim.bind(address, Share::First).unwrap()).unwrap();
        let mut peer = sim.connect(address).await.unwrap();
        let (stream, from) = listener.accept().await.unwrap();
        let mut client = Client::new(sim, Wire::Plain(stream), from);
        let mut scratch = vec![0; 4 * AHEAD];
        for piece in [AHEAD / 4, AHEAD - 1] {
            peer.write_all(&vec![b'x'; piece]).await.unwrap();
            poll_fn(|context| Poll::Ready(client.poll_gone(context, &mut scratch).is_pending())).await;
        }
        assert_eq!(client.input.len(), AHEAD);
    }
}

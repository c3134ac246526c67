//! A client's connection: one exchange after the other, in one task.
//!
//! Most connections are idle, so what they hold while they wait must be small: what is seldom needed (refusing, lingering)
//! is boxed when its time comes, and exchanges run in the worker's seats.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use http1::connection::{Persistence, Version};
use http1::error::RequestError;
use http1::response::RequestKind;
use io::{Io, Stream};
use model::address::Scheme;
use model::listener::SelfCheck;
use model::tls::Alpn;
use upstream::Resolve;

use crate::access_log::Protocol;
use crate::ahead::Ahead;
use crate::changes;
use crate::client::{Client, Head, Patience};
use crate::entry::{self, Admitted, Speaks};
use crate::h2::{self, Entrance};
use crate::listener::{ListenerCell, View};
use crate::local::{Local, Workspace};
use crate::record::{Outcome, Record, Told};
use crate::relay::Peer;
use crate::respond::{self, Recipient, Reply};
use crate::seats;
use crate::tunnel;
use crate::turn::After;

/// Serves one connection to its end.
pub(crate) async fn serve<I: Io, R: Resolve>(
    local: Rc<Local<I, R>>,
    listener: Rc<ListenerCell>,
    stream: I::Stream,
    peer: SocketAddr,
) {
    let _present = local.presence.enter().await;
    let view = listener.view();
    let Some(Admitted { mut client, speaks }) = entry::admit(&local, &view, stream, peer).await else { return };
    match speaks {
        Speaks::Open | Speaks::Agreed(Alpn::Http11) => {}
        Speaks::Agreed(Alpn::Http2) => return Box::pin(switch(Rc::clone(&local), listener, client, Vec::new())).await,
        Speaks::PlainAtTls => return Box::pin(refuse(&local, client, &view, None, 400, "plain-http")).await,
    }
    drop(view);
    let mut idle_until = local.io.now() + listener.view().config.limits.header_timeout;
    loop {
        let view = listener.view();
        let patience = Patience { idle_until, head: view.config.limits.header_timeout };
        let is_closing = || local.presence.has_dismissed_idle() || listener.has_dismissed_idle();
        let after = match client.read_head(&local, &view.limits, patience, is_closing).await {
            Head::Over => return Box::pin(client.close(&local)).await,
            Head::TimedOut => {
                return Box::pin(refuse(&local, client, &view, None, 408, "header-timeout")).await;
            }
            // The preface is a request line of another version; so it is told by the parser's error alone. Over TLS only
            // ALPN leads to HTTP/2 (RFC 9113 3.2): a listener that does not offer it does not speak it.
            Head::Refused(mut work, RequestError::Version)
                if client.is_new() && client.scheme() == Scheme::Http && h2::is_preface(&work.head) =>
            {
                let front = std::mem::take(&mut work.head);
                local.give_back(work);
                return Box::pin(switch(Rc::clone(&local), listener, client, front)).await;
            }
            Head::Refused(work, error) => {
                return Box::pin(refuse(&local, client, &view, Some(work), error.status(), error.as_str())).await;
            }
            Head::Complete(work) => {
                let (back, after) = seats::serve(&local, client, work, &view).await;
                client = back;
                after
            }
        };
        match after {
            After::KeepAlive(now) => idle_until = now + view.config.limits.keepalive,
            After::Close => return Box::pin(client.close(&local)).await,
            After::Linger => return Box::pin(client.linger(&local)).await,
            After::Switched => {
                let Some(tunnel) = client.tunnel.take() else { return };
                // Boxed, so that connections that are no tunnels have no room for one.
                return Box::pin(tunnel::serve(&local, client, tunnel)).await;
            }
            After::Reset => return client.stream.reset_on_drop(),
        }
    }
}

/// Goes on in HTTP/2, with what was read of it.
async fn switch<I: Io, R: Resolve>(
    local: Rc<Local<I, R>>,
    listener: Rc<ListenerCell>,
    client: Box<Client<I>>,
    mut front: Vec<u8>,
) {
    // Asks the kernel, so only where somebody may want to know.
    let is_local = listener.view().config.self_check == SelfCheck::On && client.is_local();
    let (scheme, on_behalf) = (client.scheme(), client.on_behalf());
    // The place among its client's connections is held to the end.
    let Client { stream, address, input, arrival: _arrival, .. } = *client;
    front.extend_from_slice(&input);
    let peer = Peer { address, scheme, is_local, on_behalf };
    h2::serve(local, Entrance { listener, peer }, Ahead::new(stream, front)).await;
}

/// Answers a head that is no request, and closes: where the next one would start is not known.
async fn refuse<I: Io, R: Resolve>(
    local: &Local<I, R>,
    mut client: Box<Client<I>>,
    view: &View,
    work: Option<Box<Workspace>>,
    status: u16,
    details: &'static str,
) {
    let now = local.io.now();
    let record = Record::begin(now, client.sent);
    let mut work = work.unwrap_or_else(|| local.workspace());
    let (version, persistence, kind) = (Version::Http11, Persistence::Close, RequestKind::Other);
    // Without a head nobody knows.
    let to = Recipient { version, persistence, kind, speaks: respond::Speaks::Http };
    work.back.clear();
    let snapshot = local.board.snapshot();
    let id = local.ids.fresh(&snapshot.config.answers.request_id);
    let id = id.as_deref();
    let reply = changes::of_refusal(Reply::of_client_fault(status, details), &snapshot, id);
    local.date.with(now, |date| reply.write(&mut work.back, to, date));
    let is_sent = client.send(&work.back, now + SEND).await.is_ok();
    let outcome = Outcome { status, reason: details, bytes_in: 0 };
    let listener = view.config.id.as_str();
    let (protocol, sent) = (Protocol::Http1, client.sent);
    let told = Told { listener, client: client.address, protocol, sent, request: None, walked: None, id };
    record.end(local, told, outcome, local.io.now());
    local.give_back(work);
    if is_sent {
        client.linger(local).await;
    }
}

/// A refusal is given up when the client does not take it within this time.
const SEND: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use io::real::Real;
    use upstream::SystemResolver;

    use super::*;

    fn size<A, B, C, D, F>(_: impl FnOnce(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_connection_that_waits_is_small() {
        let task = size(serve::<Real, SystemResolver>);
        let client = size_of::<Client<Real>>();
        assert!(task <= 512 && client <= 200, "the task has {task} bytes and the client {client}");
    }
}

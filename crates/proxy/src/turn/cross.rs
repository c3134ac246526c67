//! The way of an HTTP/1.1 client's exchange to a cluster that may speak another version: over [`crate::relay`].

use exchange::Step;
use http1::connection::Persistence;
use http1::request::Request;
use io::Io;
use model::upstream::UpstreamHttp;
use upstream::Resolve;

use super::After;
use crate::client::Client;
use crate::drive::Walked;
use crate::listener::View;
use crate::local::{Local, Workspace};
use crate::record::Record;
use crate::relay::{self, Begun, Form, Incoming, Peer};
use crate::timer::Timer;

/// Whether an exchange goes that way: it goes to a cluster, and that speaks more or other than HTTP/1.1. What is to
/// become a tunnel is offered over HTTP/1.1 wherever that is spoken.
pub(super) fn is_wanted(walked: &Walked<'_>, step: &Step, request: &Request<'_>) -> bool {
    let is_other = walked.cluster().is_some_and(|cluster| match cluster.http {
        UpstreamHttp::Http1 => false,
        UpstreamHttp::Http2 => true,
        UpstreamHttp::Http2OrHttp1 => !request.offers_upgrade(),
    });
    is_other && matches!(step, Step::Connect(_) | Step::Gather | Step::Wait { .. })
}

/// Serves it.
pub(super) async fn serve<I: Io, R: Resolve>(
    local: &Local<I, R>,
    client: &mut Client<I>,
    work: &mut Workspace,
    view: &View,
    mut begun: Begun<'_>,
) -> After {
    // Its side of the relay counts from here.
    begun.walked.record = Record::begin(begun.walked.now, 0);
    let request = work.request.view(&work.head);
    let peer = Peer {
        address: client.address,
        scheme: client.scheme(),
        // Asked for by the self check alone, which the turn has answered before; finding out costs system calls.
        is_local: false,
        on_behalf: client.on_behalf(),
    };
    let may_go_on =
        request.persistence() == Persistence::KeepAlive && !local.presence.is_draining() && !view.is_closed();
    let form = Form {
        framing: request.framing(),
        kind: begun.kind,
        version: request.version(),
        persistence: if may_go_on { Persistence::KeepAlive } else { Persistence::Close },
    };
    let mut side = Incoming::new(client, &local.scratch, form);
    let mut timer = Timer::new(local.io.clone());
    relay::go_on(local, &mut side, &peer, work, view, &mut timer, begun).await;
    side.after(local.io.now())
}

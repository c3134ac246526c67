//! One stream: its head as HTTP/1.1 text, judged by the parser of `http1`; then the general driver.

use std::rc::Rc;

use ::h2::RecvStream;
use ::h2::ext::Protocol;
use ::h2::server::SendResponse;
use bytes::Bytes;
use exchange::grpc;
use http::Method;
use http::header::CONTENT_TYPE;
use http1::request::Parsed;
use http2::request::Rest;
use http2::websocket::{self, Key};
use io::Io;
use upstream::Resolve;

use super::connection::Open;
use super::side::StreamSide;
use crate::listener::View;
use crate::local::{Local, Workspace};
use crate::relay;
use crate::respond::Speaks;
use crate::timer::Timer;

/// What a stream starts with.
pub(crate) struct Start<I: Io, R> {
    pub(super) local: Rc<Local<I, R>>,
    pub(super) open: Open,
    pub(super) request: http::Request<RecvStream>,
    pub(super) respond: SendResponse<Bytes>,
    pub(super) timer: Timer<I>,
}

/// Serves a stream to its end, and leaves its timer.
pub(super) async fn serve<I: Io, R: Resolve>(start: Start<I, R>) -> Timer<I> {
    let Start { local, open, request, respond, mut timer } = start;
    let view = open.shared.entrance.listener.view();
    let peer = &open.shared.entrance.peer;
    let (parts, body) = request.into_parts();
    let rest = if body.is_end_stream() { Rest::Nothing } else { Rest::Follows };
    let kind = StreamSide::kind_of(&parts.method);
    let is_call = parts.method == Method::POST
        && parts.headers.get_all(CONTENT_TYPE).iter().any(|value| grpc::is_content_type(value.as_bytes()));
    let speaks = if is_call { Speaks::Grpc } else { Speaks::Http };
    let mut side = StreamSide::new(body, respond, kind);
    let mut work = local.workspace();
    let protocol = parts.extensions.get::<Protocol>();
    let head = match protocol {
        None => http2::request::write(&mut work.head, &parts, rest),
        Some(protocol) => {
            let key = key(&local);
            let written = websocket::write(&mut work.head, &parts, protocol.as_str(), &key);
            side.offer(key);
            written
        }
    };
    match head.map_err(|error| (error.status(), error.as_str())).and_then(|()| judge(&mut work, &view)) {
        Ok(()) => relay::serve(&local, &mut side, peer, &mut work, &view, &mut timer).await,
        Err(refusal) => relay::refuse(&local, &mut side, peer, &view, speaks, refusal).await,
    }
    local.give_back(work);
    if side.is_cancelled() {
        open.cancel();
    }
    timer
}

/// Parses the head that lies in the workspace; else the answer to one that is refused.
fn judge(work: &mut Workspace, view: &View) -> Result<(), (u16, &'static str)> {
    match work.request.parse(&work.head, &view.limits) {
        Ok(Parsed::Complete) => Ok(()),
        // Text that ends with its empty line is complete.
        Ok(Parsed::Partial) => Err((400, "head")),
        Err(error) => Err((error.status(), error.as_str())),
    }
}

fn key<I: Io, R>(local: &Local<I, R>) -> Key {
    let random = &mut local.picks.borrow_mut().random;
    let number = u128::from(random.bits()) << 64 | u128::from(random.bits());
    Key::of(number.to_be_bytes())
}

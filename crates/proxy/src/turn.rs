//! One exchange on a client's connection: drives the machine of `exchange` and does what its steps say.
//!
//! ```text
//!   head ──> begin ──> Connect ──> leg (pool or new) ──> await_head ──┬─ failed ──────> handle ──> Connect, Answer …
//!                         ^                                           └─ head ──> handle ─┬─ Forward ──> deliver ──> over
//!                         └───────────────────────── hold the response ── HoldThenConnect ┘
//! ```
//! Client and destination are driven by the one task of the connection: no second task, no channel.

mod answer;
mod attempt;
mod cross;
mod forward;
mod gather;
mod serve_rest;
mod switch;

use std::net::IpAddr;
use std::task::Poll;

use exchange::{Input, Step};
use http1::connection::{Persistence, Version};
use http1::response::RequestKind;
use io::Io;
use model::id::Slot;
use model::request::Method;
use model::time::Timestamp;
use upstream::Resolve;

use crate::await_head::ClientFault;
use crate::buffering::Share;
use crate::client::Client;
use crate::client_address;
use crate::drive::{Asker, Walked};
use crate::leg::Leg;
use crate::listener::View;
use crate::local::{Local, Workspace};
use crate::relay::Begun;
use crate::upload::Upload;
use crate::waiting;

/// What becomes of the client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// It waits for the next request, since this time.
    KeepAlive(Timestamp),
    /// It is closed.
    Close,
    /// It is closed, but the client may still be sending.
    Linger,
    /// It is reset: what the client has got must not pass for whole.
    Reset,
    /// It speaks another protocol now; the tunnel lies in the client.
    Switched,
}

/// One exchange.
pub(crate) struct Turn<'a, I: Io, R> {
    local: &'a Local<I, R>,
    client: &'a mut Client<I>,
    work: &'a mut Workspace,
    view: &'a View,
    walked: Walked<'a>,
    facts: Facts,
    upload: Upload,
    leg: Option<Leg<I::Stream>>,
    /// Head and body of a response that is sent when nothing better comes.
    held: Option<Vec<u8>>,
    fault: Option<ClientFault>,
    /// Memory that bodies which are taken ahead have.
    share: Option<Share<'a>>,
}

/// What of the request decides on the answer's form.
#[derive(Clone, Copy)]
struct Facts {
    client: IpAddr,
    version: Version,
    kind: RequestKind,
    persistence: Persistence,
}

/// Serves the request whose head lies in `work`.
pub(crate) async fn serve<I: Io, R: Resolve>(
    local: &Local<I, R>,
    client: &mut Client<I>,
    work: &mut Workspace,
    view: &View,
) -> After {
    let now = local.io.now();
    let request = work.request.view(&work.head);
    let facts = Facts {
        client: client_address::client(&view.config, client.address, &request),
        version: request.version(),
        kind: if request.method() == Method::Head { RequestKind::Head } else { RequestKind::Other },
        persistence: request.persistence(),
    };
    if view.is_self_check(&request) {
        return Box::pin(answer::self_check(local, client, work, view, facts, now)).await;
    }
    let asker = Asker { view, peer: client.address, client: facts.client, scheme: client.scheme() };
    let (walked, step) = Walked::begin(local, now, &request, asker, client.sent);
    if cross::is_wanted(&walked, &step, &request) {
        let begun = Begun { walked, step, address: facts.client, kind: facts.kind };
        return cross::serve(local, client, work, view, begun).await;
    }
    let bounds = walked.body_bounds(&request, view);
    let upload = Upload::new(&request, bounds);
    let fault = bounds.is_exceeded.then_some(ClientFault::TooLarge);
    let mut turn = Turn { local, client, work, view, walked, facts, upload, leg: None, held: None, share: None, fault };
    turn.walk(step).await
}

impl<I: Io, R: Resolve> Turn<'_, I, R> {
    async fn walk(&mut self, first: Step) -> After {
        if let (Some(fault), Step::Connect(_) | Step::Gather | Step::Wait { .. }) = (self.fault, &first) {
            return Box::pin(self.answer_fault(fault)).await;
        }
        let mut step = first;
        loop {
            step = match step {
                Step::Gather => match Box::pin(self.gather()).await {
                    Ok(step) => step,
                    Err(fault) => return Box::pin(self.answer_fault(fault)).await,
                },
                Step::Wait { until, wants } => Box::pin(self.wait(until, wants)).await,
                Step::Connect(attempt) => {
                    let input = self.attempt(attempt).await;
                    self.handle(input)
                }
                Step::HoldThenConnect(attempt) => {
                    Box::pin(self.hold()).await;
                    self.walked.sharing.read();
                    let input = self.attempt(attempt).await;
                    self.handle(input)
                }
                Step::Forward => return self.forward().await,
                Step::AnswerHeld => return Box::pin(self.answer_held()).await,
                Step::Answer(answer) => return Box::pin(self.answer(&answer)).await,
                Step::Done => return After::Close,
            };
        }
    }

    /// Reads the clock and tells the machine.
    fn handle(&mut self, input: Input) -> Step {
        self.walked.handle(self.local, input)
    }

    /// Waits until somebody can take the request.
    async fn wait(&mut self, until: Timestamp, wants: Option<Slot>) -> Step {
        let (local, client) = (self.local, &mut *self.client);
        waiting::wait(&mut self.walked, local, until, wants, |context, waiting, ends| {
            if client.poll_gone(context, &mut local.scratch.borrow_mut()).is_ready() {
                return Poll::Ready(Input::ClientGone);
            }
            waiting.poll(context, &mut client.timer, ends)
        })
        .await
    }
}

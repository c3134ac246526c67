//! How long a response's head may take, and who is late when it does not come.

use std::task::{Context, Poll};
use std::time::Duration;

use board::InFlight;
use exchange::Replay;
use exchange::step::TryLimit;
use io::Io;
use model::time::Timestamp;

use crate::local::Local;
use crate::timer::Timer;
use crate::upload::Wish;

/// The times that bound an attempt up to its head.
#[derive(Clone, Copy)]
pub(crate) struct Bounds<'a> {
    /// When the attempt began: what `per_try` counts from.
    pub(crate) started: Timestamp,
    /// When its connection was there.
    pub(crate) connected: Timestamp,
    pub(crate) idle: Duration,
    pub(crate) per_try: Option<TryLimit>,
    /// Asked before a learnt limit ends the attempt.
    pub(crate) may_be_cut: &'a dyn Fn(Timestamp, Replay) -> bool,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) client: ClientTime,
}

/// What of an attempt's time is the client's, in which the destination waits for the body.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientTime {
    /// It is for the client to go on, since then.
    since: Option<Timestamp>,
    /// Before.
    took: Duration,
}

/// Where the attempt stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since {
    /// When a byte last moved; `None`: none has, since the connection was there.
    pub(crate) progress: Option<Timestamp>,
    /// Whether it is for the client to go on.
    pub(crate) is_client_asked: bool,
    pub(crate) expectation: Wish,
    pub(crate) replay: Replay,
}

/// Whose time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    /// The exchange's.
    Deadline,
    /// The same, and too much of it was the client's.
    ClientDeadline,
    /// The client's, which sends no more of its body, or not all of it by the deadline.
    Client,
    /// The attempt's own.
    Try,
    /// The destination's, from which nothing comes.
    Destination,
    /// The destination says nothing to an expectation: it waits for the body, or knows no expectations
    /// (RFC 9110 10.1.1). The client is to be told to go on.
    Continue,
}

impl Bounds<'_> {
    /// Ready when somebody is late.
    pub(crate) fn poll<I: Io, R>(
        &mut self,
        context: &mut Context<'_>,
        local: &Local<I, R>,
        timer: &mut Timer<I>,
        in_flight: &InFlight,
        since: Since,
    ) -> Poll<Late> {
        let is_for_client = since.is_client_asked && since.expectation == Wish::None;
        match (self.client.since, is_for_client) {
            (None, true) => {
                let now = local.io.now();
                in_flight.wait_for_client(now);
                self.client.since = Some(now);
            }
            (Some(at), false) => {
                let now = local.io.now();
                in_flight.wait_for_destination(now);
                self.client.since = None;
                self.client.took += now.since(at);
            }
            (None, false) | (Some(_), true) => {}
        }
        loop {
            let idle = since.progress.unwrap_or(self.connected) + self.idle;
            let per_try = match self.per_try {
                Some(limit) if !is_for_client => self.started + self.client.took + limit.span(),
                Some(_) | None => Timestamp::MAX,
            };
            let deadline = self.deadline.unwrap_or(Timestamp::MAX);
            let patience = match since.expectation {
                Wish::Pending => self.connected + PATIENCE_FOR_100,
                Wish::None => Timestamp::MAX,
            };
            let due = idle.min(per_try).min(deadline).min(patience);
            if timer.poll(context, due).is_pending() {
                return Poll::Pending;
            }
            return Poll::Ready(match due {
                _ if is_for_client && (due == deadline || due == idle) => Late::Client,
                _ if due == deadline && self.client.took > deadline.since(self.started) / A_PART => {
                    Late::ClientDeadline
                }
                _ if due == deadline => Late::Deadline,
                _ if due == per_try && self.is_cut_short(local, since.replay) => Late::Try,
                _ if due == idle => Late::Destination,
                _ if due == per_try => {
                    self.per_try = None;
                    continue;
                }
                _ => Late::Continue,
            });
        }
    }

    /// Whether the attempt's own time ends it. A learnt one may not where nobody else would get the request.
    fn is_cut_short<I: Io, R>(&self, local: &Local<I, R>, replay: Replay) -> bool {
        match self.per_try {
            Some(TryLimit::Learnt(_)) => (self.may_be_cut)(local.io.now(), replay),
            Some(TryLimit::Given(_)) | None => true,
        }
    }
}

/// Who gets less than nine tenths of the time that a deadline leaves, because the client took the rest, has not missed it.
const A_PART: u32 = 10;
/// A client that waits for a 100 gets one from us when the destination has sent neither it nor an answer for so long.
const PATIENCE_FOR_100: Duration = Duration::from_secs(1);

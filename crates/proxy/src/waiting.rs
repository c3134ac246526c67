//! What both drivers of an exchange do alike while it waits for a destination ([`exchange::Step::Wait`]).
//!
//! ```text
//!   begin ──> its turn? ──> input ──> newest snapshot ──> machine ──┬─ Step::Wait: again ──┐
//!               ^  client gone, turn, deadline, until, look         └─ any other: ended    │
//!               └──────────────────────────────────────────────────────────────────────────┘
//! ```
//! The client is watched all the time: one that goes leaves the line.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use exchange::snapshot::ClusterView;
use exchange::{Exchange, Input, Step};
use io::Io;
use model::id::Slot;
use model::time::Timestamp;
use telemetry::metrics::Queued;

use crate::drive::Walked;
use crate::local::Local;
use crate::queue::{Entered, InLine};
use crate::timer::Timer;

/// Waits until there is something else to do. The line is left then, whatever it is. `poll` watches the client, and asks
/// [`Waiting::poll`].
pub(crate) async fn wait<I: Io, R>(
    walked: &mut Walked<'_>,
    local: &Local<I, R>,
    mut until: Timestamp,
    wants: Option<Slot>,
    mut poll: impl FnMut(&mut Context<'_>, &Waiting, Ends) -> Poll<Input>,
) -> Step {
    // The machine waits for a cluster that is there.
    let Some(cluster) = walked.cluster() else { return walked.handle(local, Input::WaitOver) };
    let waiting = Waiting::begin(local, cluster, wants);
    loop {
        let ends = waiting.ends(local.io.now(), until, &walked.exchange);
        let input = poll_fn(|context| poll(context, &waiting, ends)).await;
        walked.follow(local);
        let step = walked.handle(local, input);
        let Step::Wait { until: next, wants } = step else {
            waiting.ended(&step);
            return step;
        };
        waiting.again(wants);
        until = next;
    }
}

/// One exchange that waits.
pub(crate) struct Waiting {
    standing: Standing,
    queued: Queued,
}

/// Where it waits.
enum Standing {
    InLine(InLine),
    /// As many wait as may; whether it may look for a place all the same.
    Outside(Cell<Look>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Once,
    NoMore,
}

/// When a wait ends by itself, or is to look about.
#[derive(Clone, Copy)]
pub(crate) struct Ends {
    deadline: Timestamp,
    until: Timestamp,
    look: Timestamp,
}

impl Waiting {
    /// Joins the line of the exchange's cluster, if it has room.
    fn begin<I: Io, R>(local: &Local<I, R>, cluster: &ClusterView, wants: Option<Slot>) -> Self {
        let most = cluster.queue.map_or(0, |queue| queue.length);
        let standing = match local.limits.queues.enter(cluster.budget, most, wants) {
            Entered::InLine(in_line) => Standing::InLine(in_line),
            Entered::Beside => Standing::Outside(Cell::new(Look::Once)),
            Entered::Full => Standing::Outside(Cell::new(Look::NoMore)),
        };
        Self { standing, queued: local.metrics.queued(&cluster.id) }
    }

    /// What bounds the next part of the wait. A gate opens without a new snapshot, so the first in line looks for
    /// destinations now and then.
    fn ends(&self, now: Timestamp, until: Timestamp, exchange: &Exchange) -> Ends {
        let is_first = self.in_line().is_some_and(InLine::is_first);
        let look = if is_first { now + LOOK } else { Timestamp::MAX };
        Ends { deadline: exchange.deadline().unwrap_or(Timestamp::MAX), until, look }
    }

    /// Ready with what the machine is to be told.
    pub(crate) fn poll<I: Io>(&self, context: &mut Context<'_>, timer: &mut Timer<I>, ends: Ends) -> Poll<Input> {
        match &self.standing {
            Standing::InLine(in_line) if in_line.poll(context).is_ready() => return Poll::Ready(Input::Woken),
            Standing::InLine(_) => {}
            Standing::Outside(look) => {
                return Poll::Ready(match look.replace(Look::NoMore) {
                    Look::Once => Input::Woken,
                    Look::NoMore => Input::QueueFull,
                });
            }
        }
        let Ends { deadline, until, look } = ends;
        let due = deadline.min(until).min(look);
        timer.poll(context, due).map(|()| match due {
            _ if due == deadline => Input::DeadlineReached,
            _ if due == until => Input::WaitOver,
            _ => Input::Woken,
        })
    }

    /// It goes on waiting, for this.
    fn again(&self, wants: Option<Slot>) {
        if let Some(in_line) = self.in_line() {
            in_line.wants(wants);
        }
    }

    fn in_line(&self) -> Option<&InLine> {
        match &self.standing {
            Standing::InLine(in_line) => Some(in_line),
            Standing::Outside(_) => None,
        }
    }

    /// It waits no longer, and this comes of it.
    fn ended(self, step: &Step) {
        let result = match step {
            Step::Answer(answer) => answer.reason.details(),
            Step::Gather
            | Step::Wait { .. }
            | Step::Connect(_)
            | Step::HoldThenConnect(_)
            | Step::Forward
            | Step::AnswerHeld
            | Step::Done => "served",
        };
        self.queued.ended(result);
    }
}

/// How often the first in line looks for a destination whose gate has opened.
const LOOK: Duration = Duration::from_millis(50);

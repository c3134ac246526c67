//! What the driver may ask of an exchange between two calls.

use std::time::Duration;

use balance::affinity::cookie::set_cookie;
use model::id::DestinationIndex;
use model::time::Timestamp;

use super::state::CallTime;
use super::{Exchange, State};
use crate::snapshot::{ActionView, Snapshot};
use crate::step::{Placement, Report, RetryDenied};
use crate::transform::Rewritten;

impl Exchange {
    /// The attempt that ended with the last call, once.
    pub fn report(&mut self) -> Option<Report> {
        self.report.take()
    }

    /// When the running attempt's destination was picked; `None` when none runs.
    pub fn picked_at(&self) -> Option<Timestamp> {
        match self.state {
            State::Attempting(running) | State::Forwarding(running, _) => Some(running.picked_at),
            State::Gathering | State::Waiting(_) | State::Ended => None,
        }
    }

    /// When [`crate::step::Input::DeadlineReached`] is due; `None`: never.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    /// The destination that the response pins the client to. Known from [`crate::step::Step::Forward`] on.
    pub fn new_pin(&self) -> Option<DestinationIndex> {
        self.new_pin
    }

    /// Values of the Set-Cookie fields that the driver adds to the forwarded response: for a new pin, and for a side that
    /// was drawn. Known from [`crate::step::Step::Forward`] on; nearly always none.
    pub fn cookies(&self, snapshot: &Snapshot) -> Vec<String> {
        let mut cookies = Vec::new();
        if let Some(pin) = self.new_pin
            && let Some(cluster) = self.cluster(snapshot)
            && let (Some(affinity), Some(pinned)) = (&cluster.affinity, cluster.destinations.get(pin.index()))
        {
            cookies.push(set_cookie(&affinity.key_name, &pinned.affinity_key, &affinity.cookie));
        }
        if let Some(side) = self.new_side
            && let Some(route) = self.route(snapshot)
            && let ActionView::Split(split) = &route.action
        {
            cookies.extend(split.set_cookie(side));
        }
        cookies
    }

    /// What goes on in place of what came; `None` on routes that change nothing.
    pub fn rewritten(&self) -> Option<&Rewritten> {
        self.rewritten.as_deref()
    }

    /// Why the last failed attempt was not repeated; `None` when nothing was refused.
    pub fn retry_denied(&self) -> Option<RetryDenied> {
        self.denied
    }

    /// The route and the cluster.
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// Attempts so far, the free resend not counted.
    pub fn attempts(&self) -> u8 {
        self.attempts
    }

    /// What destinations are told of the attempt that runs, when it is not our first: which one it is, those of proxies
    /// before this one included.
    pub fn mark(&self) -> Option<u8> {
        (self.attempts > 1).then(|| self.before.saturating_add(self.attempts))
    }

    /// What destinations are told of the time that a call's caller gives it (`grpc-timeout`), when the running attempt is
    /// not our first: what is left until the deadline. `None` where the call, or no call, goes on as it came.
    pub fn time_left(&self, now: Timestamp) -> Option<Duration> {
        match self.call_time {
            CallTime::Said if self.attempts > 1 => self.deadline.map(|deadline| deadline.since(now)),
            CallTime::Said | CallTime::Unsaid => None,
        }
    }
}

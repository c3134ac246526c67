//! HAProxy's `check` with `observe layer7` (configuration manual 2.6: observe, on-error, error-limit, fall, rise).
//!
//! - Signal: each response (100 to 499, 501 and 505 are good, other 5xx bad), each failure before a response, each broken
//!   body; and its own checks. What `retry-on` repeats is not observed, connections that fail apart: where statuses are
//!   repeated, a server that answers 503 to all GETs is not noticed. Without checks there is no `observe`.
//! - Trip: `error-limit` (10) bad ones in a row, which any good one and any passed check ends: then `on-error`, by
//!   default one failed check more, or with `mark-down` down at once. A next check comes after `fastinter`, which is
//!   `inter` unless it is set.
//! - Statistic: a counter from 0 to rise + fall - 1, up while it is `rise` (2) or more. A failed check takes one off, and
//!   below `rise` all; a passed one adds one, and from `rise` on all.
//! - Return: by `rise` passed checks alone, with full traffic.
//! - Cold start: up, at `rise`: the first failed check takes it down.

use model::outcome::{Outcome, OutcomeClass};
use model::time::Timestamp;

use super::{Model, ProbeResult, Then};
use crate::scenario::Checks;

/// The rules over all servers.
#[derive(Debug)]
pub struct Haproxy {
    on_error: OnError,
    checks: Option<Checks>,
    servers: Vec<Server>,
}

/// What `error-limit` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// Counts as one failed check.
    FailCheck,
    /// The server is down.
    MarkDown,
}

#[derive(Clone, Copy, Debug)]
struct Server {
    health: u32,
    errors: u32,
    probe_at: Option<Timestamp>,
    probe: Probe,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    None,
    Due,
    InFlight,
}

impl Haproxy {
    /// So many servers, all up. The first checks, spread over one interval, begin at `first`.
    pub fn new(n: usize, on_error: OnError, checks: Option<Checks>, first: Timestamp) -> Self {
        let spread = |place: usize| checks.map(|checks| first + checks.interval.mul_f64(place as f64 / n as f64));
        let servers =
            (0..n).map(|place| Server { health: RISE, errors: 0, probe_at: spread(place), probe: Probe::None });
        Self { on_error, checks, servers: servers.collect() }
    }
}

impl Server {
    fn fail(&mut self) {
        self.health = self.health.saturating_sub(1);
        if self.health < RISE {
            self.health = 0;
        }
    }

    fn pass(&mut self) {
        self.errors = 0;
        self.health = (self.health + 1).min(TOP);
        if self.health >= RISE {
            self.health = TOP;
        }
    }
}

impl Model for Haproxy {
    fn on_outcome(&mut self, now: Timestamp, destination: usize, outcome: &Outcome, then: Then) {
        let Some(checks) = self.checks else { return };
        let Some(server) = self.servers.get_mut(destination) else { return };
        let is_bad = match outcome.class {
            OutcomeClass::Ok | OutcomeClass::Slow => false,
            OutcomeClass::Overload => outcome.status.is_some_and(|status| status >= 500),
            OutcomeClass::AppFail | OutcomeClass::ConnFail | OutcomeClass::Timeout | OutcomeClass::Cut => true,
            OutcomeClass::Neutral => return,
        };
        // Measured on 2.6: a response that a retry takes back was never observed, a connection that failed was; and one that
        // breaks before a response closes a client's connection that has had answers (those of the lab have), unobserved.
        match then {
            Then::Again if outcome.class != OutcomeClass::ConnFail => return,
            Then::Dropped => return,
            Then::Again | Then::Answered => {}
        }
        if !is_bad {
            server.errors = 0;
            return;
        }
        server.errors += 1;
        if server.errors < ERROR_LIMIT {
            return;
        }
        server.errors = 0;
        match self.on_error {
            OnError::FailCheck => server.fail(),
            OnError::MarkDown => server.health = 0,
        }
        if server.probe == Probe::None {
            let fast = now + checks.interval;
            server.probe_at = Some(server.probe_at.map_or(fast, |at| at.min(fast)));
        }
    }

    fn on_probe(&mut self, now: Timestamp, destination: usize, end: ProbeResult) {
        let Some(server) = self.servers.get_mut(destination) else { return };
        server.probe = Probe::None;
        server.probe_at = self.checks.map(|checks| now + checks.interval);
        match end {
            ProbeResult::Passed => server.pass(),
            ProbeResult::Failed => server.fail(),
        }
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        self.servers.iter().filter(|server| server.probe == Probe::None).filter_map(|server| server.probe_at).min()
    }

    fn on_timeout(&mut self, now: Timestamp) {
        for server in &mut self.servers {
            if server.probe == Probe::None && server.probe_at.is_some_and(|at| at <= now) {
                server.probe = Probe::Due;
            }
        }
    }

    fn poll_probe(&mut self) -> Option<usize> {
        let place = self.servers.iter().position(|server| server.probe == Probe::Due)?;
        self.servers.get_mut(place)?.probe = Probe::InFlight;
        Some(place)
    }

    fn is_out(&self, destination: usize) -> bool {
        self.servers.get(destination).is_some_and(|server| server.health < RISE)
    }
}

const RISE: u32 = 2;
const FALL: u32 = 3;
const TOP: u32 = RISE + FALL - 1;
const ERROR_LIMIT: u32 = 10;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tests::{end, ok};
    use super::*;

    fn checked(on_error: OnError) -> Haproxy {
        let checks = Checks { interval: Duration::from_secs(2), timeout: Duration::from_secs(2) };
        let mut haproxy = Haproxy::new(2, on_error, Some(checks), Timestamp::ZERO);
        haproxy.on_probe(Timestamp::ZERO, 0, ProbeResult::Passed);
        haproxy
    }

    #[test]
    fn three_failed_checks_take_down_and_two_passed_ones_bring_back() {
        let mut haproxy = checked(OnError::FailCheck);
        for (n, end, is_out) in [
            (1, ProbeResult::Failed, false),
            (2, ProbeResult::Failed, false),
            (3, ProbeResult::Failed, true),
            (4, ProbeResult::Passed, true),
            (5, ProbeResult::Passed, false),
        ] {
            haproxy.on_probe(Timestamp::from_secs(n), 0, end);
            assert_eq!(haproxy.is_out(0), is_out, "{n}");
        }
        haproxy.on_probe(Timestamp::from_secs(1), 1, ProbeResult::Failed);
        assert!(haproxy.is_out(1), "one that was never checked is down at its first failure");
    }

    #[test]
    fn ten_errors_in_a_row_count_as_one_failed_check_or_mark_down() {
        let now = Timestamp::from_secs(1);
        let mut soft = checked(OnError::FailCheck);
        (0..29).for_each(|_| soft.on_outcome(now, 0, &end(500), Then::Answered));
        assert!(!soft.is_out(0));
        soft.on_outcome(now, 0, &end(500), Then::Answered);
        assert!(soft.is_out(0));
        let mut hard = checked(OnError::MarkDown);
        (0..9).for_each(|_| hard.on_outcome(now, 0, &end(500), Then::Answered));
        hard.on_outcome(now, 0, &ok(), Then::Answered);
        (0..9).for_each(|_| hard.on_outcome(now, 0, &end(500), Then::Answered));
        assert!(!hard.is_out(0), "never ten in a row");
        hard.on_outcome(now, 0, &end(500), Then::Answered);
        assert!(hard.is_out(0));
    }
}

//! Envoy's outlier detection, with its active checks (documentation of 1.40: Outlier detection, Health checking).
//!
//! - Signal: each response's status; a failure to connect, a timeout and a reset count as 5xx. 429 is none.
//! - Trip: `consecutive_5xx` (5) in a row; at each sweep (`interval`, 10 s) also the success rate: of five or more hosts
//!   with 100 or more requests each, one that lies 1.9 standard deviations below the mean. Failure percentage and gateway
//!   failures are not enforced by default.
//! - Cap: no ejection that would put more than `max_ejection_percent` of the hosts out: by default 10, so of fewer than ten
//!   hosts none is ever ejected.
//! - Return: at the first sweep at which 30 s times the number of ejections (300 s at most) are over, with full traffic; at
//!   once by a passed active check.
//! - Active: two failed in a row take out, one passed brings back. Envoy has no defaults for these numbers.
//! - Traffic follows at once, unless something changed less than `update_merge_window` (1 s) before: then all changes together
//!   after one more of it (measured on 1.40: where checks pass and answers fail, a host that was ejected again within the
//!   second goes on being used for it, and one that was ejected and failed its checks returns a second after it passes one,
//!   for the end of its ejection is the second change).
//! - Cold start: in.

use std::time::Duration;

use model::outcome::{Outcome, OutcomeClass};
use model::time::Timestamp;

use super::{Model, ProbeResult, Then};
use crate::scenario::Checks;

/// The rules over all hosts.
#[derive(Debug)]
pub struct Envoy {
    max_ejection_percent: u32,
    checks: Option<Checks>,
    hosts: Vec<Host>,
    sweep_at: Timestamp,
    /// Per host: whether traffic leaves it out.
    out: Vec<bool>,
    /// When traffic last heard of changes, and when it hears of those that wait.
    merged_at: Option<Timestamp>,
    merge_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Host {
    consecutive_5xx: u32,
    succeeded: u32,
    total: u32,
    ejected_at: Option<Timestamp>,
    ejections: u32,
    probe_at: Option<Timestamp>,
    is_probing: bool,
    failed_probes: u32,
    is_failed_active: bool,
    was_ejected_in_interval: bool,
}

impl Envoy {
    /// So many hosts, nothing known of any. The first checks, of all of them at the same time, come at `first`.
    pub fn new(n: usize, max_ejection_percent: u32, checks: Option<Checks>, first: Timestamp) -> Self {
        let hosts = (0..n).map(|_| Host { probe_at: checks.map(|_| first), ..Host::default() });
        Self {
            max_ejection_percent,
            checks,
            hosts: hosts.collect(),
            sweep_at: Timestamp::ZERO + INTERVAL,
            out: vec![false; n],
            merged_at: None,
            merge_at: None,
        }
    }

    /// A flag of a host has changed: traffic hears of it now, or together with what else changes soon.
    fn changed(&mut self, now: Timestamp) {
        // Envoy compares whole milliseconds.
        if self.merged_at.is_none_or(|at| now.since(at).as_millis() > MERGE_WINDOW.as_millis()) {
            self.tell(now);
        } else if self.merge_at.is_none() {
            self.merge_at = Some(now + MERGE_WINDOW);
        }
    }

    fn tell(&mut self, now: Timestamp) {
        self.out = self.hosts.iter().map(Host::is_out).collect();
        self.merged_at = Some(now);
        self.merge_at = None;
    }

    fn eject(&mut self, now: Timestamp, destination: usize) {
        let n_out = self.hosts.iter().filter(|host| host.ejected_at.is_some()).count();
        let is_capped = (n_out + 1) * 100 > self.hosts.len() * self.max_ejection_percent as usize;
        let Some(host) = self.hosts.get_mut(destination) else { return };
        if host.ejected_at.is_some() || is_capped {
            return;
        }
        host.ejected_at = Some(now);
        host.was_ejected_in_interval = true;
        if BASE * host.ejections < LONGEST {
            host.ejections += 1;
        }
        self.changed(now);
    }

    fn sweep(&mut self, now: Timestamp) {
        let mut n_back = 0;
        for host in &mut self.hosts {
            match host.ejected_at {
                Some(at) if now.since(at) >= (BASE * host.ejections).min(LONGEST) => {
                    host.come_back();
                    n_back += 1;
                }
                Some(_) => {}
                None if !host.was_ejected_in_interval => host.ejections = host.ejections.saturating_sub(1),
                None => {}
            }
            host.was_ejected_in_interval = false;
        }
        (0..n_back).for_each(|_| self.changed(now));
        let rates: Vec<(usize, f64)> = (self.hosts.iter().enumerate())
            .filter(|(_, host)| host.total >= REQUESTS)
            .map(|(place, host)| (place, f64::from(host.succeeded) / f64::from(host.total)))
            .collect();
        if rates.len() >= HOSTS {
            let mean = rates.iter().map(|(_, rate)| rate).sum::<f64>() / rates.len() as f64;
            let square = rates.iter().map(|(_, rate)| (rate - mean) * (rate - mean)).sum::<f64>() / rates.len() as f64;
            let limit = mean - DEVIATIONS * libm::sqrt(square);
            for (place, _) in rates.iter().filter(|(_, rate)| *rate < limit) {
                self.eject(now, *place);
            }
        }
        for host in &mut self.hosts {
            (host.succeeded, host.total) = (0, 0);
        }
    }
}

impl Host {
    fn is_out(&self) -> bool {
        self.ejected_at.is_some() || self.is_failed_active
    }

    fn come_back(&mut self) {
        self.ejected_at = None;
        self.consecutive_5xx = 0;
    }
}

impl Model for Envoy {
    fn on_outcome(&mut self, now: Timestamp, destination: usize, outcome: &Outcome, _: Then) {
        let Some(host) = self.hosts.get_mut(destination) else { return };
        let is_failure = match outcome.class {
            // What we call Ok may be a 501 or 505.
            OutcomeClass::Ok | OutcomeClass::Slow => outcome.status.is_some_and(|status| status >= 500),
            OutcomeClass::Overload => outcome.status.is_some_and(|status| status >= 500),
            OutcomeClass::AppFail | OutcomeClass::ConnFail | OutcomeClass::Timeout => true,
            // The head was a success, then the reset counts.
            OutcomeClass::Cut => {
                host.consecutive_5xx = 0;
                true
            }
            OutcomeClass::Neutral => return,
        };
        host.total += 1;
        if !is_failure {
            host.succeeded += 1;
            host.consecutive_5xx = 0;
            return;
        }
        host.consecutive_5xx += 1;
        if host.consecutive_5xx == CONSECUTIVE && host.ejected_at.is_none() {
            host.consecutive_5xx = 0;
            self.eject(now, destination);
        }
    }

    fn on_probe(&mut self, now: Timestamp, destination: usize, end: ProbeResult) {
        let Some(host) = self.hosts.get_mut(destination) else { return };
        host.is_probing = false;
        host.probe_at = self.checks.map(|checks| now + checks.interval);
        let was_failed = host.is_failed_active;
        match end {
            ProbeResult::Passed => (host.failed_probes, host.is_failed_active) = (0, false),
            ProbeResult::Failed => {
                host.failed_probes += 1;
                host.is_failed_active |= host.failed_probes >= UNHEALTHY;
            }
        }
        let (is_other, is_back) =
            (was_failed != host.is_failed_active, end == ProbeResult::Passed && host.ejected_at.is_some());
        // One after the other, so that traffic hears of the second a merge window later.
        if is_other {
            self.changed(now);
        }
        if is_back && let Some(host) = self.hosts.get_mut(destination) {
            host.come_back();
            self.changed(now);
        }
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        let probes = self.hosts.iter().filter(|host| !host.is_probing).filter_map(|host| host.probe_at);
        Some(probes.chain(self.merge_at).fold(self.sweep_at, Timestamp::min))
    }

    fn on_timeout(&mut self, now: Timestamp) {
        while self.sweep_at <= now {
            self.sweep(self.sweep_at);
            self.sweep_at = self.sweep_at + INTERVAL;
        }
        for host in &mut self.hosts {
            if !host.is_probing && host.probe_at.is_some_and(|at| at <= now) {
                host.is_probing = true;
                // Due: handed out by the next poll.
                host.probe_at = Some(Timestamp::ZERO);
            }
        }
        if self.merge_at.is_some_and(|at| at <= now) {
            self.tell(now);
        }
    }

    fn poll_probe(&mut self) -> Option<usize> {
        let place = self.hosts.iter().position(|host| host.is_probing && host.probe_at == Some(Timestamp::ZERO))?;
        self.hosts.get_mut(place)?.probe_at = None;
        Some(place)
    }

    fn is_out(&self, destination: usize) -> bool {
        self.out.get(destination).is_some_and(|is_out| *is_out)
    }
}

const INTERVAL: Duration = Duration::from_secs(10);
const MERGE_WINDOW: Duration = Duration::from_secs(1);
const CONSECUTIVE: u32 = 5;
const BASE: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(300);
const REQUESTS: u32 = 100;
const HOSTS: usize = 5;
const DEVIATIONS: f64 = 1.9;
const UNHEALTHY: u32 = 2;

#[cfg(test)]
mod tests {
    use super::super::tests::{end, ok};
    use super::*;

    #[test]
    fn five_in_a_row_eject_for_thirty_seconds_and_the_next_sweep() {
        let mut envoy = Envoy::new(3, 100, None, Timestamp::ZERO);
        for n in 0..4 {
            envoy.on_outcome(Timestamp::from_secs(n), 0, &end(503), Then::Answered);
        }
        envoy.on_outcome(Timestamp::from_secs(4), 0, &ok(), Then::Answered);
        for n in 5..9 {
            envoy.on_outcome(Timestamp::from_secs(n), 0, &end(503), Then::Answered);
            assert!(!envoy.is_out(0));
        }
        envoy.on_outcome(Timestamp::from_secs(9), 0, &end(503), Then::Answered);
        assert!(envoy.is_out(0) && !envoy.is_out(1));
        envoy.on_timeout(Timestamp::from_secs(30));
        assert!(envoy.is_out(0), "thirty seconds are over at 39");
        envoy.on_timeout(Timestamp::from_secs(40));
        assert!(!envoy.is_out(0));
    }

    #[test]
    fn traffic_hears_at_once_of_one_change_and_a_second_later_of_those_that_follow_soon() {
        let checks = Checks { interval: Duration::from_secs(5), timeout: Duration::from_secs(2) };
        let mut envoy = Envoy::new(2, 100, Some(checks), Timestamp::ZERO);
        let five = |envoy: &mut Envoy, millis| {
            let at = Timestamp::from_millis(millis);
            (0..5).for_each(|_| envoy.on_outcome(at, 0, &end(503), Then::Again));
        };
        five(&mut envoy, 1000);
        assert!(envoy.is_out(0));
        envoy.on_probe(Timestamp::from_millis(1500), 0, ProbeResult::Passed);
        assert!(envoy.is_out(0), "half a second after the first change");
        five(&mut envoy, 1600);
        envoy.on_timeout(Timestamp::from_millis(2500));
        assert!(envoy.is_out(0), "ejected again in between");
        envoy.on_probe(Timestamp::from_millis(3600), 0, ProbeResult::Passed);
        assert!(!envoy.is_out(0));
        five(&mut envoy, 3700);
        assert!(!envoy.is_out(0));
        envoy.on_timeout(Timestamp::from_millis(4700));
        assert!(envoy.is_out(0));
    }

    #[test]
    fn by_default_none_of_fewer_than_ten_is_ever_ejected() {
        for (n, is_out) in [(9, false), (10, true)] {
            let mut envoy = Envoy::new(n, 10, None, Timestamp::ZERO);
            (0..50).for_each(|at| envoy.on_outcome(Timestamp::from_secs(at), 0, &end(500), Then::Answered));
            assert_eq!(envoy.is_out(0), is_out, "{n}");
        }
    }

    #[test]
    fn a_passed_check_ends_an_ejection_and_two_failed_ones_take_out() {
        let checks = Checks { interval: Duration::from_secs(5), timeout: Duration::from_secs(2) };
        let mut envoy = Envoy::new(2, 100, Some(checks), Timestamp::ZERO);
        (0..5).for_each(|_| envoy.on_outcome(Timestamp::from_secs(1), 0, &end(500), Then::Answered));
        assert!(envoy.is_out(0));
        envoy.on_timeout(Timestamp::from_secs(2));
        assert_eq!((envoy.poll_probe(), envoy.poll_probe()), (Some(0), Some(1)));
        envoy.on_probe(Timestamp::from_millis(2001), 0, ProbeResult::Passed);
        assert!(!envoy.is_out(0));
        envoy.on_probe(Timestamp::from_secs(7), 1, ProbeResult::Failed);
        assert!(!envoy.is_out(1));
        envoy.on_probe(Timestamp::from_secs(12), 1, ProbeResult::Failed);
        assert!(envoy.is_out(1));
    }
}

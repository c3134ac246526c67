//! How late the driver of a real run was by itself, and so whether the machine can be believed.
//!
//! Clients and destinations share the machine with the proxies. Where they cannot send a request when it is due, before any
//! proxy has seen it, the proxies waited for the processor just as long: probes time out, requests pile up, and what was
//! measured is the machine. A fault of a proxy does not make the clients late: they send on a schedule of their own.

use std::fmt;
use std::time::Duration;

use crate::seen::Seen;

/// How late requests were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// One in a hundred was later.
    pub p99: Duration,
    /// None was later.
    pub worst: Duration,
}

impl Lateness {
    /// Of a run.
    pub fn of(seen: &Seen) -> Self {
        let mut all: Vec<Duration> = seen.requests.iter().map(|one| one.late).collect();
        all.sort_unstable();
        let p99 = all.get(all.len() * 99 / 100).copied().unwrap_or_default();
        Self { p99, worst: all.last().copied().unwrap_or_default() }
    }

    /// Whether what was measured says something of the proxies.
    pub fn is_believable(self) -> bool {
        self.p99 <= MOST_P99 && self.worst <= MOST
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (p99, worst) = (self.p99.as_secs_f64() * 1e3, self.worst.as_secs_f64() * 1e3);
        write!(f, "the driver itself was late by {p99:.0} ms in one of a hundred requests, by {worst:.0} ms at worst")
    }
}

/// A request waits for the processor five times at least (client, proxy, destination, and back), and a 99th percentile of
/// 200 ms is promised within 50.
const MOST_P99: Duration = Duration::from_millis(10);
/// A quarter of the second within which times are promised, and of the shortest timeout of a probe.
const MOST: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::Asked;
    use lab::meter::Fate;
    use model::time::Timestamp;

    fn lateness(millis: impl IntoIterator<Item = u64>) -> Lateness {
        let asked = |late| Asked {
            at: Timestamp::ZERO,
            took: Duration::from_secs(9),
            late: Duration::from_millis(late),
            fate: Fate::Served,
            is_bad: false,
        };
        Lateness::of(&Seen { requests: millis.into_iter().map(asked).collect(), ..Seen::default() })
    }

    #[test]
    fn a_driver_that_was_late_is_not_believed_and_a_slow_proxy_is_no_excuse() {
        assert!(lateness([]).is_believable());
        assert!(lateness((0..1000).map(|n| n % 10)).is_believable());
        let one_stall = lateness((0..1000).map(|n| if n == 500 { 300 } else { 1 }));
        assert!(!one_stall.is_believable() && one_stall.p99.as_millis() == 1, "{one_stall}");
        assert!(!lateness((0..1000).map(|n| if n % 50 == 0 { 20 } else { 1 })).is_believable());
    }
}

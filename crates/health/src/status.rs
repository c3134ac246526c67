//! A node's status and its four consecutive counts, as APISIX's control API words them.
//!
//! The first row that holds gives the status:
//!
//! | condition | status |
//! |---|---|
//! | the process drains, weight 0 | unhealthy |
//! | a value of an enabled check is Unhealthy | unhealthy; mostly_unhealthy when a passed probe already counts towards return |
//! | active on and its value is Unknown | unknown |
//! | a failure below the threshold since the last success, or reactivated and no success since | mostly_healthy |
//! | else, also without checks | healthy |
//!
//! Successes and failures of every enabled check feed the counts; a check that is turned off sets them to 0.

use model::health::{Health, HealthPair, Switch};
use model::outcome::FailureKind;
use model::view::{Counter, NodeStatus};

use crate::available::is_unhealthy;

/// What the process as a whole is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Process {
    /// Its planned stop has not begun.
    Serves,
    /// It has: every node is reported unhealthy.
    Drains,
}

/// What the status depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) is_out_of_service: bool,
    pub(crate) active: Switch,
    pub(crate) passive: Switch,
    pub(crate) health: HealthPair,
    /// A passed probe since it became Unhealthy, not enough of them yet.
    pub(crate) is_returning: bool,
    /// A failed probe since the last passed one, a failed attempt since the last good one, or a reactivation since.
    pub(crate) is_doubtful: bool,
}

/// The status, by the table above.
pub(crate) fn node_status(facts: &Facts) -> NodeStatus {
    if facts.is_out_of_service {
        return NodeStatus::Unhealthy;
    }
    if is_unhealthy(facts.health, facts.active, facts.passive) {
        // Passed probes bring back the active value only; an ejection ends by its time alone.
        let is_ejected = facts.passive == Switch::On && facts.health.passive == Health::Unhealthy;
        return if facts.is_returning && !is_ejected { NodeStatus::MostlyUnhealthy } else { NodeStatus::Unhealthy };
    }
    if facts.active == Switch::On && facts.health.active == Health::Unknown {
        return NodeStatus::Unknown;
    }
    if facts.is_doubtful { NodeStatus::MostlyHealthy } else { NodeStatus::Healthy }
}

/// Counts successes.
pub(crate) fn count_success(counter: &mut Counter, n: u64) {
    let success = u64::from(counter.success).saturating_add(n).min(u64::from(u8::MAX));
    *counter = Counter { success: u8::try_from(success).unwrap_or(u8::MAX), ..Counter::default() };
}

/// Counts one failure.
pub(crate) fn count_failure(counter: &mut Counter, failure: Option<FailureKind>) {
    counter.success = 0;
    let count = match failure {
        None | Some(FailureKind::Status | FailureKind::Body | FailureKind::Protocol | FailureKind::HeadTooLarge) => {
            &mut counter.http_failure
        }
        Some(
            FailureKind::ConnectTimeout
            | FailureKind::HeadTimeout
            | FailureKind::TryTimeout
            | FailureKind::BodyTimeout
            | FailureKind::Deadline,
        ) => &mut counter.timeout_failure,
        Some(
            FailureKind::Dns
            | FailureKind::Refused
            | FailureKind::Unreachable
            | FailureKind::Tls
            | FailureKind::Reset
            | FailureKind::Closed
            | FailureKind::RequestBody
            | FailureKind::BodyCut
            | FailureKind::Local
            | FailureKind::ClientGone
            | FailureKind::ClientBody
            | FailureKind::Unprocessed
            | FailureKind::RefusedStream
            | FailureKind::ClientDeadline
            | FailureKind::ShortDeadline
            | FailureKind::Cancelled,
        ) => &mut counter.tcp_failure,
    };
    *count = count.saturating_add(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_that_holds_gives_the_status() {
        use {Health::*, Switch::*};
        let facts = |active, passive, health: (Health, Health)| Facts {
            is_out_of_service: false,
            active,
            passive,
            health: HealthPair::new(health.0, health.1),
            is_returning: false,
            is_doubtful: false,
        };
        let rows = [
            (Facts { is_out_of_service: true, ..facts(On, On, (Healthy, Healthy)) }, NodeStatus::Unhealthy),
            (facts(On, On, (Unhealthy, Healthy)), NodeStatus::Unhealthy),
            (facts(On, On, (Unknown, Unhealthy)), NodeStatus::Unhealthy),
            (Facts { is_returning: true, ..facts(On, On, (Unhealthy, Healthy)) }, NodeStatus::MostlyUnhealthy),
            (Facts { is_returning: true, ..facts(On, On, (Unhealthy, Unhealthy)) }, NodeStatus::Unhealthy),
            (facts(On, Off, (Unknown, Unknown)), NodeStatus::Unknown),
            (Facts { is_doubtful: true, ..facts(On, On, (Unknown, Unknown)) }, NodeStatus::Unknown),
            (Facts { is_doubtful: true, ..facts(Off, On, (Unknown, Unknown)) }, NodeStatus::MostlyHealthy),
            (facts(Off, On, (Unknown, Unknown)), NodeStatus::Healthy),
            (facts(Off, Off, (Unknown, Unknown)), NodeStatus::Healthy),
            (facts(On, On, (Healthy, Unknown)), NodeStatus::Healthy),
        ];
        for (facts, status) in rows {
            assert_eq!(node_status(&facts), status, "{facts:?}");
        }
    }

    #[test]
    fn counts_stop_at_255_and_clear_each_other() {
        let mut counter = Counter::default();
        count_success(&mut counter, 1000);
        assert_eq!(counter.success, 255);
        for _ in 0..300 {
            count_failure(&mut counter, Some(FailureKind::Refused));
        }
        count_failure(&mut counter, Some(FailureKind::HeadTimeout));
        count_failure(&mut counter, None);
        assert_eq!(counter, Counter { success: 0, http_failure: 1, tcp_failure: 255, timeout_failure: 1 });
        count_success(&mut counter, 1);
        assert_eq!(counter, Counter { success: 1, ..Counter::default() });
    }
}

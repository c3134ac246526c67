//! Joins the opinions of a VIP's upstreams by its condition.
//!
//! While a cycle runs, some upstreams have not answered yet. A VIP is judged as soon as the answers at hand settle it
//! whatever the others will say, and at the latest when the cycle ends: so a slow upstream delays only the VIPs that
//! really wait for it, and no VIP changes twice in a cycle because one upstream happened to answer before another.

use model::vip::{Condition, FailurePolicy, Unreachable, UpstreamRef};

use crate::upstream::{Cause, HeldFor, Opinion, Upstream};
use model::time::Timestamp;

/// One upstream as a VIP sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// It has its say.
    Says(Opinion),
    /// Its answer of this cycle is outstanding.
    Pending {
        /// It may freeze the VIP when this poll fails, too.
        may_freeze: bool,
    },
}

/// What the upstreams come to together. The index tells which upstream decided it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// The condition holds.
    Up,
    /// It does not.
    Down(usize, Cause),
    /// The last decision stands.
    Hold(usize, HeldFor),
    /// The VIP stays as it is.
    Freeze(usize, u32),
    /// Too early to say.
    Undecided,
}

impl Seat {
    /// The seat of an upstream whose answer of this cycle is at hand.
    pub fn heard(upstream: &Upstream, now: Timestamp, policy: FailurePolicy) -> Self {
        Self::Says(upstream.opinion(now, policy))
    }

    /// The seat of an upstream whose answer of this cycle is outstanding.
    pub fn awaited(upstream: &Upstream, policy: FailurePolicy) -> Self {
        let freezes = match policy.control_api_unreachable {
            Unreachable::Announce => true,
            Unreachable::Withdraw => false,
        };
        Self::Pending { may_freeze: freezes && upstream.failed_polls().is_at_the_brink(policy) }
    }
}

/// Joins them; the order of the seats is the order in the file and only names the culprit.
pub fn join(condition: Condition, seats: &[Seat]) -> Joined {
    let first = |wanted: fn(&Seat) -> bool| seats.iter().position(wanted);
    if first(|seat| matches!(seat, Seat::Pending { may_freeze: true })).is_some() {
        return Joined::Undecided;
    }
    let frozen = seats.iter().enumerate().find_map(|(index, seat)| match seat {
        Seat::Says(Opinion::Freeze { failed_polls }) => Some(Joined::Freeze(index, *failed_polls)),
        Seat::Says(Opinion::Up | Opinion::Down(_) | Opinion::Hold(_)) | Seat::Pending { .. } => None,
    });
    if let Some(frozen) = frozen {
        return frozen;
    }
    let down = seats.iter().enumerate().find_map(|(index, seat)| match seat {
        Seat::Says(Opinion::Down(cause)) => Some(Joined::Down(index, *cause)),
        Seat::Says(Opinion::Up | Opinion::Freeze { .. } | Opinion::Hold(_)) | Seat::Pending { .. } => None,
    });
    let held = seats.iter().enumerate().find_map(|(index, seat)| match seat {
        Seat::Says(Opinion::Hold(why)) => Some(Joined::Hold(index, *why)),
        Seat::Says(Opinion::Up | Opinion::Freeze { .. } | Opinion::Down(_)) | Seat::Pending { .. } => None,
    });
    let is_pending = first(|seat| matches!(seat, Seat::Pending { .. })).is_some();
    let is_up = first(|seat| matches!(seat, Seat::Says(Opinion::Up))).is_some();
    match condition {
        Condition::All => match (down, is_pending, held) {
            (Some(down), _, _) => down,
            (None, true, _) => Joined::Undecided,
            (None, false, Some(held)) => held,
            (None, false, None) => Joined::Up,
        },
        Condition::Any => match (is_up, is_pending, held) {
            (true, _, _) => Joined::Up,
            (false, true, _) => Joined::Undecided,
            (false, false, Some(held)) => held,
            (false, false, None) => down.unwrap_or(Joined::Undecided),
        },
    }
}

/// The upstreams that are named by any VIP, each once.
pub fn distinct<'a>(named: impl Iterator<Item = &'a UpstreamRef>) -> std::collections::BTreeSet<UpstreamRef> {
    named.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: Seat = Seat::Says(Opinion::Up);
    const DOWN: Seat = Seat::Says(Opinion::Down(Cause::NoNodes));
    const HOLD: Seat = Seat::Says(Opinion::Hold(HeldFor::Warming));
    const FROZEN: Seat = Seat::Says(Opinion::Freeze { failed_polls: 3 });
    const PENDING: Seat = Seat::Pending { may_freeze: false };
    const BRINK: Seat = Seat::Pending { may_freeze: true };

    #[test]
    fn two_upstreams_join_as_the_condition_says() {
        let (up, down, hold) = (Joined::Up, |i| Joined::Down(i, Cause::NoNodes), |i| Joined::Hold(i, HeldFor::Warming));
        for (seats, all, any) in [
            ([UP, UP], up, up),
            ([UP, DOWN], down(1), up),
            ([DOWN, DOWN], down(0), down(0)),
            ([HOLD, UP], hold(0), up),
            ([HOLD, DOWN], down(1), hold(0)),
            ([PENDING, DOWN], down(1), Joined::Undecided),
            ([PENDING, UP], Joined::Undecided, up),
            ([PENDING, HOLD], Joined::Undecided, Joined::Undecided),
            ([FROZEN, DOWN], Joined::Freeze(0, 3), Joined::Freeze(0, 3)),
            ([FROZEN, UP], Joined::Freeze(0, 3), Joined::Freeze(0, 3)),
            ([BRINK, DOWN], Joined::Undecided, Joined::Undecided),
            ([BRINK, UP], Joined::Undecided, Joined::Undecided),
        ] {
            assert_eq!(join(Condition::All, &seats), all, "all of {seats:?}");
            assert_eq!(join(Condition::Any, &seats), any, "any of {seats:?}");
        }
    }
}

//! What holds ejections back: which of those that traffic alone has judged Unhealthy may in fact leave.
//!
//! | guard | keeps | not asked of |
//! |---|---|---|
//! | `max_ejected` | the later ones, while those that traffic took out make up that share of the weight; with those that probes took out for one that still answers some | one that refuses connections |
//! | `spacing` | one that follows too soon on another one | one that refuses connections |
//! | `last` | the last one that would serve | nobody is exempt |
//!
//! One that a probe also calls Unhealthy is not kept by any of them. One that fails all it gets bears no load for the others, so that
//! those that probes took out are no reason to keep it; one that fails in part does bear some. When probes take others out, so that
//! more than the share would be out, its ejection is taken back, the latest first: what the rest could bear was not known when it
//! left. The value stays Unhealthy for everybody to see; only availability differs, and says why.

use model::available::Because;
use model::event::Cause;
use model::guards::{Guards, LastDestination};
use model::health::{Health, Switch};
use serde::{Deserialize, Serialize};

use crate::cluster::ClusterState;
use crate::destination::DestinationState;
use crate::effects::Effects;
use crate::passive::CONNECT_FAILURES;
use crate::timers::TimerKey;

/// How an ejection stands with the guards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Departure {
    /// It is not ejected, or nobody looked at it yet.
    #[default]
    None,
    /// It may leave, and has.
    Left,
    /// It is kept, for this reason.
    Kept(Because),
}

impl DestinationState {
    /// The reason for which it serves although its traffic speaks against it.
    pub(crate) fn kept(&self) -> Option<Because> {
        match self.traffic.departure {
            Departure::Kept(because) => Some(because),
            Departure::None | Departure::Left => None,
        }
    }
}

/// Decides anew who may leave.
pub(crate) fn settle(cluster: &mut ClusterState, effects: &mut Effects) {
    let guards = cluster.config.health_check.guards;
    let timer = TimerKey::Guard(cluster.number);
    effects.timers.cancel(timer);
    let active = cluster.active();
    let mut accused: Vec<usize> = Vec::new();
    let (mut total, mut convicted, mut ejected) = (0_u64, 0_u64, 0_u64);
    let mut n_serving = 0_usize;
    for (index, one) in cluster.destinations.iter_mut().enumerate() {
        let weight = u64::from(one.config.weight);
        total += weight;
        let is_convicted = active == Switch::On && one.health.active == Health::Unhealthy;
        let is_accused = one.health.passive == Health::Unhealthy && !is_convicted;
        if is_convicted {
            convicted += weight;
        }
        if !is_accused {
            one.traffic.departure = Departure::None;
        } else if guards == Guards::default() {
            one.traffic.departure = Departure::Left;
        } else {
            accused.push(index);
        }
        let has_left = is_convicted || one.traffic.departure == Departure::Left;
        n_serving += usize::from(!has_left && weight > 0 && !one.is_nowhere());
    }
    // Those that are out come first: they give way only where they are too many.
    accused.sort_by_key(|index| {
        let one = cluster.destinations.get(*index).map(|one| &one.traffic);
        one.map(|traffic| (traffic.departure != Departure::Left, traffic.ejected_at))
    });
    let n = u32::try_from(cluster.destinations.len()).unwrap_or(u32::MAX).max(1);
    for index in accused {
        let Some(one) = cluster.destinations.get_mut(index) else { continue };
        let weight = u64::from(one.config.weight);
        let is_serving = weight > 0 && !one.is_nowhere();
        let others = if fails_all(one) { ejected } else { ejected + convicted };
        let is_capped = guards.max_ejected.is_some_and(|cap| (others + weight) as f64 > cap.get() * total as f64)
            && !refuses_connections(one);
        if one.traffic.departure == Departure::Left {
            if is_capped {
                one.traffic.departure = Departure::Kept(Because::Cap);
                n_serving += usize::from(is_serving);
            } else {
                ejected += weight;
            }
            continue;
        }
        // One that came back and failed follows upon nobody but itself.
        let others_left_at = cluster.left_at.filter(|(_, slot)| *slot != one.slot).map(|(at, _)| at);
        let may_leave_at = guards.spacing.and_then(|spacing| Some(others_left_at? + spacing / n));
        let is_too_soon = may_leave_at.is_some_and(|at| effects.now < at);
        let is_last = guards.last == LastDestination::Stays && is_serving && n_serving == 1;
        one.traffic.departure = if is_last {
            Departure::Kept(Because::Guard)
        } else if is_capped {
            Departure::Kept(Because::Cap)
        } else if !refuses_connections(one) && is_too_soon {
            may_leave_at.into_iter().for_each(|at| effects.timers.set(timer, at));
            Departure::Kept(Because::Cap)
        } else {
            cluster.left_at = Some((effects.now, one.slot));
            ejected += weight;
            n_serving -= usize::from(is_serving);
            Departure::Left
        };
    }
}

/// It bears no load. Trials that failed on its way back count.
fn fails_all(destination: &DestinationState) -> bool {
    destination.traffic.failures_in_row >= ALL
}

fn refuses_connections(destination: &DestinationState) -> bool {
    let cause = destination.last_transition.as_deref().map(|transition| &transition.cause);
    matches!(cause, Some(Cause::Traffic { policy }) if policy == CONNECT_FAILURES) || cause == Some(&Cause::External)
}

/// So many failed attempts and no good one among them: as many as ConsecutiveErrors takes for a sick destination.
const ALL: u32 = 5;

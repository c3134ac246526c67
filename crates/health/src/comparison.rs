//! Whether a destination fails more than the rest of its cluster: what turns an accusation into a conviction.
//!
//! The rest are the others that no check calls Unhealthy: one that is out already would make every other one look good. Their
//! sum is kept ([`crate::rest`]).
//!
//! Second tries count like first ones. Where failures are the destinations' own, each try at one of them fails alike,
//! whatever was tried before, so repeats move no share. Where requests fail wherever they go, their repeats fail as well,
//! but among equals everybody gets the same part of them. Only a destination of little weight beside heavy ones gets more
//! repeats than first tries: of such requests it then shows more failures than they do.

use std::time::Duration;

use model::event::Evidence;
use model::passive::Comparison;
use model::time::Timestamp;

use crate::cluster::ClusterState;
use crate::effects::Effects;
use crate::passive::Asking;
use crate::window::{Counts, Window};

/// What the comparison came to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Finding {
    /// It fails more than the rest, by enough.
    Worse(Evidence),
    /// It does not, or the rest fails as well.
    Alike,
    /// Nobody else has traffic to compare it with.
    Alone,
}

/// Compares the destination at `index` with the rest of its cluster, over the last ten seconds, or more where these hold
/// fewer attempts than tell anything.
pub(crate) fn compare(cluster: &mut ClusterState, index: usize, effects: &Effects, rule: &Comparison) -> Finding {
    let now = effects.now;
    let Some(window) = cluster.destinations.get(index).map(|one| &one.traffic.window) else {
        return Finding::Alone;
    };
    let tens = window.tens(now, ENOUGH);
    let (own, rest) = own_and_rest(cluster, index, effects, |window| window.total(now, tens));
    if rest.total() == 0 {
        return Finding::Alone;
    }
    let (failed, total) = (own.failures(rule.plain_500), own.total());
    let (rest_failed, rest_total) = (rest.failures(rule.plain_500), rest.total());
    let rest_share = share(rest_failed, rest_total);
    let difference = share(failed, total) - rest_share;
    if total < u64::from(rule.minimum)
        || rest_share > rule.rest_limit.get()
        || difference <= rule.difference.get()
        || z(failed, total, rest_failed, rest_total) <= rule.z
    {
        return Finding::Alike;
    }
    Finding::Worse(Evidence {
        failed: Some(failed),
        total: Some(total),
        window: Some(10 * Duration::from_secs(u64::from(tens))),
        rest_failed: Some(rest_failed),
        rest_total: Some(rest_total),
        ..Evidence::default()
    })
}

/// How often the destination at `index` and the rest of its cluster asked for less since then.
pub(crate) fn asking(
    cluster: &mut ClusterState,
    index: usize,
    effects: &Effects,
    since: Timestamp,
) -> (Asking, Asking) {
    let of = |counts: Counts| Asking { asked: counts.asked, attempts: counts.asked.saturating_add(counts.total()) };
    let (own, rest) = own_and_rest(cluster, index, effects, |window| window.after(effects.now, since));
    (of(own), of(rest))
}

fn own_and_rest(
    cluster: &mut ClusterState,
    index: usize,
    effects: &Effects,
    total: impl Fn(&Window) -> Counts,
) -> (Counts, Counts) {
    let own = cluster.destinations.get(index).map(|one| total(&one.traffic.window)).unwrap_or_default();
    let rest = cluster.rest(effects.moves).but(index, own, &total);
    debug_assert_eq!(rest, cluster.summed_rest(index, &total), "the kept sum of {}", cluster.config.id);
    (own, rest)
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The two-proportion test's statistic; 0 where nothing failed at all.
pub(crate) fn z(failed: u64, total: u64, rest_failed: u64, rest_total: u64) -> f64 {
    let pooled = share(failed.saturating_add(rest_failed), total.saturating_add(rest_total));
    let spread = pooled * (1.0 - pooled) * (1.0 / total as f64 + 1.0 / rest_total as f64);
    if spread <= 0.0 { 0.0 } else { (share(failed, total) - share(rest_failed, rest_total)) / spread.sqrt() }
}

/// So many attempts of its own tell something.
const ENOUGH: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statistic_is_that_of_two_proportions() {
        // 30 of 100 against 10 of 100: q = 0.2, z = 0.2 / sqrt(0.2 * 0.8 * 0.02).
        assert!((z(30, 100, 10, 100) - 3.535_533_9).abs() < 1e-6);
        assert!(z(10, 100, 30, 100) < -3.5);
        assert_eq!(z(0, 100, 0, 100), 0.0);
        assert_eq!(z(100, 100, 50, 50), 0.0);
    }
}

//! Whether a destination fails more than the rest of its cluster: what turns an accusation into a conviction.
//!
//! The rest are the others that no check calls Unhealthy: one that is out already would make every other one look good. Their
//! sum is kept ([`crate::rest`]).
//!
//! First tries are compared with first tries. Chance (or a hash, or a session) gives a destination those, whatever they will
//! come to, so requests that fail wherever they go fail alike at all of them. Repeats are of requests that have just failed
//! elsewhere. Of two with weights 9 and 1, where a fifth of all requests fail wherever they go, the light one is asked for
//! 0.1 + 0.9 x 0.2, and all of the second part fails: 0.71 of its attempts beside 0.22 of the heavy one's. A repeat that
//! succeeds is no better a measure, either: where failures are chance, the light one gets most of those.
//!
//! ```text
//!   twenty first tries of its own in two minutes ── yes ──> first tries beside first tries
//!     no │
//!        └──> each kind beside its like, added up:   sum of (failed - n x the rest's share)
//!             repeats only where the rest has twenty, too: one of theirs that succeeded is chance
//!   the rest has no first try ──> its repeats in their place: those fail more easily, so that acquits
//! ```
//! What is left out: of two destinations one that gets nothing but repeats. All that it gets has failed at the other one, and
//! nobody can tell whose fault it is, or serve it better. That it refuses connections is found without a comparison.

use std::time::Duration;

use model::event::Evidence;
use model::passive::{Comparison, Plain500};
use model::time::Timestamp;

use crate::cluster::ClusterState;
use crate::effects::Effects;
use crate::passive::Asking;
use crate::window::{Counts, Ground, Tally, Window};

/// What the comparison came to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Finding {
    /// It fails more than the rest, by enough.
    Worse(Evidence),
    /// It does not, or the rest fails as well.
    Alike,
    /// Nobody else had traffic lately to compare it with.
    Alone,
}

/// Compares the destination at `index` with the rest of its cluster, over the last ten seconds, or more where these hold
/// fewer attempts than tell anything.
pub(crate) fn compare(cluster: &mut ClusterState, index: usize, effects: &Effects, rule: &Comparison) -> Finding {
    let now = effects.now;
    let Some(window) = cluster.destinations.get(index).map(|one| &one.traffic.window) else {
        return Finding::Alone;
    };
    let reach = window.reach(now, ENOUGH);
    let (own, rest) = own_and_rest(cluster, index, effects, |window| window.total(now, reach.tens));
    if rest.all().total() == 0 {
        return if has_busy_peer(cluster, index, now, reach.tens) { Finding::Alike } else { Finding::Alone };
    }
    let compared = Compared::of(reach.ground, own, rest, rule.plain_500);
    if compared.total < u64::from(rule.minimum).max(1)
        || compared.rest_share() > rule.rest_limit.get()
        || compared.difference() <= rule.difference.get()
        || compared.z() <= rule.z
    {
        return Finding::Alike;
    }
    Finding::Worse(Evidence {
        failed: Some(compared.failed),
        total: Some(compared.total),
        window: Some(10 * Duration::from_secs(u64::from(reach.tens))),
        rest_failed: Some(compared.rest_failed),
        rest_total: Some(compared.rest_total),
        ..Evidence::default()
    })
}

/// Whether another one had traffic lately, whatever is said of it. Where checks call all of those Unhealthy at the same time,
/// too much load is likelier than sickness, and nobody is there to be compared with.
fn has_busy_peer(cluster: &ClusterState, index: usize, now: Timestamp, tens: u32) -> bool {
    let mut others = cluster.destinations.iter().enumerate().filter(|(other, _)| *other != index);
    others.any(|(_, one)| one.traffic.window.total(now, tens).all().total() > 0)
}

/// How often the destination at `index` and the rest of its cluster asked for less since then: of their first tries where both
/// have enough of them.
pub(crate) fn asking(
    cluster: &mut ClusterState,
    index: usize,
    effects: &Effects,
    since: Timestamp,
) -> (Asking, Asking) {
    let of = |counts: Counts| Asking { asked: counts.asked, attempts: counts.asked.saturating_add(counts.total()) };
    let (own, rest) = own_and_rest(cluster, index, effects, |window| window.after(effects.now, since));
    let first = (of(own.first), of(rest.first));
    if first.0.attempts.min(first.1.attempts) >= ENOUGH { first } else { (of(own.all()), of(rest.all())) }
}

/// Attempts of a destination beside those of the rest, and the statistic of two proportions over them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Compared {
    failed: u64,
    total: u64,
    rest_failed: u64,
    rest_total: u64,
    /// So many would have failed at the rest's shares.
    expected: f64,
    /// Of `failed` around it, were all alike.
    variance: f64,
}

impl Compared {
    fn of(ground: Ground, own: Tally, rest: Tally, plain_500: Plain500) -> Self {
        let mut compared = Self::default();
        let beside = if rest.first.total() == 0 { rest.repeat } else { rest.first };
        compared.add(own.first, beside, plain_500);
        match ground {
            Ground::FirstTries => {}
            Ground::AllTries if rest.repeat.total() < ENOUGH => {}
            Ground::AllTries => compared.add(own.repeat, rest.repeat, plain_500),
        }
        compared
    }

    /// How often both asked for less.
    pub(crate) fn of_asking(own: Asking, rest: Asking) -> Self {
        let mut compared = Self::default();
        compared.add_parts((own.asked, own.attempts), (rest.asked, rest.attempts));
        compared
    }

    fn add(&mut self, own: Counts, rest: Counts, plain_500: Plain500) {
        self.add_parts((own.failures(plain_500), own.total()), (rest.failures(plain_500), rest.total()));
    }

    /// So many of so many, on both sides.
    fn add_parts(&mut self, (failed, total): (u64, u64), (rest_failed, rest_total): (u64, u64)) {
        if total == 0 || rest_total == 0 {
            return;
        }
        self.failed = self.failed.saturating_add(failed);
        self.total = self.total.saturating_add(total);
        self.rest_failed = self.rest_failed.saturating_add(rest_failed);
        self.rest_total = self.rest_total.saturating_add(rest_total);
        self.expected += total as f64 * share(rest_failed, rest_total);
        let all = share(failed.saturating_add(rest_failed), total.saturating_add(rest_total));
        self.variance += all * (1.0 - all) * total as f64 * (1.0 + total as f64 / rest_total as f64);
    }

    /// What the rest would have failed of the same tries.
    fn rest_share(&self) -> f64 {
        self.expected / self.total.max(1) as f64
    }

    /// How much more of them failed; below zero: less.
    pub(crate) fn difference(&self) -> f64 {
        share(self.failed, self.total) - self.rest_share()
    }

    /// The two-proportion test's statistic, of each kind beside its like; 0 where all came to the same.
    pub(crate) fn z(&self) -> f64 {
        if self.variance <= 0.0 { 0.0 } else { (self.failed as f64 - self.expected) / self.variance.sqrt() }
    }
}

fn own_and_rest(
    cluster: &mut ClusterState,
    index: usize,
    effects: &Effects,
    total: impl Fn(&Window) -> Tally,
) -> (Tally, Tally) {
    let own = cluster.destinations.get(index).map(|one| total(&one.traffic.window)).unwrap_or_default();
    let rest = cluster.rest(effects.moves).but(index, own, &total);
    debug_assert_eq!(rest, cluster.summed_rest(index, &total), "the kept sum of {}", cluster.config.id);
    (own, rest)
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// So many attempts tell something.
const ENOUGH: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// So many failed of so many.
    fn counts(failed: u64, total: u64) -> Counts {
        Counts { failed, ok: total - failed, ..Counts::default() }
    }

    fn compared(ground: Ground, own: [Counts; 2], rest: [Counts; 2]) -> Compared {
        let tally = |[first, repeat]: [Counts; 2]| Tally { first, repeat };
        Compared::of(ground, tally(own), tally(rest), Plain500::Passes)
    }

    #[test]
    fn the_statistic_is_that_of_two_proportions() {
        let rows = [
            // q = 0.2, z = 0.2 / sqrt(0.2 * 0.8 * 0.02).
            ((30, 100), (10, 100), 3.535_533_9),
            ((10, 100), (30, 100), -3.535_533_9),
            // q = 4 / 940, z = (0.075 - 1 / 900) / sqrt(q * (1 - q) * (1 / 40 + 1 / 900)).
            ((3, 40), (1, 900), 7.024_677_5),
            ((0, 100), (0, 100), 0.0),
            ((100, 100), (50, 50), 0.0),
            ((5, 5), (0, 0), 0.0),
        ];
        let none = counts(0, 0);
        for (own, rest, z) in rows {
            let failing = compared(Ground::AllTries, [counts(own.0, own.1), none], [counts(rest.0, rest.1), none]);
            let [own_asks, rest_asks] = [own, rest].map(|(asked, attempts)| Asking { asked, attempts });
            for both in [failing, Compared::of_asking(own_asks, rest_asks)] {
                assert!((both.z() - z).abs() < 1e-6, "{own:?} {rest:?}: {}", both.z());
            }
        }
    }

    #[test]
    fn requests_that_fail_wherever_they_go_move_nothing_whatever_the_weights() {
        for (light, heavy) in [(1, 1), (1, 9), (1, 99)] {
            for tenths in 1..=9 {
                // A thousand first tries for each part; each failed one goes to the other, and fails there.
                let first = |weight: u64| counts(weight * 100 * tenths, weight * 1000);
                let repeat = |weight: u64| counts(weight * 100 * tenths, weight * 100 * tenths);
                let own = [first(light), repeat(heavy)];
                let rest = [first(heavy), repeat(light)];
                for ground in [Ground::FirstTries, Ground::AllTries] {
                    let both = compared(ground, own, rest);
                    assert!(
                        both.difference().abs() < 1e-9 && both.z().abs() < 1e-6,
                        "{light}:{heavy} {tenths} {both:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn failures_by_chance_move_nothing_either_although_the_light_one_gets_most_of_the_repeats() {
        // Three of ten fail at each, whatever it is.
        let own = [counts(300, 1000), counts(810, 2700)];
        let rest = [counts(2700, 9000), counts(90, 300)];
        let both = compared(Ground::FirstTries, own, rest);
        assert!(both.difference().abs() < 1e-9, "{both:?}");
    }

    #[test]
    fn where_first_tries_are_few_repeats_are_told_from_repeats_that_others_make_good() {
        let few = counts(0, 2);
        let broken = compared(Ground::AllTries, [few, counts(30, 30)], [counts(10, 300), counts(5, 40)]);
        assert!(broken.difference() > 0.8 && broken.z() > 5.0, "{broken:?}");
        let alike = compared(Ground::AllTries, [few, counts(30, 30)], [counts(60, 300), counts(40, 40)]);
        assert!(alike.difference() < 0.0, "{alike:?}");
        // One of the others' repeats that went well says nothing.
        let unknown = compared(Ground::AllTries, [few, counts(30, 30)], [counts(60, 300), counts(0, 1)]);
        assert_eq!((unknown.total, unknown.failed), (2, 0));
    }

    #[test]
    fn repeats_of_the_rest_stand_in_for_first_tries_that_it_does_not_get() {
        let none = counts(0, 0);
        let sick = compared(Ground::FirstTries, [counts(40, 50), none], [none, counts(0, 40)]);
        assert!(sick.difference() > 0.7 && sick.z() > 5.0, "{sick:?}");
        let poisoned = compared(Ground::FirstTries, [counts(40, 50), none], [none, counts(40, 40)]);
        assert!(poisoned.difference() < 0.0, "{poisoned:?}");
    }
}

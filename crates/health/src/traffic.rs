//! What traffic says: outcomes and sums, counted for people and judged by the passive policies.

use std::time::Duration;

use model::cluster::Compat;
use model::event::{Cause, Seen};
use model::health::{Health, Switch};
use model::outcome::{OutcomeClass, Try};
use model::time::Timestamp;

use crate::core::Core;
use crate::doubt;
use crate::input::{OutcomeEvent, Sum};
use crate::judge::{Changed, set_passive};
use crate::passive::{Needs, PassivePolicy, PassiveState, Proof, Verdict, is_failed_attempt, is_transport_failure};
use crate::schedule;
use crate::slots::Place;
use crate::status::{count_failure, count_success};
use crate::window::Counts;

/// Whether some policy had a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judged {
    Yes,
    No,
}

impl Core {
    pub(crate) fn outcome_seen(&mut self, event: &OutcomeEvent) {
        let Some(place) = self.slots.place(event.slot) else {
            self.ignored.slots += 1;
            return;
        };
        let Some(cluster) = self.clusters.get_mut(place.cluster) else { return };
        let ok = u64::from(event.outcome.class == OutcomeClass::Ok);
        if let Some(destination) = cluster.destinations.get_mut(place.destination).filter(|_| ok > 0) {
            destination.traffic.good(self.effects.now);
        }
        let moved = schedule::live_failure(cluster, place.destination, &event.outcome, &mut self.effects);
        let is_known = cluster.config.compat == Compat::None
            && cluster
                .destinations
                .get(place.destination)
                .and_then(|destination| destination.traffic.ejected_at)
                .is_some_and(|ejected_at| event.picked_at < ejected_at + PUBLISHED_AFTER);
        let is_judged = cluster.passive() == Switch::On && !is_known;
        if moved == Changed::Yes {
            self.touch(place);
        }
        if !is_judged {
            return;
        }
        self.note_outcome(place, event, ok);
        if !is_mute_trial(event) {
            self.trial_ended(place, Counts::of(&event.outcome));
        }
        self.judge_traffic(place, |needs, now, state, policy| match needs {
            Needs::Failures | Needs::Nothing if ok > 0 => policy.on_sums(now, state, ok),
            Needs::Failures | Needs::Nothing | Needs::EveryOutcome => policy.on_outcome(now, state, event),
        });
        self.touch(place);
    }

    pub(crate) fn sum_taken(&mut self, sum: Sum) {
        let Some(place) = self.slots.place(sum.slot) else {
            self.ignored.slots += 1;
            return;
        };
        let Some(cluster) = self.clusters.get_mut(place.cluster) else { return };
        if cluster.needs != Needs::Failures || sum.ok == 0 {
            return;
        }
        let passive = cluster.passive();
        let Some(destination) = cluster.destinations.get_mut(place.destination) else { return };
        destination.traffic.good(self.effects.now);
        if passive == Switch::Off {
            return;
        }
        let before = destination.counter;
        count_success(&mut destination.counter, sum.ok);
        let is_news =
            destination.counter != before || destination.traffic.has_failed || destination.traffic.is_unproven;
        destination.traffic.has_failed = false;
        destination.traffic.is_unproven = false;
        let ok = |ok| Counts { ok, ..Counts::default() };
        let repeats = sum.repeats.min(sum.ok);
        for (which, n) in [(Try::First, sum.ok - repeats), (Try::Repeat, repeats)] {
            if n > 0 {
                cluster.count(place.destination, self.effects.now, which, ok(n));
            }
        }
        // Answers to requests from before the ejection may be among them. What its trials came to is told one by one, and
        // never stands in a sum.
        if cluster.is_gated(place.destination) {
            if is_news {
                self.touch(place);
            }
            return;
        }
        let is_judged = self.judge_traffic(place, |_, now, state, policy| policy.on_sums(now, state, sum.ok));
        if is_judged == Judged::Yes || is_news {
            self.touch(place);
        }
    }

    /// Feeds the counts that people see with one outcome.
    fn note_outcome(&mut self, place: Place, event: &OutcomeEvent, ok: u64) {
        let outcome = &event.outcome;
        let Some(cluster) = self.clusters.get_mut(place.cluster) else { return };
        cluster.count(place.destination, self.effects.now, event.which, Counts::of(outcome));
        let Some(destination) = cluster.destinations.get_mut(place.destination) else { return };
        match outcome.class {
            OutcomeClass::Ok => {
                count_success(&mut destination.counter, ok);
                destination.traffic.has_failed = false;
                destination.traffic.is_unproven = false;
            }
            OutcomeClass::AppFail | OutcomeClass::ConnFail | OutcomeClass::Timeout | OutcomeClass::Cut => {
                count_failure(&mut destination.counter, outcome.failure);
                destination.traffic.has_failed = true;
                let (failure, status) = (outcome.failure, outcome.status);
                destination.traffic.failed.push(Seen { at: event.at, class: Some(outcome.class), failure, status });
                destination.traffic.failures_in_row = destination.traffic.failures_in_row.saturating_add(1);
            }
            OutcomeClass::Overload | OutcomeClass::Slow | OutcomeClass::Neutral => {}
        }
    }

    /// A request ended while the destination may be on its way back: one of its trials.
    fn trial_ended(&mut self, place: Place, counts: Counts) {
        let Some(cluster) = self.clusters.get_mut(place.cluster) else { return };
        let Some(check) = cluster.config.health_check.passive.as_ref() else { return };
        let (Some(rule), plain_500) = (check.readmission, check.plain_500()) else { return };
        let Some(destination) = cluster.destinations.get_mut(place.destination) else { return };
        if !destination.traffic.comeback.is_gated() {
            return;
        }
        if counts.failures(plain_500) > 0 {
            doubt::canary_failed(cluster, place.destination, &mut self.effects);
        } else if counts.ok > 0 {
            destination.traffic.comeback.passed(&rule, counts.ok, self.effects.now);
        }
        self.touch(place);
    }

    /// Asks each passive policy of a destination. The first that finds it bad ejects it; else the last other word counts.
    fn judge_traffic(
        &mut self,
        place: Place,
        mut ask: impl FnMut(Needs, Timestamp, &PassiveState, &mut dyn PassivePolicy) -> Option<Verdict>,
    ) -> Judged {
        let now = self.effects.now;
        let Some(cluster) = self.clusters.get_mut(place.cluster) else { return Judged::No };
        let Some(destination) = cluster.destinations.get_mut(place.destination) else { return Judged::No };
        let traffic = &mut destination.traffic;
        let state = PassiveState { health: destination.health.passive, ejected_at: traffic.ejected_at };
        let mut answers: Vec<(Verdict, String)> = Vec::new();
        for (_, policy) in &mut traffic.policies {
            let answer = ask(policy.needs(), now, &state, policy.as_mut());
            answers.extend(answer.map(|answer| (answer, policy.name().to_owned())));
        }
        let mut shadows: Vec<(usize, Verdict)> = Vec::new();
        for (number, shadow) in traffic.shadow.iter_mut().enumerate().filter(|(_, one)| one.out_until.is_none()) {
            let answer = ask(shadow.policy.needs(), now, &state, shadow.policy.as_mut());
            shadows.extend(answer.map(|answer| (number, answer)));
        }
        for (number, said) in shadows {
            doubt::shadow_spoke(cluster, place.destination, number, said, &mut self.effects);
        }
        let mut verdict: Option<(Verdict, String)> = None;
        for (answer, policy) in answers {
            let is_bad_already = verdict.as_ref().is_some_and(|(one, _)| one.health == Health::Unhealthy);
            if is_bad_already {
                break;
            }
            let answer = doubt::convict(cluster, place.destination, &self.effects, answer);
            verdict = answer.map(|answer| (answer, policy)).or(verdict);
        }
        let judged = match verdict {
            Some((verdict, policy)) => {
                let is_unconfirmed = verdict.health == Health::Unhealthy && verdict.proof != Proof::Outright;
                let cause = Cause::Traffic { policy };
                let changed = set_passive(cluster, place.destination, verdict, cause, &mut self.effects);
                if is_unconfirmed && changed == Changed::Yes {
                    doubt::ask_at_once(cluster, place.destination, &mut self.effects);
                }
                Judged::Yes
            }
            None => Judged::No,
        };
        let before = cluster.destinations.get(place.destination).map(|one| one.share);
        doubt::settle(cluster, place.destination, &mut self.effects);
        let is_moved = cluster.destinations.get(place.destination).map(|one| one.share) != before;
        if is_moved { Judged::Yes } else { judged }
    }
}

/// Whether a trial says nothing of the destination: the answer to a request that has failed elsewhere may be that request's
/// fault. A connection that is refused, breaks or stays silent is not taken for one.
fn is_mute_trial(event: &OutcomeEvent) -> bool {
    event.which == Try::Repeat && is_failed_attempt(&event.outcome) && !is_transport_failure(&event.outcome)
}

/// How long a worker may go on picking an ejected destination until the next picture has reached it. Picks of that time
/// say nothing new, either.
const PUBLISHED_AFTER: Duration = Duration::from_millis(10);

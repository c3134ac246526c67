//! When probes run.
//!
//! ```text
//!   first (spread) ──> timer ──due──> in flight ──result──> timer: start + interval ± 5 %, not before now
//!                        ^  ^            │  │                       or earlier, to confirm (see below)
//!                        │  │            │  └──overdue──> given up without a verdict, timer as after a result
//!   live failure ────────┘  └────────────┴──address, health URL changed: cancelled, at once
//! ```
//!
//! - Each destination has a schedule of its own, from start to start. A probe that takes longer than the interval delays
//!   the next one of the same destination, which starts when it ends; nobody else's.
//! - While a verdict is pending, and after a refused or reset live connection, the next probe comes after the confirm
//!   interval (250 ms after a refusal, when that is less) if that is before its regular time: at most one such early
//!   probe per destination and second.
//! - With `round: cluster` all of a cluster's destinations are probed together and judged together; then the cluster has
//!   the schedule, confirm probes are whole rounds, and the interval for unhealthy destinations does not apply.
//! - Where nothing came of a probe (cancelled, or our own machine had no descriptor or port) it says nothing: no verdict,
//!   no count, the next one at its regular time.

use std::time::Duration;

use model::active::{ActiveCheck, ProbeRound};
use model::event::{Cause, Seen};
use model::health::Health;
use model::id::Slot;
use model::outcome::{FailureKind, Outcome, OutcomeClass};
use model::random::Random;
use model::time::Timestamp;

use crate::acquittal::{self, is_acquitted};
use crate::active::ProbeResult;
use crate::cluster::ClusterState;
use crate::destination::{InFlight, Judged};
use crate::doubt;
use crate::effects::Effects;
use crate::input::Probed;
use crate::judge::{Changed, set_active};
use crate::output::{Output, ProbeOrder};
use crate::status::{count_failure, count_success};
use crate::timers::TimerKey;

/// The next probe of a destination (or round of its cluster) comes at `at` at the latest.
pub(crate) fn probe_by(cluster: &mut ClusterState, index: usize, at: Timestamp, effects: &mut Effects) {
    let Some(destination) = cluster.destinations.get_mut(index) else { return };
    if cluster.config.health_check.active.as_ref().is_some_and(|check| check.round == ProbeRound::Cluster) {
        if cluster.round.started_at.is_some() {
            cluster.round.is_wanted_again = true;
        } else if effects.timers.at(TimerKey::Round(cluster.number)).is_none_or(|next| at < next) {
            cluster.round.is_next_early = false;
            effects.timers.set(TimerKey::Round(cluster.number), at);
        }
    } else if destination.probes.in_flight.is_none()
        && effects.timers.at(TimerKey::Probe(destination.slot)).is_none_or(|next| at < next)
    {
        destination.probes.is_next_early = false;
        effects.timers.set(TimerKey::Probe(destination.slot), at);
    }
}

/// The same for a probe that is early: it counts against the spacing of early ones.
pub(crate) fn early_probe_by(cluster: &mut ClusterState, index: usize, at: Timestamp, effects: &mut Effects) {
    let number = cluster.number;
    let has_rounds = cluster.has_rounds();
    let Some(destination) = cluster.destinations.get_mut(index) else { return };
    let (timer, is_next_early) = if has_rounds {
        (TimerKey::Round(number), &mut cluster.round.is_next_early)
    } else {
        (TimerKey::Probe(destination.slot), &mut destination.probes.is_next_early)
    };
    // No timer: a probe is in flight and will say more than we know.
    if effects.timers.at(timer).is_some_and(|regular| at < regular) {
        *is_next_early = true;
        effects.timers.set(timer, at);
    }
}

/// A destination's timer is due.
pub(crate) fn probe_due(cluster: &mut ClusterState, index: usize, effects: &mut Effects) {
    let Some(destination) = cluster.destinations.get_mut(index) else { return };
    if std::mem::take(&mut destination.probes.is_next_early) {
        destination.probes.early_at = Some(effects.now);
    }
    start(cluster, index, effects);
}

/// A cluster's round is due: all of its destinations are probed.
pub(crate) fn round_due(cluster: &mut ClusterState, effects: &mut Effects) {
    if std::mem::take(&mut cluster.round.is_next_early) {
        cluster.round.early_at = Some(effects.now);
    }
    cluster.round.started_at = Some(effects.now);
    cluster.round.is_wanted_again = false;
    cluster.round.results.clear();
    for index in 0..cluster.destinations.len() {
        start(cluster, index, effects);
    }
    if cluster.destinations.is_empty() {
        end_round(cluster, effects);
    }
}

fn start(cluster: &mut ClusterState, index: usize, effects: &mut Effects) {
    let (Some(check), Some(request)) = (&cluster.config.health_check.active, &cluster.request) else { return };
    let Some(destination) = cluster.destinations.get_mut(index) else { return };
    if destination.probes.in_flight.is_some() {
        return;
    }
    let (now, slot) = (effects.now, destination.slot);
    let ticket = effects.ticket(slot);
    destination.probes.in_flight = Some(InFlight { ticket, started_at: now });
    destination.probes.last_started_at = Some(now);
    effects.timers.set(TimerKey::ProbeOverdue(slot), now + check.timeout + OVERDUE_AFTER);
    effects.push(Output::Probe(ProbeOrder {
        ticket,
        slot,
        destination: destination.key.clone(),
        at: now,
        kind: check.kind,
        http: check.http(cluster.config.http),
        base: destination.config.health.clone().unwrap_or_else(|| destination.config.address.clone()),
        host: destination.config.host.clone(),
        timeout: check.timeout,
        request: request.clone(),
        tls: cluster.tls.clone(),
        outbound: cluster.outbound.clone(),
    }));
}

/// Takes the probe in flight away, if there is one. The caller sees to the next one.
pub(crate) fn cancel(cluster: &mut ClusterState, index: usize, effects: &mut Effects) {
    let Some(destination) = cluster.destinations.get_mut(index) else { return };
    if let Some(probe) = destination.probes.in_flight.take() {
        effects.tickets.remove(&probe.ticket);
        effects.timers.cancel(TimerKey::ProbeOverdue(destination.slot));
        effects.push(Output::CancelProbe(probe.ticket));
    }
}

/// The driver never answered: the probe is given up without a verdict.
pub(crate) fn overdue(cluster: &mut ClusterState, index: usize, effects: &mut Effects) {
    let started_at = cluster.destinations.get(index).and_then(|one| one.probes.in_flight).map(|probe| probe.started_at);
    cancel(cluster, index, effects);
    go_on(cluster, index, started_at.unwrap_or(effects.now), effects);
}

/// A probe ended. Returns the slots whose active value changed.
pub(crate) fn probed(cluster: &mut ClusterState, index: usize, end: Probed, effects: &mut Effects) -> Vec<Slot> {
    let Some(destination) = cluster.destinations.get_mut(index) else { return Vec::new() };
    let Some(probe) = destination.probes.in_flight.take() else { return Vec::new() };
    let (now, slot) = (effects.now, destination.slot);
    effects.tickets.remove(&probe.ticket);
    effects.timers.cancel(TimerKey::ProbeOverdue(slot));
    let failure = end.failure.or_else(|| unexpected(cluster.config.health_check.active.as_ref(), end.status));
    if matches!(failure, Some(FailureKind::Cancelled | FailureKind::Local)) {
        return go_on(cluster, index, probe.started_at, effects);
    }
    destination.probes.last = Some(Judged { at: now, failure, status: end.status });
    if failure.is_none() {
        destination.probes.failures_in_row = 0;
        destination.probes.is_kept = false;
        destination.probes.passes_in_row = destination.probes.passes_in_row.saturating_add(1);
        destination.probes.failed.clear();
        count_success(&mut destination.counter, 1);
        effects.timers.cancel(TimerKey::HoldEnd(slot));
    } else {
        destination.probes.passes_in_row = 0;
        destination.probes.failures_in_row = destination.probes.failures_in_row.saturating_add(1);
        destination.probes.failed.push(Seen { at: now, class: None, failure, status: end.status });
        count_failure(&mut destination.counter, failure);
    }
    let result = ProbeResult { slot, started_at: probe.started_at, ended_at: now, failure, status: end.status };
    if cluster.has_rounds() {
        cluster.round.results.push(result);
        return go_on(cluster, index, probe.started_at, effects);
    }
    let changed = apply(cluster, &[result], effects);
    go_on(cluster, index, probe.started_at, effects);
    changed
}

fn unexpected(check: Option<&ActiveCheck>, status: Option<u16>) -> Option<FailureKind> {
    let (check, status) = (check?, status?);
    let is_expected = check.request.expect_statuses.iter().any(|range| range.contains(status));
    (!is_expected).then_some(FailureKind::Status)
}

/// Asks the policy and writes what it says.
fn apply(cluster: &mut ClusterState, results: &[ProbeResult], effects: &mut Effects) -> Vec<Slot> {
    let verdicts = cluster.judge(effects.now, results);
    let policy = cluster.active_policy.as_ref().map(|policy| policy.name().to_owned()).unwrap_or_default();
    let rule = cluster.config.health_check.passive.as_ref().and_then(|check| check.readmission);
    let mut changed = Vec::new();
    for verdict in verdicts {
        let Some(destination) = cluster.destinations.iter_mut().find(|one| one.slot == verdict.slot) else { continue };
        let probe = results.iter().find(|result| result.slot == verdict.slot);
        if verdict.health == Health::Unhealthy
            && probe.is_some_and(|probe| is_acquitted(&cluster.config, destination, probe, effects.now))
        {
            acquittal::tell(destination, &policy, verdict.evidence, effects);
            continue;
        }
        destination.probes.is_kept = false;
        let cause = Cause::Probe { policy: policy.clone() };
        let was_out = destination.health.active == Health::Unhealthy;
        if set_active(destination, verdict.health, cause, verdict.evidence, effects) == Changed::Yes {
            changed.push(verdict.slot);
            if let Some(rule) = rule.filter(|_| was_out && verdict.health == Health::Healthy) {
                doubt::back_by_probes(destination, &rule, effects.now);
            }
        }
    }
    changed
}

/// After a probe: the next one of the destination, or the end of the round. Returns the slots whose value changed.
fn go_on(cluster: &mut ClusterState, index: usize, started_at: Timestamp, effects: &mut Effects) -> Vec<Slot> {
    if cluster.has_rounds() {
        let is_over = cluster.destinations.iter().all(|one| one.probes.in_flight.is_none());
        return if is_over && cluster.round.started_at.is_some() { end_round(cluster, effects) } else { Vec::new() };
    }
    let Some(check) = cluster.config.health_check.active.as_ref() else { return Vec::new() };
    let Some(destination) = cluster.destinations.get_mut(index) else { return Vec::new() };
    let interval = jittered(interval(check, destination.health.active), &mut destination.random);
    let regular = (started_at + interval).max(effects.now);
    let last = destination.probes.last.filter(|last| last.at == effects.now).and_then(|last| last.failure);
    let early = early_time(check, last, destination.probes.early_at, effects.now);
    let is_early = destination.is_verdict_pending() && early < regular;
    destination.probes.is_next_early = is_early;
    effects.timers.set(TimerKey::Probe(destination.slot), if is_early { early } else { regular });
    Vec::new()
}

/// All of a round have answered: the policy sees them together. Returns the slots whose value changed.
pub(crate) fn end_round(cluster: &mut ClusterState, effects: &mut Effects) -> Vec<Slot> {
    let started_at = cluster.round.started_at.take().unwrap_or(effects.now);
    let mut results = std::mem::take(&mut cluster.round.results);
    let place = |slot: Slot| cluster.destinations.iter().position(|one| one.slot == slot);
    results.retain(|result| place(result.slot).is_some());
    results.sort_by_key(|result| place(result.slot));
    let changed = apply(cluster, &results, effects);
    let Some(check) = cluster.config.health_check.active.as_ref() else { return changed };
    let regular = (started_at + jittered(check.interval, &mut cluster.round.random)).max(effects.now + SHORTEST);
    let pending = cluster.destinations.iter().filter(|one| one.is_verdict_pending());
    let refused = pending.clone().filter_map(|one| one.probes.last?.failure).find(|one| *one == FailureKind::Refused);
    let early = early_time(check, refused, cluster.round.early_at, effects.now);
    let is_early = pending.count() > 0 && early < regular;
    let is_wanted = std::mem::take(&mut cluster.round.is_wanted_again);
    cluster.round.is_next_early = is_early && !is_wanted;
    let at = match (is_wanted, is_early) {
        (true, _) => effects.now,
        (false, true) => early,
        (false, false) => regular,
    };
    effects.timers.set(TimerKey::Round(cluster.number), at);
    changed
}

/// A live attempt ended. A refused or reset connection makes the next probe early, unless the verdict is in already.
pub(crate) fn live_failure(
    cluster: &mut ClusterState,
    index: usize,
    outcome: &Outcome,
    effects: &mut Effects,
) -> Changed {
    let failure = match (outcome.class, outcome.failure) {
        (OutcomeClass::ConnFail, failure) => failure,
        (OutcomeClass::AppFail, failure @ Some(FailureKind::Reset | FailureKind::Closed)) => failure,
        _ => return Changed::No,
    };
    let Some(check) = cluster.config.health_check.active.as_ref() else { return Changed::No };
    let Some(destination) = cluster.destinations.get_mut(index) else { return Changed::No };
    if destination.health.active == Health::Unhealthy {
        return Changed::No;
    }
    let (timer, last_early, is_next_early) = match check.round {
        ProbeRound::Destination => {
            (TimerKey::Probe(destination.slot), destination.probes.early_at, &mut destination.probes.is_next_early)
        }
        ProbeRound::Cluster => {
            (TimerKey::Round(cluster.number), cluster.round.early_at, &mut cluster.round.is_next_early)
        }
    };
    let early = early_time(check, failure, last_early, effects.now);
    // No timer: a probe is in flight and will say more than we know.
    if effects.timers.at(timer).is_some_and(|regular| early < regular) {
        *is_next_early = true;
        effects.timers.set(timer, early);
        return Changed::Yes;
    }
    Changed::No
}

/// The interval changed: the next probe comes within the shorter of both. Without a burst: a destination whose new time
/// lies in the past gets a random one within the new interval.
pub(crate) fn interval_changed(cluster: &mut ClusterState, index: usize, effects: &mut Effects) {
    let Some(check) = cluster.config.health_check.active.as_ref() else { return };
    let Some(destination) = cluster.destinations.get_mut(index) else { return };
    let (interval, now) = (interval(check, destination.health.active), effects.now);
    let random = &mut destination.random;
    let regular = destination.probes.last_started_at.unwrap_or(now) + jittered(interval, random);
    let by = if regular > now { regular } else { now + interval.mul_f64(random.unit()) };
    probe_by(cluster, index, by, effects);
}

fn interval(check: &ActiveCheck, active: Health) -> Duration {
    let interval = if active == Health::Unhealthy { check.unhealthy_interval } else { check.interval };
    interval.max(SHORTEST)
}

fn jittered(interval: Duration, random: &mut Random) -> Duration {
    let factor = 1.0 - JITTER + 2.0 * JITTER * random.unit();
    // An interval of centuries would overflow; the timer saturates, so it may stay as it is.
    if interval > Duration::from_secs(u64::from(u32::MAX)) { interval } else { interval.mul_f64(factor) }
}

fn early_time(
    check: &ActiveCheck,
    failure: Option<FailureKind>,
    last_early: Option<Timestamp>,
    now: Timestamp,
) -> Timestamp {
    let delay = match failure {
        Some(FailureKind::Refused) => check.confirm_interval.min(AFTER_REFUSAL),
        _ => check.confirm_interval,
    };
    let allowed = last_early.map_or(Timestamp::ZERO, |at| at + EARLY_SPACING);
    (now + delay).max(allowed)
}

/// Half the width of the jitter, as a share of the interval.
const JITTER: f64 = 0.05;
/// No interval is shorter, whatever the configuration says.
const SHORTEST: Duration = Duration::from_millis(1);
/// A refusal costs nothing and is usually the whole truth: it is confirmed fast.
const AFTER_REFUSAL: Duration = Duration::from_millis(250);
/// Early probes of one destination are at least this far apart.
pub(crate) const EARLY_SPACING: Duration = Duration::from_secs(1);
/// How long after a probe's timeout its driver may still answer.
const OVERDUE_AFTER: Duration = Duration::from_secs(5);

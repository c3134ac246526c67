//! Doubts and ways back: the part of its weight that a destination gets, and what passive policies want by time.
//!
//! Everything here is below a verdict: a suspicion lowers the share and brings a probe forward, a ramp raises the share
//! step by step. Shadow policies are judged here, too: they never touch anything but what is told of them.

use std::time::Duration;

use model::active::ProbeRound;
use model::event::{Cause, EventKind, Evidence, ShareCause};
use model::health::Health;
use model::passive::DEFAULT_REACTIVATION;
use model::ratio::Ratio;
use model::readmission::Readmission;
use model::time::Timestamp;

use crate::cluster::ClusterState;
use crate::comparison::{Finding, asking, compare};
use crate::destination::DestinationState;
use crate::effects::Effects;
use crate::judge::{reactivate, set_passive};
use crate::lookout::IsDoubted;
use crate::passive::{Alone, Proof, Verdict};
use crate::schedule;
use crate::timers::TimerKey;

/// A policy that is judged and not enforced.
#[derive(Debug)]
pub(crate) struct Shadow {
    pub(crate) settings: crate::passive::PassiveSettings,
    pub(crate) policy: Box<dyn crate::passive::PassivePolicy>,
    /// It would have the destination out until then.
    pub(crate) out_until: Option<Timestamp>,
}

/// Whether a verdict of Unhealthy holds, with the evidence of the comparison where one was asked for. Other verdicts
/// hold as they are.
pub(crate) fn convict(
    cluster: &mut ClusterState,
    index: usize,
    effects: &Effects,
    verdict: Verdict,
) -> Option<Verdict> {
    let Proof::AgainstRest { comparison, alone } = verdict.proof else { return Some(verdict) };
    if verdict.health != Health::Unhealthy {
        return Some(verdict);
    }
    match (compare(cluster, index, effects, &comparison), alone) {
        (Finding::Worse(found), _) => {
            let evidence = Evidence { limit: verdict.evidence.limit, ..found };
            Some(Verdict { evidence, ..verdict })
        }
        (Finding::Alone, Alone::Convicts) => Some(verdict),
        (Finding::Alone, Alone::Acquits) | (Finding::Alike, _) => None,
    }
}

/// A shadow policy said something.
pub(crate) fn shadow_spoke(
    cluster: &mut ClusterState,
    index: usize,
    place: usize,
    said: Verdict,
    effects: &mut Effects,
) {
    if said.health != Health::Unhealthy {
        return;
    }
    let Some(verdict) = convict(cluster, index, effects, said) else { return };
    let check = cluster.config.health_check.passive.as_ref();
    let own = check.and_then(|check| check.reactivation_period.or(check.readmission.map(|rule| rule.first)));
    let time = verdict.reactivation.or(own).unwrap_or(DEFAULT_REACTIVATION);
    let Some(destination) = cluster.destinations.get_mut(index) else { return };
    let Some(shadow) = destination.traffic.shadow.get_mut(place) else { return };
    shadow.policy.on_ejected(effects.now);
    if shadow.out_until.replace(effects.now + time).is_none() {
        let (key, policy) = (destination.key.clone(), shadow.policy.name().to_owned());
        let evidence = Evidence { reactivation: Some(time), ..verdict.evidence };
        effects.event(EventKind::Shadow { destination: key, policy, would_eject: true, evidence });
    }
}

/// A timer of the passive policies is due.
pub(crate) fn due(cluster: &mut ClusterState, index: usize, effects: &mut Effects) {
    let rule = cluster.config.health_check.passive.as_ref().and_then(|check| check.readmission);
    let Some(destination) = cluster.destinations.get_mut(index) else { return };
    let now = effects.now;
    if let Some(rule) = rule {
        destination.traffic.comeback.go_on(&rule, now);
    }
    for (_, policy) in &mut destination.traffic.policies {
        if policy.due_at().is_some_and(|at| at <= now) {
            policy.on_due(now);
        }
    }
    for shadow in &mut destination.traffic.shadow {
        if shadow.policy.due_at().is_some_and(|at| at <= now) {
            shadow.policy.on_due(now);
        }
        if shadow.out_until.take_if(|until| *until <= now).is_some() {
            shadow.policy.on_reactivated(now);
            let (key, policy) = (destination.key.clone(), shadow.policy.name().to_owned());
            let evidence = Evidence::default();
            effects.event(EventKind::Shadow { destination: key, policy, would_eject: false, evidence });
        }
    }
    settle(cluster, index, effects);
}

/// A probe passed that was started while the destination was as it is.
pub(crate) fn probe_passed(cluster: &mut ClusterState, index: usize, started_at: Timestamp, effects: &mut Effects) {
    let rule = cluster.config.health_check.passive.as_ref().and_then(|check| check.readmission);
    let Some(destination) = cluster.destinations.get_mut(index) else { return };
    destination.traffic.judges().for_each(|policy| policy.on_probe_passed(effects.now));
    if let Some(rule) = rule {
        destination.traffic.comeback.probe_passed(&rule, effects.now);
        let is_new = destination.traffic.ejected_at.is_some_and(|ejected_at| started_at >= ejected_at);
        if is_new && std::mem::take(&mut destination.traffic.is_unconfirmed) {
            effects.timers.cancel(TimerKey::Reactivation(destination.slot));
            reactivate(destination, Some(&rule), Cause::Unconfirmed, effects);
        }
    }
    settle(cluster, index, effects);
}

/// Probes took it out and let it in again. A suspicion of before could not end meanwhile, for nothing came to it: the probe that
/// passed ends it, and the destination takes its weight again step by step.
pub(crate) fn back_by_probes(destination: &mut DestinationState, rule: &Readmission, now: Timestamp) {
    let traffic = &mut destination.traffic;
    let mut is_suspect = false;
    for (_, policy) in &mut traffic.policies {
        if policy.suspicion().is_some() {
            is_suspect = true;
            policy.on_reactivated(now);
        }
    }
    if is_suspect {
        traffic.comeback.on_ramp(rule, now);
    }
}

/// A trial request after an ejection failed: out again.
pub(crate) fn canary_failed(cluster: &mut ClusterState, index: usize, effects: &mut Effects) {
    let verdict = Verdict::of(Health::Unhealthy, Evidence::default());
    set_passive(cluster, index, verdict, Cause::Canary, effects);
    settle(cluster, index, effects);
}

/// Whether a doubt that needs a comparison has its ground. Found once, it holds as long as the doubt does; looked for at most
/// every 100 ms.
fn look_around(cluster: &mut ClusterState, index: usize, effects: &Effects) {
    let now = effects.now;
    let Some(destination) = cluster.destinations.get_mut(index) else { return };
    let traffic = &mut destination.traffic;
    let doubts = traffic.policies.iter().filter_map(|(_, policy)| policy.suspicion());
    let Some(doubt) = doubts.map(|doubt| doubt.proof).find(|proof| *proof != Proof::Outright) else {
        traffic.is_worse = false;
        traffic.compared_at = None;
        return;
    };
    if traffic.is_worse || traffic.compared_at.is_some_and(|at| now.since(at) < COMPARE_AGAIN) {
        return;
    }
    traffic.compared_at = Some(now);
    let verdict = Verdict { proof: doubt, ..Verdict::of(Health::Unhealthy, Evidence::default()) };
    let is_worse = convict(cluster, index, effects, verdict).is_some();
    if let Some(destination) = cluster.destinations.get_mut(index) {
        destination.traffic.is_worse = is_worse;
    }
}

/// Tells those policies that want to know how often the destination and the rest asked for less.
fn tell_asking(cluster: &mut ClusterState, index: usize, effects: &Effects) {
    let now = effects.now;
    let n = cluster.destinations.get_mut(index).map_or(0, |one| one.traffic.judges().count());
    for place in 0..n {
        let judge = cluster.destinations.get_mut(index).and_then(|one| one.traffic.judges().nth(place));
        let Some(since) = judge.and_then(|policy| policy.looks_back(now)) else { continue };
        let (own, rest) = asking(cluster, index, effects, since);
        let judge = cluster.destinations.get_mut(index).and_then(|one| one.traffic.judges().nth(place));
        if let Some(policy) = judge {
            policy.on_asking(now, own, rest);
        }
    }
}

/// Whether some policy suspects a destination or asks of it, or it gets less than its weight: time alone may change each.
pub(crate) fn is_doubted(destination: &DestinationState) -> IsDoubted {
    let mut policies = destination.traffic.policies.iter();
    let is_suspect = policies.any(|(_, policy)| policy.suspicion().is_some() || policy.asks_at().is_some());
    if is_suspect || destination.share != Ratio::ONE { IsDoubted::Yes } else { IsDoubted::No }
}

/// Brings the share and the timer up to date with policies and way back.
pub(crate) fn settle(cluster: &mut ClusterState, index: usize, effects: &mut Effects) {
    settle_share(cluster, index, effects);
    answer(cluster, index, effects);
    if let Some(destination) = cluster.destinations.get(index) {
        cluster.lookout.doubt(destination.slot, is_doubted(destination));
    }
}

fn settle_share(cluster: &mut ClusterState, index: usize, effects: &mut Effects) {
    tell_asking(cluster, index, effects);
    look_around(cluster, index, effects);
    let rule = cluster.config.health_check.passive.as_ref().and_then(|check| check.readmission);
    let Some(destination) = cluster.destinations.get_mut(index) else { return };
    let (now, traffic) = (effects.now, &destination.traffic);
    let policies = || traffic.policies.iter().map(|(_, policy)| policy);
    let comeback = rule.as_ref().map(|rule| (traffic.comeback.share(rule, now), traffic.comeback.due_at(rule, now)));

    let dues = policies().map(|policy| policy.due_at());
    let shadows = traffic.shadow.iter().map(|shadow| [shadow.policy.due_at(), shadow.out_until]);
    let next = dues.chain(shadows.flatten()).chain(comeback.map(|(_, due)| due)).flatten().min();
    let timer = TimerKey::Passive(destination.slot);
    match next {
        Some(at) => effects.timers.set(timer, at.max(now)),
        None => effects.timers.cancel(timer),
    }

    let suspects = policies().filter_map(|policy| {
        let suspicion = policy.suspicion()?;
        (suspicion.proof == Proof::Outright || traffic.is_worse).then(|| (suspicion.share, policy.name()))
    });
    // The first of equals, so that the order of the configuration decides.
    let worst = suspects.reduce(|worst, one| if one.0 < worst.0 { one } else { worst });
    let ramp = comeback.map_or(Ratio::ONE, |(share, _)| share);
    let is_out = destination.health.passive == Health::Unhealthy;
    // Where a guard keeps one that is ejected, it serves no more than it must.
    let kept = rule.filter(|_| is_out).map(|rule| (rule.least_share, accused_by(destination)));
    let (share, because) = match (kept, worst) {
        (Some(kept), _) => kept,
        (None, Some((share, policy))) if share <= ramp => (share, ShareCause::Suspect { policy: policy.to_owned() }),
        (None, Some(_) | None) if ramp < Ratio::ONE => (ramp, ShareCause::Ramp),
        (None, Some(_) | None) => (Ratio::ONE, ShareCause::Whole),
    };
    if (share, &because) == (destination.share, &destination.share_because) {
        return;
    }
    let is_step = because == ShareCause::Ramp && destination.share_because == ShareCause::Ramp;
    let is_new_doubt = matches!(because, ShareCause::Suspect { .. }) && share < destination.share;
    (destination.share, destination.share_because) = (share, because.clone());
    if is_step {
        effects.publish();
    } else {
        let evidence = match because {
            ShareCause::Suspect { .. } => Evidence { last: destination.traffic.failed.to_vec(), ..Evidence::default() },
            ShareCause::Ramp | ShareCause::Whole => Evidence::default(),
        };
        effects.event(EventKind::Share { destination: destination.key.clone(), share, because, evidence });
    }
    if is_new_doubt {
        ask_at_once(cluster, index, effects);
    }
}

/// Brings a probe forward where a policy asks for what it says, unless one has answered since.
fn answer(cluster: &mut ClusterState, index: usize, effects: &mut Effects) {
    let Some(destination) = cluster.destinations.get(index) else { return };
    let asked_at = destination.traffic.policies.iter().filter_map(|(_, policy)| policy.asks_at()).max();
    let answered_at = destination.probes.last.map(|last| last.at);
    if asked_at.is_some_and(|asked_at| answered_at.is_none_or(|at| at < asked_at)) {
        ask_at_once(cluster, index, effects);
        // It shows when the next probe comes.
        cluster.is_picture_stale = true;
    }
}

fn accused_by(destination: &DestinationState) -> ShareCause {
    let cause = destination.last_transition.as_deref().map(|transition| &transition.cause);
    let policy = cause.and_then(Cause::policy).or(cause.map(Cause::as_str)).unwrap_or_default();
    ShareCause::Suspect { policy: policy.to_owned() }
}

/// Wants a probe now, for each destination once a second at most.
pub(crate) fn ask_at_once(cluster: &mut ClusterState, index: usize, effects: &mut Effects) {
    let Some(check) = cluster.active_check() else { return };
    let round = check.round;
    let Some(destination) = cluster.destinations.get_mut(index) else { return };
    let last = match round {
        ProbeRound::Destination => destination.probes.early_at,
        ProbeRound::Cluster => cluster.round.early_at,
    };
    let at = last.map_or(effects.now, |at| (at + schedule::EARLY_SPACING).max(effects.now));
    schedule::early_probe_by(cluster, index, at, effects);
}

/// Failures may come by the thousand.
const COMPARE_AGAIN: Duration = Duration::from_millis(100);

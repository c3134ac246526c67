//! From a verdict to a value: transitions, ejections, reactivations. The one place that writes the two values.
//!
//! Active and passive never write each other. Our own ejection: a newer one replaces the pending reactivation, a verdict
//! that is not Unhealthy cancels it. Under `compat: yarp` as YARP has it: a pending reactivation is neither replaced nor
//! cancelled, and a verdict equal to the value is nothing at all.

use std::sync::Arc;
use std::time::Duration;

use model::cluster::Compat;
use model::event::{Cause, EventKind, Evidence, Transition};
use model::health::{CheckKind, Health, Switch};
use model::passive::DEFAULT_REACTIVATION;
use model::readmission::Readmission;

use crate::cluster::ClusterState;
use crate::destination::DestinationState;
use crate::effects::Effects;
use crate::passive::{Proof, Verdict};
use crate::timers::TimerKey;

/// Writes an active value.
pub(crate) fn set_active(
    destination: &mut DestinationState,
    health: Health,
    cause: Cause,
    mut evidence: Evidence,
    effects: &mut Effects,
) -> Changed {
    if destination.health.active == health {
        return Changed::No;
    }
    if health == Health::Unhealthy && evidence.last.is_empty() {
        evidence.last = destination.probes.failed.to_vec();
    }
    write(destination, CheckKind::Active, health, cause, evidence, effects);
    Changed::Yes
}

/// Writes a passive value and sets or clears the reactivation that belongs to it.
pub(crate) fn set_passive(
    cluster: &mut ClusterState,
    index: usize,
    verdict: Verdict,
    cause: Cause,
    effects: &mut Effects,
) -> Changed {
    let compat = cluster.config.compat;
    let check = cluster.config.health_check.passive.as_ref();
    let period = check.and_then(|check| check.reactivation_period);
    let rule = check.and_then(|check| check.readmission);
    let has_probes = cluster.active() == Switch::On;
    let Some(destination) = cluster.destinations.get_mut(index) else { return Changed::No };
    let Verdict { health, mut evidence, reactivation, proof } = verdict;
    let is_new = destination.health.passive != health;
    if compat == Compat::Yarp && !is_new {
        return Changed::No;
    }
    // One that a guard keeps goes on failing: its way back is under way and does not begin anew.
    if rule.is_some() && !is_new && health == Health::Unhealthy && matches!(cause, Cause::Traffic { .. }) {
        return Changed::No;
    }
    let timer = TimerKey::Reactivation(destination.slot);
    if health == Health::Unhealthy {
        let traffic = &mut destination.traffic;
        let growing = rule.map(|rule| traffic.comeback.ejected(&rule, effects.now, &mut destination.random));
        let delay = reactivation.or(period).or(growing).unwrap_or(DEFAULT_REACTIVATION);
        let is_kept = compat == Compat::Yarp && effects.timers.at(timer).is_some();
        if !is_kept {
            effects.timers.set(timer, effects.now + delay);
        }
        evidence.reactivation = Some(left(effects, timer).unwrap_or(delay));
        if evidence.last.is_empty() {
            evidence.last = destination.traffic.failed.to_vec();
        }
        destination.traffic.ejected_at = Some(effects.now);
        destination.traffic.is_unconfirmed = has_probes && rule.is_some() && proof != Proof::Outright;
        for (_, policy) in &mut destination.traffic.policies {
            policy.on_ejected(effects.now);
        }
    } else if compat != Compat::Yarp {
        effects.timers.cancel(timer);
        if destination.health.passive == Health::Unhealthy {
            destination.traffic.comeback.cleared(effects.now);
        }
    }
    if is_new {
        write(destination, CheckKind::Passive, health, cause, evidence, effects);
    }
    if health == Health::Unhealthy {
        cluster.forget_counts(index);
    }
    // A newer ejection of one that is out already only moves its end.
    if is_new || health == Health::Unhealthy { Changed::Yes } else { Changed::No }
}

/// An ejection is over: its time is, or it did not stand.
pub(crate) fn reactivate(
    destination: &mut DestinationState,
    rule: Option<&Readmission>,
    cause: Cause,
    effects: &mut Effects,
) {
    if destination.health.passive != Health::Unhealthy {
        return;
    }
    for (_, policy) in &mut destination.traffic.policies {
        policy.on_reactivated(effects.now);
    }
    destination.traffic.failed.clear();
    destination.traffic.has_failed = false;
    destination.traffic.is_unproven = true;
    destination.traffic.is_unconfirmed = false;
    if let Some(rule) = rule {
        destination.traffic.comeback.readmitted(rule, effects.now);
    }
    write(destination, CheckKind::Passive, Health::Unknown, cause, Evidence::default(), effects);
}

/// Sets a value to Unknown because its check is off or its server is another one.
pub(crate) fn forget(destination: &mut DestinationState, check: CheckKind, cause: Cause, effects: &mut Effects) {
    if value(destination, check) != Health::Unknown {
        write(destination, check, Health::Unknown, cause, Evidence::default(), effects);
    }
}

/// Whether anything changed that the view shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    Yes,
    No,
}

fn left(effects: &Effects, timer: TimerKey) -> Option<Duration> {
    effects.timers.at(timer).map(|at| at.since(effects.now))
}

fn value(destination: &DestinationState, check: CheckKind) -> Health {
    match check {
        CheckKind::Active => destination.health.active,
        CheckKind::Passive => destination.health.passive,
    }
}

fn write(
    destination: &mut DestinationState,
    check: CheckKind,
    to: Health,
    cause: Cause,
    evidence: Evidence,
    effects: &mut Effects,
) {
    let from = value(destination, check);
    match check {
        CheckKind::Active => destination.health.active = to,
        CheckKind::Passive => destination.health.passive = to,
    }
    let transition = Transition { destination: destination.key.clone(), check, from, to, cause, evidence };
    effects.moves = effects.moves.wrapping_add(1);
    destination.changed_at = Some(effects.now);
    destination.last_transition = Some(Arc::new(transition.clone()));
    effects.event(EventKind::Transition(transition));
}

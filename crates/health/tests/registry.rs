//! Policies written by others: the YARP documentation's "first unsuccessful response" as an active and a passive one, and
//! an availability policy, all under the same name.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use health::active::{ActivePolicy, ActiveVerdict, ClusterProbes, ProbeResult};
use health::available::{AvailablePolicy, Candidates, Selection};
use health::passive::{Around, Asking, PassivePolicy, PassiveState, Verdict};
use health::{Core, HealthSet, Input, Needs, OutcomeEvent, Output, Pulse, Registry};
use model::active::ActivePolicy as ActiveOptions;
use model::available::{AvailablePolicy as AvailableOptions, Because};
use model::cluster::Cluster;
use model::event::Evidence;
use model::health::{CheckKind, Health, HealthPair};
use model::id::DestinationKey;
use model::passive::{PassiveCheck, PassivePolicy as PassiveOptions};
use model::time::Timestamp;

use crate::doubt::pulse;
use crate::world::*;

#[derive(Debug)]
struct FirstUnsuccessful;

fn value(is_good: bool) -> Health {
    if is_good { Healthy } else { Unhealthy }
}

impl ActivePolicy for FirstUnsuccessful {
    fn name(&self) -> &str {
        "FirstUnsuccessfulResponse"
    }
    fn on_probes(&mut self, _: Timestamp, _: &ClusterProbes<'_>, results: &[ProbeResult]) -> Vec<ActiveVerdict> {
        let verdict = |result: &ProbeResult| ActiveVerdict {
            slot: result.slot,
            health: value(result.failure.is_none()),
            evidence: Evidence::default(),
        };
        results.iter().map(verdict).collect()
    }
}

impl PassivePolicy for FirstUnsuccessful {
    fn name(&self) -> &str {
        "FirstUnsuccessfulResponse"
    }
    fn needs(&self) -> Needs {
        Needs::EveryOutcome
    }
    fn on_outcome(&mut self, _: Timestamp, _: &PassiveState, event: &OutcomeEvent) -> Option<Verdict> {
        let is_good = event.outcome.status.is_some_and(|status| (200..300).contains(&status));
        Some(Verdict { reactivation: Some(secs(3.0)), ..Verdict::of(value(is_good), Evidence::default()) })
    }
}

/// Finds bad who has shown it a pulse, a passed probe and how often it asked for less.
#[derive(Debug, Default)]
struct SawAll {
    pulses: usize,
    probes: usize,
    asked: usize,
}

impl PassivePolicy for SawAll {
    fn name(&self) -> &str {
        "SawAll"
    }
    fn needs(&self) -> Needs {
        Needs::Failures
    }
    fn on_outcome(&mut self, _: Timestamp, _: &PassiveState, _: &OutcomeEvent) -> Option<Verdict> {
        let has_seen = self.pulses > 0 && self.probes > 0 && self.asked > 0;
        has_seen.then(|| Verdict::of(Unhealthy, Evidence::default()))
    }
    fn on_pulse(&mut self, _: Timestamp, _: &Pulse, _: &Around) {
        self.pulses += 1;
    }
    fn on_probe_passed(&mut self, _: Timestamp) {
        self.probes += 1;
    }
    fn looks_back(&self, _: Timestamp) -> Option<Timestamp> {
        Some(Timestamp::ZERO)
    }
    fn on_asking(&mut self, _: Timestamp, _: Asking, _: Asking) {
        self.asked += 1;
    }
}

/// Only the first one, whatever its health.
#[derive(Debug)]
struct OnlyTheFirst;

impl AvailablePolicy for OnlyTheFirst {
    fn select(&self, cluster: &Candidates<'_>) -> Selection {
        Selection {
            indexes: (!cluster.destinations.is_empty()).then_some(0).into_iter().chain([99]).collect(),
            is_panic: false,
        }
    }
}

/// All of them; counts how often it is asked.
#[derive(Debug)]
struct Counting(Arc<AtomicUsize>);

impl AvailablePolicy for Counting {
    fn select(&self, cluster: &Candidates<'_>) -> Selection {
        self.0.fetch_add(1, Ordering::Relaxed);
        Selection { indexes: (0..cluster.destinations.len()).collect(), is_panic: false }
    }
}

fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.active("FirstUnsuccessfulResponse", || FirstUnsuccessful);
    registry.passive("FirstUnsuccessfulResponse", |_| FirstUnsuccessful);
    registry.available("FirstUnsuccessfulResponse", || OnlyTheFirst);
    registry
}

fn custom() -> Cluster {
    let check = with(probed(), |check| check.policy = ActiveOptions::Custom("FirstUnsuccessfulResponse".into()));
    let policies = [PassiveOptions::Custom("FirstUnsuccessfulResponse".into())];
    with(passive("c", &["a", "b"], &policies), |cluster| cluster.health_check.active = Some(check))
}

#[test]
fn a_shadow_sees_requests_in_flight_probes_and_counts_as_if_it_were_enforced() {
    let mut registry = Registry::default();
    registry.passive("SawAll", |_| SawAll::default());
    let mut world = World::with_registry(registry);
    let cluster = with(active("c", &["a", "b"], probed()), |cluster| {
        let shadow = vec![PassiveOptions::Custom("SawAll".into())];
        let policies = vec![failure_rate(0.9, 10.0, 100)];
        cluster.health_check.passive = Some(PassiveCheck { shadow, ..PassiveCheck::of(policies) });
    });
    world.configure(&[cluster]);
    let slots = [world.slot("a"), world.slot("b")];
    assert_eq!(world.core.pulse_slots().to_vec(), slots, "their pulses are wanted for it alone");
    world.run_until(6.0);
    let pulses = vec![pulse(&mut world, "a", 1, 5.9)];
    world.input(Input::PulsesTaken { pulses });
    (0..2).for_each(|_| world.outcome("a", refused()));
    let one = world.destination("a");
    assert_eq!((one.would_eject.len(), one.health.passive), (1, Unknown));
}

#[test]
fn active_and_passive_policies_in_code_judge_side_by_side() {
    let mut world = World::with_registry(registry());
    world.answers.insert("a".to_owned(), Answer::status(503));
    world.configure(&[custom()]);
    world.run_until(1.0);
    assert_eq!(world.health("a"), HealthPair::new(Unhealthy, Unknown));
    world.outcome("b", status(404, false));
    assert_eq!(world.health("b"), HealthPair::new(Healthy, Unhealthy));
    world.run_until(2.0);
    world.outcome_picked_at("b", at(0.9), ok());
    assert_eq!(world.health("b").passive, Unhealthy, "a late answer does not bring it back");
    world.outcome("b", ok());
    assert_eq!(world.health("b").passive, Healthy, "a newer one does, if the policy says so");
    world.run_until(10.0);
    assert_eq!(world.health("b").passive, Healthy, "and then no reactivation is pending");
}

#[test]
fn an_availability_policy_in_code_decides_and_is_named_as_the_reason() {
    let mut world = World::with_registry(registry());
    world.answers.insert("a".to_owned(), Answer::status(503));
    world.configure(&[with(custom(), |cluster| {
        cluster.health_check.available_destinations_policy =
            AvailableOptions::Custom("FirstUnsuccessfulResponse".into());
    })]);
    world.run_until(1.0);
    assert_eq!(world.available("c"), ["a"]);
    assert_eq!((world.destination("a").because, world.destination("b").because), (Because::Policy, Because::Policy));
}

#[test]
fn a_policy_that_nobody_registered_judges_nothing_and_hides_nobody() {
    let mut world = World::of(&[with(custom(), |cluster| {
        cluster.health_check.available_destinations_policy = AvailableOptions::Custom("Nobody".into());
    })]);
    world.answers.insert("a".to_owned(), Answer::status(503));
    world.run_until(60.0);
    world.outcome("a", refused());
    assert_eq!((world.health("a"), world.available("c").len()), (HealthPair::default(), 2));
}

#[test]
fn names_are_kept_apart_by_kind() {
    let registry = registry();
    for names in [registry.active_names().count(), registry.passive_names().count(), registry.available_names().count()]
    {
        assert_eq!(names, 1);
    }
}

#[test]
fn availability_is_chosen_once_for_all_inputs_before_the_outputs_are_asked_for() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let mut registry = Registry::default();
    registry.available("Counting", move || Counting(Arc::clone(&counter)));
    let ids: Vec<String> = (0..100).map(|n| format!("d{n}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let cluster = with(active("c", &ids, probed()), |cluster| {
        cluster.health_check.available_destinations_policy = AvailableOptions::Custom("Counting".into());
    });
    let mut core = Core::with_registry(7, registry);
    let clusters = vec![Arc::new(cluster)];
    core.handle(at(0.0), Input::Configured { clusters, summary: String::new() });
    while core.poll_output().is_some() {}
    let before = asked.load(Ordering::Relaxed);
    for id in &ids {
        let destination = DestinationKey::new("c", *id);
        let set = HealthSet { destination, check: CheckKind::Active, health: Unhealthy, reactivation: None };
        core.handle(at(1.0), Input::HealthSet(set));
    }
    assert_eq!(asked.load(Ordering::Relaxed), before, "nobody has asked yet");
    let mut published = 0;
    while let Some(output) = core.poll_output() {
        published += usize::from(matches!(output, Output::Publish));
    }
    assert_eq!((asked.load(Ordering::Relaxed) - before, published), (1, 1), "one pass and one picture for all");
    assert!(core.view().clusters[0].destinations.iter().all(|one| one.health.active == Unhealthy));
}

//! YARP's passive middleware, row by row (M1 to M7), as far as the core decides it: which outcome reaches which policy.
//! That a request without a destination leaves no outcome (M4, M7) is in the type: an outcome has a slot.

use std::sync::{Arc, Mutex};

use health::passive::{PassivePolicy, PassiveState, Verdict};
use health::{Input, Needs, OutcomeEvent, Registry};
use model::cluster::{Cluster, Compat};
use model::id::Slot;
use model::outcome::{FailureKind, Outcome, OutcomeClass};
use model::passive::PassivePolicy as Options;
use model::time::Timestamp;

use crate::world::*;

/// Notes what it is asked.
#[derive(Debug)]
struct Witness(String, Arc<Mutex<Vec<(String, Outcome)>>>);

impl PassivePolicy for Witness {
    fn name(&self) -> &str {
        "Witness"
    }
    fn needs(&self) -> Needs {
        Needs::EveryOutcome
    }
    fn on_outcome(&mut self, _: Timestamp, _: &PassiveState, event: &OutcomeEvent) -> Option<Verdict> {
        self.1.lock().unwrap().push((self.0.clone(), event.outcome));
        None
    }
}

fn witnessed(clusters: &[Cluster]) -> (World, Arc<Mutex<Vec<(String, Outcome)>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut registry = Registry::default();
    let notes = seen.clone();
    registry.passive("Witness", move |settings| Witness(settings.destination.to_string(), notes.clone()));
    let mut world = World::with_registry(registry);
    world.configure(clusters);
    (world, seen)
}

fn yarp(id: &str, destinations: &[&str], policies: &[Options]) -> Cluster {
    with(passive(id, destinations, policies), |cluster| cluster.compat = Compat::Yarp)
}

#[test]
fn m1_m2_the_clusters_policy_is_asked_once_for_the_chosen_destination_error_or_not() {
    let witness = [Options::Custom("Witness".into())];
    for outcome in [ok(), refused()] {
        let (mut world, seen) = witnessed(&[yarp("c", &["a", "b"], &witness), yarp("other", &["x"], &witness)]);
        assert_eq!(world.core.needs(&"c".into()), Needs::EveryOutcome);
        world.outcome("b", outcome);
        assert_eq!(*seen.lock().unwrap(), [("b".to_owned(), outcome)]);
    }
}

#[test]
fn m3_no_policy_is_asked_while_passive_is_off() {
    let (mut world, seen) = witnessed(&[with(yarp("c", &["a"], &[]), |cluster| cluster.health_check.passive = None)]);
    world.outcome("a", refused());
    assert_eq!((seen.lock().unwrap().len(), world.health("a").passive), (0, Unknown));
}

#[test]
fn m4_m7_an_outcome_of_nobody_is_ignored_and_counted() {
    let (mut world, seen) = witnessed(&[yarp("c", &["a"], &[Options::Custom("Witness".into())])]);
    let event = OutcomeEvent { slot: Slot(77), picked_at: at(0.0), at: at(0.0), which: Try::First, outcome: refused() };
    world.input(Input::OutcomeSeen(event));
    assert_eq!((seen.lock().unwrap().len(), world.core.ignored().slots), (0, 1));
}

#[test]
fn m5_after_ten_failed_sends_the_list_is_empty() {
    let mut world = World::of(&[yarp("c", &["a"], &[failure_rate(0.3, 60.0, 10)])]);
    for sent in 0..10 {
        assert_eq!(world.available("c").len(), 1, "request {sent}");
        world.outcome("a", failed(OutcomeClass::AppFail, FailureKind::Reset));
    }
    assert!(world.available("c").is_empty());
}

#[test]
fn m6_forty_two_aborted_requests_leave_the_destination_in() {
    let mut world = World::of(&[yarp("c", &["a"], &[failure_rate(0.3, 60.0, 10)])]);
    for _ in 0..42 {
        world.outcome("a", Outcome { client_gone: true, ..failed(OutcomeClass::Neutral, FailureKind::ClientGone) });
    }
    assert_eq!(world.available("c"), ["a"]);
}

//! Random stories against the naive model, and what must hold whatever happens.
//!
//! After every input the core checks its own invariants (each enabled destination has a probe in flight or a probe timer,
//! each ejection has an end, no timer belongs to nobody) and the world compares the view with one made from scratch.

use std::collections::BTreeMap;
use std::time::Duration;

use health::{Core, Input, Output};
use model::active::ActivePolicy;
use model::cluster::Cluster;
use model::guards::AnsweringDestination;
use model::health::{CheckKind, Health};
use model::outcome::{FailureKind, Outcome};
use model::time::Timestamp;
use proptest::prelude::*;

use crate::inputs::{IDS, any_input, any_time, some_health, some_outcome};
use crate::reference::{Fact, History, Rules};
use crate::world::*;

const RULES: Rules = Rules {
    threshold: 2,
    healthy_threshold: 2,
    rate_limit: 0.5,
    minimum: 6,
    max_fails: 4,
    fail_timeout: Duration::from_secs(3),
    period: Duration::from_secs(20),
};

/// What happens to one destination at one moment.
#[derive(Clone, Copy, Debug)]
enum Step {
    Outcome { outcome: Outcome, age_ms: u64 },
    Sum(u64),
    Set(CheckKind, Health),
    Answers(Answer),
}

fn some_step() -> impl Strategy<Value = Step> {
    let outcome = (some_outcome(), prop_oneof![3 => Just(0), 1 => 0..30_000_u64]);
    prop_oneof![
        12 => outcome.prop_map(|(outcome, age_ms)| Step::Outcome { outcome, age_ms }),
        3 => (0..5_u64).prop_map(Step::Sum),
        1 => (prop_oneof![Just(CheckKind::Active), Just(CheckKind::Passive)], some_health())
            .prop_map(|(check, health)| Step::Set(check, health)),
        3 => prop_oneof![
            Just(Answer::status(200)),
            Just(Answer::status(500)),
            Just(Answer::fails(FailureKind::Refused)),
            Just(Answer::hangs()),
        ]
        .prop_map(Step::Answers),
    ]
}

/// Moments, each with what happens to each destination then.
fn some_story() -> impl Strategy<Value = Vec<(u64, Vec<(usize, Step)>)>> {
    let moment = (1..4_000_u64, prop::collection::vec((0..IDS.len(), some_step()), 0..6));
    prop::collection::vec(moment, 1..40)
}

fn judged() -> Cluster {
    let check = with(probed(), |check| {
        check.policy = ActivePolicy::ConsecutiveFailures { threshold: RULES.threshold };
        check.request.healthy_threshold = RULES.healthy_threshold;
    });
    let policies = [
        failure_rate(RULES.rate_limit, 60.0, RULES.minimum as u32),
        max_fails(RULES.max_fails, RULES.fail_timeout.as_secs_f64()),
    ];
    with(passive("c", &IDS, &policies), |cluster| {
        cluster.health_check.passive.as_mut().unwrap().reactivation_period = Some(RULES.period);
        cluster.health_check.active = Some(check);
        cluster.health_check.guards.answering = AnsweringDestination::Stays;
    })
}

fn act(world: &mut World, id: &str, step: Step) {
    match step {
        Step::Outcome { outcome, age_ms } => {
            let picked_at = world.now - Duration::from_millis(age_ms);
            world.outcome_picked_at(id, picked_at, outcome);
        }
        Step::Sum(ok) => world.sums(id, ok),
        Step::Set(check, health) => world.set(id, check, health, Some(RULES.period)),
        Step::Answers(answer) => {
            world.answers.insert(id.to_owned(), answer);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Both values and the end of each ejection are what the naive model works out from the whole history.
    #[test]
    fn values_equal_those_of_the_naive_model(story in some_story()) {
        let mut world = World::of(&[judged()]);
        let mut histories = vec![History::default(); IDS.len()];
        for (ms, steps) in story {
            let end = (world.now + Duration::from_millis(ms)).as_secs_f64();
            world.run_until(end);
            for (place, step) in steps {
                note_probes(&mut world, &mut histories);
                let fact = match step {
                    Step::Outcome { outcome, age_ms } => {
                        Fact::Outcome { picked_at: world.now - Duration::from_millis(age_ms), outcome }
                    }
                    Step::Sum(ok) => Fact::Sum { ok },
                    Step::Set(CheckKind::Active, health) => Fact::Active(health),
                    Step::Set(CheckKind::Passive, health) => Fact::Passive(health, RULES.period),
                    Step::Answers(_) => Fact::Sum { ok: 0 },
                };
                let now = world.now;
                histories[place].add(now, fact);
                act(&mut world, IDS[place], step);
            }
            note_probes(&mut world, &mut histories);
            for (place, id) in IDS.into_iter().enumerate() {
                let shown = world.destination(id);
                let expected = histories[place].values(world.now, &RULES);
                prop_assert_eq!((shown.health, shown.reactivation_at), expected, "{} at {}", id, world.now);
            }
        }
    }

    /// What happens to one destination at a moment does not depend on what happens to another at the same moment.
    #[test]
    fn state_never_depends_on_the_order_across_destinations(story in some_story()) {
        let mut views = Vec::new();
        for reversed in [false, true] {
            let mut world = World::of(&[judged()]);
            for (ms, steps) in &story {
                let end = (world.now + Duration::from_millis(*ms)).as_secs_f64();
                world.run_until(end);
                let mut steps = steps.clone();
                steps.sort_by_key(|(place, _)| if reversed { IDS.len() - place } else { *place });
                for (place, step) in steps {
                    act(&mut world, IDS[place], step);
                }
            }
            views.push(world.cluster("c"));
        }
        prop_assert_eq!(&views[0].destinations, &views[1].destinations);
        prop_assert_eq!(&views[0].available, &views[1].available);
    }

    /// A destination's whole state is the same whether another one is well, hangs or dies.
    #[test]
    fn a_slow_or_hanging_destination_never_delays_the_verdict_of_another(
        story in prop::collection::vec((1..3_000_u64, some_step()), 1..30),
        other in prop_oneof![Just(Answer::hangs()), Just(Answer::status(200).after(1.9)), Just(Answer::status(500))],
    ) {
        let mut shown = Vec::new();
        for answer in [Answer::status(200), other] {
            let mut world = World::new();
            world.answers.insert("b".to_owned(), answer);
            world.configure(&[judged()]);
            let mut log = Vec::new();
            for (ms, step) in &story {
                let end = (world.now + Duration::from_millis(*ms)).as_secs_f64();
                world.run_until(end);
                act(&mut world, "a", *step);
                let (one, now) = (world.destination("a"), world.now);
                log.push((now, one.health, one.next_probe_at, one.reactivation_at, one.counter));
            }
            shown.push((log, world.probe_times("a")));
        }
        prop_assert_eq!(&shown[0], &shown[1]);
    }

    /// No input panics, at whatever time, in whatever order; invariants and the view hold after each, and every input
    /// comes back from its serialised form as it was.
    #[test]
    fn no_input_panics_and_no_timer_is_lost(inputs in prop::collection::vec((any_time(), any_input()), 1..80)) {
        let mut core = Core::new(1);
        for (ms, input) in inputs {
            let text = serde_json::to_string(&input).unwrap();
            let read: Input = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&read, &input);
            core.handle(Timestamp::from_millis(ms), read);
            core.check_view();
            let mut n = 0;
            while let Some(output) = core.poll_output() {
                let text = serde_json::to_string(&output).unwrap();
                prop_assert_eq!(serde_json::from_str::<Output>(&text).unwrap(), output);
                n += 1;
                prop_assert!(n < 1000);
            }
        }
    }
}

/// Tells the histories of the probes judged since the last time, by the core's own record.
fn note_probes(world: &mut World, histories: &mut [History]) {
    for (at, ticket, failure) in std::mem::take(&mut world.judged) {
        let order = world.probes.iter().find(|order| order.ticket == ticket).unwrap();
        let place = IDS.iter().position(|id| *id == order.destination.destination.as_str()).unwrap();
        let fact = match failure {
            None => Fact::Passed,
            Some(failure) => Fact::Failed {
                began_at: order.at,
                is_mute: !matches!(failure, FailureKind::Status | FailureKind::HeadTimeout),
            },
        };
        histories[place].add(at, fact);
    }
}

/// Two cores of equal seed do the same.
#[test]
fn equal_inputs_give_equal_outputs() {
    let mut logs = BTreeMap::new();
    for run in 0..2 {
        let mut world = World::of(&[judged()]);
        world.answers.insert("b".to_owned(), Answer::hangs());
        world.run_until(300.0);
        logs.insert(run, world.log);
    }
    assert_eq!(logs[&0], logs[&1]);
}

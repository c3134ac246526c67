//! Any input of a core, sensible or not: for what must hold whatever happens.

use std::time::Duration;

use health::{HealthSet, Input, OutcomeEvent, Probed, Pulse, Sum, Ticket};
use model::active::{ActivePolicy, ProbeRound};
use model::cluster::{Cluster, Compat};
use model::destination::Tier;
use model::health::{CheckKind, Health};
use model::id::{DestinationKey, Slot};
use model::outcome::{FailureKind, Outcome, OutcomeClass, Try};
use model::passive::PassivePolicy;
use model::time::Timestamp;
use proptest::prelude::*;

use crate::world::*;

pub const IDS: [&str; 3] = ["a", "b", "d"];

pub fn some_outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        3 => Just(refused()),
        1 => Just(ok()),
        1 => Just(status(500, true)),
        1 => Just(failed(OutcomeClass::Timeout, FailureKind::HeadTimeout)),
        1 => Just(failed(OutcomeClass::Cut, FailureKind::BodyCut)),
        1 => Just(failed(OutcomeClass::AppFail, FailureKind::Reset)),
        1 => Just(failed(OutcomeClass::Neutral, FailureKind::ClientGone)),
        1 => Just(status(429, true)),
    ]
}

pub fn some_health() -> impl Strategy<Value = Health> {
    prop_oneof![Just(Unknown), Just(Healthy), Just(Unhealthy)]
}

pub fn any_time() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..200_000_u64, 1 => any::<u64>()]
}

pub fn any_input() -> impl Strategy<Value = Input> {
    let slot = || (0..8_u32).prop_map(Slot);
    let which = prop_oneof![2 => Just(Try::First), 1 => Just(Try::Repeat)];
    let event =
        (slot(), any_time(), any_time(), which, some_outcome()).prop_map(|(slot, picked_at, at, which, outcome)| {
            let (picked_at, at) = (Timestamp::from_millis(picked_at), Timestamp::from_millis(at));
            OutcomeEvent { slot, picked_at, at, which, outcome }
        });
    let probed = (0..40_u64, prop::option::of(0..20_u8), prop::option::of(any::<u16>())).prop_map(
        |(ticket, failure, status)| Probed {
            ticket: Ticket(ticket),
            failure: failure.and_then(FailureKind::from_code),
            status,
        },
    );
    let set = (0..4_usize, any::<bool>(), some_health(), prop::option::of(0..100_000_u64)).prop_map(
        |(place, active, health, ms)| HealthSet {
            destination: DestinationKey::new("c", IDS.get(place).copied().unwrap_or("nobody")),
            check: if active { CheckKind::Active } else { CheckKind::Passive },
            health,
            reactivation: ms.map(Duration::from_millis),
        },
    );
    prop_oneof![
        2 => any_configuration(),
        6 => Just(Input::TimerDue),
        8 => event.prop_map(Input::OutcomeSeen),
        8 => probed.prop_map(Input::Probed),
        3 => (slot(), any::<u64>(), 0..9_u64).prop_map(|(slot, ok, repeats)| {
            Input::SumsTaken { sums: vec![Sum { slot, ok, repeats }] }
        }),
        3 => prop::collection::vec(any_pulse(), 0..4).prop_map(|pulses| Input::PulsesTaken { pulses }),
        3 => set.prop_map(Input::HealthSet),
        1 => slot().prop_map(|slot| Input::SlotQuiet { slot }),
        1 => Just(Input::DrainStarted),
        1 => Just(Input::ConfigRefused { summary: "no".to_owned() }),
    ]
}

fn any_pulse() -> impl Strategy<Value = Pulse> {
    let span = || prop::option::of((0..5_000_u64).prop_map(Duration::from_millis));
    (0..8_u32, 0..9_u32, any_time(), any_time(), span(), span(), span(), span()).prop_map(
        |(slot, waiting, since, moved, first_byte_p99, slowest, latency, mean)| Pulse {
            slot: Slot(slot),
            waiting,
            waiting_since: Timestamp::from_millis(since),
            moved_at: Timestamp::from_millis(moved),
            first_byte_p99,
            slowest,
            latency,
            mean,
        },
    )
}

/// Every policy that weighs, with a way back, shadows and guards.
fn weigh(made: &mut Cluster) {
    if let Some(check) = &mut made.health_check.passive {
        check.policies = vec![
            PassivePolicy::ConnectFailures(Default::default()),
            PassivePolicy::Burst(Default::default()),
            PassivePolicy::Outlier(Default::default()),
            PassivePolicy::Stall(Default::default()),
            PassivePolicy::Latency(Default::default()),
            PassivePolicy::Overload(model::passive::Overload { minimum: 1, z: 0.1, ..Default::default() }),
        ];
        check.shadow = vec![PassivePolicy::ConsecutiveErrors(Default::default()), max_fails(1, 3.0)];
        check.readmission = Some(Default::default());
    }
    made.health_check.guards = model::guards::Guards::native();
}

/// Configurations that differ in everything the core looks at; ids may even repeat.
fn any_configuration() -> impl Strategy<Value = Input> {
    let destinations = prop::collection::vec((0..IDS.len(), 0..2_u32, 0..2_usize, any::<bool>()), 0..4);
    let checks = (any::<bool>(), any::<bool>(), any::<bool>(), 0..3_usize, 1..20_u64);
    (destinations, checks, 1..3_usize).prop_map(|(destinations, (probes, rounds, traffic, compat, interval), n)| {
        let mut made = base();
        made.compat = [Compat::None, Compat::Yarp, Compat::Nginx][compat];
        if !traffic {
            made.health_check.passive = None;
        }
        if let Some(check) = &mut made.health_check.active {
            check.interval = Duration::from_secs(interval);
            check.start = model::active::ProbeStart::ProbeFirst;
            check.round = if rounds { ProbeRound::Cluster } else { ProbeRound::Destination };
        }
        if interval % 3 == 0 {
            weigh(&mut made);
        }
        if !probes {
            made.health_check.active = None;
        }
        let address = |text: &str| model::address::Url::parse(text).unwrap();
        made.destinations = destinations
            .into_iter()
            .map(|(place, weight, moved, has_health)| {
                with(destination(IDS[place]), |one| {
                    one.weight = weight;
                    one.tier = if moved == 1 && interval % 2 == 0 { Tier::Backup } else { Tier::Primary };
                    one.address = address(["http://one.test/", "http://two.test/"][moved]);
                    one.health = has_health.then(|| address("http://health.test/"));
                })
            })
            .collect();
        let other = with(made.clone(), |cluster| cluster.id = "e".into());
        let clusters = [made, other].into_iter().take(n).map(std::sync::Arc::new).collect();
        Input::Configured { clusters, summary: "any".to_owned() }
    })
}

fn base() -> Cluster {
    let check = with(probed(), |check| {
        check.policy = ActivePolicy::ConsecutiveFailures { threshold: 2 };
        check.request.healthy_threshold = 2;
    });
    let policies = [failure_rate(0.5, 60.0, 6), max_fails(4, 3.0)];
    with(passive("c", &IDS, &policies), |cluster| {
        cluster.health_check.passive.as_mut().unwrap().reactivation_period = Some(secs(20.0));
        cluster.health_check.active = Some(check);
    })
}

//! YARP's TransportFailureRate to the letter, row by row (T1 to T29). `S` and `F` with a time in seconds are outcomes;
//! the passive value after each event must match. How a limit is read from metadata (T23) is the configuration's part.

use std::time::Duration;

use model::cluster::{Cluster, Compat};
use model::event::Evidence;
use model::health::Health;
use model::outcome::{FailureKind, Outcome, OutcomeClass};

use crate::world::*;

fn yarp(limit: f64, window: f64, minimum: u32, destinations: &[&str]) -> Cluster {
    with(passive("c", destinations, &[failure_rate(limit, window, minimum)]), |cluster| cluster.compat = Compat::Yarp)
}

/// `S10 F22.5x3`: a success at 10 s, three failures at 22.5 s.
fn events(text: &str) -> Vec<(f64, Outcome)> {
    let mut events = Vec::new();
    for word in text.split_whitespace() {
        let (kind, rest) = word.split_at(1);
        let (time, n) = rest.split_once('x').unwrap_or((rest, "1"));
        let outcome = if kind == "S" { ok() } else { failed(OutcomeClass::AppFail, FailureKind::Reset) };
        events.extend(vec![(time.parse().unwrap(), outcome); n.parse().unwrap()]);
    }
    events
}

/// The verdict after each event: `H` or `U`. Reactivations are far away, so that the policy alone speaks.
fn verdicts(limit: f64, window: f64, minimum: u32, text: &str) -> String {
    let mut cluster = yarp(limit, window, minimum, &["a"]);
    cluster.health_check.passive.as_mut().unwrap().reactivation_period = Some(Duration::from_secs(1_000_000));
    let mut world = World::of(&[cluster]);
    let mut verdicts = String::new();
    for (time, outcome) in events(text) {
        world.run_until(time);
        world.outcome("a", outcome);
        verdicts.push(match world.health("a").passive {
            Healthy => 'H',
            Unhealthy => 'U',
            Unknown => '?',
        });
    }
    verdicts
}

#[test]
fn every_row_gives_yarps_verdicts() {
    let t6 = "F10 F11";
    let t7 = format!("{t6} S12 S17 S22 S27");
    let t8 = format!("{t7} F32.000 F32.001");
    let rows: &[(&str, f64, f64, u32, &str, &str)] = &[
        ("T1", 0.5, 30.0, 1, "S10 S14 S18 F22 F26 F30", "HHHHHU"),
        ("T2", 0.61, 30.0, 1, "S10 S14 S18 F22 F26 F30 F34 F40", "HHHHHHHU"),
        ("T6", 0.5, 30.0, 1, t6, "UU"),
        ("T7", 0.5, 30.0, 1, &t7, "UUUUHH"),
        ("T8", 0.5, 30.0, 1, &t8, "UUUUHHHU"),
        ("T9", 0.5, 30.0, 1, &format!("{t8} S43.000 S43.001 F43.002"), "UUUUHHHUHHH"),
        ("T10", 0.5, 30.0, 1, "F10 F11 S43", "UUH"),
        ("T11", 0.5, 30.0, 1, "S5 S5 F5 F5", "HHHU"),
        ("T12", 0.5, 30.0, 1, "S5 S5 F5 F5 S5 S5.1 F5.2 F5.3", "HHHUHHHU"),
        ("T14", 0.3, 60.0, 10, "F1x10", "HHHHHHHHHU"),
        ("T15", 0.3, 60.0, 10, "F1x3 S1x7", "HHHHHHHHHU"),
        ("T16", 0.3, 60.0, 10, "F1x2 S1x8", "HHHHHHHHHH"),
        ("T17", 0.3, 60.0, 10, "F1x3 S1x7 S1", "HHHHHHHHHUH"),
        ("T18 61.999", 0.3, 60.0, 10, "F1.000x10 S61.999", "HHHHHHHHHUU"),
        ("T18 62.000", 0.3, 60.0, 10, "F1.000x10 S62.000", "HHHHHHHHHUU"),
        ("T18 62.001", 0.3, 60.0, 10, "F1.000x10 S62.001", "HHHHHHHHHUH"),
        ("T19", 0.3, 60.0, 10, "F1.0x10 F70", "HHHHHHHHHUH"),
        ("T20", 0.0, 60.0, 10, "S1", "U"),
        ("T20 NaN", f64::NAN, 60.0, 10, "S1", "U"),
        ("T21", 1.0, 60.0, 10, "F1x10", "HHHHHHHHHU"),
        ("T22", 1.5, 60.0, 10, "F1x10", "HHHHHHHHHH"),
    ];
    for (row, limit, window, minimum, text, expected) in rows {
        assert_eq!(verdicts(*limit, *window, *minimum, text), *expected, "{row}: {text}");
    }
}

#[test]
fn t3_t4_t5_the_delay_is_the_longer_of_period_and_window() {
    for (row, period, window, expected) in
        [("T3", None, 30.0, 60.0), ("T4", Some(100.0), 30.0, 100.0), ("T5", Some(10.0), 30.0, 30.0)]
    {
        let mut cluster = yarp(0.5, window, 1, &["a"]);
        cluster.health_check.passive.as_mut().unwrap().reactivation_period = period.map(secs);
        let mut world = World::of(&[cluster]);
        world.run_until(3.0);
        world.outcome("a", refused());
        assert_eq!(world.destination("a").reactivation_at, Some(at(3.0 + expected)), "{row}");
        let evidence = world.transitions()[0].evidence.clone();
        let counts = Evidence { reactivation: None, last: Vec::new(), ..evidence.clone() };
        assert_eq!(counts.failed.zip(counts.total), Some((1, 1)), "{row}");
        assert_eq!(evidence.reactivation, Some(secs(expected)), "{row}");
    }
}

#[test]
fn t13_histories_of_two_destinations_are_independent() {
    let mut world = World::of(&[yarp(0.5, 30.0, 1, &["a", "b"])]);
    for _ in 0..5 {
        world.outcome("a", refused());
    }
    world.outcome("b", ok());
    assert_eq!((world.health("a").passive, world.health("b").passive), (Unhealthy, Healthy));
}

/// 20 requests a second while it is in, failing from 1.00 s to 21.00 s and good after: when its value changes.
fn changes(period: Option<f64>, end: f64) -> Vec<(f64, Health)> {
    let mut cluster = yarp(0.3, 60.0, 10, &["a"]);
    cluster.health_check.passive.as_mut().unwrap().reactivation_period = period.map(secs);
    let mut world = World::of(&[cluster]);
    for tick in 20_u32.. {
        let time = f64::from(tick) / 20.0;
        if time > end {
            break;
        }
        world.run_until(time);
        if world.destination("a").is_available {
            world.outcome("a", if time < 21.0 { refused() } else { ok() });
        }
    }
    let changes = world.events.iter().filter_map(|event| match &event.kind {
        model::event::EventKind::Transition(transition) => Some((event.at.as_secs_f64(), transition.to)),
        _ => None,
    });
    changes.collect()
}

#[test]
fn t24_the_last_second_of_failures_ejects_a_good_server_once_more() {
    let expected =
        [(1.0, Healthy), (1.45, Unhealthy), (61.45, Unknown), (61.45, Unhealthy), (121.45, Unknown), (121.45, Healthy)];
    assert_eq!(changes(None, 130.0), expected);
}

#[test]
fn t25_a_period_longer_than_window_and_bucket_avoids_it() {
    assert_eq!(changes(Some(62.0), 130.0), [(1.0, Healthy), (1.45, Unhealthy), (63.45, Unknown), (63.45, Healthy)]);
}

fn after_ten(outcome: Outcome) -> Health {
    let mut world = World::of(&[yarp(0.3, 60.0, 10, &["a"])]);
    for _ in 0..10 {
        world.outcome("a", outcome);
    }
    world.health("a").passive
}

#[test]
fn t26_no_status_is_a_failure() {
    let mut world = World::of(&[yarp(0.3, 60.0, 10, &["a"])]);
    for _ in 0..100 {
        world.outcome("a", status(500, true));
    }
    assert_eq!(world.health("a").passive, Healthy);
}

#[test]
fn t27_client_aborts_count_as_successes_whatever_the_failure() {
    let aborted = Outcome { client_gone: true, ..failed(OutcomeClass::Neutral, FailureKind::Reset) };
    assert_eq!(after_ten(aborted), Healthy);
}

#[test]
fn t28_what_is_not_the_destinations_fault_counts_in_the_total_only() {
    for (error, failure) in [
        ("RequestCanceled", FailureKind::ClientGone),
        ("RequestBodyClient", FailureKind::ClientBody),
        ("ResponseHeaders", FailureKind::Body),
        ("ResponseBodyClient", FailureKind::ClientGone),
        ("UpgradeActivityTimeout", FailureKind::Cancelled),
        ("RequestCreation", FailureKind::Local),
        ("route timeout", FailureKind::Deadline),
    ] {
        assert_eq!(after_ten(failed(OutcomeClass::Neutral, failure)), Healthy, "{error}");
    }
}

#[test]
fn t29_transport_failures_count_whatever_their_class() {
    for (error, class, failure) in [
        ("Request", OutcomeClass::ConnFail, FailureKind::Refused),
        ("Request", OutcomeClass::ConnFail, FailureKind::Dns),
        ("Request", OutcomeClass::ConnFail, FailureKind::Tls),
        ("Request", OutcomeClass::AppFail, FailureKind::Protocol),
        ("RequestTimedOut", OutcomeClass::Timeout, FailureKind::HeadTimeout),
        ("RequestTimedOut", OutcomeClass::ConnFail, FailureKind::ConnectTimeout),
        ("RequestBodyDestination", OutcomeClass::AppFail, FailureKind::RequestBody),
        ("ResponseBodyDestination", OutcomeClass::Cut, FailureKind::BodyCut),
        ("UpgradeRequestDestination", OutcomeClass::Cut, FailureKind::BodyCut),
        ("UpgradeResponseDestination", OutcomeClass::Cut, FailureKind::BodyTimeout),
    ] {
        assert_eq!(after_ten(failed(class, failure)), Unhealthy, "{error}");
    }
}

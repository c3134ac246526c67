//! Stories in text: commands in, all that came out. The commands:
//!
//! ```text
//! configure                     one cluster a line: `id: a b; active threshold=2 …; passive MaxFails 3 10; …`
//! answers a 500                 how a destination answers probes from here on: a status, refused, reset, hangs
//! run 10                        lets time pass up to 10 s
//! outcome a refused x10         what came of live requests: ok, a status, refused, reset, timeout, cut, gone
//! sums a 90                     so many good ones
//! set a passive unhealthy 2     a value from outside
//! drain                         a planned stop begins
//! show                          the view
//! ```

use model::active::{ActivePolicy, ProbeRound, ProbeStart};
use model::available::AvailablePolicy;
use model::cluster::{Cluster, Compat};
use model::health::CheckKind;
use model::outcome::{FailureKind, Outcome, OutcomeClass};

use crate::world::*;

#[test]
fn the_stories_end_as_written() {
    testkit::transcript::check("tests/transcripts", |_| {
        let mut world = World::new();
        move |command: &str| {
            world.log.clear();
            let shown = run(&mut world, command);
            let mut lines = world.log.join("\n");
            lines.push_str(&shown);
            lines.push('\n');
            lines
        }
    });
}

fn run(world: &mut World, command: &str) -> String {
    let (first, rest) = command.split_once('\n').unwrap_or((command, ""));
    let words: Vec<&str> = first.split_whitespace().collect();
    match words.as_slice() {
        ["configure"] => {
            let clusters: Vec<Cluster> = rest.lines().map(cluster_of).collect();
            world.configure(&clusters);
        }
        ["answers", id, answer] => {
            world.answers.insert((*id).to_owned(), answer_of(answer));
        }
        ["run", until] => world.run_until(until.parse().unwrap()),
        ["outcome", id, what] => world.outcome(id, outcome_of(what)),
        ["outcome", id, what, times] => {
            for _ in 0..times.trim_start_matches('x').parse().unwrap() {
                world.outcome(id, outcome_of(what));
            }
        }
        ["sums", id, ok] => world.sums(id, ok.parse().unwrap()),
        ["set", id, "passive", value, seconds] => {
            let reactivation = Some(secs(seconds.parse().unwrap()));
            world.set(id, CheckKind::Passive, health_of(value), reactivation);
        }
        ["set", id, "active", value] => world.set(id, CheckKind::Active, health_of(value), None),
        ["drain"] => world.input(health::Input::DrainStarted),
        ["show"] => return show(world),
        _ => return format!("unknown command: {command}"),
    }
    String::new()
}

fn show(world: &mut World) -> String {
    let view = world.core.view();
    let mut lines = Vec::new();
    for cluster in &view.clusters {
        for one in &cluster.destinations {
            let (active, passive) = (one.health.active, one.health.passive);
            let counter = &one.counter;
            lines.push(format!(
                "{}/{} active={active} passive={passive} {} because={} status={} counter={}/{}/{}/{}{}{}",
                cluster.id,
                one.id,
                if one.is_available { "in" } else { "out" },
                one.because.as_str(),
                one.status.as_str(),
                counter.success,
                counter.http_failure,
                counter.tcp_failure,
                counter.timeout_failure,
                one.reactivation_at.map(|at| format!(" reactivation={at}")).unwrap_or_default(),
                if one.is_gated { " gated" } else { "" },
            ));
        }
    }
    lines.join("\n")
}

/// `c: a b=0; active threshold=2; passive MaxFails 3 10; HealthyOrPanic; compat nginx`
fn cluster_of(line: &str) -> Cluster {
    let (id, rest) = line.split_once(':').unwrap();
    let mut parts = rest.split(';').map(str::trim);
    let names: Vec<(&str, u32)> = parts
        .next()
        .unwrap()
        .split_whitespace()
        .map(|name| name.split_once('=').map_or((name, 1), |(name, weight)| (name, weight.parse().unwrap())))
        .collect();
    let ids: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
    let mut made = cluster(id.trim(), &ids);
    for (destination, (_, weight)) in made.destinations.iter_mut().zip(&names) {
        destination.weight = *weight;
    }
    for part in parts {
        let words: Vec<&str> = part.split_whitespace().collect();
        match words.as_slice() {
            ["active", options @ ..] => {
                let mut check = probed();
                for option in options {
                    match option.split_once('=').unwrap() {
                        ("threshold", n) => {
                            check.policy = ActivePolicy::ConsecutiveFailures { threshold: n.parse().unwrap() };
                        }
                        ("healthy", n) => check.request.healthy_threshold = n.parse().unwrap(),
                        ("start", "probe_first") => check.start = ProbeStart::ProbeFirst,
                        ("round", "cluster") => check.round = ProbeRound::Cluster,
                        other => panic!("{other:?}"),
                    }
                }
                made.health_check.active = Some(check);
            }
            ["passive", "MaxFails", n, timeout] => {
                let policy = max_fails(n.parse().unwrap(), timeout.parse().unwrap());
                made.health_check.passive = passive("x", &[], &[policy]).health_check.passive;
            }
            ["passive", "TransportFailureRate"] => {
                made.health_check.passive = passive("x", &[], &[failure_rate(0.3, 60.0, 10)]).health_check.passive;
            }
            ["HealthyOrPanic"] => made.health_check.available_destinations_policy = AvailablePolicy::HealthyOrPanic,
            ["compat", "nginx"] => made.compat = Compat::Nginx,
            ["compat", "yarp"] => made.compat = Compat::Yarp,
            other => panic!("{other:?}"),
        }
    }
    made
}

fn answer_of(word: &str) -> Answer {
    match word {
        "refused" => Answer::fails(FailureKind::Refused),
        "reset" => Answer::fails(FailureKind::Reset),
        "hangs" => Answer::hangs(),
        number => Answer::status(number.parse().unwrap()),
    }
}

fn outcome_of(word: &str) -> Outcome {
    match word {
        "ok" => ok(),
        "refused" => refused(),
        "reset" => failed(OutcomeClass::AppFail, FailureKind::Reset),
        "timeout" => failed(OutcomeClass::Timeout, FailureKind::HeadTimeout),
        "cut" => failed(OutcomeClass::Cut, FailureKind::BodyCut),
        "gone" => Outcome { client_gone: true, ..failed(OutcomeClass::Neutral, FailureKind::ClientGone) },
        number => status(number.parse().unwrap(), true),
    }
}

fn health_of(word: &str) -> model::health::Health {
    match word {
        "healthy" => Healthy,
        "unhealthy" => Unhealthy,
        _ => Unknown,
    }
}

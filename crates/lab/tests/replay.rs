//! What other policies would have done with recorded inputs.

use std::sync::Arc;
use std::time::Duration;

use config::{FileKind, PolicyNames};
use health::{Core, Input, OutcomeEvent, Output, Probed, Sum};
use lab::policy::Policy;
use lab::replay::question::film::Serving;
use lab::replay::question::{Answer, Row, ask};
use lab::replay::text;
use lab::report;
use lab::report::replay::Asked;
use model::event::{Cause, Event, EventKind, Evidence, ShareCause, Transition};
use model::health::{CheckKind, Health};
use model::id::{DestinationKey, Revision, Slot};
use model::outcome::{FailureKind, Outcome, OutcomeClass, Try};
use model::ratio::Ratio;
use model::time::Timestamp;
use recorder::{Header, Limits, RecordedCore, Recording};

/// Two minutes in which b fails all of its requests from 20 s to 50 s, under a block of the native format.
fn recorded(health_check: &str) -> Recording {
    let file = format!(
        "clusters: {{app: {{health_check: {health_check}, destinations: {{a: {{address: \"http://10.0.0.1/\"}}, b: \
         {{address: \"http://10.0.0.2/\"}}}}}}}}\n"
    );
    let loaded = config::load("test", file.as_bytes(), FileKind::Native, &PolicyNames::default(), None).unwrap();
    let mut core = RecordedCore::new(Core::new(1), Timestamp::ZERO);
    core.limit(Some(Limits { keep: Duration::from_secs(1800), size: 10_000_000 }));
    let clusters = loaded.config.clusters.into_iter().map(Arc::new).collect();
    core.handle(Timestamp::ZERO, Input::Configured { clusters, summary: "start".to_owned() });
    settle(&mut core);
    for tick in 1..1200 {
        let now = Timestamp::from_millis(tick * 100);
        let is_in = |core: &mut RecordedCore, place: usize| {
            core.core_for_view().view().clusters[0].destinations[place].is_available
        };
        let is_sick = (200..500).contains(&tick);
        let mut sums = vec![Sum { slot: Slot(0), ok: 10, repeats: 0 }];
        if is_in(&mut core, 1) && !is_sick {
            sums.push(Sum { slot: Slot(1), ok: 10, repeats: 0 });
        }
        core.handle(now, Input::SumsTaken { sums });
        if is_in(&mut core, 1) && is_sick {
            let outcome = Outcome {
                class: OutcomeClass::AppFail,
                failure: Some(FailureKind::Status),
                status: Some(503),
                retryable: true,
                client_gone: false,
            };
            let event = OutcomeEvent { slot: Slot(1), picked_at: now, at: now, which: Try::First, outcome };
            (0..10).for_each(|_| core.handle(now, Input::OutcomeSeen(event)));
        }
        core.handle(now, Input::TimerDue);
        settle(&mut core);
    }
    let header = Header {
        version: "0".to_owned(),
        instance: "test".to_owned(),
        saved_at_unix_ms: 0,
        saved_at: Timestamp::from_secs(120),
    };
    Recording::read(&core.save(&header).unwrap()).unwrap()
}

/// Probes pass at once.
fn settle(core: &mut RecordedCore) {
    while let Some(output) = core.poll_output() {
        if let Output::Probe(order) = output {
            core.handle(order.at, Input::Probed(Probed { ticket: order.ticket, failure: None, status: Some(200) }));
        }
    }
}

fn row(answer: &Answer, id: &str) -> Row {
    answer.rows.iter().find(|(key, _)| *key == DestinationKey::new("app", id)).unwrap().1
}

fn asked(recording: &Recording, policy: &str) -> Answer {
    ask(recording, &Policy::find(policy).unwrap()).unwrap()
}

#[test]
fn a_policy_that_would_have_ejected_is_told_what_it_would_have_spared() {
    let recording = recorded("{passive: {enabled: false}}");
    let answer = asked(&recording, "nginx:3/10s");
    let (a, b) = (row(&answer, "a"), row(&answer, "b"));
    assert_eq!((a, b.recorded), (Row::default(), Default::default()));
    // Out at its third failure, tried again every ten seconds, until it answers.
    assert!((2..=4).contains(&b.other.ejections), "{b:?}");
    assert!((25.0..=45.0).contains(&b.other.out.as_secs_f64()), "{b:?}");
    assert!(b.spared > 2000 && b.spared < 3000, "{b:?}");
    assert_eq!(b.unseen, Duration::ZERO);
    let shown = text::answers(&[answer]) + text::NOTE;
    assert!(shown.contains("nginx:3/10s") && shown.contains("The traffic is the recorded one"), "{shown}");
}

#[test]
fn the_recorded_policy_would_have_done_what_it_did() {
    let block = "{passive: {policies: [{name: MaxFails, max_fails: 3, fail_timeout: 5s}]}}";
    let recording = recorded(block);
    let b = row(&asked(&recording, &format!("native:{block}")), "b");
    assert!(b.recorded.ejections >= 2 && b.recorded.out > Duration::from_secs(20), "{b:?}");
    assert_eq!((b.recorded, b.spared, b.moved, b.unseen), (b.other, 0, 0, Duration::ZERO));
}

#[test]
fn time_in_which_the_recorded_policy_had_it_out_is_unseen_by_one_that_would_not() {
    let recording = recorded("{passive: {policies: [{name: MaxFails, max_fails: 3, fail_timeout: 5s}]}}");
    let b = row(&asked(&recording, "passive:{name: MaxFails, max_fails: 100000}"), "b");
    assert_eq!((b.other.ejections, b.other.out, b.unseen), (0, Duration::ZERO, b.recorded.out));
}

#[test]
fn models_and_oracles_cannot_be_asked() {
    let recording = recorded("{passive: {enabled: false}}");
    for name in ["haproxy", "envoy", "eject", "keep"] {
        let error = ask(&recording, &Policy::find(name).unwrap()).unwrap_err();
        assert!(error.to_string().contains("cannot be asked"), "{error}");
    }
}

#[test]
fn a_page_shows_beside_each_other_what_was_and_what_would_have_been() {
    let recording = recorded("{passive: {enabled: false}}");
    let answers = [asked(&recording, "nginx:3/10s"), asked(&recording, "passive:{name: MaxFails, max_fails: 100000}")];
    let wall = |at: Timestamp| format!("at {}", at.as_secs_f64());
    let asked = [Asked { recording: &recording, answers: &answers, wall: &wall }];
    let page = report::replay::render(&asked);
    assert_eq!(page, report::replay::render(&asked), "same question, same bytes");
    let sections: Vec<&str> = page.split("<section ").skip(1).collect();
    assert_eq!(sections.len(), 2);
    // As it was b is in all the time; only the first policy would have had it out, and so would have left fewer failures.
    let outs = sections.iter().map(|section| section.matches("class=\"out\"").count()).collect::<Vec<usize>>();
    assert!(outs[0] >= 2 && outs[1] == 0, "{outs:?}");
    assert_eq!(answers[1].failures.spared.iter().sum::<u64>(), 0);
    assert_eq!(answers[0].failures.recorded.iter().sum::<u64>(), 3000);
    let b = row(&answers[0], "b");
    assert_eq!(answers[0].failures.spared.iter().sum::<u64>(), b.spared);
    assert!(
        page.contains("app/b")
            && page.contains("as it would have been")
            && page.contains("The traffic is the recorded one")
    );
    for foreign in ["<script", "http://", "https://", "<link"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    // Each lane begins with the recording and its last bar ends with it.
    let (was, would) = &answers[0].lanes[1];
    assert_eq!((was.changes().len(), would.changes()[0].0), (1, Timestamp::ZERO));
    assert_eq!(
        would.changes().iter().filter(|(_, serving)| *serving == Serving::Out).count() as u64,
        b.other.ejections
    );
}

#[test]
fn an_event_in_words_blames_no_policy_for_what_is_good_and_claims_no_weight_for_one_that_is_out() {
    let destination = DestinationKey::new("app", "a");
    let transition = |from, to| {
        let cause = Cause::Traffic { policy: "Latency".to_owned() };
        let (destination, evidence) = (destination.clone(), Evidence::default());
        EventKind::Transition(Transition { destination, check: CheckKind::Passive, from, to, cause, evidence })
    };
    let words = |kind| text::event_words(&Event { revision: Revision(1), at: Timestamp::ZERO, kind });
    assert_eq!(words(transition(Health::Unknown, Health::Healthy)), "app/a  passive unknown -> healthy (traffic)");
    let sick = words(transition(Health::Healthy, Health::Unhealthy));
    assert_eq!(sick, "app/a  passive healthy -> unhealthy (traffic, Latency)");
    let (share, because) = (Ratio::percent(10), ShareCause::Suspect { policy: "Burst".to_owned() });
    let part = EventKind::Share { destination: destination.clone(), share, because, evidence: Evidence::default() };
    assert_eq!(words(part), "app/a  when in use, 10 % of its weight (suspect)");
}

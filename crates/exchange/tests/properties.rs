//! What holds for every exchange, whatever happens to it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use exchange::step::{Connection, Content, Part};
use exchange::{Admission, Attempt, Input, Replay, Step};
use model::available::Because;
use model::balancing::LoadBalancing;
use model::cluster::Compat;
use model::id::Slot;
use model::outcome::{AttemptEnd, FailureKind, Progress};
use model::retry::NonIdempotent;
use model::time::Timestamp;
use proptest::prelude::*;
use support::*;

fn any_replay() -> impl Strategy<Value = Replay> {
    prop::sample::select(vec![Replay::Possible, Replay::Possible, Replay::Possible, Replay::Lost])
}

fn any_end() -> impl Strategy<Value = AttemptEnd> {
    (
        prop::sample::select(vec![
            Progress::NotSent,
            Progress::StaleReuse,
            Progress::Sent,
            Progress::HeadSeen,
            Progress::Forwarded,
        ]),
        prop::option::weighted(0.9, prop::sample::select(FailureKind::ALL.to_vec())),
        prop::option::weighted(0.2, prop::sample::select(vec![200, 404, 429, 500, 503])),
        any::<bool>(),
        prop::bool::weighted(0.05),
    )
        .prop_map(|(progress, failure, status, response_bytes_seen, client_gone)| AttemptEnd {
            progress,
            failure,
            status,
            call: None,
            retry_after: false,
            response_bytes_seen,
            client_gone,
            reused: progress == Progress::StaleReuse,
        })
}

fn any_content() -> impl Strategy<Value = Content> {
    prop::sample::select(vec![Content::Message, Content::Events])
}

fn any_input() -> impl Strategy<Value = Input> {
    prop_oneof![
        4 => (prop::sample::select(vec![200u16, 404, 429, 500, 502, 503, 504]), any::<bool>(), any_replay(), any_content())
            .prop_map(|(status, retry_after, body_replayable, content)| Input::ResponseHead { status, retry_after, body_replayable, content }),
        8 => (any_end(), any_replay()).prop_map(|(end, body_replayable)| Input::AttemptEnded { end, body_replayable }),
        1 => any_end().prop_map(|end| Input::ResponseEnded { end }),
        1 => Just(Input::DeadlineReached),
        2 => Just(Input::Woken),
        1 => prop::sample::select(vec![Input::WaitOver, Input::QueueFull]),
        1 => Just(Input::ClientGone),
    ]
}

/// What only an exchange that waits is told.
fn is_of_queue(input: &Input) -> bool {
    matches!(input, Input::Woken | Input::WaitOver | Input::QueueFull)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn an_exchange_keeps_its_limits_and_ends(
        compat in prop::sample::select(vec![Compat::None, Compat::Yarp, Compat::Nginx]),
        policy in prop::sample::select(vec![LoadBalancing::RoundRobin, LoadBalancing::PowerOfTwoChoices, LoadBalancing::Random]),
        method in prop::sample::select(vec!["GET", "PUT", "POST", "PROPFIND"]),
        attempts in 1u8..6,
        opt_in in prop::sample::select(vec![NonIdempotent::Never, NonIdempotent::Always]),
        destinations in prop::collection::vec((any::<bool>(), prop::bool::weighted(0.3), 0u32..3), 1..6),
        timeout in prop::option::of(1u64..10_000),
        is_broke in prop::bool::weighted(0.1),
        // Of two places at each destination so many are taken; 0: its places are not counted.
        taken in prop::collection::vec(prop::sample::select(vec![0u32, 0, 1, 2]), 6),
        unavailable in prop::sample::select(vec![0u64, 700]),
        is_queued in prop::bool::weighted(0.2),
        inputs in prop::collection::vec((any_input(), 0u64..500), 1..30),
    ) {
        let names: Vec<String> = (0..destinations.len()).map(|at| format!("d{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut cluster = cluster(compat, &names);
        cluster.load_balancing = policy;
        cluster.retry.attempts = attempts;
        cluster.retry.non_idempotent = opt_in;
        cluster.retry.conditions.statuses.push(500);
        for (destination, (_, _, weight)) in cluster.destinations.iter_mut().zip(&destinations) {
            destination.weight = *weight;
        }
        for (destination, taken) in cluster.destinations.iter_mut().zip(&taken) {
            destination.max_connections = (*taken > 0).then_some(NonZeroU32::MIN.saturating_add(1));
        }
        cluster.queue.unavailable_timeout = Duration::from_millis(unavailable);
        let states: Vec<State> = (0..).zip(&destinations)
            .map(|(slot, (_, is_gated, _))| State { slot: Slot(slot), because: Because::Health, is_gated: *is_gated })
            .collect();
        let available: Vec<u32> = (0..).zip(&destinations).filter(|(_, (is_in, _, _))| *is_in).map(|(at, _)| at).collect();
        let snapshot = snapshot(view(&cluster, &states, available.clone()), &[route(timeout.map(Duration::from_millis))]);
        let board = Board::default();
        board.is_broke.set(is_broke);
        board.is_queued.set(is_queued);
        board.places.borrow_mut().extend((0..).zip(taken.iter().copied()));

        let (mut walk, mut step) = Walk::begin(&Request::method(method), &snapshot, &board);
        let began = walk.now;
        let mut tried: BTreeSet<u32> = BTreeSet::new();
        let (mut connects, mut resends, mut reports) = (0u32, 0u32, 0u32);
        let mut is_stream = false;
        let mut held = false;
        let mut running: Option<Attempt> = None;
        let mut forwarded = false;
        let mut ended = false;
        let mut is_waiting;
        let mut has_waited = false;
        // When the wait is to end, and until when that may be put off at most: once, where it is woken later than that.
        let (mut in_sight, mut put_off): (Option<Timestamp>, Option<Timestamp>) = (None, None);
        let mut inputs = inputs.into_iter();
        loop {
            is_waiting = false;
            match &step {
                Step::Gather => prop_assert!(false, "no route of these buffers"),
                Step::Wait { until, wants } => {
                    prop_assert!(connects == 0 && !ended && compat != Compat::Nginx, "only who has tried nobody waits");
                    let end = began + cluster.queue.busy_timeout;
                    prop_assert!(*until <= put_off.map_or(end, |at| end.max(at)), "from its beginning, not from the last look");
                    in_sight = Some(walk.exchange.deadline().map_or(*until, |deadline| deadline.min(*until)));
                    prop_assert_eq!(*wants, None);
                    is_waiting = true;
                    has_waited = true;
                }
                Step::Connect(attempt) | Step::HoldThenConnect(attempt) => {
                    let is_limited = cluster.destinations[attempt.destination.index()].max_connections.is_some();
                    let is_gated = destinations[attempt.destination.index()].1;
                    let admission = match (is_gated, is_limited) {
                        (true, _) => Admission::Gate,
                        (false, true) => Admission::Place,
                        (false, false) => Admission::Open,
                    };
                    prop_assert_eq!(attempt.admission, admission);
                    prop_assert!(!forwarded && !ended, "no attempt after the answer began");
                    prop_assert!(available.contains(&attempt.destination.0));
                    prop_assert!(destinations[attempt.destination.index()].2 > 0, "weight 0 takes none");
                    match attempt.connection {
                        Connection::Any => {
                            connects += 1;
                            prop_assert!(tried.insert(attempt.destination.0), "no destination twice");
                        }
                        Connection::Fresh => {
                            resends += 1;
                            prop_assert_eq!(Some(attempt.destination), running.map(|last| last.destination));
                        }
                    }
                    prop_assert_eq!(u32::from(attempt.number), connects);
                    held |= matches!(step, Step::HoldThenConnect(_));
                    running = Some(*attempt);
                }
                Step::Forward => {
                    prop_assert!(!ended);
                    forwarded = true;
                }
                Step::AnswerHeld => {
                    prop_assert!(held && !forwarded && !ended && compat != Compat::Nginx);
                    ended = true;
                }
                Step::Answer(answer) => {
                    prop_assert!(!forwarded && !ended);
                    prop_assert!((400..600).contains(&answer.status));
                    ended = true;
                }
                Step::Done => ended = true,
            }
            prop_assert!(connects <= u32::from(attempts) && resends <= 1);
            // Whatever is left over, the client's going away ends it.
            let (input, millis) = match inputs.find(|(input, _)| is_waiting || !is_of_queue(input)) {
                Some(next) => next,
                None if ended => break,
                None => (Input::ClientGone, 0),
            };
            let was_running = running.is_some() && !ended;
            walk.now = walk.now + Duration::from_millis(millis);
            if input == Input::Woken && millis % 2 == 0 {
                board.places.borrow_mut().clear();
            }
            if is_waiting && input == Input::Woken && put_off.is_none() {
                let is_late = in_sight.is_some_and(|end| walk.now > end + Duration::from_millis(100));
                put_off = is_late.then(|| walk.now + Duration::from_secs(1));
            }
            step = walk.handle(input);
            prop_assert!(board.places.borrow().values().all(|taken| *taken <= 2), "nobody sits on another's lap");
            if let Some(report) = walk.exchange.report() {
                match report.part {
                    Part::Whole => reports += 1,
                    Part::Begun => {
                        reports += 1;
                        is_stream = true;
                    }
                    Part::Broken => prop_assert!(std::mem::take(&mut is_stream), "a break of what was told of, once"),
                }
                prop_assert!(was_running);
                prop_assert_eq!(Some(report.destination), running.map(|last| last.destination));
            }
        }
        prop_assert_eq!(reports, connects + resends, "each attempt is reported, once");
        if connects == 0 && !has_waited && !taken.contains(&2) {
            prop_assert!(available.iter().all(|&at| destinations[at as usize].2 == 0));
        }
    }
}

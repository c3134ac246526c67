//! The ring is bounded in time and size, whatever happens.

use std::sync::Arc;

use health::{Input, OutcomeEvent, Registry};
use model::id::Slot;
use recorder::segments::join;
use recorder::{Author, Standing};

use crate::tape::{Tape, header, limits};
use crate::world::*;

fn configured(tape: &mut Tape, ids: &[&str]) {
    let clusters = vec![Arc::new(passive("app", ids, &[max_fails(3, 10.0)]))];
    tape.take([(at(1.0), Input::Configured { clusters, summary: "start".to_owned() })]);
}

/// Twenty seconds of failures, twenty seconds of answers.
fn fail(tape: &mut Tape, seconds: f64, slot: u32) {
    let outcome = if seconds % 40.0 < 20.0 { refused() } else { ok() };
    let event = OutcomeEvent { slot: Slot(slot), picked_at: at(seconds), at: at(seconds), which: Try::First, outcome };
    tape.take([(at(seconds), Input::TimerDue), (at(seconds), Input::OutcomeSeen(event))]);
}

fn standing(tape: &Tape) -> (f64, usize) {
    let Standing::On { since, bytes } = tape.core.standing() else { panic!("{:?}", tape.core.standing()) };
    (since.as_secs_f64(), bytes)
}

#[test]
fn a_recording_goes_back_to_its_process_and_not_to_the_clock_that_it_took_over() {
    let mut tape = Tape::begun(limits(1800, 1_000_000), at(834.0));
    tape.core.spool(Some(Author { version: "1.2.3".to_owned(), instance: "one".to_owned() }));
    let clusters = vec![Arc::new(passive("app", &["a", "b"], &[max_fails(3, 10.0)]))];
    tape.take([(at(834.5), Input::Configured { clusters, summary: "start".to_owned() })]);
    (835..846).for_each(|second| fail(&mut tape, f64::from(second), 0));
    assert_eq!(standing(&tape).0, 834.0);
    let pieces = tape.core.pieces(at(846.0), 0);
    let file = pieces.into_iter().flat_map(|piece| piece.bytes).collect();
    let in_folder = join([file]).recordings.remove(0);
    for recording in [tape.saved(), in_folder] {
        assert_eq!(recording.begins_at(), at(834.0));
        let rerun = recording.rerun(Registry::default()).unwrap();
        assert_eq!((rerun.difference, rerun.ends_at), (None, at(845.0)));
    }
}

#[test]
fn what_is_older_than_the_limit_is_forgotten_and_the_rest_still_replays() {
    let mut tape = Tape::new(limits(60, 10_000_000));
    configured(&mut tape, &["a", "b"]);
    for tenth in 20..6000 {
        fail(&mut tape, f64::from(tenth) / 10.0, tenth as u32 % 2);
        if tenth > 1000 {
            let (since, _) = standing(&tape);
            let span = tenth - (since * 10.0).round() as i32;
            assert!((600..=900).contains(&span), "{span} at {tenth}");
        }
    }
    let rerun = tape.saved().rerun(Registry::default()).unwrap();
    assert_eq!(rerun.difference, None);
    assert!(
        tape.events.ends_with(&rerun.events) && !rerun.events.is_empty(),
        "{} {}",
        tape.events.len(),
        rerun.events.len()
    );
}

#[test]
fn a_full_ring_forgets_its_oldest_segments_and_never_grows() {
    let size = 100_000;
    let mut tape = Tape::new(limits(100_000, size));
    configured(&mut tape, &["a", "b"]);
    let mut most = 0;
    for tenth in 20..20_000 {
        fail(&mut tape, f64::from(tenth) / 10.0, tenth as u32 % 2);
        most = most.max(standing(&tape).1);
    }
    assert!(most > size / 2 && most < size + 1000, "{most}");
    assert!(standing(&tape).0 > 1000.0);
    assert!(tape.core.save(&header()).unwrap().len() < size + 4096);
    assert_eq!(tape.saved().rerun(Registry::default()).unwrap().difference, None);
}

#[test]
fn reloads_count_against_the_size_and_old_configurations_are_forgotten() {
    let mut tape = Tape::new(limits(60, 200_000));
    for second in 1..3000_u32 {
        let id = format!("d{second}");
        let clusters = vec![Arc::new(passive("app", &["a", &id], &[max_fails(3, 10.0)]))];
        let summary = "reload".to_owned();
        let now = at(f64::from(second));
        tape.take([(now, Input::TimerDue), (now, Input::Configured { clusters, summary })]);
        assert!(standing(&tape).1 < 201_000, "{} after {second}", standing(&tape).1);
    }
    assert_eq!(tape.saved().rerun(Registry::default()).unwrap().difference, None);
}

#[test]
fn a_state_that_does_not_fit_is_not_kept_until_a_smaller_one_comes() {
    let mut tape = Tape::new(limits(60, 200_000));
    let many: Vec<String> = (0..1000).map(|n| format!("d{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    configured(&mut tape, &["a"]);
    assert!(matches!(tape.core.standing(), Standing::On { .. }), "{:?}", tape.core.standing());
    configured(&mut tape, &many);
    for second in 2..200 {
        assert_eq!(tape.core.standing(), Standing::TooLarge);
        fail(&mut tape, f64::from(second), 1);
    }
    assert_eq!(tape.core.standing(), Standing::TooLarge);
    assert!(tape.core.save(&header()).is_none());
    configured(&mut tape, &["a"]);
    // Freed slots are a part of the state until they have rested.
    tape.take([(at(300.0), Input::TimerDue)]);
    configured(&mut tape, &["a"]);
    assert!(matches!(tape.core.standing(), Standing::On { .. }));
    assert_eq!(tape.saved().rerun(Registry::default()).unwrap().difference, None);
}

#[test]
fn a_storm_between_two_turns_gives_the_ring_up_and_it_begins_anew() {
    let mut tape = Tape::new(limits(60, 50_000));
    configured(&mut tape, &["a", "b"]);
    let event = |n: u64| OutcomeEvent {
        slot: Slot(0),
        picked_at: at(1.0),
        at: at(1.0) + std::time::Duration::from_nanos(n),
        which: Try::First,
        outcome: refused(),
    };
    tape.take((0..100_000).map(|n| (at(2.0), Input::OutcomeSeen(event(n)))));
    let (_, bytes) = standing(&tape);
    assert!(bytes < 50_000, "{bytes}");
    fail(&mut tape, 3.0, 1);
    assert_eq!(tape.saved().rerun(Registry::default()).unwrap().difference, None);
}

#[test]
fn nothing_is_kept_where_nothing_is_wanted_and_keeping_can_begin_at_any_time() {
    let mut tape = Tape::new(limits(60, 1_000_000));
    tape.core.limit(None);
    configured(&mut tape, &["a", "b"]);
    fail(&mut tape, 2.0, 0);
    assert_eq!(tape.core.standing(), Standing::Off);
    assert!(tape.core.save(&header()).is_none());
    tape.core.limit(Some(limits(60, 1_000_000)));
    (3..9).for_each(|second| fail(&mut tape, f64::from(second), 0));
    let rerun = tape.saved().rerun(Registry::default()).unwrap();
    assert_eq!(rerun.difference, None);
    assert!(tape.events.ends_with(&rerun.events) && !rerun.events.is_empty());
}

//! What was recorded runs again to the same bytes, from the beginning and from every segment.

use health::Registry;
use model::time::Timestamp;
use proptest::prelude::*;
use recorder::{Difference, Record};

use crate::inputs::{any_input, any_time};
use crate::tape::{Tape, limits};
use crate::world::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_recording_runs_again_to_the_same_bytes_from_wherever_it_begins(
        story in prop::collection::vec(prop::collection::vec((any_time(), any_input()), 1..6), 1..50),
    ) {
        // So small that there are many segments, and so long that none is forgotten.
        let mut tape = Tape::new(limits(100_000_000_000, 500_000));
        for inputs in story {
            tape.take(inputs.into_iter().map(|(ms, input)| (Timestamp::from_millis(ms), input)));
        }
        let recording = tape.saved();
        let whole = recording.rerun(Registry::default()).unwrap();
        prop_assert_eq!(&whole.difference, &None);
        prop_assert_eq!(&whole.events, &tape.events);
        for cut in 1..recording.segments() {
            let rest = recording.clone().without(cut);
            let rerun = rest.rerun(Registry::default()).unwrap();
            prop_assert_eq!(&rerun.difference, &None);
            prop_assert!(whole.events.ends_with(&rerun.events));
        }
    }

    #[test]
    fn every_input_comes_back_from_its_few_bytes(
        inputs in prop::collection::vec((any_time(), any_input(), 1..4_usize), 1..40),
    ) {
        let mut tape = Tape::new(limits(100_000_000_000, 50_000_000));
        let mut now = Timestamp::ZERO;
        let mut expected = Vec::new();
        for (ms, input, times) in inputs {
            now = now.max(Timestamp::from_millis(ms));
            for _ in 0..times {
                tape.core.handle(Timestamp::from_millis(ms), input.clone());
                expected.push((now, input.clone()));
            }
        }
        let mut read = Vec::new();
        tape.saved().each(|record| if let Record::Input(at, input) = record {
            read.push((at, input));
        }).unwrap();
        prop_assert_eq!(read, expected);
    }
}

#[test]
fn a_hundred_thousand_equal_failures_are_a_few_bytes() {
    let mut tape = Tape::new(limits(1800, 1_000_000));
    let clusters = vec![std::sync::Arc::new(passive("app", &["a", "b"], &[max_fails(1, 10.0)]))];
    tape.take([(at(1.0), health::Input::Configured { clusters, summary: "start".to_owned() })]);
    let before = tape.core.save(&crate::tape::header()).unwrap().len();
    let event =
        |slot| health::OutcomeEvent { slot, picked_at: at(1.0), at: at(2.0), which: Try::First, outcome: refused() };
    tape.take((0..100_000).map(|_| (at(2.0), health::Input::OutcomeSeen(event(model::id::Slot(0))))));
    let after = tape.core.save(&crate::tape::header()).unwrap().len();
    assert!(after - before < 2000, "{}", after - before);
    assert_eq!(tape.saved().rerun(Registry::default()).unwrap().difference, None);
}

#[test]
fn another_core_than_the_recorded_one_is_told_by_its_first_difference() {
    let mut tape = Tape::new(limits(1800, 1_000_000));
    let clusters = vec![std::sync::Arc::new(passive("app", &["a", "b"], &[max_fails(2, 10.0)]))];
    tape.take([(at(1.0), health::Input::Configured { clusters, summary: "start".to_owned() })]);
    let event = |now| health::OutcomeEvent {
        slot: model::id::Slot(0),
        picked_at: now,
        at: now,
        which: Try::First,
        outcome: refused(),
    };
    for second in [2.0, 3.0, 4.0] {
        tape.take([(at(second), health::Input::OutcomeSeen(event(at(second))))]);
    }
    let bytes = tape.core.save(&crate::tape::header()).unwrap();
    // What was told then, with another word in it, and the checksum that belongs to it.
    let forged = crate::files::forge(&bytes, b"{\"policy\":\"MaxFails\"}", b"{\"policy\":\"MaxFailz\"}");
    let rerun = recorder::Recording::read(&forged).unwrap().rerun(Registry::default()).unwrap();
    let Some(Difference::Event { at: when, recorded, replayed }) = rerun.difference else {
        panic!("no difference in an event: {:?}", rerun.difference)
    };
    assert_eq!(when, at(3.0));
    assert!(recorded.unwrap().contains("MaxFailz") && replayed.unwrap().contains("MaxFails"));
}

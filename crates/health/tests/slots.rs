//! Slots: kept while id and address stay, rested before they are given away again.

use health::Input;
use model::id::Slot;

use crate::world::*;

#[test]
fn slots_stay_with_their_destinations_whatever_the_order() {
    let mut world = World::of(&[cluster("c", &["a", "b"]), cluster("d", &["x"])]);
    let before = [world.slot("a"), world.slot("b"), world.slot("x")];
    world.configure(&[cluster("d", &["x"]), cluster("c", &["n", "b", "a"])]);
    assert_eq!([world.slot("a"), world.slot("b"), world.slot("x")], before);
    assert_eq!(world.slot("n"), Slot(3));
}

#[test]
fn a_freed_slot_comes_back_after_sixty_seconds_and_a_word_that_it_is_quiet() {
    let mut world = World::of(&[cluster("c", &["a", "b"])]);
    world.configure(&[cluster("c", &["b"])]);
    assert_eq!(world.freed, [Slot(0)]);
    world.input(Input::SlotQuiet { slot: Slot(0) });
    world.configure(&[cluster("c", &["b", "d"])]);
    assert_eq!(world.slot("d"), Slot(2));
    world.run_until(60.0);
    world.configure(&[cluster("c", &["b", "d", "e"])]);
    assert_eq!(world.slot("e"), Slot(0));
    world.configure(&[cluster("c", &["b", "d"])]);
    world.run_until(1000.0);
    world.configure(&[cluster("c", &["b", "d", "f"])]);
    assert_eq!(world.slot("f"), Slot(3), "rested, but nobody said quiet");
}

#[test]
fn reports_for_a_freed_slot_are_ignored_and_counted() {
    let mut world = World::of(&[passive("c", &["a", "b"], &[max_fails(1, 10.0)])]);
    let slot = world.slot("a");
    world.configure(&[passive("c", &["b"], &[max_fails(1, 10.0)])]);
    let event = health::OutcomeEvent { slot, picked_at: at(0.0), at: at(0.0), which: Try::First, outcome: refused() };
    world.input(Input::OutcomeSeen(event));
    world.input(Input::SumsTaken { sums: vec![health::Sum { slot, ok: 3, repeats: 0 }] });
    assert_eq!(world.core.ignored().slots, 2);
    assert_eq!(world.transitions().len(), 0);
}

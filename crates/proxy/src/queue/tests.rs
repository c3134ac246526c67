//! Lines without a proxy: who is told, in what order, and that over threads nobody is forgotten.
#![allow(clippy::unwrap_used)]

use std::num::NonZeroU32;
use std::sync::atomic::AtomicU32;
use std::task::Wake;
use std::time::Duration;

use board::Board;

use super::*;

const ANY: Option<Slot> = None;

fn enter(queues: &Arc<Queues>, cluster: u32, most: u32, wants: Option<Slot>) -> Option<InLine> {
    match queues.enter(cluster, most, wants) {
        Entered::InLine(in_line) => Some(in_line),
        Entered::Beside | Entered::Full => None,
    }
}

#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Woken {
    fn times(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

fn is_ready(one: &InLine, woken: &Arc<Woken>) -> bool {
    let waker = Waker::from(Arc::clone(woken));
    one.poll(&Context::from_waker(&waker)).is_ready()
}

#[test]
fn the_first_one_looks_at_once_and_then_when_something_became_free() {
    let queues = Arc::new(Queues::default());
    let woken: [Arc<Woken>; 2] = Default::default();
    assert!(!queues.is_queued(7));
    let [first, second] = std::array::from_fn(|_| enter(&queues, 7, 2, ANY).unwrap());
    assert!(enter(&queues, 7, 2, ANY).is_none() && queues.is_queued(7) && !queues.is_queued(8));
    assert!(is_ready(&first, &woken[0]) && !is_ready(&first, &woken[0]));
    assert!(!is_ready(&second, &woken[1]), "it is not first");
    queues.freed(7, Slot(1));
    assert_eq!(woken.each_ref().map(|one| one.times()), [1, 0]);
    assert!(is_ready(&first, &woken[0]));
    drop(first);
    assert_eq!(woken[1].times(), 1, "the next one is first now");
    assert!(second.is_first() && is_ready(&second, &woken[1]));
    drop(second);
    assert!(!queues.is_queued(7) && queues.lines().is_empty());
}

#[test]
fn one_that_leaves_from_the_middle_holds_nobody_up() {
    let queues = Arc::new(Queues::default());
    let woken: [Arc<Woken>; 3] = Default::default();
    let [first, second, third] = std::array::from_fn(|_| enter(&queues, 0, 9, ANY).unwrap());
    assert!(!is_ready(&third, &woken[2]));
    drop(second);
    assert!(is_ready(&first, &woken[0]));
    drop(first);
    assert!(is_ready(&third, &woken[2]));
    assert_eq!(woken[2].times(), 1);
}

#[test]
fn one_that_was_told_and_leaves_without_a_place_has_the_next_one_told() {
    let queues = Arc::new(Queues::default());
    let woken: [Arc<Woken>; 3] = Default::default();
    let any = enter(&queues, 0, 9, ANY).unwrap();
    let [bound, other] = [1, 2].map(|slot| enter(&queues, 0, 9, Some(Slot(slot))).unwrap());
    assert!(is_ready(&any, &woken[0]) && !is_ready(&bound, &woken[1]) && !is_ready(&other, &woken[2]));
    queues.freed(0, Slot(1));
    assert_eq!(woken.each_ref().map(|one| one.times()), [0, 0, 0], "the first one has not asked yet");
    drop(any);
    assert_eq!([woken[1].times(), woken[2].times()], [1, 1]);
    assert!(is_ready(&bound, &woken[1]) && !is_ready(&bound, &woken[1]));
    queues.freed(0, Slot(2));
    assert!(!is_ready(&bound, &woken[1]), "it is no place of its own");
}

#[test]
fn a_new_snapshot_is_told_to_the_first_one_and_to_all_whose_destination_may_be_gone() {
    let queues = Arc::new(Queues::default());
    let woken: [Arc<Woken>; 4] = Default::default();
    let all = [ANY, ANY, Some(Slot(1)), Some(Slot(1))].map(|wants| enter(&queues, 3, 9, wants).unwrap());
    assert!(is_ready(&all[0], &woken[0]));
    for (one, woken) in all.iter().zip(&woken) {
        assert!(!is_ready(one, woken));
    }
    queues.changed();
    assert_eq!(woken.each_ref().map(|one| one.times()), [1, 0, 1, 1]);
}

#[test]
fn a_line_without_length_leaves_nothing_behind() {
    let queues = Arc::new(Queues::default());
    assert!(enter(&queues, 0, 0, ANY).is_none());
    assert!(queues.lines().is_empty());
}

#[test]
fn beside_sessions_that_fill_the_line_others_look_once() {
    let queues = Arc::new(Queues::default());
    let one = Some(Slot(1));
    let bound = [(); 2].map(|()| enter(&queues, 3, 2, one).unwrap());
    assert!(matches!(queues.enter(3, 2, ANY), Entered::Beside));
    assert!(matches!(queues.enter(3, 2, Some(Slot(2))), Entered::Beside));
    assert!(matches!(queues.enter(3, 2, one), Entered::Full), "they want the same");
    drop(bound);
    let _any = enter(&queues, 3, 1, ANY).unwrap();
    assert!(matches!(queues.enter(3, 1, one), Entered::Full), "that one would take it, too");
}

struct Thread(std::thread::Thread);

impl Wake for Thread {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Six threads want two places two thousand times each, as exchanges do: look, join, look when told. Some give up in
/// the middle. Whoever is not told waits for ever, which is what this looks for.
#[test]
fn over_threads_each_gets_its_turn_and_no_place_is_lost() {
    let (queues, board) = (Arc::new(Queues::default()), Board::new(0, Arc::new(())));
    let two = NonZeroU32::new(2).unwrap();
    let (served, last) = (AtomicU32::new(0), Mutex::new(std::time::Instant::now()));
    let take = || board.take_place(Slot(0), two).map(|guard| Place::new(guard, &queues, 0, Slot(0)));
    let one = |number: u32| {
        if !queues.is_queued(0)
            && let Some(place) = take()
        {
            return Some(place);
        }
        let in_line = enter(&queues, 0, 9, ANY).unwrap();
        let waker = Waker::from(Arc::new(Thread(std::thread::current())));
        let mut looks = 0;
        loop {
            if in_line.poll(&Context::from_waker(&waker)).is_ready() {
                looks += 1;
                // The client went away just when it was told.
                if number % 7 == 3 && looks > 1 {
                    return None;
                }
                if let Some(place) = take() {
                    return Some(place);
                }
            } else {
                std::thread::park_timeout(Duration::from_secs(1));
                assert!(last.lock().unwrap().elapsed() < Duration::from_secs(20), "somebody was forgotten");
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for number in 0..2000 {
                    let place = one(number);
                    std::thread::yield_now();
                    drop(place);
                    served.fetch_add(1, Ordering::Relaxed);
                    *last.lock().unwrap() = std::time::Instant::now();
                }
            });
        }
    });
    assert_eq!(served.into_inner(), 12_000);
    assert!(!queues.is_queued(0) && queues.lines().is_empty());
    let _all: Vec<_> = [(); 2].map(|()| take().unwrap()).into();
    assert!(take().is_none());
}

//! What is kept, in pieces: files that end anywhere are replayed up to their last whole piece, and from one gap to the next.

use std::sync::Arc;

use health::{Input, OutcomeEvent, Registry};
use model::event::Event;
use model::id::Slot;
use model::time::Timestamp;
use recorder::segments::{Found, join};
use recorder::{Author, Piece, Place, ReadError};

use crate::tape::{Tape, header, limits};
use crate::world::*;

fn author(instance: &str) -> Author {
    Author { version: "1.2.3".to_owned(), instance: instance.to_owned() }
}

/// A tape that tells pieces from its first input on.
fn spooled(size: usize) -> Tape {
    let mut tape = Tape::new(limits(60, size));
    tape.core.spool(Some(author("one")));
    let clusters = vec![Arc::new(passive("app", &["a", "b"], &[max_fails(3, 10.0)]))];
    tape.take([(at(1.0), Input::Configured { clusters, summary: "start".to_owned() })]);
    tape
}

/// Twenty seconds of failures, twenty seconds of answers, in tenths of a second.
fn live(tape: &mut Tape, tenths: std::ops::Range<u32>) {
    for tenth in tenths {
        let now = at(f64::from(tenth) / 10.0);
        let outcome = if tenth % 400 < 200 { refused() } else { ok() };
        let event = OutcomeEvent { slot: Slot(tenth % 2), picked_at: now, at: now, which: Try::First, outcome };
        tape.take([(now, Input::TimerDue), (now, Input::OutcomeSeen(event))]);
    }
}

fn pieces(tape: &mut Tape) -> Vec<Piece> {
    tape.core.pieces(Timestamp::ZERO, 1_700_000_000_000)
}

/// One file for each segment.
fn files(pieces: &[Piece]) -> Vec<Vec<u8>> {
    let mut files: Vec<Vec<u8>> = Vec::new();
    for piece in pieces {
        match piece.place {
            Place::Begin => files.push(piece.bytes.clone()),
            Place::More | Place::End => files.last_mut().unwrap().extend_from_slice(&piece.bytes),
        }
    }
    files
}

/// All events of all recordings, each of which must come again as it was.
fn replayed(found: &Found) -> Vec<Event> {
    let rerun = |recording: &recorder::Recording| {
        let rerun = recording.rerun(Registry::default()).unwrap();
        assert_eq!(rerun.difference, None);
        rerun.events
    };
    found.recordings.iter().flat_map(rerun).collect()
}

#[test]
fn the_files_of_all_segments_are_one_recording_with_every_event() {
    let mut tape = spooled(1_000_000);
    live(&mut tape, 20..3000);
    tape.core.cut();
    let files = files(&pieces(&mut tape));
    assert!(files.len() > 10, "{}", files.len());
    let found = join(files);
    assert_eq!((found.recordings.len(), found.refused.len()), (1, 0));
    assert_eq!(replayed(&found), tape.events);
    let header = &found.recordings[0].header;
    assert_eq!((header.instance.as_str(), header.saved_at), ("one", at(299.9)));
    assert_eq!(header.saved_at_unix_ms, 1_700_000_299_900);
}

#[test]
fn any_last_files_are_the_end_of_it() {
    let mut tape = spooled(1_000_000);
    live(&mut tape, 20..1000);
    tape.core.cut();
    let files = files(&pieces(&mut tape));
    for forgotten in 1..files.len() {
        let events = replayed(&join(files[forgotten..].to_vec()));
        assert!(tape.events.ends_with(&events), "{forgotten}");
    }
}

#[test]
fn a_file_torn_at_any_byte_is_replayed_up_to_its_last_whole_piece() {
    let mut tape = spooled(1_000_000);
    live(&mut tape, 20..60);
    let all = pieces(&mut tape);
    let begin = all[0].bytes.len();
    let whole = files(&all).remove(0);
    let mut seen = 0;
    for end in 0..whole.len() {
        let found = join([whole[..end].to_vec()]);
        if end < begin {
            assert!(found.recordings.is_empty(), "{end}");
            let (place, error) = &found.refused[0];
            assert_eq!(*place, 0);
            assert!(matches!(error, ReadError::NotARecording | ReadError::Truncated { .. }), "{end}: {error:?}");
            continue;
        }
        let events = replayed(&found);
        assert!(tape.events.starts_with(&events) && events.len() >= seen, "{end}");
        seen = events.len();
    }
    assert!(seen > 3, "{seen}");
}

#[test]
fn a_file_with_any_byte_changed_is_replayed_up_to_there_or_refused() {
    let mut tape = spooled(1_000_000);
    live(&mut tape, 20..45);
    let whole = files(&pieces(&mut tape)).remove(0);
    for place in 0..whole.len() {
        let mut changed = whole.clone();
        changed[place] ^= 0x10;
        let found = join([changed]);
        assert_eq!(found.recordings.len() + found.refused.len(), 1, "{place}");
        assert!(tape.events.starts_with(&replayed(&found)), "{place}");
    }
}

#[test]
fn what_follows_a_torn_file_begins_anew_at_the_next_segment() {
    let mut tape = spooled(1_000_000);
    live(&mut tape, 20..2000);
    tape.core.cut();
    let mut files = files(&pieces(&mut tape));
    let half = files[4].len() - 30;
    files[4].truncate(half);
    let found = join(files.clone());
    assert_eq!(found.recordings.iter().map(recorder::Recording::segments).sum::<usize>(), files.len());
    assert_eq!(found.recordings.len(), 2);
    let events = replayed(&found);
    assert!(events.len() > 10 && events.iter().all(|event| tape.events.contains(event)));
    // One that is not there at all.
    files.remove(4);
    let found = join(files);
    assert_eq!(found.recordings.len(), 2);
    replayed(&found);
}

#[test]
fn a_lost_piece_leaves_a_gap_until_the_next_segment_begins() {
    let mut tape = spooled(1_000_000);
    live(&mut tape, 20..398);
    let mut kept = pieces(&mut tape);
    live(&mut tape, 398..412);
    assert!(!pieces(&mut tape).is_empty());
    tape.core.piece_lost();
    // When the next segment begins depends on how large the state is that it begins with; whatever was told before would come first.
    live(&mut tape, 412..1300);
    tape.core.cut();
    let rest = pieces(&mut tape);
    assert_eq!(rest[0].place, Place::Begin);
    kept.extend(rest);
    let found = join(files(&kept));
    assert_eq!(found.recordings.len(), 2);
    let events = replayed(&found);
    assert!(events.len() < tape.events.len() && events.iter().all(|event| tape.events.contains(event)));
    assert_eq!(events.last(), tape.events.last());
}

#[test]
fn two_processes_in_one_folder_are_two_recordings() {
    let (mut one, mut two) = (spooled(1_000_000), spooled(1_000_000));
    two.core.spool(Some(author("two")));
    live(&mut one, 20..300);
    live(&mut two, 20..300);
    let (ones, twos) = (files(&pieces(&mut one)), files(&pieces(&mut two)));
    let mixed: Vec<Vec<u8>> = ones.iter().zip(&twos).flat_map(|(one, two)| [one.clone(), two.clone()]).collect();
    let found = join(mixed);
    let instances: Vec<&str> = found.recordings.iter().map(|one| one.header.instance.as_str()).collect();
    assert_eq!(instances, ["one", "two"]);
    replayed(&found);
}

#[test]
fn a_ring_that_is_given_up_is_not_followed_by_the_next_one() {
    let mut tape = spooled(50_000);
    live(&mut tape, 20..100);
    let event = |n: u64| OutcomeEvent {
        slot: Slot(0),
        picked_at: at(1.0),
        at: at(1.0) + std::time::Duration::from_nanos(n),
        which: Try::First,
        outcome: refused(),
    };
    tape.take((0..100_000).map(|n| (at(11.0), Input::OutcomeSeen(event(n)))));
    live(&mut tape, 120..400);
    tape.core.cut();
    let found = join(files(&pieces(&mut tape)));
    assert_eq!(found.recordings.len(), 2);
    replayed(&found);
}

#[test]
fn reloads_stand_in_the_files_that_need_them() {
    let mut tape = spooled(1_000_000);
    for second in 2..100_u32 {
        let id = format!("d{second}");
        let clusters = vec![Arc::new(passive("app", &["a", &id], &[max_fails(3, 10.0)]))];
        let now = at(f64::from(second));
        tape.take([(now, Input::Configured { clusters, summary: "reload".to_owned() }), (now, Input::TimerDue)]);
    }
    let files = files(&pieces(&mut tape));
    assert!(files.len() > 3);
    for first in 0..files.len() {
        replayed(&join(files[first..].to_vec()));
    }
    assert_eq!(replayed(&join(files)), tape.events);
}

#[test]
fn no_piece_waits_where_none_is_wanted_and_a_piece_ends_with_each_event() {
    let mut tape = Tape::new(limits(60, 1_000_000));
    live(&mut tape, 20..100);
    assert!(!tape.core.has_pieces());
    let mut tape = spooled(1_000_000);
    let mut all = Vec::new();
    for tenth in 20..500 {
        live(&mut tape, tenth..tenth + 1);
        all.extend(pieces(&mut tape));
        let told = replayed(&join(files(&all)));
        assert_eq!(told, tape.events, "{tenth}");
    }
    // One a second, and one for each moment with an event.
    assert!(all.len() < 48 + tape.events.len() + 30, "{} {}", all.len(), tape.events.len());
    assert!(tape.core.save(&header()).is_some());
}

#[test]
fn a_file_of_another_kind_or_version_is_told_apart() {
    let found = join([b"lazaret segment 1\nmore".to_vec(), b"anything".to_vec()]);
    let errors: Vec<&ReadError> = found.refused.iter().map(|(_, error)| error).collect();
    assert_eq!(errors, [&ReadError::OtherFormat("1".to_owned()), &ReadError::NotARecording]);
    assert!(!recorder::segments::is_segment(b"lazaret recording 1\n"));
}

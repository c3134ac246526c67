//! Files that are not what they should be: each is refused, and says why.

use model::cluster::Cluster;
use recorder::{ReadError, Recording};

use crate::tape::{Tape, header, limits};
use crate::world::*;

fn some_file() -> Vec<u8> {
    let mut tape = Tape::new(limits(1800, 1_000_000));
    let clusters: Vec<std::sync::Arc<Cluster>> = vec![passive("app", &["a"], &[max_fails(1, 10.0)]).into()];
    tape.take([(at(1.0), health::Input::Configured { clusters, summary: "start".to_owned() })]);
    tape.core.save(&header()).unwrap()
}

/// The file with another text of equal length in place of the last `from`, and checksums that fit.
pub fn forge(file: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let place = file.windows(from.len()).rposition(|part| part == from).unwrap();
    let mut file = file.to_vec();
    file[place..place + to.len()].copy_from_slice(to);
    let mut at = file.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    while at < file.len() {
        let length = u64::from_le_bytes(file[at + 1..at + 9].try_into().unwrap()) as usize;
        let end = at + 9 + length;
        let sum = file[at..end]
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
        file[end..end + 8].copy_from_slice(&sum.to_le_bytes());
        at = end + 8;
    }
    file
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_refused() {
    let file = some_file();
    assert!(Recording::read(&file).is_ok());
    for end in 0..file.len() {
        let error = Recording::read(&file[..end]).unwrap_err();
        assert!(matches!(error, ReadError::Truncated { .. } | ReadError::NotARecording), "{end}: {error:?}");
    }
    assert!(Recording::read(&file[..file.len() - 1]).unwrap_err().to_string().contains("cut off after"));
}

#[test]
fn a_file_with_any_byte_changed_is_refused() {
    let file = some_file();
    for place in 0..file.len() {
        let mut changed = file.clone();
        changed[place] ^= 0x10;
        assert!(Recording::read(&changed).is_err(), "byte {place} of {}", file.len());
    }
    let mut changed = file.clone();
    let middle = file.len() / 2;
    changed[middle] ^= 1;
    let error = Recording::read(&changed).unwrap_err();
    assert!(matches!(error, ReadError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains("damaged"));
}

#[test]
fn a_file_of_another_kind_or_version_is_refused() {
    assert_eq!(Recording::read(b"version: 1\n").unwrap_err(), ReadError::NotARecording);
    assert_eq!(Recording::read(b"").unwrap_err(), ReadError::NotARecording);
    let error = Recording::read(b"lazaret recording 9\nmore").unwrap_err();
    assert_eq!(error, ReadError::OtherFormat("9".to_owned()));
    // The one before this one, which told some successes twice.
    let error = Recording::read(b"lazaret recording 3\nmore").unwrap_err();
    let said = "the recording's format is 3, this program reads 4: use the program that saved it";
    assert_eq!(error.to_string(), said);
}

#[test]
fn what_has_the_right_checksums_and_makes_no_sense_is_refused() {
    let file = some_file();
    for (from, to) in [("\"compat\"", "\"compot\""), ("\"slots\"", "\"slats\""), ("\"instance\"", "\"instants\"")] {
        let recording = Recording::read(&forge(&file, from.as_bytes(), to.as_bytes()));
        let error = match recording {
            Err(error) => error.to_string(),
            Ok(recording) => recording.rerun(health::Registry::default()).unwrap_err().to_string(),
        };
        assert!(error.contains("makes no sense"), "{from}: {error}");
    }
}

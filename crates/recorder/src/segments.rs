//! Segments' files, read back: those that follow one another are a recording, and each gap begins another one.
//!
//! ```text
//!   process 1:  [1 whole][2 whole][3 ...   killed              ──> one recording
//!   process 2:            [1 whole][2 cut off] [4 whole][5 ... ──> two: 3 is not there, and 4 does not follow 2
//! ```
//! A crash, a full disk or a reader that came too early leave a file whose end is missing or torn. That is no error: what
//! stands before it can be replayed. A file without its beginning is of no use.

use std::collections::BTreeMap;

use model::time::Timestamp;

use crate::bytes::{Reader, checksum};
use crate::file::{FORMAT, Header, ReadError, Recording, Segment};
use crate::frames::{self, CONFIGURATION, END, HEADER, NoFrame, RECORDS, SEGMENT};
use crate::records::Configurations;
use crate::spool::{MAGIC, SegmentHeader};

/// What the files of a folder hold.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// In the order of their first files.
    pub recordings: Vec<Recording>,
    /// Files that are of no use, by their place among those given, and why.
    pub refused: Vec<(usize, ReadError)>,
}

/// Whether a file begins like a segment's.
pub fn is_segment(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC.as_bytes())
}

/// Joins files, in the order in which they were made.
pub fn join(files: impl IntoIterator<Item = Vec<u8>>) -> Found {
    let mut found = Found::default();
    // Where each process's last recording stands, and which segment would follow it.
    let mut open: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    for (place, bytes) in files.into_iter().enumerate() {
        let read = match read(&bytes) {
            Ok(read) => read,
            Err(error) => {
                found.refused.push((place, error));
                continue;
            }
        };
        let instance = read.recording.header.instance.clone();
        let follows = open.get(&instance).filter(|(_, next)| *next == read.segment).map(|(at, _)| *at);
        let at = match follows.and_then(|at| Some((at, found.recordings.get_mut(at)?))) {
            Some((at, before)) => {
                before.append(read.recording);
                at
            }
            None => {
                found.recordings.push(read.recording);
                found.recordings.len() - 1
            }
        };
        match read.ending {
            Ending::Whole => open.insert(instance, (at, read.segment + 1)),
            Ending::Torn => open.remove(&instance),
        };
    }
    found
}

struct Read {
    recording: Recording,
    segment: u64,
    ending: Ending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Whole,
    Torn,
}

fn read(bytes: &[u8]) -> Result<Read, ReadError> {
    let mut rest = crate::file::after_magic(bytes, MAGIC, FORMAT)?;
    let senseless = |what: &str| ReadError::Senseless(what.to_owned());
    let mut head: Option<SegmentHeader> = None;
    let mut configurations = Configurations::new();
    let mut digest = String::new();
    let mut segment: Option<Segment> = None;
    let mut last = Timestamp::ZERO;
    let mut ending = Ending::Torn;
    let mut n = 0_u64;
    while ending == Ending::Torn {
        let (kind, payload, after) = match frames::next(rest) {
            Ok(frame) => frame,
            Err(_) if segment.is_some() => break,
            Err(NoFrame::Short) => return Err(ReadError::Truncated { bytes: bytes.len() }),
            Err(NoFrame::Damaged) => return Err(ReadError::Damaged { at: bytes.len() - rest.len() }),
        };
        rest = after;
        match (kind, &mut segment) {
            (HEADER, None) => {
                let read = serde_json::from_slice(payload);
                head = Some(read.map_err(|error| ReadError::Senseless(format!("its header: {error}")))?);
            }
            (CONFIGURATION, _) => {
                let (number, json) = frames::read_configuration(payload).ok_or(senseless("a configuration"))?;
                configurations.insert(number, frames::clusters(number, json).map_err(ReadError::Senseless)?);
                digest = format!("{:016x}", checksum(json));
            }
            (SEGMENT, None) => {
                let begun = begun(payload).ok_or(senseless("its beginning"))?;
                last = begun.at;
                segment = Some(begun);
            }
            (RECORDS, Some(segment)) => {
                let mut reader = Reader(payload);
                let (at, records) = reader.number().zip(reader.text()).ok_or(senseless("its records"))?;
                last = last.max(Timestamp::from_nanos(at));
                segment.records.extend_from_slice(records);
            }
            (END, Some(_)) if payload == n.to_le_bytes() => ending = Ending::Whole,
            _ => return Err(senseless("a part of unknown kind, or out of its place")),
        }
        n += 1;
    }
    let segment = segment.ok_or(senseless("it has no beginning"))?;
    if !configurations.contains_key(&segment.configuration) {
        return Err(senseless("a segment without its configuration"));
    }
    let SegmentHeader { header, segment: number } = head.ok_or(senseless("there is no header"))?;
    let recording = Recording { header: saved(header, last), configurations, segments: vec![segment], digest };
    Ok(Read { recording, segment: number, ending })
}

fn begun(payload: &[u8]) -> Option<Segment> {
    let mut reader = Reader(payload);
    let at = Timestamp::from_nanos(reader.number()?);
    let configuration = reader.number()?;
    Some(Segment { at, configuration, checkpoint: reader.text()?.to_vec(), records: Vec::new() })
}

/// As if it had been saved at the last cut.
fn saved(header: Header, at: Timestamp) -> Header {
    let from_nanos = |nanos: u64| nanos / 1_000_000;
    let later = from_nanos(at.since(header.saved_at).as_nanos().try_into().unwrap_or(u64::MAX));
    let earlier = from_nanos(header.saved_at.since(at).as_nanos().try_into().unwrap_or(u64::MAX));
    let unix_ms = header.saved_at_unix_ms.saturating_add(later).saturating_sub(earlier);
    Header { saved_at: at, saved_at_unix_ms: unix_ms, ..header }
}

//! A recording as a file.
//!
//! ```text
//!   "lazaret recording 4\n"
//!   frames:
//!     H  header, JSON: who recorded, when
//!     C  a configuration: its number, the clusters as JSON          one for each that was in force
//!     S  a segment: time, number of its configuration, state as JSON, records
//!     E  the end: how many frames came before
//! ```
//! Frames, numbers and records: `frames`, `bytes` and `records`. A reader of another version refuses the file by its first line.

use std::fmt;

use health::Checkpoint;
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::bytes::{Reader, Writer, checksum};
use crate::frames::{self, CONFIGURATION, END, HEADER, NoFrame, SEGMENT};
use crate::records::Configurations;
use crate::ring::Ring;

/// Who recorded, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the program.
    pub version: String,
    /// Name of the process, as its control API gives it.
    pub instance: String,
    /// When it was saved, milliseconds since 1970 (UTC).
    pub saved_at_unix_ms: u64,
    /// The same moment on the clock of the recorded times.
    pub saved_at: Timestamp,
}

/// A recording, read back.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Who recorded, and when.
    pub header: Header,
    pub(crate) configurations: Configurations,
    /// Oldest first; one at least.
    pub(crate) segments: Vec<Segment>,
    /// Of the last configuration, as 16 hexadecimal digits: equal ones are of equal clusters.
    pub digest: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) at: Timestamp,
    pub(crate) configuration: u64,
    pub(crate) checkpoint: Vec<u8>,
    pub(crate) records: Vec<u8>,
}

/// Why a file is no recording that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// It does not begin like one.
    NotARecording,
    /// It is of another version.
    OtherFormat(String),
    /// It ends too early.
    Truncated {
        /// Bytes that are there.
        bytes: usize,
    },
    /// Something in it was changed.
    Damaged {
        /// Where the damaged part begins.
        at: usize,
    },
    /// Its parts are whole, and make no sense together.
    Senseless(String),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotARecording => f.write_str("this is no recording; `lazaret record save` writes one"),
            Self::OtherFormat(version) => {
                write!(
                    f,
                    "the recording's format is {version}, this program reads {FORMAT}: use the program that saved it"
                )
            }
            Self::Truncated { bytes } => write!(f, "the recording is cut off after {bytes} bytes; save it again"),
            Self::Damaged { at } => {
                write!(f, "the recording is damaged: the part at byte {at} does not match its checksum")
            }
            Self::Senseless(why) => write!(f, "the recording makes no sense: {why}"),
        }
    }
}

impl std::error::Error for ReadError {}

/// The file of what the ring holds.
pub(crate) fn write(header: &Header, ring: &mut Ring) -> Vec<u8> {
    let mut out = Vec::with_capacity(ring.len() + 4096);
    out.extend_from_slice(format!("{MAGIC}{FORMAT}\n").as_bytes());
    let mut n = 0_u64;
    let mut frame = |kind: u8, payload: &[u8]| {
        frames::push(&mut out, kind, payload);
        n += 1;
        n
    };
    frame(HEADER, &serde_json::to_vec(header).unwrap_or_default());
    for (number, json) in ring.configurations() {
        frame(CONFIGURATION, &frames::configuration(number, json));
    }
    let mut last = 0;
    for (start, records) in ring.segments() {
        let mut payload = Writer::default();
        payload.number(start.at.as_nanos());
        payload.number(start.configuration);
        payload.text(&start.checkpoint);
        payload.text(records);
        last = frame(SEGMENT, &payload.0);
    }
    frame(END, &last.to_le_bytes());
    out
}

/// What follows a file's first line, which says what it is and of which version.
pub(crate) fn after_magic<'a>(bytes: &'a [u8], magic: &str, format: &str) -> Result<&'a [u8], ReadError> {
    let rest = bytes.strip_prefix(magic.as_bytes()).ok_or(ReadError::NotARecording)?;
    let line = rest.iter().position(|byte| *byte == b'\n').filter(|end| *end < 16).ok_or(ReadError::NotARecording)?;
    let (version, rest) = rest.split_at(line);
    let version = String::from_utf8_lossy(version);
    if version != format {
        return Err(ReadError::OtherFormat(version.into_owned()));
    }
    Ok(rest.get(1..).unwrap_or_default())
}

impl Recording {
    /// Reads a file.
    pub fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        let mut rest = after_magic(bytes, MAGIC, FORMAT)?;
        let senseless = |what: &str| ReadError::Senseless(what.to_owned());
        let mut header = None;
        let mut configurations = Configurations::new();
        let mut segments = Vec::new();
        let mut digest = String::new();
        let mut n = 0_u64;
        loop {
            let (kind, payload, after) = frames::next(rest).map_err(|none| match none {
                NoFrame::Short => ReadError::Truncated { bytes: bytes.len() },
                NoFrame::Damaged => ReadError::Damaged { at: bytes.len() - rest.len() },
            })?;
            rest = after;
            match kind {
                HEADER => {
                    let read = serde_json::from_slice::<Header>(payload);
                    header = Some(read.map_err(|error| ReadError::Senseless(format!("its header: {error}")))?);
                }
                CONFIGURATION => {
                    let (number, json) = frames::read_configuration(payload).ok_or(senseless("a configuration"))?;
                    configurations.insert(number, frames::clusters(number, json).map_err(ReadError::Senseless)?);
                    digest = format!("{:016x}", checksum(json));
                }
                SEGMENT => segments.push(segment(payload).ok_or(senseless("a segment"))?),
                END if payload == n.to_le_bytes() => break,
                _ => return Err(senseless("a part of unknown kind")),
            }
            n += 1;
        }
        let is_known = |segment: &Segment| configurations.contains_key(&segment.configuration);
        if segments.is_empty() || !segments.iter().all(is_known) {
            return Err(senseless("a segment without its configuration"));
        }
        let header = header.ok_or(senseless("there is no header"))?;
        Ok(Self { header, configurations, segments, digest })
    }

    /// Goes on with one that follows it.
    pub(crate) fn append(&mut self, next: Self) {
        self.header = next.header;
        self.configurations.extend(next.configurations);
        self.segments.extend(next.segments);
        self.digest = next.digest;
    }

    /// The same without the first `n` segments: what is left when the ring has forgotten them. At least one stays.
    pub fn without(mut self, n: usize) -> Self {
        self.segments.drain(..n.min(self.segments.len().saturating_sub(1)));
        self
    }

    /// Segments in it.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// When it begins.
    pub fn begins_at(&self) -> Timestamp {
        self.segments.first().map_or(self.header.saved_at, |segment| segment.at)
    }

    /// The state that a segment begins with.
    pub(crate) fn checkpoint(&self, segment: &Segment) -> Result<Checkpoint, ReadError> {
        serde_json::from_slice(&segment.checkpoint)
            .map_err(|error| ReadError::Senseless(format!("the state at {}: {error}", segment.at)))
    }
}

fn segment(payload: &[u8]) -> Option<Segment> {
    let mut reader = Reader(payload);
    let at = Timestamp::from_nanos(reader.number()?);
    let configuration = reader.number()?;
    let (checkpoint, records) = (reader.text()?.to_vec(), reader.text()?.to_vec());
    Some(Segment { at, configuration, checkpoint, records })
}

const MAGIC: &str = "lazaret recording ";
/// Of recordings and of segments, since both hold states and records. 4 tells each success once: by a sum or by an event.
pub(crate) const FORMAT: &str = "4";

//! What is kept, told in pieces: so that it can stand in a folder, one file a segment, and outlive the process.
//!
//! ```text
//!   segment begins          now and then        the next one begins
//!   Begin ──────────────────> More ... More ──────> End │ Begin ──> ...
//!   who, when, configuration,  records since the         how many frames: without it the segment is not whole,
//!   state                      piece before              and the next one does not follow it
//! ```
//! A piece ends where the core has been asked for everything: whatever number of them is there, they can be replayed, and
//! no event is missing. One is cut when something was told, else each second, or when it is long. Where a piece found no place
//! the rest of its segment is left out, and the next one begins anew.
//!
//! ```text
//!   "lazaret segment 3\n"   frames:
//!     H  header, JSON: who records, which segment of its this is, the time
//!     C  a configuration, as in a recording
//!     S  the beginning: time, number of the configuration, state as JSON
//!     R  records: the time when they were cut, and they themselves
//!     E  the end: how many frames came before
//! ```

use std::time::Duration;

use model::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::bytes::Writer;
use crate::file::{FORMAT, Header};
use crate::frames::{self, CONFIGURATION, END, HEADER, RECORDS, SEGMENT};
use crate::ring::{Ring, Start};

/// Who records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// Version of the program.
    pub version: String,
    /// Name of the process among all that ever ran.
    pub instance: String,
}

/// Bytes for a segment's file, and where they belong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where.
    pub place: Place,
    /// What is to be written, whole or not at all.
    pub bytes: Vec<u8>,
}

/// Where a piece belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the beginning of a new file.
    Begin,
    /// At the end of the last one.
    More,
    /// There, too, and nothing comes after it.
    End,
}

/// What a segment's file begins with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SegmentHeader {
    pub(crate) header: Header,
    /// Its place among the process's segments.
    pub(crate) segment: u64,
}

/// The pieces that wait to be taken, and what is told so far of the open segment.
#[derive(Debug)]
pub(crate) struct Spool {
    author: Author,
    /// Segments begun.
    segments: u64,
    /// Nothing is told until a segment begins.
    open: Option<Open>,
    pieces: Vec<Waiting>,
}

#[derive(Debug)]
struct Open {
    /// Bytes of the open segment's records that are told.
    told: usize,
    frames: u64,
    cut_at: Timestamp,
    news: News,
}

/// Whether something was told since the last cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    Some,
    None,
}

#[derive(Debug)]
enum Waiting {
    /// Its header is made when it is taken: only then somebody looks at the clock.
    Begin {
        segment: u64,
        frames: Vec<u8>,
    },
    Piece(Piece),
}

impl Spool {
    /// Segments are numbered after `segments`.
    pub(crate) fn new(author: Author, segments: u64) -> Self {
        Self { author, segments, open: None, pieces: Vec::new() }
    }

    pub(crate) fn segments(&self) -> u64 {
        self.segments
    }

    /// A segment begins, in a ring that is new or that has turned.
    pub(crate) fn begin(&mut self, start: &Start, configuration: &[u8]) {
        self.segments += 1;
        let mut bytes = Vec::with_capacity(configuration.len() + start.checkpoint.len() + 64);
        frames::push(&mut bytes, CONFIGURATION, &frames::configuration(start.configuration, configuration));
        let mut payload = Writer::default();
        payload.number(start.at.as_nanos());
        payload.number(start.configuration);
        payload.text(&start.checkpoint);
        frames::push(&mut bytes, SEGMENT, &payload.0);
        self.pieces.push(Waiting::Begin { segment: self.segments, frames: bytes });
        // Header, configuration and beginning.
        self.open = Some(Open { told: 0, frames: 3, cut_at: start.at, news: News::None });
    }

    /// The ring is given up, or a piece found no place: nothing of this segment is told any more, and none follows it.
    pub(crate) fn abandon(&mut self) {
        self.open = None;
        self.segments += 1;
    }

    /// A configuration comes into force; the records that name it come after it.
    pub(crate) fn configuration(&mut self, number: u64, json: &[u8]) {
        let Some(open) = &mut self.open else { return };
        let mut bytes = Vec::with_capacity(json.len() + 64);
        frames::push(&mut bytes, CONFIGURATION, &frames::configuration(number, json));
        open.frames += 1;
        self.pieces.push(Waiting::Piece(Piece { place: Place::More, bytes }));
    }

    /// Something was told.
    pub(crate) fn told(&mut self) {
        if let Some(open) = &mut self.open {
            open.news = News::Some;
        }
    }

    /// Nothing is left to be done: a moment for a cut, where one is due.
    pub(crate) fn rest(&mut self, now: Timestamp, ring: &mut Ring) {
        let is_due = self.open.as_ref().is_some_and(|open| {
            open.news == News::Some || now.since(open.cut_at) >= EVERY || ring.open.len() - open.told >= LONG
        });
        if is_due {
            self.cut(now, ring);
        }
    }

    /// What was not told yet becomes a piece.
    pub(crate) fn cut(&mut self, now: Timestamp, ring: &mut Ring) {
        let Some(open) = &mut self.open else { return };
        (open.cut_at, open.news) = (now, News::None);
        let records = ring.open.bytes();
        let new = records.get(open.told..).unwrap_or_default();
        if new.is_empty() {
            return;
        }
        let mut payload = Writer::default();
        payload.number(now.as_nanos());
        payload.text(new);
        open.told = records.len();
        open.frames += 1;
        let mut bytes = Vec::with_capacity(payload.0.len() + 32);
        frames::push(&mut bytes, RECORDS, &payload.0);
        self.pieces.push(Waiting::Piece(Piece { place: Place::More, bytes }));
    }

    /// The open segment is whole; the ring turns.
    pub(crate) fn end(&mut self, now: Timestamp, ring: &mut Ring) {
        self.cut(now, ring);
        let Some(open) = self.open.take() else { return };
        let mut bytes = Vec::new();
        frames::push(&mut bytes, END, &open.frames.to_le_bytes());
        self.pieces.push(Waiting::Piece(Piece { place: Place::End, bytes }));
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// Everything that waits, in order; `now` and the milliseconds since 1970 are of the same moment.
    pub(crate) fn take(&mut self, now: Timestamp, unix_ms: u64) -> Vec<Piece> {
        let author = &self.author;
        let made = self.pieces.drain(..).map(|waiting| match waiting {
            Waiting::Piece(piece) => piece,
            Waiting::Begin { segment, frames } => {
                let Author { version, instance } = author.clone();
                let header = Header { version, instance, saved_at_unix_ms: unix_ms, saved_at: now };
                let mut bytes = format!("{MAGIC}{FORMAT}\n").into_bytes();
                let header = serde_json::to_vec(&SegmentHeader { header, segment }).unwrap_or_default();
                frames::push(&mut bytes, HEADER, &header);
                bytes.extend_from_slice(&frames);
                Piece { place: Place::Begin, bytes }
            }
        });
        made.collect()
    }
}

pub(crate) const MAGIC: &str = "lazaret segment ";

/// A crash takes so much along, where nothing was told meanwhile.
const EVERY: Duration = Duration::from_secs(1);
/// Bytes of records that do not wait.
const LONG: usize = 64 << 10;

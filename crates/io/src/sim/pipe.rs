//! One direction of a simulated connection: bytes with the time at which they can be read, and how it ended.

use std::collections::VecDeque;
use std::task::Waker;

use tokio::time::Instant;

/// One direction. The writer and the reader each hold it behind a lock.
#[derive(Default)]
pub(super) struct Pipe {
    chunks: VecDeque<Chunk>,
    held: usize,
    end: Option<End>,
    is_reader_gone: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

struct Chunk {
    bytes: Vec<u8>,
    taken: usize,
    at: Instant,
}

/// How a direction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// In order: what was written before can be read.
    Orderly,
    /// By a reset: what was not read is lost.
    Reset,
}

/// What a reader finds.
pub(super) enum Found {
    /// Bytes were copied.
    Bytes,
    /// Bytes are on their way and arrive then.
    Later(Instant),
    /// Nothing.
    Nothing,
    /// The end.
    End(End),
}

impl Pipe {
    /// Takes as much of `bytes` as fits; `None` when nothing does. `Err` when nobody will read it.
    pub(super) fn write(&mut self, bytes: &[u8], at: Instant, waker: &Waker) -> Result<Option<usize>, End> {
        if self.is_reader_gone || self.end.is_some() {
            return Err(self.end.unwrap_or(End::Orderly));
        }
        let room = CAPACITY - self.held;
        let taken = bytes.len().min(room);
        if taken == 0 && !bytes.is_empty() {
            self.writer = Some(waker.clone());
            return Ok(None);
        }
        if taken > 0 {
            self.held += taken;
            self.chunks.push_back(Chunk { bytes: bytes.iter().take(taken).copied().collect(), taken: 0, at });
        }
        self.wake_reader();
        Ok(Some(taken))
    }

    /// Hands what has arrived by `now` to `copy`, which says how much it took.
    pub(super) fn read(&mut self, now: Instant, waker: &Waker, mut copy: impl FnMut(&[u8]) -> usize) -> Found {
        if self.end == Some(End::Reset) {
            return Found::End(End::Reset);
        }
        let mut total = 0;
        while let Some(chunk) = self.chunks.front_mut().filter(|chunk| chunk.at <= now) {
            let rest = chunk.bytes.get(chunk.taken..).unwrap_or_default();
            let n = copy(rest);
            let is_whole = n == rest.len();
            chunk.taken += n;
            total += n;
            if !is_whole {
                break;
            }
            self.chunks.pop_front();
        }
        if total > 0 {
            self.held -= total;
            if let Some(writer) = self.writer.take() {
                writer.wake();
            }
            return Found::Bytes;
        }
        self.reader = Some(waker.clone());
        match (self.chunks.front(), self.end) {
            (Some(chunk), _) if chunk.at <= now => Found::Bytes,
            (Some(chunk), _) => Found::Later(chunk.at),
            (None, Some(end)) => Found::End(end),
            (None, None) => Found::Nothing,
        }
    }

    /// The writer will write no more. A reset stands over an orderly end.
    pub(super) fn finish(&mut self, end: End) {
        if self.end.is_none() || end == End::Reset {
            self.end = Some(end);
        }
        self.wake_reader();
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }

    /// The reader is gone; says whether it left bytes unread.
    pub(super) fn abandon(&mut self) -> bool {
        self.is_reader_gone = true;
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
        self.held > 0
    }

    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

/// Bytes in flight and unread in one direction; a writer waits beyond it.
const CAPACITY: usize = 64 * 1024;

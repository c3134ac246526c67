//! The flight recorder's folder: segments written beside the health core's thread, which never waits for a disk.
//!
//! ```text
//!   monitor ──take(piece)──> bounded queue ──> thread "recorder" ──> folder: 0000000041.segment  0000000042.segment ...
//!              │ full: counted, and nothing more             │ fails: counted, warned of once, and nothing more until the
//!              │ until a segment begins                      │        next segment begins
//!              v                                             v
//!            recorder::RecordedCore::piece_lost           the file's end is missing: a reader begins anew after it
//! ```

mod folder;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use recorder::{Author, Piece, Place};
use telemetry::metrics::{Metrics, RecorderLoss};

pub use folder::{Folder, FolderError, read};

/// A folder that segments are written to. Clones write to the same; the thread ends with the last one.
#[derive(Clone)]
pub struct Spool {
    author: Arc<Author>,
    shared: Arc<Shared>,
    queue: SyncSender<Message>,
}

/// A piece that found no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

struct Shared {
    metrics: Arc<Metrics>,
    /// Bytes that wait.
    queued: AtomicUsize,
    most_queued: usize,
}

enum Message {
    Piece(Piece),
    /// Answer when everything before is written, or given up.
    Flush(SyncSender<()>),
}

impl Spool {
    /// Writes to a folder from here on, as this author.
    pub fn start(folder: Folder, author: Author, metrics: Arc<Metrics>) -> std::io::Result<Self> {
        // A piece is a quarter of the limit at most, for a state that is larger is not recorded.
        let most_queued = usize::try_from(folder.size() / 2).unwrap_or(usize::MAX);
        let shared = Arc::new(Shared { metrics, queued: AtomicUsize::new(0), most_queued });
        let (queue, pieces) = sync_channel(QUEUE);
        let writer = Writer { folder, shared: Arc::clone(&shared), state: State::Closed, health: Health::Well };
        std::thread::Builder::new().name("recorder".to_owned()).spawn(move || writer.run(&pieces))?;
        Ok(Self { author: Arc::new(author), shared, queue })
    }

    /// Who writes.
    pub fn author(&self) -> &Author {
        &self.author
    }

    /// Hands a piece over. Never waits; where there is no room it is counted and gone.
    pub fn take(&self, piece: Piece) -> Result<(), Lost> {
        let bytes = piece.bytes.len();
        let is_fitting = self.shared.queued.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.shared.most_queued;
        if is_fitting && self.queue.try_send(Message::Piece(piece)).is_ok() {
            return Ok(());
        }
        self.shared.queued.fetch_sub(bytes, Ordering::Relaxed);
        self.shared.metrics.recorder_lost(RecorderLoss::Queue);
        Err(Lost)
    }

    /// Waits until everything handed over so far is written or given up, `patience` at most. Says whether it is.
    pub fn flush(&self, patience: Duration) -> bool {
        let (done, answer) = sync_channel(1);
        // A full queue is of a disk that hangs: there is nothing to wait for.
        self.queue.try_send(Message::Flush(done)).is_ok() && answer.recv_timeout(patience).is_ok()
    }
}

struct Writer {
    folder: Folder,
    shared: Arc<Shared>,
    state: State,
    health: Health,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A segment is being written.
    Open,
    /// Nothing is written until one begins.
    Closed,
}

/// Whether the folder could be written to when it was last tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Well,
    Sick,
}

impl Writer {
    fn run(mut self, messages: &Receiver<Message>) {
        while let Ok(message) = messages.recv() {
            match message {
                Message::Piece(piece) => {
                    self.write(&piece);
                    // Only now: what is being written is in memory, too.
                    self.shared.queued.fetch_sub(piece.bytes.len(), Ordering::Relaxed);
                }
                // Who asked may have lost patience.
                Message::Flush(done) => drop(done.try_send(())),
            }
        }
    }

    fn write(&mut self, piece: &Piece) {
        if piece.place != Place::Begin && self.state == State::Closed {
            self.shared.metrics.recorder_lost(RecorderLoss::Disk);
            return;
        }
        let written = match piece.place {
            Place::Begin => self.folder.begin(&piece.bytes),
            Place::More | Place::End => self.folder.append(&piece.bytes),
        };
        match written {
            Ok(bytes) => {
                self.state = if piece.place == Place::End { State::Closed } else { State::Open };
                self.shared.metrics.recorder_folder(bytes);
                if self.health == Health::Sick {
                    self.health = Health::Well;
                    tracing::info!(target: "monitor", folder = %self.folder.path().display(), "recorder.folder is written to again");
                }
            }
            Err(error) => {
                self.state = State::Closed;
                self.shared.metrics.recorder_lost(RecorderLoss::Disk);
                if self.health == Health::Well {
                    self.health = Health::Sick;
                    tracing::warn!(
                        target: "monitor",
                        folder = %self.folder.path().display(),
                        %error,
                        "recorder.folder cannot be written to; the recording there has a gap until it can"
                    );
                }
            }
        }
    }
}

/// Pieces that may wait for the disk: one a second is told, and one for each moment in which something happened.
const QUEUE: usize = 256;

#[cfg(test)]
mod tests;

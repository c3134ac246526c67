//! Log files that survive rotation: one thread per file appends whole lines and reopens the file between two of them.
//!
//! ```text
//!   workers, tracing ──try_send(lines)──> bounded channel ──> writer thread ──write──> file (O_APPEND)
//!                        │ full: counted, dropped                  ^
//!   SIGUSR1, SIGHUP ─────┴──────── reopen flag, wake ──────────────┘
//! ```
//!
//! No writer of lines ever waits for the disk. Who has many lines hands them over many at a time: each handing over wakes
//! the thread, which costs more than a line does. A failed reopen keeps the old file and is counted; a line is never torn
//! between two files: what could not be written stays first in line. `O_APPEND` keeps a file that was cut short
//! (copytruncate) free of a gap of zero bytes.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use tracing_subscriber::fmt::MakeWriter;

/// Handings-over that may wait for the disk.
const QUEUE: usize = 8192;
/// Bytes of lines that may wait for it.
const QUEUED_BYTES: usize = 4 * 1024 * 1024;
/// Lines are joined up to so many bytes per write.
const BATCH: usize = 64 * 1024;
/// After a failed write the next try comes after this, or with the next line.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Who waits for room in a full queue looks again after this.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A log file, or standard output. Clones write to the same.
#[derive(Clone)]
pub struct ReopenFile {
    shared: Arc<Shared>,
    lines: SyncSender<Message>,
}

/// What went wrong with a log so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCounts {
    /// Lines that found the queue full.
    pub dropped_lines: u64,
    /// Reopens that failed; the old file was kept.
    pub reopen_failures: u64,
    /// Writes that failed; they are tried again.
    pub write_failures: u64,
}

/// Whole lines that are handed over together.
#[derive(Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    count: u64,
}

impl Lines {
    /// None, with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), count: 0 }
    }

    /// One more, which `write` appends without its line break.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.bytes.push(b'\n');
        self.count += 1;
    }

    /// All of them; none stays.
    #[must_use]
    pub fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// The same without room that they do not need: what waits for the disk is bounded by its length.
    fn fitted(mut self) -> Self {
        if self.bytes.capacity() / 2 > self.bytes.len() {
            self.bytes.shrink_to_fit();
        }
        self
    }

    /// Bytes of all, line breaks included.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

#[derive(Default)]
struct Shared {
    wants_reopen: AtomicBool,
    /// Bytes of lines in the queue.
    queued: AtomicUsize,
    dropped_lines: AtomicU64,
    reopen_failures: AtomicU64,
    write_failures: AtomicU64,
}

enum Message {
    Lines(Lines),
    /// Look at the reopen flag.
    Wake,
    /// Answer when everything before is written.
    Flush(SyncSender<()>),
}

impl ReopenFile {
    /// Opens (or makes) the file for appending.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let file = ::files::append(&path)?;
        Self::start(Sink::File { path, file })
    }

    /// Writes to standard output in the same way; reopening it does nothing.
    pub fn stdout() -> io::Result<Self> {
        Self::start(Sink::Stdout)
    }

    fn start(sink: Sink) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (lines, queue) = sync_channel(QUEUE);
        let writer = Writer { shared: Arc::clone(&shared), sink, pending: Vec::new() };
        std::thread::Builder::new().name("log".to_owned()).spawn(move || writer.run(&queue))?;
        Ok(Self { shared, lines })
    }

    /// Hands over one line (with or without its line break). Never waits; a full queue drops it and counts that.
    pub fn line(&self, mut line: Vec<u8>) {
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        self.lines(Lines { bytes: line, count: 1 });
    }

    /// Hands over lines in one piece. Never waits; a full queue drops them all and counts each.
    pub fn lines(&self, lines: Lines) {
        let (bytes, count) = (lines.bytes.len(), lines.count);
        let is_fitting = self.shared.queued.fetch_add(bytes, Ordering::Relaxed) + bytes <= QUEUED_BYTES;
        if is_fitting && self.lines.try_send(Message::Lines(lines.fitted())).is_ok() {
            return;
        }
        self.shared.queued.fetch_sub(bytes, Ordering::Relaxed);
        self.shared.dropped_lines.fetch_add(count, Ordering::Relaxed);
    }

    /// Asks for the file to be opened anew before the next line. Does not wait for it.
    pub fn reopen(&self) {
        self.shared.wants_reopen.store(true, Ordering::Release);
        // A full queue needs no wake-up: the flag is read before each batch.
        let _ = self.lines.try_send(Message::Wake);
    }

    /// Waits until everything handed over so far is written, `patience` at most. Says whether it is.
    pub fn flush(&self, patience: Duration) -> bool {
        let ends = Instant::now() + patience;
        let (done, answer) = sync_channel(1);
        let mut message = Message::Flush(done);
        // Behind a disk that hangs the queue is full for good: a plain send would wait for ever.
        while let Err(refused) = self.lines.try_send(message) {
            let TrySendError::Full(kept) = refused else { return false };
            if Instant::now() >= ends {
                return false;
            }
            message = kept;
            std::thread::sleep(LOOK_AGAIN);
        }
        answer.recv_timeout(ends.saturating_duration_since(Instant::now())).is_ok()
    }

    /// What went wrong so far.
    pub fn counts(&self) -> LogCounts {
        LogCounts {
            dropped_lines: self.shared.dropped_lines.load(Ordering::Relaxed),
            reopen_failures: self.shared.reopen_failures.load(Ordering::Relaxed),
            write_failures: self.shared.write_failures.load(Ordering::Relaxed),
        }
    }
}

/// One event of tracing is one write, and one write is one line.
impl Write for ReopenFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for ReopenFile {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

enum Sink {
    File { path: PathBuf, file: File },
    Stdout,
}

impl Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File { file, .. } => file.write(bytes),
            Self::Stdout => {
                let mut out = io::stdout().lock();
                let written = out.write(bytes)?;
                out.flush()?;
                Ok(written)
            }
        }
    }
}

struct Writer {
    shared: Arc<Shared>,
    sink: Sink,
    /// Handed over, not written; whole lines, but for the first one after a failure in its middle.
    pending: Vec<u8>,
}

impl Writer {
    fn run(mut self, queue: &Receiver<Message>) {
        loop {
            let message = if self.pending.is_empty() {
                queue.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                queue.recv_timeout(RETRY_AFTER)
            };
            let mut answers = Vec::new();
            match message {
                Ok(message) => self.take(message, &mut answers),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            while self.pending.len() < BATCH && answers.is_empty() {
                let Ok(message) = queue.try_recv() else { break };
                self.take(message, &mut answers);
            }
            self.write();
            for answer in answers {
                let _ = answer.try_send(());
            }
        }
        self.write();
    }

    fn take(&mut self, message: Message, answers: &mut Vec<SyncSender<()>>) {
        match message {
            Message::Lines(lines) => {
                self.shared.queued.fetch_sub(lines.bytes.len(), Ordering::Relaxed);
                // While the disk is full nothing more is kept than one batch.
                if self.pending.len() >= BATCH {
                    self.shared.dropped_lines.fetch_add(lines.count, Ordering::Relaxed);
                } else if self.pending.is_empty() {
                    self.pending = lines.bytes;
                } else {
                    self.pending.extend_from_slice(&lines.bytes);
                }
            }
            Message::Wake => {}
            Message::Flush(answer) => answers.push(answer),
        }
    }

    fn write(&mut self) {
        self.reopen_when_asked();
        let mut written = 0;
        while let Some(rest) = self.pending.get(written..).filter(|rest| !rest.is_empty()) {
            match self.sink.write(rest) {
                Ok(0) => break,
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.shared.write_failures.fetch_add(1, Ordering::Relaxed);
                    break;
                }
            }
        }
        self.pending.drain(..written);
    }

    fn reopen_when_asked(&mut self) {
        if !self.shared.wants_reopen.swap(false, Ordering::Acquire) {
            return;
        }
        let Sink::File { path, file } = &mut self.sink else { return };
        match ::files::append(path) {
            Ok(new) => *file = new,
            Err(error) => {
                self.shared.reopen_failures.fetch_add(1, Ordering::Relaxed);
                tracing::error!(target: "telemetry", path = %path.display(), %error, "log file cannot be reopened, the old one is kept");
            }
        }
    }
}

#[cfg(test)]
mod tests;

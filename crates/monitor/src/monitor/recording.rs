//! The flight recorder's part in the loop: its limits, what of it is told, its file, and what of it goes to its folder.
//!
//! It holds bounded memory, a disk is waited for by a thread of its own, and whatever goes wrong with it stays here: neither health nor traffic waits for it.

use std::time::SystemTime;

use ::io::Io;
use model::config::Config;
use model::time::Timestamp;
use recorder::{Header, Limits, Place, Standing};
use upstream::Resolve;

use super::Monitor;

/// The limits that a configuration gives.
pub(super) fn limits(config: &Config) -> Option<Limits> {
    let limits = |one: &model::config::Recorder| Limits {
        keep: one.keep,
        size: usize::try_from(one.size).unwrap_or(usize::MAX),
    };
    config.recorder.as_ref().map(limits)
}

impl<I: Io, R: Resolve> Monitor<I, R> {
    /// The recording as a file; else why there is none.
    pub(super) fn record(
        &mut self,
        now: Timestamp,
        instance: String,
        saved_at_unix_ms: u64,
    ) -> Result<Vec<u8>, Standing> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let header = Header { version, instance, saved_at_unix_ms, saved_at: now };
        self.core.save(&header).ok_or(self.core.standing())
    }

    /// Tells how the recording stands.
    pub(super) fn watch_recording(&mut self, now: Timestamp) {
        let standing = self.core.standing();
        let (bytes, span) = match standing {
            Standing::On { since, bytes } => (bytes, now.since(since)),
            Standing::Off | Standing::TooLarge => Default::default(),
        };
        self.metrics.recorder(bytes, span);
        if standing == Standing::TooLarge && self.recording != standing {
            let size = self.written.recorder.as_ref().map_or(0, |one| one.size);
            tracing::warn!(
                target: "monitor",
                size,
                "nothing is recorded: the state of all destinations takes a quarter of recorder.size or more; raise it"
            );
        }
        self.recording = standing;
    }

    /// Hands over what was cut. A piece that finds no place takes the rest of its segment along.
    pub(super) fn spool_pieces(&mut self) {
        let Some(spool) = self.spool.as_ref().filter(|_| self.core.has_pieces()) else { return };
        let mut last = Ok(());
        for piece in self.core.pieces(self.io.now(), unix_ms()) {
            if last.is_ok() || piece.place == Place::Begin {
                last = spool.take(piece);
            }
        }
        if last.is_err() {
            self.core.piece_lost();
        }
    }
}

/// The wall clock, for people.
fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

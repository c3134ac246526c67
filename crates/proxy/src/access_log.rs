//! The access log: one JSON object a line, one line per exchange.
//!
//! ```text
//!   exchange ──line──> the worker's buffer ──full, or 100 ms old, or the worker ends──> the log's thread ──> file
//! ```
//! `bytes_in` counts the request's content, `bytes_out` everything that was sent to the client for it. `ms` runs from the
//! complete head to the end. An attempt's `outcome` is the failure where there was one, else the class.

pub(crate) mod json;

use std::cell::RefCell;
use std::net::IpAddr;
use std::time::Duration;

use ::io::Io;
use exchange::step::Part;
use exchange::{Report, Snapshot};
use model::id::{ClusterIndex, DestinationIndex};
use model::outcome::OutcomeClass;
use model::time::Timestamp;
use telemetry::reopen::{Lines, ReopenFile};
use tokio::sync::Notify;

use crate::leg::Origin;
use crate::wall::Stamp;

/// A worker's end of the log.
pub(crate) struct AccessLog {
    file: ReopenFile,
    waiting: RefCell<Lines>,
    /// A first line waits.
    begun: Notify,
    stamp: Stamp,
}

impl AccessLog {
    /// Lines for `file`.
    pub(crate) fn new(file: ReopenFile) -> Self {
        Self { file, waiting: RefCell::default(), begun: Notify::new(), stamp: Stamp::default() }
    }

    /// One more line, of an exchange that ended `now`.
    pub(crate) fn line(&self, line: &Line<'_>, now: Timestamp) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.is_empty() {
            *waiting = Lines::with_capacity(FULL + ROOM);
            self.begun.notify_one();
        }
        waiting.push(|out| line.write(out, |out| self.stamp.write(out, now)));
        if waiting.len() >= FULL {
            self.file.lines(waiting.take());
        }
    }

    /// Hands over what waits; never waits itself.
    fn hand_over(&self) {
        let lines = self.waiting.take();
        if !lines.is_empty() {
            self.file.lines(lines);
        }
    }

    /// Hands over lines that nobody follows soon enough to fill the buffer. Never ends.
    pub(crate) async fn keep_fresh(&self, io: &impl Io) {
        loop {
            self.begun.notified().await;
            io.sleep(AGE).await;
            self.hand_over();
        }
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.hand_over();
    }
}

/// One line, but for its time.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) listener: &'a str,
    pub(crate) request_id: Option<&'a str>,
    pub(crate) client: IpAddr,
    pub(crate) route: Option<&'a str>,
    pub(crate) cluster: Option<&'a str>,
    pub(crate) method: &'a str,
    pub(crate) host: &'a str,
    pub(crate) path: &'a str,
    pub(crate) protocol: Protocol,
    pub(crate) status: u16,
    pub(crate) reason: &'a str,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) took: Duration,
    pub(crate) attempts: Attempts<'a>,
    pub(crate) retry_denied: Option<&'static str>,
}

/// What the client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.1 and 1.0.
    Http1,
    /// HTTP/2.
    Http2,
}

impl Protocol {
    /// The log's word.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Http1 => "h1",
            Self::Http2 => "h2",
        }
    }
}

/// The attempts of a line.
#[derive(Clone, Copy)]
pub(crate) enum Attempts<'a> {
    /// As they were collected, with the snapshot that names them.
    Collected(&'a Tries, Option<&'a Snapshot>),
    /// Written already, by [`Tries::write`].
    Written(&'a [u8]),
}

impl Line<'_> {
    /// Appends the line without a line break; `at` writes its time.
    fn write(&self, out: &mut Vec<u8>, at: impl FnOnce(&mut Vec<u8>)) {
        out.extend_from_slice(b"{\"at\":\"");
        at(out);
        out.extend_from_slice(b"\",\"listener\":");
        json::string(out, self.listener);
        out.extend_from_slice(b",\"request_id\":");
        json::string_or_null(out, self.request_id);
        out.extend_from_slice(b",\"client\":");
        json::address(out, self.client);
        out.extend_from_slice(b",\"route\":");
        json::string_or_null(out, self.route);
        out.extend_from_slice(b",\"cluster\":");
        json::string_or_null(out, self.cluster);
        out.extend_from_slice(b",\"method\":");
        json::string(out, self.method);
        out.extend_from_slice(b",\"host\":");
        json::string(out, self.host);
        out.extend_from_slice(b",\"path\":");
        json::string(out, self.path);
        out.extend_from_slice(b",\"protocol\":");
        json::string(out, self.protocol.as_str());
        out.extend_from_slice(b",\"status\":");
        json::number(out, u64::from(self.status));
        out.extend_from_slice(b",\"reason\":");
        json::string(out, self.reason);
        out.extend_from_slice(b",\"bytes_in\":");
        json::number(out, self.bytes_in);
        out.extend_from_slice(b",\"bytes_out\":");
        json::number(out, self.bytes_out);
        out.extend_from_slice(b",\"ms\":");
        json::millis(out, self.took);
        out.extend_from_slice(b",\"attempts\":");
        match self.attempts {
            Attempts::Collected(tries, snapshot) => tries.write(out, snapshot),
            Attempts::Written(bytes) => out.extend_from_slice(bytes),
        }
        out.extend_from_slice(b",\"retry_denied\":");
        json::string_or_null(out, self.retry_denied);
        out.push(b'}');
    }
}

/// The attempts of one exchange, in order. Nothing is allocated for the first one.
#[derive(Debug, Default)]
pub(crate) struct Tries {
    first: Option<Try>,
    more: Vec<Try>,
}

/// One attempt, named by its places in the exchange's snapshot.
#[derive(Clone, Copy, Debug)]
struct Try {
    cluster: ClusterIndex,
    destination: DestinationIndex,
    outcome: &'static str,
    status: Option<u16>,
    took: Duration,
    origin: Origin,
}

impl Tries {
    /// One more, from what the machine reports; of one that was told of before, what has become of it.
    pub(crate) fn push(&mut self, report: &Report, now: Timestamp, origin: Origin) {
        let class = report.outcome.class;
        let is_fine = matches!(class, OutcomeClass::Ok);
        let one = Try {
            cluster: report.cluster,
            destination: report.destination,
            outcome: match report.outcome.failure {
                Some(failure) if !is_fine => failure.as_str(),
                Some(_) | None => class.as_str(),
            },
            status: report.outcome.status,
            took: now.since(report.picked_at),
            origin,
        };
        match (report.part, self.more.last_mut(), &mut self.first) {
            (Part::Broken, Some(last), _) => *last = one,
            (Part::Broken, None, first) | (Part::Whole | Part::Begun, _, first @ None) => *first = Some(one),
            (Part::Whole | Part::Begun, _, Some(_)) => self.more.push(one),
        }
    }

    /// Appends them as a list of objects. One that `snapshot` does not know has an empty name.
    pub(crate) fn write(&self, out: &mut Vec<u8>, snapshot: Option<&Snapshot>) {
        self.write_named(out, |one| {
            let cluster = snapshot?.clusters.get(one.cluster.index())?;
            Some(cluster.destinations.get(one.destination.index())?.id.as_str())
        });
    }

    fn write_named<'s>(&self, out: &mut Vec<u8>, name: impl Fn(&Try) -> Option<&'s str>) {
        let mut before: &[u8] = b"[{\"destination\":";
        for one in self.first.iter().chain(&self.more) {
            out.extend_from_slice(before);
            before = b",{\"destination\":";
            json::string(out, name(one).unwrap_or_default());
            out.extend_from_slice(b",\"outcome\":");
            json::string(out, one.outcome);
            out.extend_from_slice(b",\"status\":");
            match one.status {
                Some(status) => json::number(out, u64::from(status)),
                None => out.extend_from_slice(b"null"),
            }
            out.extend_from_slice(b",\"ms\":");
            json::millis(out, one.took);
            out.extend_from_slice(match one.origin {
                Origin::Reused => b",\"reused\":true}",
                Origin::Fresh => b",\"reused\":false}",
            });
        }
        if self.first.is_none() {
            out.push(b'[');
        }
        out.push(b']');
    }
}

/// A buffer of so many bytes is handed over at once.
const FULL: usize = 32 * 1024;
/// Room for the line that fills it; a longer one makes the buffer grow.
const ROOM: usize = 2 * 1024;
/// No line waits for longer in a worker.
const AGE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests;

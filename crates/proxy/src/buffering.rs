//! Bodies that are taken ahead: how much memory there is for them, and which responses are.
//!
//! Memory is counted per worker. A body that finds no room streams, as on routes without buffering: it costs its
//! destination time, and nobody else anything.

use std::cell::Cell;

use exchange::step::Content;
use http1::framing::ResponseFraming;
use http1::response::Response;
use model::request::Fields;
use model::route::Buffering;
use telemetry::metrics::WorkerMetrics;

/// One worker's memory for bodies that are taken ahead.
#[derive(Default)]
pub(crate) struct Store {
    used: Cell<usize>,
}

/// One exchange's part of it, given back when it is dropped.
pub(crate) struct Share<'a> {
    store: &'a Store,
    metrics: &'a WorkerMetrics,
    held: usize,
    was_refused: bool,
}

impl Store {
    /// A part that holds nothing yet.
    pub(crate) fn share<'a>(&'a self, metrics: &'a WorkerMetrics) -> Share<'a> {
        Share { store: self, metrics, held: 0, was_refused: false }
    }
}

impl Share<'_> {
    /// Makes the part as large as `wanted`, or as large as there is room for; how large it is now. An exchange that
    /// does not get what it wants is counted once.
    pub(crate) fn resize(&mut self, wanted: usize) -> usize {
        let others = self.store.used.get().saturating_sub(self.held);
        let granted = wanted.min(CAPACITY.saturating_sub(others));
        self.store.used.set(others + granted);
        self.held = granted;
        if granted < wanted && !self.was_refused {
            self.was_refused = true;
            self.metrics.unbuffered();
        }
        granted
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.store.used.set(self.store.used.get().saturating_sub(self.held));
    }
}

/// So many bytes of this response may be taken ahead of its client. None of streams whose parts are to be taken one by
/// one, and none where the destination forbids it.
pub(crate) fn ahead(buffering: Buffering, response: &Response<'_>) -> usize {
    let Buffering::On { response: most, .. } = buffering else { return 0 };
    let mut is_stream = false;
    response.each("content-type", &mut |value| is_stream |= STREAMS.iter().any(|kind| starts_with(value, kind)));
    response.each("x-accel-buffering", &mut |value| is_stream |= value.eq_ignore_ascii_case(b"no"));
    if is_stream { 0 } else { usize::try_from(most).unwrap_or(usize::MAX) }
}

/// What follows this head. A stream of events has no length, so that heads with one need no look.
pub(crate) fn content(response: &Response<'_>) -> Content {
    match response.framing() {
        ResponseFraming::None | ResponseFraming::Length(_) => return Content::Message,
        ResponseFraming::Chunked | ResponseFraming::Close => {}
    }
    let mut content = Content::Message;
    response.each("content-type", &mut |value| {
        if starts_with(value, EVENTS) {
            content = Content::Events;
        }
    });
    content
}

fn starts_with(value: &[u8], start: &[u8]) -> bool {
    value.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start))
}

/// Bytes per worker.
const CAPACITY: usize = 64 * 1024 * 1024;
const EVENTS: &[u8] = b"text/event-stream";
const STREAMS: [&[u8]; 2] = [EVENTS, b"application/grpc"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_never_hold_more_together_than_there_is() {
        let (store, metrics) = (Store::default(), WorkerMetrics::default());
        let mut first = store.share(&metrics);
        assert_eq!(first.resize(CAPACITY - 10), CAPACITY - 10);
        let mut second = store.share(&metrics);
        assert_eq!(second.resize(100), 10);
        assert_eq!(first.resize(50), 50);
        assert_eq!(second.resize(100), 100);
        drop((first, second));
        assert_eq!(store.used.get(), 0);
    }
}

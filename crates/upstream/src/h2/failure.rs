//! What an error of a stream or a connection means for the request on it.
//!
//! | error | failure | progress |
//! |---|---|---|
//! | REFUSED_STREAM (RFC 9113 8.7) | refused_stream | not sent |
//! | a GOAWAY that leaves the stream out (RFC 9113 6.8); REFUSED_STREAM of a connection that takes no more | unprocessed | not sent |
//! | another RST_STREAM of the destination | reset | sent |
//! | HTTP_1_1_REQUIRED | protocol | sent |
//! | the destination breaks RFC 9113 | protocol | sent |
//! | the connection ends before anything came on it | protocol | sent |
//! | the connection ends, breaks | closed, reset | sent |
//! | the request cannot stand in HTTP/2 | cancelled | not sent |
//!
//! After the head all of these are a body that was cut. The h2 crate tells a stream of the GOAWAY only when the stream is
//! above the last one that the destination took: those below it go on, and end with the connection.

use std::io;

use h2::{Error, Reason};
use model::outcome::{FailureKind, Progress};

/// How a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// As policies, logs and metrics know it.
    pub kind: FailureKind,
    /// [`Progress::NotSent`]: the destination did not process it, by its own word.
    pub progress: Progress,
    /// A frame of it may have left.
    pub was_on_wire: bool,
}

impl Failure {
    /// Before the response's head. `received`: bytes that came on the connection so far.
    pub(super) fn before_head(error: &Error, received: u64) -> Self {
        let sent = |kind| Self { kind, progress: Progress::Sent, was_on_wire: true };
        let unsent = |kind| Self { kind, progress: Progress::NotSent, was_on_wire: true };
        if let Some(error) = error.get_io() {
            let kind = ending(error);
            let is_mute = kind == FailureKind::Closed && received == 0;
            return sent(if is_mute { FailureKind::Protocol } else { kind });
        }
        match (error.is_remote(), error.reason()) {
            (true, _) if error.is_go_away() => unsent(FailureKind::Unprocessed),
            (true, Some(Reason::REFUSED_STREAM)) => unsent(FailureKind::RefusedStream),
            (true, Some(Reason::HTTP_1_1_REQUIRED)) => sent(FailureKind::Protocol),
            (true, _) => sent(FailureKind::Reset),
            (false, _) if error.is_library() => sent(FailureKind::Protocol),
            (false, _) => unsent(FailureKind::Cancelled),
        }
    }
}

/// How a connection ended.
#[expect(clippy::wildcard_enum_match_arm, reason = "io::ErrorKind is not ours and not exhaustive")]
fn ending(error: &io::Error) -> FailureKind {
    match error.kind() {
        // What the h2 crate says of an end without an error, and of TLS without its close_notify.
        io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => FailureKind::Closed,
        _ => FailureKind::Reset,
    }
}

//! Full, not dead: a probe that came to nothing convicts nobody who answers its requests meanwhile.
//!
//! A destination whose queue is full refuses a probe as it refuses a request, or lets it wait for longer than it may. To take it
//! out for that sends its load to the others, whose queues then are full, too; and those follow it.
//!
//! ```text
//!   the policy says Unhealthy ──> the last probe got not a byte, 429 or 529 ──no──> Unhealthy
//!                                   │ yes
//!                                   v
//!             a request was answered well since it began, or within 500 ms ──no──> Unhealthy
//!                                   │ yes
//!                                   └──> as before, told once; the next probe comes after the confirm interval
//! ```
//! - Any other status that says no is believed: whoever wants to leave says so. 429 and 529 say that there is too much of it.
//! - Only where `guards.answering` says so, as it does beside the default set.
//! - A probe that waited for an answer in vain waited as requests do, in the same queue: only where these take half as long in the
//!   mean. Where they are quick, the probe was not in a queue, and those that hang say nothing: half of it is dead.
//! - Only of probes that go where requests go: another port may be closed for a reason of its own.

use std::time::Duration;

use model::address::Url;
use model::cluster::Cluster;
use model::event::{EventKind, Evidence};
use model::guards::AnsweringDestination;
use model::health::Health;
use model::outcome::FailureKind;
use model::time::Timestamp;

use crate::active::ProbeResult;
use crate::destination::DestinationState;
use crate::effects::Effects;

/// Whether the destination's traffic speaks for it against a failed probe.
pub(crate) fn is_acquitted(
    cluster: &Cluster,
    destination: &DestinationState,
    probe: &ProbeResult,
    now: Timestamp,
) -> bool {
    // One that is out does not stay: it is back with a probe that passes.
    let stays = cluster.health_check.guards.answering == AnsweringDestination::Stays
        && destination.health.active != Health::Unhealthy;
    let goes_there =
        destination.config.health.as_ref().is_none_or(|url| is_same_server(url, &destination.config.address));
    let is_answered = |good_at: Timestamp| good_at >= probe.started_at || now.since(good_at) <= LATELY;
    stays
        && goes_there
        && (probe.failure.is_some_and(came_to_nothing) || matches!(probe.status, Some(429 | 529)))
        && (probe.failure != Some(FailureKind::HeadTimeout) || is_in_queue(destination, probe))
        && destination.traffic.good_at.is_some_and(is_answered)
}

/// Whether its requests wait about as long as the probe did.
fn is_in_queue(destination: &DestinationState, probe: &ProbeResult) -> bool {
    let waited = probe.ended_at.since(probe.started_at);
    destination.traffic.mean.is_some_and(|mean| mean.saturating_mul(2) >= waited)
}

/// Says so, once for each series of such probes.
pub(crate) fn tell(destination: &mut DestinationState, policy: &str, mut evidence: Evidence, effects: &mut Effects) {
    if destination.probes.is_kept {
        return;
    }
    destination.probes.is_kept = true;
    if evidence.last.is_empty() {
        evidence.last = destination.probes.failed.to_vec();
    }
    effects.event(EventKind::Kept { destination: destination.key.clone(), policy: policy.to_owned(), evidence });
}

/// Whether not a byte of an answer came.
fn came_to_nothing(failure: FailureKind) -> bool {
    match failure {
        FailureKind::Refused
        | FailureKind::ConnectTimeout
        | FailureKind::Reset
        | FailureKind::Closed
        | FailureKind::HeadTimeout => true,
        FailureKind::Dns
        | FailureKind::Unreachable
        | FailureKind::Tls
        | FailureKind::Protocol
        | FailureKind::HeadTooLarge
        | FailureKind::RequestBody
        | FailureKind::BodyCut
        | FailureKind::BodyTimeout
        | FailureKind::Status
        | FailureKind::Body
        | FailureKind::Local
        | FailureKind::ClientGone
        | FailureKind::ClientBody
        | FailureKind::Deadline
        | FailureKind::Cancelled
        | FailureKind::Unprocessed
        | FailureKind::ClientDeadline
        | FailureKind::ShortDeadline
        | FailureKind::TryTimeout
        | FailureKind::RefusedStream => false,
    }
}

fn is_same_server(one: &Url, other: &Url) -> bool {
    (one.scheme, &one.host, one.port) == (other.scheme, &other.host, other.port)
}

/// Good answers are told up to 100 ms after they came. ConnectFailures asks for as long without one.
const LATELY: Duration = Duration::from_millis(500);

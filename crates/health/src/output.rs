//! What the core wants done. Effects leave as values and in order; drain them after each input.

use std::sync::Arc;
use std::time::Duration;

use model::active::{ProbeKind, ProbeRequest};
use model::address::Url;
use model::cluster::UpstreamTls;
use model::event::Event;
use model::id::{DestinationKey, Slot};
use model::time::Timestamp;
use model::upstream::{Outbound, UpstreamHttp};
use serde::{Deserialize, Serialize};

/// One effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Output {
    /// Start this probe now and answer with [`crate::Input::Probed`].
    Probe(ProbeOrder),
    /// Give this probe up; no answer is wanted (a late one is ignored).
    CancelProbe(Ticket),
    /// Something happened: for journal, log and counters. Numbered by the core, without gaps.
    Event(Event),
    /// [`crate::Core::view`] has changed in a way that traffic or readers must see. At most one is pending, behind the
    /// events it includes. Mere facts (probe times, counts) follow within 100 ms.
    Publish,
    /// This slot's destination is gone. Once the slot is quiet, say [`crate::Input::SlotQuiet`].
    FreeSlot(Slot),
}

/// Names one probe; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ticket(pub u64);

/// A probe to run, with all that it needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeOrder {
    /// Its name.
    pub ticket: Ticket,
    /// Whose.
    pub slot: Slot,
    /// Whose, in words.
    pub destination: DestinationKey,
    /// When it starts; its timeout counts from here.
    pub at: Timestamp,
    /// HTTP, TCP or gRPC.
    pub kind: ProbeKind,
    /// The HTTP that is spoken: the check's own, else the cluster's; always HTTP/2 for `grpc`.
    pub http: UpstreamHttp,
    /// The destination's `health`, else its `address`; path and query of `request` are appended to its path.
    pub base: Url,
    /// The destination's Host, when it has one. `request.host` goes before it; without both it is `base`'s authority.
    pub host: Option<String>,
    /// How long it may take in all.
    pub timeout: Duration,
    /// What is sent and expected.
    pub request: Arc<ProbeRequest>,
    /// TLS for https.
    pub tls: Arc<UpstreamTls>,
    /// Where its connection starts.
    pub outbound: Arc<Outbound>,
}

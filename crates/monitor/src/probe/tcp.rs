//! The TCP probe: a connection that comes up, and its TLS handshake when the URL says https.

use ::io::Io;
use ::io::deadline::Deadline;
use health::ProbeOrder;
use upstream::{Connector, Resolve, Target};

use super::ProbeEnd;

pub(super) async fn probe<I: Io, R: Resolve>(
    connector: &Connector<I, R>,
    order: &ProbeOrder,
    deadline: &Deadline<I>,
) -> ProbeEnd {
    let target = Target::of(&order.base, &order.tls, order.http, &order.outbound);
    match connector.connect_within(target, deadline).await {
        Ok(_) => ProbeEnd::passed(None),
        Err(error) => ProbeEnd::failed(error.kind, None),
    }
}

//! The TCP probe: a connection that comes up, and its TLS handshake when the URL says https.

use ::io::Io;
use health::ProbeOrder;
use model::time::Timestamp;
use upstream::{Connector, Resolve, Target};

use super::ProbeEnd;

pub(super) async fn probe<I: Io, R: Resolve>(
    connector: &Connector<I, R>,
    order: &ProbeOrder,
    deadline: Timestamp,
) -> ProbeEnd {
    let target = Target::of(&order.base, &order.tls, order.http, &order.outbound);
    match connector.connect(target, deadline).await {
        Ok(_) => ProbeEnd::passed(None),
        Err(error) => ProbeEnd::failed(error.kind, None),
    }
}

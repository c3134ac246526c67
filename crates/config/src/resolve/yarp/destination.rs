//! `Destinations`: the servers of a cluster.

use model::destination::{Destination, Tier};
use model::id::DestinationId;

use crate::raw::section::{Field, Reading};
use crate::resolve::native;

/// Resolves one destination.
pub fn resolve(r: &mut Reading<'_>, field: &Field<'_>) -> Option<Destination> {
    let mut s = field.section(r)?;
    let address = match s.take_filled(r, "Address", "address") {
        Some(address) => address.url(r),
        None => {
            let what = format!("destination `{}` has no address", field.name);
            r.error(field.key_span, what, "expected `Address`");
            None
        }
    };
    let health = s.take_filled(r, "Health", "health").and_then(|f| f.url(r));
    let host = s.take_filled(r, "Host", "host").and_then(|f| native::destination::host(r, &f));
    s.take(r, "Metadata");
    s.finish(r);
    Some(Destination {
        id: DestinationId::from(field.name.as_str()),
        address: address?,
        health,
        host,
        weight: 1,
        max_fails: None,
        tier: Tier::Primary,
        max_connections: None,
    })
}

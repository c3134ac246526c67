//! `Destinations`: the servers of a cluster.

use model::destination::{Destination, Tier};
use model::id::DestinationId;

use crate::raw::section::{Field, Reading};
use crate::resolve::matching;

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
    let host = match s.take_filled(r, "Host", "host") {
        Some(host) => match host.text(r) {
            Some(text) if matching::is_header_value(text) && !text.contains(' ') => Some(text.to_owned()),
            Some(text) => {
                host.refuse(r, format!("`{text}` is no host"), "expected a name, with :port if need be");
                None
            }
            None => None,
        },
        None => None,
    };
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

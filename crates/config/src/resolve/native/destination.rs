//! `destinations`: the servers of a cluster.

use std::num::NonZeroU32;

use model::destination::{Destination, Tier};
use model::id::DestinationId;
use model::passive::MaxFails;

use super::passive;
use crate::raw::section::{Field, Reading};
use crate::resolve::matching;

/// Resolves one destination.
pub fn resolve(r: &mut Reading<'_>, field: &Field<'_>) -> Option<Destination> {
    let mut s = field.section(r)?;
    let address = match s.take(r, "address") {
        Some(address) => address.url(r),
        None => {
            let what = format!("destination `{}` has no address", field.name);
            r.error(field.key_span, what, "expected `address: http://host:port/`");
            None
        }
    };
    let health = s.take(r, "health").and_then(|f| f.url(r));
    let host = s.take(r, "host").and_then(|f| host(r, &f));
    let weight = s.take(r, "weight").and_then(|f| f.whole(r, 0..=65_535)).and_then(|n| u32::try_from(n).ok());
    let written = passive::max_fails(r, &mut s);
    let is_backup = s.take(r, "backup").and_then(|f| f.flag(r)).unwrap_or(false);
    let max_connections = s.take(r, "max_connections").and_then(|f| f.whole_u32(r, 0)).and_then(NonZeroU32::new);
    s.take(r, "metadata");
    s.finish(r);
    Some(Destination {
        id: DestinationId::from(field.name.as_str()),
        address: address?,
        health,
        host,
        weight: weight.unwrap_or(1),
        max_fails: written.is_written().then(|| written.with(MaxFails::default())),
        max_connections,
        tier: if is_backup { Tier::Backup } else { Tier::Primary },
    })
}

/// What requests to a destination name as their Host.
pub fn host(r: &mut Reading<'_>, field: &Field<'_>) -> Option<String> {
    let text = field.text(r)?;
    if matching::is_header_value(text) && !text.contains(' ') {
        return Some(text.to_owned());
    }
    field.refuse(r, format!("`{text}` is no host"), "expected a name, with :port if need be");
    None
}

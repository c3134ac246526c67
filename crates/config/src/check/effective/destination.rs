//! Destinations, written down, each with the URL it is probed at.

use std::num::NonZeroU32;

use model::destination::{Destination, Tier};

use super::{Writer, optional, quoted};
use crate::check::facts::ProbeTarget;
use crate::timespan;

/// Writes one destination.
pub fn write(w: &mut Writer<'_>, destination: &Destination, probe: Option<&ProbeTarget>) {
    w.value("address", quoted(&destination.address.to_string()));
    w.value("health", optional(destination.health.as_ref().map(ToString::to_string).as_deref()));
    if let Some(probe) = probe {
        w.comment(&format!("probed at {}", probe.url));
    }
    w.value("host", optional(destination.host.as_deref()));
    w.value("weight", destination.weight.to_string());
    w.value("backup", (destination.tier == Tier::Backup).to_string());
    w.value("max_connections", destination.max_connections.map_or(0, NonZeroU32::get).to_string());
    if let Some(rule) = destination.max_fails {
        w.value("max_fails", rule.max_fails.to_string());
        w.value("fail_timeout", timespan::format(rule.fail_timeout));
    }
}

//! Lines for events: the core's texts at the core's levels, with their facts as one field.

use rhi::{Event, Level};

/// Writes the line of an event.
pub fn write(event: &Event) {
    match event.level() {
        Level::Info => tracing::info!(target: "rhi", "{event}"),
        Level::Warning => tracing::warn!(target: "rhi", "{event}"),
        Level::Error => tracing::error!(target: "rhi", "{event}"),
    }
}

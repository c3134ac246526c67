//! Turns the health core: probes, ticks, publishing.

//! Carries traffic: listeners, connections, the driver of the exchange.

//! The way to a destination: resolve, connect, TLS.

//! The Io trait: sockets and clock, real or simulated.

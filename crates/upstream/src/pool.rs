//! Idle connections to destinations.

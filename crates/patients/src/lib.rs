//! Misbehaving destinations for the demo and the tests.

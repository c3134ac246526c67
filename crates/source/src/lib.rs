//! Where configuration comes from.

//! Who of the available destinations serves.
#![forbid(unsafe_code)]

/// Picks among available destinations.
pub struct Picker;

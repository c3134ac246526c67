//! Files that a configuration names: [read](read_whole) whole, bounded, and without ever waiting for somebody else;
//! [opened for appending](append); and [whether that could be done](can_append), told without touching them.
#![forbid(unsafe_code)]

mod append;
mod read;

pub use append::{append, can_append, can_make};
pub use read::{read_given, read_text, read_whole};

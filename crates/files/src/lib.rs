//! Files that a configuration names: [read](read_whole) whole, bounded, and without ever waiting for somebody else;
//! [opened for appending](append); [unix sockets bound](socket::bind); and whether [that](can_append) or [that](socket::can_bind)
//! could be done, told without changing anything.
#![forbid(unsafe_code)]

mod append;
mod place;
mod read;
pub mod socket;

pub use append::{append, can_append};
pub use place::{can_keep, can_make_folder};
pub use read::{read_given, read_text, read_whole};

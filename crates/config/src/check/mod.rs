//! What `check` tells about a file that was taken.

pub mod warnings;

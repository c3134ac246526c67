//! Lazaret as a library.

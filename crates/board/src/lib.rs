//! What workers and the health core share.
#![forbid(unsafe_code)]

//! What the API answers, as types that both ends share: the handlers write them, `lazaret status` and its like read
//! them.
//!
//! Times are RFC 3339 with milliseconds, spans are whole milliseconds and say so in their names. Readers must ignore keys
//! that they do not know.

pub mod clusters;
pub mod event;
pub mod report;

mod clock;

pub use clock::Clock;

//! What both drivers of an exchange do alike: [`crate::turn`], for HTTP/1.1 on both sides, and [`crate::relay`], for all
//! else.
//!
//! ```text
//!   head ──> Walked::begin ──> Step … ──> Walked::tell(Input) ──> Step …      the machine, its snapshot, its reports
//!                                │ Wait                 ^
//!                                └─> waiting ───────────┘
//!   attempt ──> Walked::write_head, response_head                             its heads
//!   attempt ──> Bounds::poll ──> Late                                         who kept whom waiting for too long
//!   response ──> Delivered ──> end_of                                         what is told of its end
//! ```
//! How bytes move is each driver's own.

mod ended;
mod heads;
mod patience;
mod walked;

pub(crate) use self::ended::{Delivered, HOLD, SEND, end_of, unsent};
pub(crate) use self::heads::response_head;
pub(crate) use self::patience::{Bounds, ClientTime, Late, Since};
pub(crate) use self::walked::{Asker, BodyBounds, Walked, place};

//! Recordings of a real process: run again to the same bytes, or asked what another policy would have done.
//!
//! ```text
//!   recording ──> recorder::rerun ──> identical, or the first difference        [`text::rerun`], [`text::json`]
//!             └─> question: the same inputs, another passive block ──> answers [`text::answers`]
//! ```

pub mod question;

pub mod text;

//! HTTP/1.1 as a pure core: bytes in, bytes and facts out.
//!
//! Read in this order: what bytes may stand where ([`syntax`], and `scan` for many
//! at a time), field lines ([`fields`]), a request's head
//! ([`request`], [`target`]), a response's head ([`response`]), where a message ends ([`framing`], [`body`]), what a
//! connection may be switched to ([`upgrade`]), and what is written for the next hop ([`forward`]). In front of all of
//! that may stand what a relay says of the client ([`proxy_header`]).
//!
//! The parser is stricter than RFC 9112 asks a recipient to be: every leniency that the RFC merely allows (a lone LF,
//! folded lines, blanks before the colon, lists in `Transfer-Encoding`) is a way to make two parsers disagree, and a
//! proxy must never disagree with the hop behind it. Heads are never passed on as they came: they are parsed, judged
//! and written anew.
//!
//! Parsed heads hold offsets, not references, so that one head per thread is reused for ever and nothing is allocated
//! in steady state; a view ([`request::Request`], [`response::Response`]) joins them with their bytes.
#![forbid(unsafe_code)]

mod scan;
pub mod syntax;

pub mod fields;
pub mod limits;

pub mod error;

pub mod connection;
pub mod framing;

pub mod target;

pub mod request;

pub mod response;

pub mod body;
mod chunked;

pub mod upgrade;

pub mod forward;

pub mod changed;
mod forwarded;

pub mod proxy_header;

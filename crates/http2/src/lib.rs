//! HTTP/2 messages as HTTP/1.1 text and back: fields in, fields out.
//!
//! ```text
//!   http::request::Parts  ── request::write ──>  HTTP/1.1 text  ── http1 parses, judges, rewrites ──>  HTTP/1.1 text
//!   http::Request         <── request::read ───────────────────────────────────────────────────────────────┘
//! ```
//! HTTP/1.1 text is the form in which heads are judged and rewritten, whatever came in and whatever goes out: limits,
//! Host, framing and hop-by-hop rules are stated once, in `http1`. Here stands only what is HTTP/2's own (RFC 9113 8):
//! pseudo-header fields, fields that a connection may not have, cookie crumbs, trailers.
//!
//! What a conversion lets through is fit for the other version: text that [`request::write`] and [`response::write`]
//! made has one field per line and no line that was not a field, which the property tests and a fuzz target hold
//! against the parser of `http1`.
#![forbid(unsafe_code)]

pub mod error;

mod fields;

pub mod request;

pub mod response;

pub mod trailers;

mod sha1;
pub mod websocket;

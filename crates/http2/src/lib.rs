//! HTTP/2 messages to HTTP/1.1 and back (RFC 9113 8): fields in, fields out, no connection and no clock.
#![forbid(unsafe_code)]

//! `X-Forwarded-*` by the common rules: who asked, by which scheme, for which host.

use super::{RequestRewrite, Trust, write_field};
use crate::fields::Known;
use crate::request::Request;
use crate::syntax::write_address;

/// Appends them.
pub(crate) fn write_forwarded(out: &mut Vec<u8>, request: &Request<'_>, rewrite: &RequestRewrite<'_>) {
    out.extend_from_slice(b"X-Forwarded-For: ");
    let (mut has_proto, mut has_host) = (false, false);
    if rewrite.trust == Trust::Trusted {
        let mut has_for = false;
        for value in request.values(Known::ForwardedFor).filter(|value| !value.is_empty()) {
            has_for = true;
            out.extend_from_slice(value);
            out.extend_from_slice(b", ");
        }
        if !has_for && request.values(Known::Forwarded).next().is_some() && rewrite.client != rewrite.peer {
            write_address(out, rewrite.client);
            out.extend_from_slice(b", ");
        }
        has_proto = request.values(Known::ForwardedProto).next().is_some();
        has_host = request.values(Known::ForwardedHost).next().is_some();
    }
    write_address(out, rewrite.peer);
    if has_proto {
        out.extend_from_slice(b"\r\n");
    } else {
        out.extend_from_slice(b"\r\nX-Forwarded-Proto: ");
        out.extend_from_slice(rewrite.proto.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    if !has_host {
        let authority = request.authority();
        if !authority.is_empty() {
            write_field(out, b"X-Forwarded-Host", authority.as_bytes());
        }
    }
}

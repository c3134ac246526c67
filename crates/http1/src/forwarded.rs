//! `X-Forwarded-*` and `Forwarded` (RFC 7239) as a route's transforms want them.
//!
//! What came with the request counts from a trusted proxy only; from anybody else it ends here whatever the action is,
//! so that no client can speak for another one.

use std::fmt::Write as _;
use std::net::IpAddr;

use model::transform::{ForwardAction, Forwarded, ForwardedPart, NodeFormat, NodeName, NodePort, Plan, XForwarded};

use crate::changed::{Ends, is_trusted};
use crate::fields::{Fate, Known};
use crate::forward::{RequestRewrite, write_field, write_forwarded};
use crate::request::Request;
use crate::syntax::is_token;

/// Whether a field is one of those that the rules name.
pub(crate) fn is_named(rules: &XForwarded, name: &[u8]) -> bool {
    let Some((prefix, suffix)) = name.split_at_checked(rules.header_prefix.len()) else { return false };
    prefix.eq_ignore_ascii_case(rules.header_prefix.as_bytes())
        && ["for", "proto", "host", "prefix"].iter().any(|known| suffix.eq_ignore_ascii_case(known.as_bytes()))
}

/// Appends what names the client.
pub(crate) fn write(out: &mut Vec<u8>, request: &Request<'_>, rewrite: &RequestRewrite<'_>, plan: &Plan, ends: &Ends) {
    match (&plan.forwarded, &plan.x_forwarded) {
        (Some(rules), None) => write_standard(out, request, rewrite, rules, ends),
        (Some(rules), Some(others)) => {
            write_standard(out, request, rewrite, rules, ends);
            write_x(out, request, rewrite, others);
        }
        (None, Some(rules)) => write_x(out, request, rewrite, rules),
        (None, None) => write_forwarded(out, request, rewrite),
    }
}

fn write_x(out: &mut Vec<u8>, request: &Request<'_>, rewrite: &RequestRewrite<'_>, rules: &XForwarded) {
    let peer = rewrite.peer.to_canonical().to_string();
    let authority = request.authority();
    for (suffix, action, value) in [
        ("For", rules.address, Some(peer.as_str())),
        ("Proto", rules.proto, Some(rewrite.proto)),
        ("Host", rules.host, Some(authority).filter(|host| !host.is_empty())),
        ("Prefix", rules.prefix, None),
    ] {
        let name = format!("{}{suffix}", rules.header_prefix);
        let ours = value.map(str::as_bytes);
        put(out, request, rewrite, &name, action, ours);
    }
}

fn write_standard(
    out: &mut Vec<u8>,
    request: &Request<'_>,
    rewrite: &RequestRewrite<'_>,
    rules: &Forwarded,
    ends: &Ends,
) {
    let ours = element(request, rewrite, rules, ends);
    put(out, request, rewrite, "Forwarded", rules.action, Some(ours.as_bytes()).filter(|ours| !ours.is_empty()));
}

/// Writes one field: what came with it from a trusted proxy, ours, both or none.
fn put(
    out: &mut Vec<u8>,
    request: &Request<'_>,
    rewrite: &RequestRewrite<'_>,
    name: &str,
    action: ForwardAction,
    ours: Option<&[u8]>,
) {
    let mut value = Vec::new();
    let keeps_theirs = match action {
        ForwardAction::Append | ForwardAction::Off => is_trusted(rewrite),
        ForwardAction::Set | ForwardAction::Remove => false,
    };
    if keeps_theirs {
        for (field, found, text) in request.fields() {
            let is_it = found.eq_ignore_ascii_case(name.as_bytes()) && field.fate == Fate::ByName;
            if is_it && field.known != Known::Hop && !text.is_empty() {
                join(&mut value, text);
            }
        }
    }
    let adds_ours = match action {
        ForwardAction::Set | ForwardAction::Append => true,
        ForwardAction::Remove | ForwardAction::Off => false,
    };
    if let (true, Some(ours)) = (adds_ours, ours) {
        join(&mut value, ours);
    }
    if !value.is_empty() {
        write_field(out, name.as_bytes(), &value);
    }
}

fn join(value: &mut Vec<u8>, text: &[u8]) {
    if !value.is_empty() {
        value.extend_from_slice(b", ");
    }
    value.extend_from_slice(text);
}

/// One element of `Forwarded`.
fn element(request: &Request<'_>, rewrite: &RequestRewrite<'_>, rules: &Forwarded, ends: &Ends) -> String {
    let mut out = String::new();
    let mut draw = ends.random;
    for part in &rules.parts {
        let pair = match part {
            ForwardedPart::For(format) => Some(("for", node(*format, Some(rewrite.peer), ends.peer_port, &mut draw))),
            ForwardedPart::By(format) => {
                let (address, port) = (ends.local.map(|local| local.ip()), ends.local.map(|local| local.port()));
                Some(("by", node(*format, address, port, &mut draw)))
            }
            ForwardedPart::Proto => Some(("proto", rewrite.proto.to_owned())),
            ForwardedPart::Host => Some(("host", request.authority().to_owned())).filter(|(_, host)| !host.is_empty()),
        };
        let Some((name, value)) = pair else { continue };
        if !out.is_empty() {
            out.push(';');
        }
        // Writing to a String cannot fail.
        let _ = if value.bytes().all(is_token) {
            write!(out, "{name}={value}")
        } else {
            // Addresses, ports and hosts hold neither quotes nor backslashes.
            write!(out, "{name}=\"{value}\"")
        };
    }
    out
}

/// A node (RFC 7239 6): IPv6 in brackets, a port only where it is known.
fn node(format: NodeFormat, address: Option<IpAddr>, port: Option<u16>, draw: &mut u64) -> String {
    let mut text = match (format.name, address.map(|address| address.to_canonical())) {
        (NodeName::Random, _) => identifier(draw),
        (NodeName::Ip, Some(IpAddr::V6(address))) => format!("[{address}]"),
        (NodeName::Ip, Some(IpAddr::V4(address))) => address.to_string(),
        (NodeName::Ip, None) | (NodeName::Unknown, _) => "unknown".to_owned(),
    };
    // Writing to a String cannot fail.
    let _ = match (format.port, port) {
        (NodePort::None, _) | (NodePort::Port, None) => Ok(()),
        (NodePort::Port, Some(port)) => write!(text, ":{port}"),
        (NodePort::Random, _) => write!(text, ":{}", identifier(draw)),
    };
    text
}

/// An obfuscated identifier (RFC 7239 6.3), drawn on so that the next one is another.
fn identifier(draw: &mut u64) -> String {
    const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz012345";
    let mut bits = *draw;
    *draw = draw.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31) ^ 0x94d0_49bb_1331_11eb;
    let mut text = String::from("_");
    for _ in 0..9 {
        // Five bits are below the number of digits.
        text.push(char::from(DIGITS.get((bits & 31) as usize).copied().unwrap_or(b'a')));
        bits >>= 5;
    }
    text
}

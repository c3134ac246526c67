//! `Upgrade` (RFC 9110 7.8): which protocols a client offers, and whether a 101 accepts one of them.
//!
//! An offer counts when `Connection` names it and the client speaks HTTP/1.1. Protocols under which HTTP would go on
//! unseen (`h2c`, `HTTP/2.0`, `TLS/1.0`) are not offered to the destination: what followed their 101 would pass by every
//! rule of a route, and the request can be served without.

use crate::connection::Version;
use crate::fields::{Fate, Field, Known, Span};
use crate::request::Request;
use crate::response::Response;
use crate::syntax::{is_token, list};

/// Whether a request's fields offer a protocol that may be offered on.
pub(crate) fn is_offered(fields: &[Field], bytes: &[u8], version: Version) -> bool {
    version == Version::Http11
        && fields.iter().any(|field| is_offer(field) && protocols(field.value, bytes).count() > 0)
}

/// The protocols that the client offers and the destination may be offered, in the client's order.
pub fn offered<'a>(request: &Request<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let is_offered = request.offers_upgrade();
    let offers = request.fields().filter(move |(field, _, _)| is_offered && is_offer(field));
    offers.flat_map(|(_, _, value)| list(value).filter(|protocol| is_allowed(protocol)))
}

/// Whether a 101 switches to what was offered: it names at least one protocol, and none that was not offered.
pub fn is_accepted(request: &Request<'_>, response: &Response<'_>) -> bool {
    let mut named = 0;
    for (field, _, value) in response.fields() {
        if field.known != Known::Upgrade {
            continue;
        }
        for protocol in list(value) {
            named += 1;
            if !offered(request).any(|offer| offer.eq_ignore_ascii_case(protocol)) {
                return false;
            }
        }
    }
    named > 0
}

/// Appends `Connection` and `Upgrade` for the destination.
pub(crate) fn write_offer(out: &mut Vec<u8>, request: &Request<'_>) {
    out.extend_from_slice(b"Connection: upgrade\r\nUpgrade: ");
    write_list(out, offered(request));
}

/// Appends `Connection` and `Upgrade` for the client: what a 101 switches to, or what a 426 asks for.
pub(crate) fn write_demand(out: &mut Vec<u8>, response: &Response<'_>) {
    let named = || response.fields().filter(|(field, _, _)| field.known == Known::Upgrade);
    if named().next().is_some() {
        out.extend_from_slice(b"Connection: upgrade\r\nUpgrade: ");
        write_list(out, named().flat_map(|(_, _, value)| list(value)));
    }
}

fn write_list<'a>(out: &mut Vec<u8>, protocols: impl Iterator<Item = &'a [u8]>) {
    for (number, protocol) in protocols.enumerate() {
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(protocol);
    }
    out.extend_from_slice(b"\r\n");
}

fn is_offer(field: &Field) -> bool {
    field.known == Known::Upgrade && field.fate == Fate::Nominated
}

fn protocols(value: Span, bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    list(value.of(bytes)).filter(|protocol| is_allowed(protocol))
}

/// A protocol is `name` or `name/version`, each a token.
fn is_allowed(protocol: &[u8]) -> bool {
    let mut parts = protocol.split(|&byte| byte == b'/');
    let name = parts.next().unwrap_or_default();
    let is_word = |word: &[u8]| !word.is_empty() && word.iter().all(|&byte| is_token(byte));
    let is_well_formed = is_word(name) && parts.next().is_none_or(is_word) && parts.next().is_none();
    is_well_formed && !HTTP_INSIDE.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Names of protocols that carry HTTP.
const HTTP_INSIDE: [&[u8]; 5] = [b"h2c", b"h2", b"h3", b"HTTP", b"TLS"];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::limits::HeadLimits;
    use crate::request::RequestHead;
    use crate::response::{RequestKind, ResponseHead};

    fn with_request<T>(fields: &str, look: impl FnOnce(&Request<'_>) -> T) -> T {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let mut head = RequestHead::default();
        head.parse(text.as_bytes(), &HeadLimits::RESPONSE).unwrap();
        look(&head.view(text.as_bytes()))
    }

    fn offers(fields: &str) -> Vec<String> {
        with_request(fields, |request| {
            let found: Vec<_> = offered(request).map(|offer| String::from_utf8(offer.to_vec()).unwrap()).collect();
            assert_eq!(request.offers_upgrade(), !found.is_empty());
            found
        })
    }

    fn accepts(offer: &str, fields: &str) -> bool {
        let text = format!("HTTP/1.1 101 Switching\r\n{fields}\r\n");
        let mut head = ResponseHead::default();
        head.parse(text.as_bytes(), &HeadLimits::RESPONSE, RequestKind::Other).unwrap();
        let fields = format!("Connection: Upgrade\r\nUpgrade: {offer}\r\n");
        with_request(&fields, |request| is_accepted(request, &head.view(text.as_bytes())))
    }

    #[test]
    fn an_offer_needs_its_connection_option_and_a_protocol_that_hides_no_http() {
        assert_eq!(offers("Connection: Upgrade\r\nUpgrade: websocket\r\n"), ["websocket"]);
        assert_eq!(offers("Connection: keep-alive, upgrade\r\nUpgrade: foo/1, h2c, bar\r\n"), ["foo/1", "bar"]);
        assert_eq!(offers("Connection: upgrade\r\nUpgrade: a\r\nUpgrade: b\r\n"), ["a", "b"]);
        for nothing in [
            "Upgrade: websocket\r\n",
            "Connection: close\r\nUpgrade: websocket\r\n",
            "Connection: upgrade\r\n",
            "Connection: upgrade\r\nUpgrade:\r\n",
            "Connection: upgrade, http2-settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n",
            "Connection: upgrade\r\nUpgrade: H2C, TLS/1.0, HTTP/2.0, h2\r\n",
            "Connection: upgrade\r\nUpgrade: a/b/c, /1, a/, b c\r\n",
        ] {
            assert_eq!(offers(nothing), [""; 0], "{nothing:?}");
        }
    }

    #[test]
    fn a_101_must_name_what_was_offered_and_nothing_else() {
        assert!(accepts("websocket", "Connection: Upgrade\r\nUpgrade: WebSocket\r\n"));
        assert!(accepts("a/1, b", "Upgrade: b\r\n"));
        assert!(accepts("a/1, b", "Upgrade: a/1, b\r\n"));
        for refused in ["", "Upgrade: c\r\n", "Upgrade: b, c\r\n", "Upgrade: a\r\n", "Upgrade:\r\n", "Upgrade: h2c\r\n"]
        {
            assert!(!accepts("a/1, b, h2c", refused), "{refused:?}");
        }
    }
}

//! WebSocket over HTTP/2 (RFC 8441): an extended CONNECT as the HTTP/1.1 upgrade (RFC 6455 4) that it stands for.
//!
//! HTTP/2 needs no key, as its frames cannot be forged by a page; towards an HTTP/1.1 destination we play the client and
//! make one, and check what comes back, so that no answer of a cache is taken for a handshake.

use http::request::Parts;
use http::{HeaderName, Response, StatusCode, header};
use http1::forward::write_field;

use crate::error::Malformed;
use crate::request::{write_fields, write_start};
use crate::sha1::sha1;

/// A key: 16 random bytes in base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// From random bytes; they need not be secret.
    pub fn of(random: [u8; 16]) -> Self {
        Self(base64(&random))
    }

    /// Whether a 101 with these values of `Sec-WebSocket-Accept` comes from a server that has seen the key
    /// (RFC 6455 4.1).
    pub fn is_accepted<'a>(&self, mut accepts: impl Iterator<Item = &'a [u8]>) -> bool {
        let expected = accept(&self.0);
        accepts.next().is_some_and(|found| found == expected.as_bytes()) && accepts.next().is_none()
    }
}

/// The value of `Sec-WebSocket-Accept` for a key (RFC 6455 4.2.2).
pub fn accept(key: &str) -> String {
    base64(&sha1(format!("{key}{GUID}").as_bytes()))
}

/// Appends the upgrade as HTTP/1.1 text, the empty line included. `protocol` is the value of `:protocol`; anything but
/// `websocket` is not spoken here.
pub fn write(out: &mut Vec<u8>, parts: &Parts, protocol: &str, key: &Key) -> Result<(), Malformed> {
    if protocol != "websocket" {
        return Err(Malformed::Connect);
    }
    // DATA frames are the tunnel's: nothing may declare how many there are.
    if parts.headers.contains_key(header::CONTENT_LENGTH) {
        return Err(Malformed::ContentLength);
    }
    write_start(out, "GET", parts)?;
    let mut fields = parts.headers.clone();
    fields.remove(KEY);
    fields.remove(ACCEPT);
    write_fields(out, &fields)?;
    out.extend_from_slice(b"Connection: Upgrade\r\nUpgrade: websocket\r\n");
    write_field(out, b"Sec-WebSocket-Key", key.0.as_bytes());
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// What the client gets for the destination's 101: a 200 (RFC 8441 5), without what only HTTP/1.1 needs.
pub fn switched(mut response: Response<()>) -> Response<()> {
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().remove(ACCEPT);
    response
}

fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let number =
            group.iter().fold(0u32, |number, byte| (number << 8) | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = (number >> (18 - 6 * place)) as usize & 63;
            text.push(if place > group.len() {
                '='
            } else {
                ALPHABET.get(digit).map_or('=', |byte| char::from(*byte))
            });
        }
    }
    text
}

const KEY: HeaderName = header::SEC_WEBSOCKET_KEY;
const ACCEPT: HeaderName = header::SEC_WEBSOCKET_ACCEPT;
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_6455_is_accepted() {
        // RFC 6455 1.3
        let key = Key("dGhlIHNhbXBsZSBub25jZQ==".to_owned());
        assert_eq!(Key::of(*b"the sample nonce"), key);
        let good: &[u8] = b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
        assert!(key.is_accepted([good].into_iter()));
        assert!(!key.is_accepted([good, good].into_iter()));
        assert!(!key.is_accepted([&good[1..]].into_iter()));
        assert!(!key.is_accepted(std::iter::empty()));
    }

    #[test]
    fn base64_is_that_of_rfc_4648() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}

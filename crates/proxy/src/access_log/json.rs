//! The pieces of JSON (RFC 8259) that a log line is made of, appended to a buffer: nothing is allocated, and runs of
//! ordinary bytes are copied whole.

use std::io::Write as _;
use std::net::IpAddr;
use std::time::Duration;

/// A string in quotes.
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut start = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if !needs_escape(byte) {
            continue;
        }
        out.extend_from_slice(bytes.get(start..at).unwrap_or_default());
        escape(out, byte);
        start = at + 1;
    }
    out.extend_from_slice(bytes.get(start..).unwrap_or_default());
    out.push(b'"');
}

/// A string, or null.
pub(crate) fn string_or_null(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        Some(text) => string(out, text),
        None => out.extend_from_slice(b"null"),
    }
}

/// A whole number.
pub(crate) fn number(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    let mut rest = number;
    loop {
        start -= 1;
        if let Some(digit) = digits.get_mut(start) {
            *digit = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        }
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(start..).unwrap_or_default());
}

/// A span as milliseconds, to the microsecond, with as few digits as it takes and one behind the point at least.
pub(crate) fn millis(out: &mut Vec<u8>, span: Duration) {
    let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    number(out, micros / 1000);
    let mut rest = micros % 1000;
    let mut digits = 3;
    while digits > 1 && rest.is_multiple_of(10) {
        rest /= 10;
        digits -= 1;
    }
    out.push(b'.');
    padded(out, rest, digits);
}

/// An address as a string.
pub(crate) fn address(out: &mut Vec<u8>, address: IpAddr) {
    out.push(b'"');
    match address {
        IpAddr::V4(address) => {
            let mut is_first = true;
            for octet in address.octets() {
                if !std::mem::take(&mut is_first) {
                    out.push(b'.');
                }
                number(out, u64::from(octet));
            }
        }
        // Writing to memory never fails.
        IpAddr::V6(address) => drop(write!(out, "{address}")),
    }
    out.push(b'"');
}

/// `number` in so many digits, with zeros in front.
pub(crate) fn padded(out: &mut Vec<u8>, number: u64, digits: u32) {
    for place in (0..digits).rev() {
        let digit = number / 10_u64.pow(place) % 10;
        out.push(b'0' + u8::try_from(digit).unwrap_or_default());
    }
}

fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn escape(out: &mut Vec<u8>, byte: u8) {
    let letter = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        other => {
            // Writing to memory never fails.
            return drop(write!(out, "\\u{other:04x}"));
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}

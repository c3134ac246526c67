//! The pieces of JSON (RFC 8259) that a log line is made of, appended to a buffer: nothing is allocated, and runs of
//! ordinary bytes are copied whole.

use std::io::Write as _;
use std::net::IpAddr;
use std::time::Duration;

/// A string in quotes.
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    out.push(b'"');
    if is_plain(bytes) {
        out.extend_from_slice(bytes);
    } else {
        escaped(out, bytes);
    }
    out.push(b'"');
}

/// Whether nothing is to be escaped. Nearly all that is logged is so, and eight bytes are looked at at once.
fn is_plain(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().all(|word| !has_escape(u64::from_ne_bytes(*word))) && !rest.iter().any(|&byte| needs_escape(byte))
}

/// Whether a byte of `word` needs an escape. What is below a bound borrows its highest bit when that is subtracted; so
/// does zero, which a byte becomes where it equals what it is compared with.
fn has_escape(word: u64) -> bool {
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, 0x20) | equal(b'"') | equal(b'\\')) & HIGH != 0
}

#[cold]
fn escaped(out: &mut Vec<u8>, bytes: &[u8]) {
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
    let seconds = span.as_secs().min(u64::MAX / 2000);
    number(out, seconds * 1000 + u64::from(span.subsec_millis()));
    let digits = three_digits(span.subsec_micros() % 1000);
    let text: &[u8] = match &digits {
        [tenths, b'0', b'0'] => &[b'.', *tenths],
        [tenths, hundredths, b'0'] => &[b'.', *tenths, *hundredths],
        [tenths, hundredths, thousandths] => &[b'.', *tenths, *hundredths, *thousandths],
    };
    out.extend_from_slice(text);
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

/// A number below 1000 with zeros in front.
pub(crate) fn three_digits(number: u32) -> [u8; 3] {
    [number / 100, number / 10, number].map(|number| b'0' + u8::try_from(number % 10).unwrap_or_default())
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

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bytes_are_judged_as_each_of_them_is() {
        for (place, byte) in (0..8).flat_map(|place| (0..=u8::MAX).map(move |byte| (place, byte))) {
            for other in [b' ', b'a', 0x80, 0xff] {
                let mut word = [other; 8];
                word[place] = byte;
                assert_eq!(has_escape(u64::from_ne_bytes(word)), needs_escape(byte), "{word:?}");
            }
        }
    }
}

//! Where runs of bytes end, sixteen bytes at a time: heads are read byte by byte nowhere but at their ends.
//!
//! Each search has a rule for one byte ([`crate::syntax`]), which has the last word, and one for a block of sixteen bytes
//! that may raise a false alarm but never misses one. What is shorter than a block at the end of a text is looked at
//! together with the bytes before it.

use wide::u8x16;

use crate::syntax::{is_host, is_target, is_token, is_value};

/// The first byte that may not stand in a field name; the length when all may.
#[inline(always)]
pub(crate) fn end_of_name(bytes: &[u8]) -> usize {
    position(bytes, |block| !(letters(block) | equal(block, b'-')), |byte| !is_token(byte))
}

/// The first byte that may not stand in a field value; the length when all may.
#[inline(always)]
pub(crate) fn end_of_value(bytes: &[u8]) -> usize {
    position(bytes, controls, |byte| !is_value(byte))
}

/// The first CR or LF; the length when there is none.
#[inline(always)]
pub(crate) fn end_of_line(bytes: &[u8]) -> usize {
    position(bytes, controls, |byte| byte == b'\r' || byte == b'\n')
}

/// The first `wanted`; the length when there is none.
#[inline(always)]
pub(crate) fn find(bytes: &[u8], wanted: u8) -> usize {
    position(bytes, |block| equal(block, wanted), |byte| byte == wanted)
}

/// The first byte that may not stand in a request target; the length when all may.
#[inline(always)]
pub(crate) fn end_of_target(bytes: &[u8]) -> usize {
    position(bytes, |block| !usual(block), |byte| !is_target(byte))
}

/// The first byte that may not stand in a host name; the length when all may.
#[inline(always)]
pub(crate) fn end_of_host(bytes: &[u8]) -> usize {
    position(bytes, |block| !(letters(block) | digits_and_dots(block)), |byte| !is_host(byte))
}

/// The first byte for which `ends` holds, the length when there is none. Of a block only those that `may_end` points at
/// are asked.
#[inline(always)]
fn position(bytes: &[u8], may_end: impl Fn(u8x16) -> u8x16, ends: impl Fn(u8) -> bool) -> usize {
    let among = |block: &[u8; BLOCK], mut places: u32| {
        while places != 0 {
            // A mask of sixteen bits.
            let place = places.trailing_zeros() as usize % BLOCK;
            if ends(block[place]) {
                return Some(place);
            }
            places &= places - 1;
        }
        None
    };
    let (mut rest, mut at) = (bytes, 0);
    while let Some((block, after)) = rest.split_first_chunk::<BLOCK>() {
        if let Some(place) = among(block, may_end(u8x16::new(*block)).to_bitmask()) {
            return at + place;
        }
        rest = after;
        at += BLOCK;
    }
    let Some(last) = bytes.last_chunk::<BLOCK>() else {
        return bytes.iter().position(|&byte| ends(byte)).unwrap_or(bytes.len());
    };
    // Fewer than a block are left, so some of these were looked at before.
    let known = BLOCK - rest.len() % BLOCK;
    let places = (may_end(u8x16::new(*last)).to_bitmask() >> known) << known;
    among(last, places).map_or(bytes.len(), |place| bytes.len() - BLOCK + place)
}

/// Letters of either case.
#[inline(always)]
fn letters(block: u8x16) -> u8x16 {
    within(block | every(0x20), b'a', b'z')
}

/// Digits, dots and dashes.
#[inline(always)]
fn digits_and_dots(block: u8x16) -> u8x16 {
    within(block, b'0', b'9') | within(block, b'-', b'.')
}

/// The bytes between blank and DEL but for those that some rule refuses: no false alarm.
#[inline(always)]
fn usual(block: u8x16) -> u8x16 {
    let refused =
        equal(block, b'"') | equal(block, b'#') | equal(block, b'<') | equal(block, b'>') | equal(block, b'\\');
    within(block, b'!', b'~') & !refused
}

/// Bytes below 0x20, and 0x7f: no false alarm but tabs.
#[inline(always)]
fn controls(block: u8x16) -> u8x16 {
    within(block, 0, 0x1f) | equal(block, 0x7f)
}

#[inline(always)]
fn within(block: u8x16, first: u8, last: u8) -> u8x16 {
    let beyond = block - every(first);
    beyond.min(every(last - first)).simd_eq(beyond)
}

#[inline(always)]
fn equal(block: u8x16, byte: u8) -> u8x16 {
    block.simd_eq(every(byte))
}

#[inline(always)]
fn every(byte: u8) -> u8x16 {
    u8x16::splat(byte)
}

const BLOCK: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a search against its rule, with each byte at each place of runs of some lengths.
    fn check(run: u8, search: impl Fn(&[u8]) -> usize, ends: impl Fn(u8) -> bool) {
        for length in [0, 1, 7, 15, 16, 17, 31, 33] {
            let plain = vec![run; length];
            assert_eq!(search(&plain), length);
            for place in 0..length {
                for byte in 0..=255u8 {
                    let mut bytes = plain.clone();
                    bytes[place] = byte;
                    let naive = bytes.iter().position(|&byte| ends(byte)).unwrap_or(length);
                    assert_eq!(search(&bytes), naive, "{byte} at {place} of {length}");
                }
            }
        }
    }

    #[test]
    fn the_end_of_a_run_is_found_wherever_it_lies() {
        for run in [b'a', b'_', b'Z', b'9'] {
            check(run, end_of_name, |byte| !is_token(byte));
        }
        for run in [b'a', b'\t', b'\xff'] {
            check(run, end_of_value, |byte| !is_value(byte));
        }
        for run in [b'a', b'^'] {
            check(run, end_of_target, |byte| !is_target(byte));
        }
        for run in [b'a', b'.', b'_'] {
            check(run, end_of_host, |byte| !is_host(byte));
        }
        check(b'a', |bytes| find(bytes, b'?'), |byte| byte == b'?');
        check(b'a', end_of_line, |byte| byte == b'\r' || byte == b'\n');
    }

    #[test]
    fn no_place_of_a_block_is_passed_over_for_an_alarm_before_it() {
        let mut bytes = [b'\t'; 48];
        for end in 0..bytes.len() {
            bytes[end] = b'\r';
            assert_eq!(end_of_value(&bytes), end);
            bytes[end] = b'\t';
        }
        assert_eq!(end_of_value(&bytes), bytes.len());
    }
}

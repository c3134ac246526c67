//! Where runs of bytes end, eight bytes at a time: heads are read byte by byte nowhere but at their ends.
//!
//! Each search has a rule for one byte ([`crate::syntax`]), which has the last word, and one for a word of eight bytes
//! that may raise a false alarm but never misses one. In a word's verdict the highest bit of a byte that may end the run
//! is set (Anderson, "Bit Twiddling Hacks": hasless, hasmore, haszero).

use crate::syntax::{is_host, is_target, is_token, is_value};

/// The first byte that may not stand in a field name; the length when all may.
#[inline(always)]
pub(crate) fn end_of_name(bytes: &[u8]) -> usize {
    position(bytes, may_end_name, |byte| !is_token(byte)).unwrap_or(bytes.len())
}

/// The first byte that may not stand in a field value.
#[inline(always)]
pub(crate) fn end_of_value(bytes: &[u8]) -> Option<usize> {
    position(bytes, controls, |byte| !is_value(byte))
}

/// The first CR or LF.
pub(crate) fn end_of_line(bytes: &[u8]) -> Option<usize> {
    position(bytes, controls, |byte| byte == b'\r' || byte == b'\n')
}

/// The first `wanted`.
pub(crate) fn find(bytes: &[u8], wanted: u8) -> Option<usize> {
    position(bytes, |word| zeros(word ^ every(wanted)), |byte| byte == wanted)
}

/// Whether all bytes may stand in a request target.
pub(crate) fn is_all_target(bytes: &[u8]) -> bool {
    is_all(bytes, is_target)
}

/// Whether all bytes may stand in a host name.
pub(crate) fn is_all_host(bytes: &[u8]) -> bool {
    is_all(bytes, is_host)
}

/// One branch for eight bytes.
#[inline(always)]
fn is_all(bytes: &[u8], holds: impl Fn(u8) -> bool) -> bool {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let all = |bytes: &[u8]| bytes.iter().fold(true, |all, &byte| all & holds(byte));
    chunks.iter().all(|chunk| all(chunk)) && all(rest)
}

/// The first byte for which `ends` holds. Of eight bytes only those that `may_end` points at are asked.
#[inline(always)]
fn position(bytes: &[u8], may_end: impl Fn(u64) -> u64, ends: impl Fn(u8) -> bool) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let mut places = may_end(u64::from_le_bytes(*word));
        while places != 0 {
            // Below eight: there are 64 bits.
            let place = places.trailing_zeros() as usize / 8;
            if word.get(place).is_some_and(|&byte| ends(byte)) {
                return Some(at * 8 + place);
            }
            places &= places - 1;
        }
    }
    rest.iter().position(|&byte| ends(byte)).map(|place| words.len() * 8 + place)
}

/// All but letters and dashes, of which nearly all names consist.
fn may_end_name(word: u64) -> u64 {
    // With the highest bit out of the way no byte carries into its neighbour.
    let low = word & every(0x7f);
    let folded = low | every(0x20);
    // What is beyond `z` is beyond `a`, too, so that the two sums differ in the highest bit for letters alone.
    let letters = (folded + every(0x80 - b'a')) ^ (folded + every(0x7f - b'z'));
    let others = (low ^ every(b'-')) + every(0x7f);
    (!letters & others | word) & every(0x80)
}

/// Bytes below 0x20, and 0x7f: no false alarm but tabs.
fn controls(word: u64) -> u64 {
    let low = word & every(0x7f);
    // The first sum has the highest bit for all from 0x20 on, the second for 0x7f alone.
    (!(low + every(0x80 - b' ')) | (low + every(1))) & !word & every(0x80)
}

/// Bytes that are zero. Only above a true one may there be false alarms.
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(every(1)) & !word & every(0x80)
}

const fn every(byte: u8) -> u64 {
    u64::MAX / 0xff * byte as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a search against its rule, with each byte at each place of runs of each length.
    fn check(run: u8, search: impl Fn(&[u8]) -> Option<usize>, ends: impl Fn(u8) -> bool) {
        for length in 0..40 {
            let plain = vec![run; length];
            assert_eq!(search(&plain), None, "{length}");
            for place in 0..length {
                for byte in 0..=255u8 {
                    let mut bytes = plain.clone();
                    bytes[place] = byte;
                    let naive = bytes.iter().position(|&byte| ends(byte));
                    assert_eq!(search(&bytes), naive, "{byte} at {place} of {length}");
                }
            }
        }
    }

    #[test]
    fn the_end_of_a_run_is_found_wherever_it_lies() {
        check(b'a', |bytes| Some(end_of_name(bytes)).filter(|&end| end < bytes.len()), |byte| !is_token(byte));
        check(b'a', end_of_value, |byte| !is_value(byte));
        check(b'\t', end_of_value, |byte| !is_value(byte));
        check(b'_', |bytes| Some(end_of_name(bytes)).filter(|&end| end < bytes.len()), |byte| !is_token(byte));
        check(b'\xff', end_of_value, |byte| !is_value(byte));
        check(b'a', end_of_line, |byte| byte == b'\r' || byte == b'\n');
        check(b'a', |bytes| find(bytes, b'?'), |byte| byte == b'?');
    }

    #[test]
    fn targets_and_hosts_are_judged_by_every_byte() {
        let judged = |bytes: &[u8], is_good: bool, rule: fn(u8) -> bool| match is_good {
            true => None,
            false => bytes.iter().position(|&byte| !rule(byte)),
        };
        check(b'a', |bytes| judged(bytes, is_all_target(bytes), is_target), |byte| !is_target(byte));
        check(b'a', |bytes| judged(bytes, is_all_host(bytes), is_host), |byte| !is_host(byte));
    }
}

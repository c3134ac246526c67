//! The value of an affinity cookie under HashCookie, the same that YARP computes.

use xxhash_rust::xxh64::xxh64;

/// XXH64 (seed 0) over the upper-cased id in UTF-16LE, as 16 lower-case hex digits.
pub fn key(id: &str) -> String {
    let mut bytes = Vec::with_capacity(id.len() * 2);
    let mut units = [0; 2];
    for c in upper(id) {
        bytes.extend(c.encode_utf16(&mut units).iter().flat_map(|unit| unit.to_le_bytes()));
    }
    format!("{:016x}", xxh64(&bytes, 0))
}

/// XXH64 (seed 0) of some bytes: where they lie in 64 bits.
pub fn spread(bytes: &[u8]) -> u64 {
    xxh64(bytes, 0)
}

/// Upper case, character by character, as .NET's invariant culture does it: a character whose upper case is more than
/// one (ß) stays.
pub fn upper(id: &str) -> impl Iterator<Item = char> + '_ {
    id.chars().map(|c| {
        let mut all = c.to_uppercase();
        match (all.next(), all.next()) {
            (Some(one), None) => one,
            (Some(_) | None, Some(_) | None) => c,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_yarp() {
        assert_eq!(key("dest-B"), "53c079ed4c377b0d");
        assert_eq!(key("DEST-b"), "53c079ed4c377b0d");
        assert_eq!(key("").len(), 16);
        assert_eq!(upper("straße").collect::<String>(), "STRAßE");
    }
}

//! SHA-1 (RFC 3174), which RFC 6455 asks for in its handshake. It proves nothing there that would need a good hash: only
//! that the other side has read the key.

/// The digest.
pub(crate) fn sha1(message: &[u8]) -> [u8; 20] {
    let mut state = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % BLOCK != BLOCK - 8 {
        padded.push(0);
    }
    padded.extend_from_slice(&(message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(BLOCK) {
        state = round(state, block);
    }
    let mut digest = [0; 20];
    for (place, word) in digest.chunks_exact_mut(4).zip(state) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

fn round(state: [u32; 5], block: &[u8]) -> [u32; 5] {
    // The last sixteen words of the schedule, as a ring (RFC 3174 6.2): every index below is less than 16.
    let mut words = [0u32; 16];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, byte| (word << 8) | u32::from(*byte));
    }
    let [mut a, mut b, mut c, mut d, mut e] = state;
    for t in 0..80 {
        let at = |back: usize| words[(t + 16 - back) % 16];
        let word = if t < 16 { words[t] } else { (at(3) ^ at(8) ^ at(14) ^ at(16)).rotate_left(1) };
        words[t % 16] = word;
        let (f, k) = match t {
            0..20 => ((b & c) | (!b & d), 0x5a82_7999),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6u32),
        };
        let next = a.rotate_left(5).wrapping_add(f).wrapping_add(e).wrapping_add(k).wrapping_add(word);
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
    }
    let [h0, h1, h2, h3, h4] = state;
    [h0.wrapping_add(a), h1.wrapping_add(b), h2.wrapping_add(c), h3.wrapping_add(d), h4.wrapping_add(e)]
}

const BLOCK: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digests_of_rfc_3174_come_out() {
        // RFC 3174 7.3
        let hex = |message: &[u8]| sha1(message).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let two_blocks = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(hex(two_blocks), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
        assert_eq!(hex(&[b'a'; 1_000_000]), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    }
}

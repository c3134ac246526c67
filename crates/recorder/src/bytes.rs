//! Numbers as few bytes: seven bits a byte, the lowest first, the eighth says that more follow. And a checksum.

/// Writes numbers and texts.
#[derive(Debug, Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(crate) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push((number as u8 & 0x7f) | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// `to` as its way from `from`, either way round; short for what is near.
    pub(crate) fn step(&mut self, from: u64, to: u64) {
        let way = to.wrapping_sub(from) as i64;
        self.number(((way << 1) ^ (way >> 63)) as u64);
    }

    pub(crate) fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text);
    }
}

/// Reads what a [`Writer`] wrote; `None` where it ends too early or makes no sense.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for place in 0..10 {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit.
            if place == 9 && bits > 1 {
                return None;
            }
            number |= bits << (7 * place);
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    pub(crate) fn step(&mut self, from: u64) -> Option<u64> {
        let way = self.number()?;
        let way = ((way >> 1) as i64) ^ -((way & 1) as i64);
        Some(from.wrapping_add(way as u64))
    }

    pub(crate) fn text(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(text)
    }
}

/// FNV-1a, 64 bits: tells a damaged file, not a forged one.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_steps_come_back_at_every_length() {
        let numbers = (0..64).flat_map(|bits| [(1_u64 << bits) - 1, 1 << bits, u64::MAX - (1 << bits)]);
        let numbers: Vec<u64> = numbers.chain([u64::MAX]).collect();
        let mut writer = Writer::default();
        numbers.iter().for_each(|number| writer.number(*number));
        numbers.iter().zip(numbers.iter().rev()).for_each(|(from, to)| writer.step(*from, *to));
        writer.text(b"text");
        let mut reader = Reader(&writer.0);
        numbers.iter().for_each(|number| assert_eq!(reader.number(), Some(*number)));
        numbers.iter().zip(numbers.iter().rev()).for_each(|(from, to)| assert_eq!(reader.step(*from), Some(*to)));
        assert_eq!(reader.text(), Some(b"text".as_slice()));
        assert!(reader.is_over());
        assert_eq!(reader.number(), None);
        assert_eq!(Reader(&[0xff; 10]).number(), None);
        assert_eq!(Reader(&[9, 1]).text(), None);
    }
}

//! A set of destination indexes that allocates only from the 65th destination on.

use model::id::DestinationIndex;

/// Which destinations of a cluster a request has tried, or may not use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexSet {
    low: u64,
    /// Bits from 64 on; empty unless one of them was set.
    high: Vec<u64>,
}

impl IndexSet {
    /// Adds an index.
    pub fn insert(&mut self, index: DestinationIndex) {
        let (word, bit) = place(index);
        match word.checked_sub(1) {
            None => self.low |= bit,
            Some(word) => {
                if self.high.len() <= word {
                    self.high.resize(word + 1, 0);
                }
                if let Some(word) = self.high.get_mut(word) {
                    *word |= bit;
                }
            }
        }
    }

    /// Whether an index is in it.
    pub fn contains(&self, index: DestinationIndex) -> bool {
        let (word, bit) = place(index);
        let word = match word.checked_sub(1) {
            None => self.low,
            Some(word) => self.high.get(word).copied().unwrap_or(0),
        };
        word & bit != 0
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.low == 0 && self.high.iter().all(|&word| word == 0)
    }
}

fn place(index: DestinationIndex) -> (usize, u64) {
    (index.index() / 64, 1 << (index.0 % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_was_put_in_on_both_sides_of_64() {
        let mut set = IndexSet::default();
        assert!(set.is_empty());
        for index in [0, 63, 64, 127, 1000] {
            assert!(!set.contains(DestinationIndex(index)));
            set.insert(DestinationIndex(index));
            assert!(set.contains(DestinationIndex(index)));
        }
        assert!(!set.contains(DestinationIndex(1)) && !set.contains(DestinationIndex(65)));
        assert!(!set.is_empty());
    }
}

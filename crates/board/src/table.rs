//! A table that grows by chunks while others read it: no lock, no move, so no unsafe.

use std::array;
use std::sync::OnceLock;

/// Entries by number. A chunk comes into being when one of its entries is first written to.
pub(crate) struct Table<T> {
    chunks: Box<[OnceLock<Box<[T; CHUNK]>>]>,
}

impl<T: Default> Table<T> {
    pub(crate) fn new() -> Self {
        Self { chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect() }
    }

    /// The entry, when its chunk exists.
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        let number = number as usize;
        self.chunks.get(number / CHUNK)?.get()?.get(number % CHUNK)
    }

    /// The entry, with its chunk made when need be; `None` beyond the last.
    pub(crate) fn grow(&self, number: u32) -> Option<&T> {
        let number = number as usize;
        let chunk = self.chunks.get(number / CHUNK)?;
        chunk.get_or_init(|| Box::new(array::from_fn(|_| T::default()))).get(number % CHUNK)
    }

    /// Every entry of the chunks that exist.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u32, &T)> {
        let chunks = self.chunks.iter().enumerate().filter_map(|(at, chunk)| Some((at, chunk.get()?)));
        // The product stays below ENTRIES, a u32.
        chunks.flat_map(|(at, chunk)| chunk.iter().enumerate().map(move |(i, entry)| ((at * CHUNK + i) as u32, entry)))
    }
}

/// How many entries a table can have.
pub(crate) const ENTRIES: u32 = (CHUNK * CHUNKS) as u32;

#[cfg(not(loom))]
const CHUNK: usize = 256;
#[cfg(not(loom))]
const CHUNKS: usize = 256;

// Loom tracks every atomic by itself.
#[cfg(loom)]
const CHUNK: usize = 1;
#[cfg(loom)]
const CHUNKS: usize = 2;

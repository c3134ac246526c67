//! The first bytes of a response's body, left where they were read.
//!
//! One read takes the head and what is there of the body, of most answers all. The body stays in the worker's buffer, the
//! head that the client gets is put in front of it, and both leave in one write: the body is copied by the kernel alone.
//!
//! ```text
//!   read:   [ room | head as it came | body ........ ]
//!   write:     [ head for the client | body ........ ]
//! ```
//! The buffer is everybody's: the bytes lie there until the worker reads again, which no exchange does between its
//! response's head and the beginning of the delivery. Who needs them for longer takes them out.

use std::ops::Range;

/// A part of the worker's buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Front {
    start: usize,
    end: usize,
}

impl Front {
    /// What lies there.
    pub(crate) fn new(range: Range<usize>) -> Self {
        Self { start: range.start, end: range.end }
    }

    /// Its length.
    pub(crate) fn len(&self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Whether nothing was left.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its first `length` bytes.
    pub(crate) fn up_to(&self, length: usize) -> Self {
        Self { start: self.start, end: self.end.min(self.start.saturating_add(length)) }
    }

    /// The bytes.
    pub(crate) fn of<'b>(&self, buffer: &'b [u8]) -> &'b [u8] {
        buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// The bytes with `head` put in front of them; `None`: there is no room.
    pub(crate) fn behind<'b>(&self, head: &[u8], buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let start = self.start.checked_sub(head.len())?;
        buffer.get_mut(start..self.start)?.copy_from_slice(head);
        buffer.get(start..self.end)
    }
}

/// Left free before what is read, for a head that is longer than the one that came.
pub(crate) const ROOM: usize = 1024;
/// Read at most with a head. Most answers are shorter; what comes of a large one later need not come into the process.
pub(crate) const MOST: usize = 32 * 1024;
/// Less than this is copied at no cost that shows.
pub(crate) const LEAST: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_goes_directly_before_the_body() {
        let mut buffer = *b"....HEADbody..";
        let front = Front::new(8..12);
        assert_eq!((front.len(), front.of(&buffer)), (4, &b"body"[..]));
        assert_eq!(front.behind(b"longer", &mut buffer), Some(&b"longerbody"[..]));
        assert_eq!(front.up_to(2).behind(b"h", &mut buffer), Some(&b"hbo"[..]));
        assert_eq!(front.behind(b"123456789", &mut buffer), None);
        assert!(front.up_to(0).is_empty() && Front::default().is_empty());
    }
}

//! The text of one file: decoded once, with the arithmetic from byte offsets to lines and columns.
//!
//! What is no text is refused here, so that no parser ever sees it: more than 16 MiB, invalid UTF-8, nothing at all. A
//! byte order mark is dropped; CRLF stays and counts as part of its line's end.

use std::fmt;
use std::sync::Arc;

use crate::report::Diagnostic;

/// Largest file that is read.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;

/// A file's name and text. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Source {
    name: Arc<str>,
    text: Arc<str>,
    line_starts: Arc<[u32]>,
}

/// A range of bytes of a [`Source`]'s text; `start <= end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset behind the last byte.
    pub end: u32,
}

/// A place for people: both numbers start at 1, columns count characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Position {
    /// Line.
    pub line: u32,
    /// Character within the line.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl Span {
    /// From byte offsets; an end before the start counts as the start.
    pub fn new(start: usize, end: usize) -> Self {
        let clip = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: clip(start), end: clip(end.max(start)) }
    }

    /// From the first byte of both to the last.
    #[must_use]
    pub fn cover(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The range, for slicing.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl Source {
    /// Decodes a file.
    pub fn new(name: &str, bytes: &[u8]) -> Result<Self, Box<(Self, Diagnostic)>> {
        let refuse = |diagnostic: Diagnostic| Box::new((Self::of_text(name, ""), diagnostic));
        if bytes.len() > MAX_BYTES {
            let found = format!("the file has {} bytes", bytes.len());
            return Err(refuse(Diagnostic::error(found).help("a configuration has at most 16 MiB")));
        }
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self::of_text(name, text)),
            Err(error) => {
                let good = String::from_utf8_lossy(bytes.get(..error.valid_up_to()).unwrap_or_default());
                let source = Self::of_text(name, &format!("{good}\u{fffd}"));
                let at = Span::new(good.len(), good.len() + '\u{fffd}'.len_utf8());
                let diagnostic = Diagnostic::error("the file is not UTF-8")
                    .at(&source, at)
                    .label(format!("byte {} begins no character", error.valid_up_to()));
                Err(Box::new((source, diagnostic)))
            }
        }
    }

    /// From text that is already decoded.
    pub fn of_text(name: &str, text: &str) -> Self {
        let starts = std::iter::once(0)
            .chain(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1))
            .map(|at| u32::try_from(at).unwrap_or(u32::MAX));
        Self { name: name.into(), text: text.into(), line_starts: starts.collect() }
    }

    /// Name of the file, as given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name, shared.
    pub fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// The text, without byte order mark.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text of `span`; empty when the span does not lie on characters.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or("")
    }

    /// `span`, moved into the text and onto character boundaries.
    pub fn clip(&self, span: Span) -> Span {
        let floor = |offset: u32| {
            let mut at = (offset as usize).min(self.text.len());
            while !self.text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        Span::new(floor(span.start), floor(span.end))
    }

    /// The line of a byte offset, counted from 1.
    pub fn line(&self, offset: u32) -> u32 {
        u32::try_from(self.line_starts.partition_point(|&start| start <= offset).max(1)).unwrap_or(u32::MAX)
    }

    /// The bytes of all lines that `span` touches, without the last line's end.
    pub fn lines_of(&self, span: Span) -> Span {
        let first = self.line(span.start).saturating_sub(1) as usize;
        let start = self.line_starts.get(first).copied().unwrap_or(0);
        let end = self.line_starts.get(self.line(span.end) as usize).map_or(self.text.len(), |&next| next as usize);
        let line = self.slice(Span::new(start as usize, end));
        Span::new(start as usize, start as usize + line.trim_end_matches(['\n', '\r']).len())
    }

    /// Line and column of a byte offset.
    pub fn position(&self, offset: u32) -> Position {
        let offset = self.clip(Span { start: offset, end: offset }).start;
        let line = self.line(offset);
        let start = self.line_starts.get(line.saturating_sub(1) as usize).copied().unwrap_or(0);
        let column = self.slice(Span { start, end: offset }).chars().count() + 1;
        Position { line, column: u32::try_from(column).unwrap_or(u32::MAX) }
    }

    /// The byte offset of a line and column, both counted from 1; the end of the text when there is no such place.
    pub fn offset(&self, line: u64, column: u64) -> usize {
        let start = usize::try_from(line.saturating_sub(1)).ok().and_then(|n| self.line_starts.get(n));
        let Some(start) = start.map(|&start| start as usize) else {
            return self.text.len();
        };
        let skip = usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX);
        let rest = self.text.get(start..).unwrap_or("");
        rest.char_indices().nth(skip).map_or(self.text.len(), |(at, _)| start + at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_become_lines_and_columns_in_characters() {
        let source = Source::of_text("f", "aé\nb\r\nc");
        for (offset, shown) in [(0, "1:1"), (1, "1:2"), (3, "1:3"), (4, "2:1"), (7, "3:1"), (8, "3:2"), (99, "3:2")] {
            assert_eq!(source.position(offset).to_string(), shown, "{offset}");
        }
        assert_eq!(source.offset(2, 1), 4);
        assert_eq!(source.offset(9, 1), 8);
    }
}

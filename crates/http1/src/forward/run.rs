//! Lines that go on as they came: copied in runs, as few times as can be.

use super::{RequestRewrite, write_field};
use crate::fields::{Field, Known, Section, Span};

/// Copies lines of a head that go on. One that is spelled as it would be written, which nearly all are, is copied together
/// with its neighbours: the bytes are the same, and they were judged one by one.
pub(super) struct Run<'a> {
    bytes: &'a [u8],
    /// What is to be copied next.
    lines: Span,
}

impl<'a> Run<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, lines: Span::default() }
    }

    /// With the start line.
    pub(super) fn begin(&mut self, line: Span) {
        self.lines = line;
    }

    /// All of these lines, which lie behind the others.
    pub(super) fn copy_all(&mut self, out: &mut Vec<u8>, lines: Span) {
        match self.lines.joined(lines) {
            Some(both) => self.lines = both,
            None => {
                self.end(out);
                self.lines = lines;
            }
        }
    }

    #[inline(always)]
    pub(super) fn copy(&mut self, out: &mut Vec<u8>, field: &Field) {
        match field.line() {
            Some(line) => self.copy_all(out, line),
            None => {
                self.end(out);
                write_field(out, field.name.of(self.bytes), field.value.of(self.bytes));
            }
        }
    }

    /// Those of these lines that go on.
    pub(super) fn copy_each(&mut self, out: &mut Vec<u8>, fields: &[Field], goes_on: impl Fn(&Field) -> bool) {
        for field in fields.iter().filter(|field| goes_on(field)) {
            self.copy(out, field);
        }
    }

    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(std::mem::take(&mut self.lines).of(self.bytes));
    }
}

/// Whether the Host that is to be said stands there, as it would be written.
pub(super) fn is_host(field: &Field, bytes: &[u8], rewrite: &RequestRewrite<'_>) -> bool {
    field.known == Known::Host
        && field.name.of(bytes) == b"Host"
        && field.line().is_some()
        && field.value.of(bytes) == rewrite.host.as_bytes()
}

/// Whether one field declares the length, in the digits in which it would be written.
pub(super) fn has_usual_length(bytes: &[u8], section: &Section) -> bool {
    let value = section.only(Known::ContentLength).map(|field| field.value.of(bytes));
    match value {
        Some(b"0") => true,
        Some([b'1'..=b'9', digits @ ..]) => digits.iter().all(u8::is_ascii_digit),
        Some(_) | None => false,
    }
}

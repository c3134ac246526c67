//! Field lines (RFC 9112 5): where the parts of one are in its head, what its name means to a proxy (`known`), and the
//! strict pass over all of them (`section`).

mod known;
mod section;

pub(crate) use known::Kinds;
pub use known::{Known, may_be_trailer};
pub(crate) use section::Section;

/// A part of a head, by offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    start: u32,
    len: u32,
}

impl Span {
    /// From offsets. Heads are far shorter than 4 GiB: their limits are checked first.
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, len: end.saturating_sub(start) as u32 }
    }

    /// The bytes it stands for; empty when `bytes` is not the head it was made from.
    pub fn of(self, bytes: &[u8]) -> &[u8] {
        let start = self.start as usize;
        bytes.get(start..start + self.len as usize).unwrap_or_default()
    }

    /// The bytes from the start of this one to the end of `last`, and so many behind it.
    pub(crate) fn through(self, last: Self, more: usize) -> Self {
        Self::new(self.start as usize, (last.start + last.len) as usize + more)
    }

    /// The text it stands for.
    pub(crate) fn of_text(self, text: &str) -> &str {
        let start = self.start as usize;
        text.get(start..start + self.len as usize).unwrap_or_default()
    }

    /// The two together, where `next` begins where this one ends.
    pub(crate) fn joined(self, next: Self) -> Option<Self> {
        self.is_followed_by(next).then(|| self.through(next, 0))
    }

    /// Whether `next` begins where this one ends.
    fn is_followed_by(self, next: Self) -> bool {
        self.start + self.len == next.start
    }

    /// Whether it holds no byte.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// One field line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name as it came.
    pub name: Span,
    /// Its value, trimmed.
    pub value: Span,
    /// What the name means to a proxy.
    pub known: Known,
    /// Whether `Connection` names it: it ends here (RFC 9110 7.6.1).
    pub fate: Fate,
    /// Whether the line came as it would be written.
    pub(crate) form: Form,
}

impl Field {
    /// The whole line with its end, where it came as it would be written.
    pub(crate) fn line(&self) -> Option<Span> {
        match self.form {
            Form::Usual => Some(self.name.through(self.value, CRLF)),
            Form::Other => None,
        }
    }
}

/// How a field line is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Name, colon, one blank, value, CRLF: writing it anew gives the same bytes.
    Usual,
    /// With other blanks.
    Other,
}

/// Whether a field goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// As its name has it.
    ByName,
    /// Named by `Connection`: it ends here.
    Nominated,
}

const CRLF: usize = 2;

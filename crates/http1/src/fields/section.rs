//! One head's fields: one strict pass that leaves offsets, and what is asked of them by name.

use super::known::Kinds;
use super::{CRLF, Fate, Field, Form, Known, Span};
use crate::error::FieldError;
use crate::limits::HeadLimits;
use crate::scan::{end_of_name, end_of_value};

/// The fields of one head. Reused; keeps its memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    fields: Vec<Field>,
    /// A bit for each [`Known`] that is among them: most questions are about fields that are not there.
    seen: u32,
    /// A bit for each [`Known`] that is among them more than once.
    repeated: u32,
    /// Where the last one of each [`Known`] is; it counts where `seen` has its bit.
    places: [u32; Known::COUNT],
    /// Whether some line is not as it would be written, or ends here because `Connection` names it.
    is_uneven: bool,
}

impl Section {
    /// Parses field lines from `start` up to and with the empty line. `Ok(None)`: more bytes are needed.
    pub(crate) fn parse(
        &mut self,
        bytes: &[u8],
        start: usize,
        limits: &HeadLimits,
    ) -> Result<Option<usize>, FieldError> {
        self.fields.clear();
        self.seen = 0;
        self.repeated = 0;
        self.is_uneven = false;
        let section = bytes.get(start..).unwrap_or_default();
        let mut rest = section;
        loop {
            let at = bytes.len() - rest.len();
            if at - start > limits.bytes {
                return Err(FieldError::TooLarge);
            }
            let colon = end_of_name(rest);
            let (name, after) = match rest.split_at_checked(colon) {
                Some((name, [b':', after @ ..])) if !name.is_empty() => (name, after),
                _ => return no_field(rest, colon, section, limits).map(|end| end.map(|end| start + end)),
            };
            let length = end_of_value(after);
            let Some((raw, next)) = after.split_at_checked(length) else { return partial(section, limits) };
            let [b'\r', b'\n', next @ ..] = next else { return no_end(next, section, limits) };
            if self.fields.len() == limits.fields {
                return Err(FieldError::TooMany);
            }
            let (value, form) = trim(raw, at + colon + 1);
            if form == Form::Other {
                self.is_uneven = true;
            }
            let known = Known::of(name);
            if known != Known::Other {
                self.note(known);
            }
            self.fields.push(Field { name: Span::new(at, at + colon), value, known, fate: Fate::ByName, form });
            rest = next;
        }
    }

    /// The field that comes next means something.
    fn note(&mut self, known: Known) {
        self.repeated |= self.seen & known.bit();
        self.seen |= known.bit();
        if let Some(place) = self.places.get_mut(known as usize) {
            // Heads have far fewer lines: their limits are checked first.
            *place = self.fields.len() as u32;
        }
    }

    /// The one field with this name; `None` when there is none, or more than one.
    #[inline]
    pub(crate) fn only(&self, known: Known) -> Option<&Field> {
        let is_alone = self.seen & !self.repeated & known.bit() != 0;
        let place = self.places.get(known as usize).filter(|_| is_alone)?;
        self.fields.get(*place as usize)
    }

    /// The lines from the one at `first` on as they came, where all of them go on and none is of the kinds that end here:
    /// they can be copied as one. `None`: each is to be asked.
    pub(crate) fn whole(&self, first: usize, ending: Kinds) -> Option<Span> {
        if self.is_uneven || self.seen & ending.0 != 0 {
            return None;
        }
        let (first, last) = (self.fields.get(first)?, self.fields.last()?);
        Some(first.name.through(last.value, CRLF))
    }

    /// Whether such a field is there.
    pub(crate) fn has(&self, known: Known) -> bool {
        self.seen & known.bit() != 0
    }

    /// The fields with a known name, in order.
    pub(crate) fn all(&self, known: Known) -> impl Iterator<Item = &Field> {
        let fields = if self.has(known) { self.fields.as_slice() } else { &[] };
        fields.iter().filter(move |field| field.known == known)
    }

    /// Their values.
    pub(crate) fn values<'b>(&self, bytes: &'b [u8], known: Known) -> impl Iterator<Item = &'b [u8]> {
        self.all(known).map(|field| field.value.of(bytes))
    }

    /// All of them, in order.
    pub(crate) fn as_slice(&self) -> &[Field] {
        &self.fields
    }

    /// The same, to mark those that end here.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [Field] {
        self.is_uneven = true;
        &mut self.fields
    }
}

/// A line that does not begin with a name and a colon: the empty line at the section's end, or a fault, or there is more
/// to come.
#[cold]
fn no_field(line: &[u8], name: usize, section: &[u8], limits: &HeadLimits) -> Result<Option<usize>, FieldError> {
    match line {
        [b'\r', b'\n', rest @ ..] => {
            let end = section.len() - rest.len();
            if end > limits.bytes { Err(FieldError::TooLarge) } else { Ok(Some(end)) }
        }
        [] | [b'\r'] => partial(section, limits),
        [b'\r' | b'\n', ..] => Err(FieldError::LineEnd),
        [b' ' | b'\t', ..] => Err(FieldError::Folded),
        [_, ..] => match line.get(name) {
            None => partial(section, limits),
            Some(b' ' | b'\t') => Err(FieldError::BlankBeforeColon),
            Some(_) => Err(FieldError::Name),
        },
    }
}

/// A value that does not end as a line does.
#[cold]
fn no_end(rest: &[u8], section: &[u8], limits: &HeadLimits) -> Result<Option<usize>, FieldError> {
    match rest {
        [] | [b'\r'] => partial(section, limits),
        [b'\r' | b'\n', ..] => Err(FieldError::LineEnd),
        [_, ..] => Err(FieldError::Value),
    }
}

/// What is full and still not complete cannot become complete within the limit.
#[cold]
fn partial(section: &[u8], limits: &HeadLimits) -> Result<Option<usize>, FieldError> {
    if section.len() >= limits.bytes { Err(FieldError::TooLarge) } else { Ok(None) }
}

/// The value in `raw`, which begins at `start`, without blanks around it, and how it is spelled. It holds no control but
/// tabs.
#[inline(always)]
fn trim(raw: &[u8], start: usize) -> (Span, Form) {
    // Of bytes that may stand in a value only blank and tab are not beyond the blank.
    if let ([b' ', rest @ ..], Some(last)) = (raw, raw.last())
        && rest.first().is_some_and(|first| *first > b' ')
        && *last > b' '
    {
        return (Span::new(start + 1, start + raw.len()), Form::Usual);
    }
    trim_all(raw, start)
}

#[cold]
fn trim_all(raw: &[u8], start: usize) -> (Span, Form) {
    let is_blank = |byte: &u8| *byte == b' ' || *byte == b'\t';
    let before = raw.iter().take_while(|byte| is_blank(byte)).count();
    let behind = raw.iter().rev().take_while(|byte| is_blank(byte)).count();
    let length = raw.len().saturating_sub(before + behind);
    (Span::new(start + before, start + before + length), Form::Other)
}

//! Reads a block of keys to its end: each known key is taken once, what is left is unknown, and every mistake is noted
//! without stopping.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::origin::{DefaultsOf, Origin, Origins};
use crate::raw::path::Path;
use crate::raw::{Entry, Node, Value};
use crate::report::{Diagnostic, Severity, suggest};
use crate::source::{Source, Span};

/// How a file's words are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Our own: keys as written, durations with units.
    Native,
    /// YARP's: keys without case, .NET durations, unknown keys are warnings.
    Yarp,
    /// rhi.yaml: keys as written, a bare number is seconds.
    Rhi,
}

impl Dialect {
    /// A key as it is compared.
    fn folded(self, key: &str) -> Cow<'_, str> {
        match self {
            Self::Native | Self::Rhi => Cow::Borrowed(key),
            Self::Yarp => Cow::Owned(key.to_ascii_lowercase()),
        }
    }

    fn same_key(self, a: &str, b: &str) -> bool {
        match self {
            Self::Native | Self::Rhi => a == b,
            Self::Yarp => a.eq_ignore_ascii_case(b),
        }
    }
}

/// What is noted while a file is read.
pub struct Reading<'a> {
    /// The file.
    pub source: &'a Source,
    /// How its words are read.
    pub dialect: Dialect,
    /// What is wrong so far; no more than a person can read.
    pub diagnostics: Vec<Diagnostic>,
    /// How many more there were.
    pub untold: usize,
    /// Where values came from.
    pub origins: Origins,
}

impl<'a> Reading<'a> {
    /// Nothing read yet.
    pub fn new(source: &'a Source, dialect: Dialect, defaults: DefaultsOf) -> Self {
        Self {
            source,
            dialect,
            diagnostics: Vec::new(),
            untold: 0,
            origins: Origins::new(source.shared_name(), defaults),
        }
    }

    /// Notes a diagnostic at a place. Beyond a number of them only the first error is kept, the rest is counted.
    pub fn note(&mut self, span: Span, diagnostic: Diagnostic) {
        let is_first_error = diagnostic.severity == Severity::Error && !self.has_errors();
        if self.diagnostics.len() < MAX_TOLD || is_first_error {
            self.diagnostics.push(diagnostic.at(self.source, span));
        } else {
            self.untold += 1;
        }
    }

    /// Notes that `what` is wrong and `expected` was expected.
    pub fn error(&mut self, span: Span, what: impl Into<String>, expected: impl Into<String>) {
        self.note(span, Diagnostic::error(what).label(expected));
    }

    /// Notes a warning.
    pub fn warn(&mut self, span: Span, what: impl Into<String>) {
        self.note(span, Diagnostic::warning(what));
    }

    /// Whether there is an error so far.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|d| d.severity == Severity::Error)
    }

    /// The line of a place.
    pub fn line(&self, span: Span) -> u32 {
        self.source.line(span.start)
    }
}

/// A block of keys that is being read.
pub struct Section<'n> {
    /// Its full name.
    pub path: Path,
    /// Where it begins.
    pub span: Span,
    entries: &'n [Entry],
    taken: Vec<bool>,
    known: Vec<&'static str>,
    not_yet: Vec<&'static str>,
}

/// A value that was taken from a section.
#[derive(Clone)]
pub struct Field<'n> {
    /// Its key, as the format spells it.
    pub name: String,
    /// Its full name in native words.
    pub path: Path,
    /// Where the key stands.
    pub key_span: Span,
    /// The value.
    pub node: &'n Node,
}

impl<'n> Section<'n> {
    /// Opens a block; notes an error when the node is none, and each key that stands there twice.
    pub fn open(r: &mut Reading<'_>, node: &'n Node, path: Path) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            let name = if path.is_root() { "the file".to_owned() } else { format!("`{path}`") };
            r.error(node.span, format!("{name} is {}", node.value.kind()), "expected a block of keys");
            return None;
        };
        let mut taken = vec![false; entries.len()];
        let mut seen: BTreeMap<Cow<'_, str>, Span> = BTreeMap::new();
        for (entry, taken) in entries.iter().zip(&mut taken) {
            let Some(first) = seen.insert(r.dialect.folded(&entry.key), entry.key_span) else { continue };
            let diagnostic = Diagnostic::error(format!("`{}` stands here twice", entry.key))
                .label("the second one")
                .related(r.source, first, "the first one");
            r.note(entry.key_span, diagnostic);
            *taken = true;
        }
        Some(Self { path, span: node.span, entries, taken, known: Vec::new(), not_yet: Vec::new() })
    }

    /// A block without keys: one that stands there as a bare `name:`.
    pub fn empty(path: Path, span: Span) -> Self {
        Self { path, span, entries: &[], taken: Vec::new(), known: Vec::new(), not_yet: Vec::new() }
    }

    /// Takes the value of `key`; `None` when it is absent or null.
    pub fn take(&mut self, r: &mut Reading<'_>, key: &'static str) -> Option<Field<'n>> {
        self.take_as(r, key, key)
    }

    /// The same, for a key whose native name is another.
    pub fn take_as(&mut self, r: &mut Reading<'_>, key: &'static str, native: &str) -> Option<Field<'n>> {
        self.take_raw(r, key, native).filter(|field| !field.node.is_null())
    }

    /// The same, null included.
    pub fn take_raw(&mut self, r: &mut Reading<'_>, key: &'static str, native: &str) -> Option<Field<'n>> {
        self.known.push(key);
        let found =
            self.entries.iter().zip(&self.taken).position(|(e, taken)| !taken && r.dialect.same_key(&e.key, key));
        let entry = self.entries.get(found?)?;
        if let Some(flag) = found.and_then(|index| self.taken.get_mut(index)) {
            *flag = true;
        }
        let path = self.path.join(native);
        let origin = Origin::File { line: r.line(entry.node.span) };
        r.origins.record(path.clone(), origin, entry.node.span);
        Some(Field { name: entry.key.clone(), path, key_span: entry.key_span, node: &entry.node })
    }

    /// Refuses `keys`, which are known to the format and not served yet. A value that asks for nothing (null, false, 0,
    /// an empty list) passes.
    pub fn not_yet(&mut self, r: &mut Reading<'_>, keys: &[(&'static str, &str)]) {
        for (key, what) in keys {
            self.not_yet.push(key);
            let Some(field) = self.take(r, key) else { continue };
            let asks = match &field.node.value {
                Value::Null | Value::Bool(false) => false,
                Value::Number(text) => text != "0",
                Value::List(items) => !items.is_empty(),
                Value::Bool(true) | Value::Text(_) | Value::Map(_) => true,
            };
            if asks {
                r.error(field.key_span, format!("`{key}` is not supported yet"), format!("arrives with {what}"));
            }
        }
    }

    /// Refuses keys by the name that they have elsewhere and tells the one that they have here.
    pub fn renamed(&mut self, r: &mut Reading<'_>, keys: &[(&'static str, &'static str)]) {
        for (key, here) in keys {
            self.not_yet.push(key);
            if let Some(field) = self.take(r, key) {
                r.error(field.key_span, format!("`{key}` is called `{here}` here"), format!("expected `{here}`"));
            }
        }
    }

    /// Takes a key that belongs elsewhere, so that the caller tells where; it is not listed as known here.
    pub fn take_misplaced(&mut self, r: &mut Reading<'_>, key: &'static str) -> Option<Field<'n>> {
        self.not_yet.push(key);
        self.take(r, key)
    }

    /// All entries as fields, for maps whose keys are names: ids, headers.
    pub fn take_all(&mut self, r: &mut Reading<'_>) -> Vec<Field<'n>> {
        let mut fields = Vec::new();
        for (entry, taken) in self.entries.iter().zip(&mut self.taken) {
            if std::mem::replace(taken, true) {
                continue;
            }
            let path = self.path.join(&entry.key);
            let origin = Origin::File { line: r.line(entry.key_span) };
            r.origins.record(path.clone(), origin, entry.key_span);
            fields.push(Field { name: entry.key.clone(), path, key_span: entry.key_span, node: &entry.node });
        }
        fields
    }

    /// Notes what was not taken: an error, in a YARP file a warning.
    pub fn finish(self, r: &mut Reading<'_>) {
        let left = self.entries.iter().zip(&self.taken).filter(|(_, taken)| !**taken).map(|(entry, _)| entry);
        for entry in left {
            let message = format!("unknown key `{}`", entry.key);
            let place =
                if self.path.is_root() { "at the top of the file".to_owned() } else { format!("in `{}`", self.path) };
            let help = suggest::did_you_mean(&entry.key, self.known.iter().copied());
            let diagnostic = match r.dialect {
                Dialect::Native | Dialect::Rhi => {
                    Diagnostic::error(message).label(format!("not known {place}")).help(self.list_known())
                }
                Dialect::Yarp => Diagnostic::warning(message).label("has no effect"),
            };
            r.note(entry.key_span, diagnostic.maybe_help(help));
        }
    }

    /// Passes over what was not taken.
    pub fn ignore_rest(self) {}

    fn list_known(&self) -> String {
        let served = self.known.iter().filter(|key| !self.not_yet.contains(key));
        let mut known: Vec<_> = served.map(|key| format!("`{key}`")).collect();
        known.sort();
        known.dedup();
        format!("known here: {}", known.join(", "))
    }
}

/// More is not told: whoever has so much to mend begins with the first ones.
const MAX_TOLD: usize = 200;

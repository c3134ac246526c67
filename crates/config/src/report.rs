//! What is wrong with a file, as plain data: each diagnostic knows its place, what was expected, and what may have been
//! meant. [`mod@render`] draws it the way a compiler does; `Display` gives one line; serde gives JSON.

pub mod render;
pub mod suggest;

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::source::{Position, Source, Span};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file is refused.
    Error,
    /// The file is taken, but ignoring this lets someone in or removes a limit.
    Alarm,
    /// The file is taken.
    Warning,
}

impl Severity {
    /// The word in front of a message.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Alarm => "SECURITY WARNING",
            Self::Warning => "warning",
        }
    }
}

/// One thing that is wrong, or worth a word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Name of the file.
    pub file: Arc<str>,
    /// Where it begins; `None`: the file as a whole.
    pub position: Option<Position>,
    /// The bytes meant.
    #[serde(skip)]
    pub span: Option<Span>,
    /// What is wrong.
    pub message: String,
    /// What was expected at this place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What may have been meant, or what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Another place that has to do with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub related: Option<Related>,
}

/// Another place that a diagnostic speaks of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Related {
    /// Where.
    pub position: Position,
    /// The bytes meant.
    #[serde(skip)]
    pub span: Span,
    /// What is there.
    pub message: String,
}

impl Diagnostic {
    /// An error without a place.
    pub fn error(message: impl Into<String>) -> Self {
        Self::new(Severity::Error, message.into())
    }

    /// A warning without a place.
    pub fn warning(message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, message.into())
    }

    /// A warning that must not be overlooked.
    pub fn alarm(message: impl Into<String>) -> Self {
        Self::new(Severity::Alarm, message.into())
    }

    fn new(severity: Severity, message: String) -> Self {
        Self { severity, file: "".into(), position: None, span: None, message, label: None, help: None, related: None }
    }

    /// Puts it to a place.
    #[must_use]
    pub fn at(mut self, source: &Source, span: Span) -> Self {
        let span = source.clip(span);
        self.file = source.shared_name();
        self.position = Some(source.position(span.start));
        self.span = Some(span);
        self
    }

    /// Says what was expected at the place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Says what may have been meant.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// `help`, when there is one.
    #[must_use]
    pub fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }

    /// Points to another place.
    #[must_use]
    pub fn related(mut self, source: &Source, span: Span, message: impl Into<String>) -> Self {
        let span = source.clip(span);
        self.related = Some(Related { position: source.position(span.start), span, message: message.into() });
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file)?;
        if let Some(position) = self.position {
            write!(f, "{position}:")?;
        }
        write!(f, " {}: {}", self.severity.as_str(), self.message)?;
        if let Some(label) = &self.label {
            write!(f, ": {label}")?;
        }
        if let Some(help) = &self.help {
            write!(f, " ({help})")?;
        }
        Ok(())
    }
}

/// Why a file is refused: its errors, and its warnings behind them. `Display` gives one line each.
#[derive(Clone, Debug)]
pub struct Report {
    /// The file.
    pub source: Source,
    /// In the order of the file, errors and warnings mixed; one error at least.
    pub diagnostics: Vec<Diagnostic>,
}

impl Report {
    /// A report of one error.
    pub(crate) fn single(source: Source, mut diagnostic: Diagnostic) -> Box<Self> {
        diagnostic.file = source.shared_name();
        Box::new(Self { source, diagnostics: vec![diagnostic] })
    }

    /// The errors alone.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|d| d.severity == Severity::Error)
    }

    /// Draws all of it.
    pub fn render(&self, style: render::Style) -> String {
        render::render(&self.source, &self.diagnostics, style)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.diagnostics.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            diagnostic.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Report {}

//! Where each value of the effective configuration came from.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::raw::path::Path;
use crate::source::Span;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of the file.
    File {
        /// Counted from 1.
        line: u32,
    },
    /// A metadata entry of a YARP cluster.
    Metadata {
        /// Counted from 1.
        line: u32,
    },
    /// The file's own `health_defaults`.
    HealthDefaults {
        /// Counted from 1.
        line: u32,
    },
    /// The command line.
    CommandLine,
    /// Nobody set it.
    Default(DefaultsOf),
}

/// Whose defaults fill in what a file leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultsOf {
    /// The native format's.
    Native,
    /// Those of a YARP file.
    Yarp,
}

impl DefaultsOf {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Yarp => "YARP file",
        }
    }
}

/// The origin of every setting, by its native path.
#[derive(Clone, Debug)]
pub struct Origins {
    file: Arc<str>,
    defaults: DefaultsOf,
    set: BTreeMap<Path, (Origin, Span)>,
}

impl Origins {
    pub(crate) fn new(file: Arc<str>, defaults: DefaultsOf) -> Self {
        Self { file, defaults, set: BTreeMap::new() }
    }

    pub(crate) fn record(&mut self, path: Path, origin: Origin, span: Span) {
        self.set.insert(path, (origin, span));
    }

    /// Where the file sets `path`, or else the nearest block around it that the file has.
    pub(crate) fn span_of(&self, path: &Path) -> Span {
        let mut at = Some(path.clone());
        while let Some(here) = at {
            if let Some((_, span)) = self.set.get(&here) {
                return *span;
            }
            at = here.parent();
        }
        Span::default()
    }

    /// Where the value at `path` came from.
    pub fn of(&self, path: &Path) -> Origin {
        self.set.get(path).map_or(Origin::Default(self.defaults), |(origin, _)| origin.clone())
    }

    /// Whether the file (or the command line) sets `path`.
    pub fn is_set(&self, path: &Path) -> bool {
        self.set.contains_key(path)
    }

    /// An origin in words: `lazaret.yaml:12`, `default (native)`.
    pub fn describe(&self, origin: &Origin) -> String {
        match origin {
            Origin::File { line } => format!("{}:{line}", self.file),
            Origin::Metadata { line } => format!("metadata, {}:{line}", self.file),
            Origin::HealthDefaults { line } => format!("health_defaults, {}:{line}", self.file),
            Origin::CommandLine => "command line".to_owned(),
            Origin::Default(whose) => format!("default ({})", whose.as_str()),
        }
    }
}

//! Reading the configuration file.

use std::path::Path;

use config::{LoadedRhi, Style};

/// Why there is no configuration.
pub(crate) enum NoConfig {
    /// The file cannot be read.
    Unreadable(String),
    /// It is refused.
    Refused(Box<config::Report>),
}

/// Reads and checks a file.
pub(crate) fn load(path: &Path) -> Result<LoadedRhi, NoConfig> {
    let bytes = files::read_given(path, MAX_BYTES)
        .map_err(|error| NoConfig::Unreadable(format!("{}: {error}", path.display())))?;
    config::load_rhi(&path.display().to_string(), &bytes).map_err(NoConfig::Refused)
}

impl NoConfig {
    /// For a terminal: with the lines of the file.
    pub(crate) fn drawn(&self) -> String {
        match self {
            Self::Unreadable(why) => why.clone(),
            Self::Refused(report) => config::render(&report.source, &report.diagnostics, Style::Plain),
        }
    }

    /// For a log: one line.
    pub(crate) fn line(&self) -> String {
        match self {
            Self::Unreadable(why) => why.clone(),
            Self::Refused(report) => report.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        }
    }
}

/// More than any configuration needs.
const MAX_BYTES: usize = 16 * 1024 * 1024;

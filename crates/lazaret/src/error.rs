//! What can go wrong before the proxy runs.

use thiserror::Error;

/// What went wrong, and whose fault it is.
#[derive(Debug, Error)]
pub enum Error {
    /// The configuration is refused; the report names every place.
    #[error("{}", ::config::render(&.0.source, &.0.diagnostics, ::config::Style::Plain))]
    Config(Box<::config::Report>),
    /// The pipeline lacks a stage that the configuration needs.
    #[error(transparent)]
    Pipeline(#[from] crate::pipeline::PipelineError),
    /// The health monitor ended while everything started: a bug there.
    #[error(transparent)]
    Monitor(#[from] monitor::Gone),
    /// The control API cannot listen: another process has the address or the socket.
    #[error(transparent)]
    Control(control::BindError),
    /// Our own types did not serialise: a bug here.
    #[error("the configuration in code could not be written down: {0}")]
    Write(#[from] serde_json::Error),
    /// An address cannot be listened on, a file cannot be opened, a thread cannot be started.
    #[error("{what}: {source}")]
    Start {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl Error {
    /// What is wrong in one line: of a report its first error, and how many more there are.
    pub fn in_a_line(&self) -> String {
        let Self::Config(report) = self else { return self.to_string() };
        let mut errors = report.errors();
        let first = errors.next().map_or_else(|| "the configuration is refused".to_owned(), ToString::to_string);
        match errors.count() {
            0 => first,
            more => format!("{first} (and {more} more)"),
        }
    }

    /// Something that could not be started, for [`Self::Start`].
    pub(crate) fn start(what: impl Into<String>, source: std::io::Error) -> Self {
        Self::Start { what: what.into(), source }
    }
}

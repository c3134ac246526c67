//! Where the program's own log lines go, and how they look.
//!
//! Text or JSON, one line per event. Under systemd (JOURNAL_STREAM is set) text lines on standard error carry a level
//! prefix in place of the time, which the system's journal adds itself. `lazaret-rhi` writes to files instead: the main
//! log takes everything, the error log warnings and errors once more.

mod quota;

use std::fmt;
use std::io;
use std::path::PathBuf;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{EnvFilter, LevelFilter};
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use crate::reopen::ReopenFile;

/// How lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Where lines go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// How lines look.
    pub format: LogFormat,
    /// Directives of an environment filter, such as `info,health=debug`; `None`: `info`.
    pub filter: Option<String>,
    /// Takes every line; `None`: standard error.
    pub main: Option<PathBuf>,
    /// Takes warnings and errors once more; `None`: nothing does.
    pub error: Option<PathBuf>,
}

/// The files that were opened, for reopening and for the metrics.
#[derive(Clone, Default)]
pub struct Logs {
    /// The main log, when it is a file.
    pub main: Option<ReopenFile>,
    /// The error log, when there is one.
    pub error: Option<ReopenFile>,
}

impl Logs {
    /// Asks for both files to be opened anew.
    pub fn reopen(&self) {
        self.files().for_each(ReopenFile::reopen);
    }

    /// Waits until both files are written, `patience` each at most.
    pub fn flush(&self, patience: std::time::Duration) {
        self.files().for_each(|file| {
            file.flush(patience);
        });
    }

    fn files(&self) -> impl Iterator<Item = &ReopenFile> {
        self.main.iter().chain(&self.error)
    }
}

/// Why logging cannot start.
#[derive(Debug)]
pub enum LogError {
    /// A log file cannot be opened.
    Open {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The filter's directives do not parse.
    Filter {
        /// The directives.
        directives: String,
        /// Why.
        source: tracing_subscriber::filter::ParseError,
    },
    /// Somebody has already set up logging in this process.
    AlreadySet(TryInitError),
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Filter { directives, source } => write!(f, "log filter `{directives}`: {source}"),
            Self::AlreadySet(source) => source.fmt(f),
        }
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open { source, .. } => Some(source),
            Self::Filter { source, .. } => Some(source),
            Self::AlreadySet(source) => Some(source),
        }
    }
}

/// Starts logging for the process. Files are opened first: one that cannot be opened stops the start.
pub fn start(options: &LogOptions) -> Result<Logs, LogError> {
    let directives = options.filter.as_deref().unwrap_or("info");
    let filter = EnvFilter::try_new(directives)
        .map_err(|source| LogError::Filter { directives: directives.to_owned(), source })?;
    let logs = Logs { main: open(options.main.as_ref())?, error: open(options.error.as_ref())? };
    let main = match &logs.main {
        Some(file) => layer(options.format, Stamp::Time, file.clone()),
        None => {
            let stamp = if std::env::var_os("JOURNAL_STREAM").is_some() { Stamp::LevelPrefix } else { Stamp::Time };
            layer(options.format, stamp, io::stderr)
        }
    };
    let error = logs.error.clone().map(|file| layer(options.format, Stamp::Time, file).with_filter(LevelFilter::WARN));
    let quota = quota::Quota::default();
    tracing_subscriber::registry()
        .with(filter)
        .with(quota)
        .with(main)
        .with(error)
        .try_init()
        .map_err(LogError::AlreadySet)?;
    Ok(logs)
}

fn open(path: Option<&PathBuf>) -> Result<Option<ReopenFile>, LogError> {
    path.map(|path| ReopenFile::open(path).map_err(|source| LogError::Open { path: path.clone(), source })).transpose()
}

fn layer<S, W>(format: LogFormat, stamp: Stamp, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> tracing_subscriber::fmt::MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer);
    match (format, stamp) {
        (LogFormat::Json, _) => layer.json().flatten_event(true).with_current_span(false).boxed(),
        (LogFormat::Text, Stamp::Time) => layer.boxed(),
        (LogFormat::Text, Stamp::LevelPrefix) => {
            layer.event_format(LevelPrefixed(Format::default().without_time().with_level(false))).boxed()
        }
    }
}

/// What stands in front of a text line.
#[derive(Clone, Copy)]
enum Stamp {
    /// Time and level.
    Time,
    /// `<n>`, the syslog priority, which the system's journal reads.
    LevelPrefix,
}

/// Text lines with a syslog priority in front (sd-daemon(3)).
struct LevelPrefixed(Format<Full, ()>);

impl<S, N> FormatEvent<S, N> for LevelPrefixed
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        writer.write_str(priority(*event.metadata().level()))?;
        self.0.format_event(context, writer, event)
    }
}

fn priority(level: Level) -> &'static str {
    if level == Level::ERROR {
        "<3>"
    } else if level == Level::WARN {
        "<4>"
    } else if level == Level::INFO {
        "<6>"
    } else {
        "<7>"
    }
}

#[cfg(test)]
mod tests;

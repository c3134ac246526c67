//! Files in, resolved model out; every error knows its place in the file.
//!
//! ```text
//!  bytes ──> source ──> format/{yaml,json} ──> raw (located tree) ──> resolve/{native,yarp,rhi} ──> model
//!            decoded     the only files that     keys and values         every mistake noted,        + origins
//!            once        name a parser           with their places       none stops the reading      + warnings
//! ```
//!
//! [`load`] reads the native format and YARP's, [`load_rhi`] reads rhi.yaml. A file is taken as a whole or refused with a
//! [`Report`] of everything that is wrong with it. [`check`] writes down what was understood: each value with its
//! origin, the URL each destination is probed at, and how long a failure can go unseen.
#![forbid(unsafe_code)]

pub mod source;

pub mod report;

pub mod timespan;

pub mod raw;

mod format;

pub mod origin;

pub mod policy_names;

pub mod defaults;

mod resolve;

pub mod check;

use model::cluster::Compat;
use model::config::{Config, Control};
use model::vip::RhiConfig;

pub use crate::origin::{Origin, Origins};
pub use crate::policy_names::PolicyNames;
pub use crate::report::render::{Style, render};
pub use crate::report::{Diagnostic, Report, Severity};
pub use crate::source::Source;

use crate::origin::DefaultsOf;
use crate::raw::path::Path;
use crate::raw::section::{Dialect, Reading, Section};
use crate::raw::{Node, Value};

/// Which format a file is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileKind {
    /// Told by its content: JSON with YARP's sections is YARP's, all else is native.
    #[default]
    Auto,
    /// Our own YAML or JSON.
    Native,
    /// YARP's JSON: appsettings.json, the body of `ReverseProxy`, or its bare members.
    Yarp,
}

/// A file that was taken.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What it says, defaults filled in.
    pub config: Config,
    /// Where each value came from.
    pub origins: Origins,
    /// What is worth a word, in the order of the file.
    pub warnings: Vec<Diagnostic>,
    /// The file, to draw warnings with.
    pub source: Source,
}

impl Loaded {
    /// A report of mistakes that show only when the files are read that the configuration names: for each the setting,
    /// what is wrong with it, and what mends it.
    pub fn refuse<'a>(&self, mistakes: impl IntoIterator<Item = (Path, &'a str, &'a str)>) -> Box<Report> {
        refuse(&self.source, &self.origins, mistakes)
    }
}

/// A rhi.yaml that nothing is wrong with.
#[derive(Clone, Debug)]
pub struct LoadedRhi {
    /// What it says, defaults filled in.
    pub config: RhiConfig,
    /// Where each value came from.
    pub origins: Origins,
    /// What is worth a word, in the order of the file.
    pub warnings: Vec<Diagnostic>,
    /// The file.
    pub source: Source,
}

impl LoadedRhi {
    /// As [`Loaded::refuse`].
    pub fn refuse<'a>(&self, mistakes: impl IntoIterator<Item = (Path, &'a str, &'a str)>) -> Box<Report> {
        refuse(&self.source, &self.origins, mistakes)
    }
}

fn refuse<'a>(
    source: &Source,
    origins: &Origins,
    mistakes: impl IntoIterator<Item = (Path, &'a str, &'a str)>,
) -> Box<Report> {
    let diagnostics = mistakes
        .into_iter()
        .map(|(path, what, mend)| Diagnostic::error(what).label(mend).at(source, origins.span_of(&path)));
    Box::new(Report { source: source.clone(), diagnostics: diagnostics.collect() })
}

/// Reads a configuration. `name` is the file's name for messages; `compat` overrides that of every cluster.
pub fn load(
    name: &str,
    bytes: &[u8],
    kind: FileKind,
    names: &PolicyNames,
    compat: Option<Compat>,
) -> Result<Loaded, Box<Report>> {
    let source = decode(name, bytes)?;
    let kind = match kind {
        FileKind::Auto => format::json::detect(&source),
        FileKind::Native | FileKind::Yarp => kind,
    };
    let (dialect, defaults) = match kind {
        FileKind::Auto | FileKind::Native => (Dialect::Native, DefaultsOf::Native),
        FileKind::Yarp => (Dialect::Yarp, DefaultsOf::Yarp),
    };
    let root = match dialect {
        Dialect::Native | Dialect::Rhi => format::yaml::parse(&source),
        Dialect::Yarp => format::json::parse(&source),
    };
    let root = parsed(&source, root)?;
    let mut reading = Reading::new(&source, dialect, defaults);
    let config = match dialect {
        Dialect::Native | Dialect::Rhi => resolve::native::resolve(&mut reading, &root, names, compat),
        Dialect::Yarp => resolve::yarp::resolve(&mut reading, &root, names, compat),
    };
    if !reading.has_errors() {
        check::warnings::look(&mut reading, &config);
    }
    let (origins, warnings) = finish(reading)?;
    Ok(Loaded { config, origins, warnings, source })
}

/// Where the control API of a process is that runs on an older version of a file, which [`load`] refuses by now. `None`
/// when the file is no block of keys at all, or when what it says of the control API is wrong itself.
pub fn control_of(name: &str, bytes: &[u8]) -> Option<Control> {
    let source = decode(name, bytes).ok()?;
    let root = match format::json::detect(&source) {
        FileKind::Yarp => format::json::parse(&source),
        FileKind::Auto | FileKind::Native => format::yaml::parse(&source),
    };
    let root = parsed(&source, root).ok()?;
    // A YARP file has no such key, and the defaults hold.
    let mut reading = Reading::new(&source, Dialect::Native, DefaultsOf::Native);
    let mut section = Section::open(&mut reading, &root, Path::root())?;
    match section.take(&mut reading, "control") {
        None => Some(resolve::native::control::default()),
        Some(field) => {
            let section = field.section(&mut reading)?;
            resolve::native::control::places(&mut reading, section)
        }
    }
}

/// Reads a rhi.yaml.
pub fn load_rhi(name: &str, bytes: &[u8]) -> Result<LoadedRhi, Box<Report>> {
    let source = decode(name, bytes)?;
    let root = parsed(&source, format::yaml::parse(&source))?;
    let mut reading = Reading::new(&source, Dialect::Rhi, DefaultsOf::Native);
    let config = resolve::rhi::resolve(&mut reading, &root);
    let (origins, warnings) = finish(reading)?;
    match config {
        Some(config) => Ok(LoadedRhi { config, origins, warnings, source }),
        None => Err(Report::single(source, Diagnostic::error("the file is incomplete"))),
    }
}

fn decode(name: &str, bytes: &[u8]) -> Result<Source, Box<Report>> {
    Source::new(name, bytes).map_err(|refused| {
        let (source, diagnostic) = *refused;
        Report::single(source, diagnostic)
    })
}

fn parsed(source: &Source, root: Result<Option<Node>, Box<Diagnostic>>) -> Result<Node, Box<Report>> {
    match root {
        Ok(Some(root)) if root.value != Value::Map(Vec::new()) => Ok(root),
        Ok(Some(_) | None) => {
            let empty = Diagnostic::error("the file is empty").help("an empty file is taken for an accident");
            Err(Report::single(source.clone(), empty))
        }
        Err(diagnostic) => Err(Report::single(source.clone(), *diagnostic)),
    }
}

fn finish(reading: Reading<'_>) -> Result<(Origins, Vec<Diagnostic>), Box<Report>> {
    let has_errors = reading.has_errors();
    let Reading { source, mut diagnostics, untold, origins, .. } = reading;
    diagnostics.sort_by_key(|diagnostic| diagnostic.span);
    if untold > 0 {
        let mut more = Diagnostic::warning(format!("there is more to say, {untold} times"));
        more.file = source.shared_name();
        diagnostics.push(more);
    }
    if has_errors {
        return Err(Box::new(Report { source: source.clone(), diagnostics }));
    }
    Ok((origins, diagnostics))
}

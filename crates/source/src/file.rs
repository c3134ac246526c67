//! One configuration file: found once, read again on each call.
//!
//! No more than [`MAX_BYTES`] are read whatever the file claims to be, so that a device given by mistake cannot fill the
//! memory; a named pipe is refused, since it would keep a start or a reload waiting.

use std::io;
use std::path::{Path, PathBuf};

use config::source::MAX_BYTES;
use config::{Diagnostic, FileKind, Loaded, PolicyNames, Report, Source};
use model::cluster::Compat;

use crate::pages;

/// A configuration file and how to read it.
#[derive(Clone, Debug)]
pub struct File {
    path: PathBuf,
    kind: FileKind,
    names: PolicyNames,
    compat: Option<Compat>,
}

impl File {
    /// The file at `path`, in whatever format it turns out to be.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), kind: FileKind::Auto, names: PolicyNames::default(), compat: None }
    }

    /// The same, in this format.
    #[must_use]
    pub fn with_kind(self, kind: FileKind) -> Self {
        Self { kind, ..self }
    }

    /// The same, with these custom policies known.
    #[must_use]
    pub fn with_names(self, names: PolicyNames) -> Self {
        Self { names, ..self }
    }

    /// The same, with every cluster under `compat`.
    #[must_use]
    pub fn with_compat(self, compat: Compat) -> Self {
        Self { compat: Some(compat), ..self }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it and the pages it names, all or nothing. Blocks for as long as the disk does.
    pub fn load(&self) -> Result<Loaded, Box<Report>> {
        let name = self.path.display().to_string();
        let bytes = files::read_given(&self.path, MAX_BYTES).map_err(|error| unreadable(&name, &error))?;
        pages::read(config::load(&name, &bytes, self.kind, &self.names, self.compat)?)
    }
}

/// Reads the file at `path` with the built-in policies alone.
pub fn load(path: &Path) -> Result<Loaded, Box<Report>> {
    File::new(path).load()
}

/// The file that is meant when none is named: the first of [`DEFAULT_PATHS`] that is there, and when none is, the first
/// one, so that the error names it.
pub fn default_path() -> &'static Path {
    let paths = DEFAULT_PATHS.map(Path::new);
    let [first, ..] = paths;
    paths.into_iter().find(|path| path.exists()).unwrap_or(first)
}

fn unreadable(name: &str, error: &io::Error) -> Box<Report> {
    let source = Source::of_text(name, "");
    let mut diagnostic = Diagnostic::error(format!("cannot read the file: {error}"));
    diagnostic.file = source.shared_name();
    if error.kind() == io::ErrorKind::NotFound {
        diagnostic = diagnostic.help(format!("without --config, {} are looked for", DEFAULT_PATHS.join(" and ")));
    }
    Box::new(Report { source, diagnostics: vec![diagnostic] })
}

/// Where a configuration is looked for, in this order.
pub const DEFAULT_PATHS: [&str; 2] = ["lazaret.yaml", "/etc/lazaret/lazaret.yaml"];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    const GOOD: &str = "version: 1\nlisteners: {web: {address: \"127.0.0.1:0\"}}\n\
                        routes: {all: {match: {path: \"/{**rest}\"}, cluster: a}}\n\
                        clusters: {a: {destinations: {one: {address: \"http://127.0.0.1:9/\"}}}}\n";

    #[test]
    fn a_file_is_read_again_on_each_call_as_a_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::new(folder.path().join("lazaret.yaml"));
        std::fs::write(file.path(), GOOD).unwrap();
        assert_eq!(file.load().unwrap().config.clusters.len(), 1);
        std::fs::write(file.path(), GOOD.replace("cluster: a", "clutser: a")).unwrap();
        let report = file.load().unwrap_err().to_string();
        assert!(report.contains("lazaret.yaml:3:") && report.contains("clutser"), "{report}");
        std::fs::write(file.path(), GOOD).unwrap();
        assert!(file.load().is_ok());
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("none.yaml");
        let said = load(&missing).unwrap_err().to_string();
        assert!(said.contains("none.yaml: error: cannot read the file: ") && said.contains("/etc/lazaret"), "{said}");
        let said = load(folder.path()).unwrap_err().to_string();
        assert!(said.contains("cannot read the file: "), "{said}");
    }

    #[test]
    fn a_file_without_end_is_cut_off_and_refused() {
        let said = load(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(said.contains("16 MiB"), "{said}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("big.yaml");
        std::fs::write(&path, vec![b'#'; MAX_BYTES + 1]).unwrap();
        assert!(load(&path).unwrap_err().to_string().contains("16 MiB"));
    }

    #[test]
    fn a_pipe_is_refused_and_keeps_nobody_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("lazaret.yaml");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let said = load(&pipe).unwrap_err().to_string();
        assert!(said.contains("cannot read the file: it is not a regular file"), "{said}");
    }
}

//! What `check` tells about a file: the effective configuration with the origin of every value, where each destination
//! is probed, how long a failure can go unseen, and what is worth a word.
//!
//! The text is itself a native configuration that comes down to the same model, so that it can be kept, compared and
//! used in place of the file.

pub mod effective;
pub mod facts;
pub mod warnings;

use serde::Serialize;

use crate::report::{Diagnostic, Report};
use crate::{Loaded, Severity};

/// Everything as text.
pub fn text(loaded: &Loaded) -> String {
    effective::write(loaded).text()
}

/// Everything as one JSON document: `settings` (path, value, origin), `clusters` (probe URLs, detection times),
/// `warnings`.
pub fn json(loaded: &Loaded) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        file: &'a str,
        ok: bool,
        settings: Vec<effective::Setting>,
        clusters: Vec<facts::ClusterFacts>,
        warnings: &'a [Diagnostic],
    }
    let document = Document {
        file: loaded.source.name(),
        ok: true,
        settings: effective::write(loaded).into_settings(),
        clusters: facts::of(&loaded.config),
        warnings: &loaded.warnings,
    };
    to_json(&document)
}

/// Why a file is refused, as one JSON document: `errors` and `warnings`.
pub fn refused_json(report: &Report) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        file: &'a str,
        ok: bool,
        errors: Vec<&'a Diagnostic>,
        warnings: Vec<&'a Diagnostic>,
    }
    let (errors, warnings) = report.diagnostics.iter().partition(|d| d.severity == Severity::Error);
    to_json(&Document { file: report.source.name(), ok: false, errors, warnings })
}

fn to_json(document: &impl Serialize) -> String {
    // Plain structs with text keys always serialise.
    serde_json::to_string_pretty(document).unwrap_or_default()
}

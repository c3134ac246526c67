//! Recordings from a file, or from a folder of segments that a process, dead or alive, has written.

use std::path::Path;

use ::lab::replay::text;
use recorder::segments::{self, Found};
use recorder::{ReadError, Recording};
use serde_json::{Value, json};

use crate::cli::complain;
use crate::cli::lab::Refused;

/// What was found.
pub(super) struct Read {
    /// One at least; oldest first.
    pub(super) recordings: Vec<Recording>,
    pub(super) shape: Shape,
}

/// Whether there may be several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A file holds one.
    One,
    /// A folder holds one for each process, and one more after each gap.
    Many,
}

impl Read {
    /// One document: the recording's, or a list of them.
    pub(super) fn document(&self, documents: Vec<Value>) -> String {
        match (self.shape, documents.as_slice()) {
            (Shape::One, [document]) => text::pretty(document),
            (Shape::One | Shape::Many, _) => text::pretty(&json!({ "recordings": documents })),
        }
    }
}

/// Reads it. Files of a folder that are of no use are told and passed over.
pub(super) fn read(path: &Path, instance: Option<&str>) -> Result<Read, Refused> {
    let shown = path.display();
    let refused = |why: &dyn std::fmt::Display| Refused::File(format!("{shown}: {why}"));
    let mut read = if path.is_dir() { folder(path)? } else { file(path)? };
    if let Some(instance) = instance {
        let all: Vec<String> = read.recordings.iter().map(|one| one.header.instance.clone()).collect();
        read.recordings.retain(|recording| recording.header.instance == instance);
        if read.recordings.is_empty() {
            return Err(refused(&format!("nothing of instance {instance} is in it, but of {}", all.join(", "))));
        }
    }
    Ok(read)
}

fn file(path: &Path) -> Result<Read, Refused> {
    let shown = path.display();
    let refused = |why: &dyn std::fmt::Display| Refused::File(format!("{shown}: {why}"));
    let bytes = files::read_given(path, FILE_BYTES).map_err(|error| refused(&error))?;
    if segments::is_segment(&bytes) {
        let Found { recordings, refused: useless } = segments::join([bytes]);
        return match useless.first() {
            Some((_, error)) => Err(refused(error)),
            None => Ok(Read { recordings, shape: Shape::One }),
        };
    }
    let recording = Recording::read(&bytes).map_err(|error| refused(&error))?;
    Ok(Read { recordings: vec![recording], shape: Shape::One })
}

fn folder(path: &Path) -> Result<Read, Refused> {
    let shown = path.display();
    let segments =
        monitor::spool::read(path, FILE_BYTES).map_err(|error| Refused::File(format!("{shown}: {error}")))?;
    let (names, files): (Vec<String>, Vec<Vec<u8>>) = segments.into_iter().unzip();
    let found = segments::join(files);
    for (place, error) in &found.refused {
        // Cut off before its state: the process ended just then, or is just beginning it.
        if !matches!(error, ReadError::Truncated { .. } | ReadError::NotARecording) || found.recordings.is_empty() {
            let name = names.get(*place).map(String::as_str).unwrap_or_default();
            complain(&format!("{}: {error}; passed over", path.join(name).display()));
        }
    }
    if found.recordings.is_empty() {
        return Err(Refused::File(format!(
            "{shown}: no recording is in it; `recorder.folder` of a process writes them there"
        )));
    }
    Ok(Read { recordings: found.recordings, shape: Shape::Many })
}

/// The largest ring is 1 GiB.
const FILE_BYTES: usize = 2 << 30;

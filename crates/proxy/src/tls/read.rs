//! Telling whether files changed since they were read.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub(super) use upstream::tls::read_whole as read;

/// What tells one state of a file from another: who it is, how long, and when it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    written: (i64, i64),
    /// Also moves when a file is put in place of another with an older time.
    changed: (i64, i64),
}

/// The state of several files; `None`: one cannot be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamps(Vec<(PathBuf, Option<Stamp>)>);

impl Stamps {
    /// Looks now. Links are followed, so that one that points elsewhere is a change.
    pub(super) fn of(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let look = |path: PathBuf| {
            let stamp = std::fs::metadata(&path).ok().map(|metadata| stamp(&metadata));
            (path, stamp)
        };
        Self(paths.into_iter().map(look).collect())
    }
}

/// Whether everybody on this host can read the file.
pub(super) fn is_open_to_all(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.mode() & 0o004 != 0)
}

fn stamp(metadata: &Metadata) -> Stamp {
    Stamp {
        device: metadata.dev(),
        inode: metadata.ino(),
        length: metadata.len(),
        written: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    }
}

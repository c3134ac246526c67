//! Segments in a folder: numbered files, the oldest of which make room for the newest, whoever wrote them.
//!
//! Several processes may write at the same time, as they do while one takes over from another: each writes its own files,
//! numbers are given and room is made under a lock on the folder, and the limit holds for all of them together. Files of
//! processes that are gone stay until their room is needed.
//!
//! The folder is opened once and everything is done below what was opened, by its path again only when it was removed. It
//! belongs to this user and nobody else may write to it: so no link that stands in it is another one's. New files are made where there is none,
//! with mode 0600.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::dir::Dir;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{Mode, SFlag, fstatat};
use nix::unistd::{AccessFlags, UnlinkatFlags, faccessat, geteuid, unlinkat};

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    folder: File,
    size: u64,
    current: Option<Current>,
}

#[derive(Debug)]
struct Current {
    file: File,
    number: u64,
}

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct FolderError {
    what: String,
    mend: &'static str,
}

impl FolderError {
    fn new(what: impl std::fmt::Display, mend: &'static str) -> Self {
        Self { what: what.to_string(), mend }
    }

    /// What would mend it.
    pub fn mend(&self) -> &'static str {
        self.mend
    }
}

impl Folder {
    /// Opens a folder, or makes it (mode 0700), for `size` bytes in all.
    pub fn open(path: &Path, size: u64) -> Result<Self, FolderError> {
        let opened = match open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = DirBuilder::new().mode(0o700).create(path);
                made.map_err(|error| FolderError::new(format!("it cannot be made: {error}"), PARENT))?;
                open(path)
            }
            opened => opened,
        };
        let folder = opened.map_err(|error| not_opened(path, &error))?;
        usable(&folder, Owner::This)?;
        Ok(Self { path: path.to_owned(), folder, size, current: None })
    }

    /// Whether that would do, without making anything. Root may look at another user's.
    pub fn check(path: &Path) -> Result<(), FolderError> {
        match open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let can = ::files::can_make_folder(&without_end(path));
                can.map_err(|error| FolderError::new(format!("it cannot be made: {error}"), PARENT))
            }
            Err(error) => Err(not_opened(path, &error)),
            Ok(folder) => usable(&folder, if geteuid().is_root() { Owner::Any } else { Owner::This }),
        }
    }

    /// As it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that all files together may have.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Begins a segment; tells how many bytes stand in the folder then.
    pub fn begin(&mut self, bytes: &[u8]) -> io::Result<u64> {
        self.current = None;
        if self.folder.metadata()?.nlink() == 0 {
            self.folder = Self::open(&self.path, self.size).map_err(io::Error::other)?.folder;
        }
        self.locked(|this| {
            let files = this.files()?;
            let (number, files) = match next(&files) {
                Some(number) => (number, files),
                None => this.renumbered(&files)?,
            };
            let all = this.make_room(files, bytes.len() as u64)?;
            let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_APPEND;
            let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            let made = openat(&this.folder, name(number).as_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR)?;
            let mut file = File::from(made);
            if let Err(error) = file.write_all(bytes) {
                // Of no use without its beginning.
                let _ = unlinkat(&this.folder, name(number).as_str(), UnlinkatFlags::NoRemoveDir);
                return Err(error);
            }
            this.current = Some(Current { file, number });
            Ok(all)
        })
    }

    /// Goes on with it; tells how many bytes stand in the folder then. After an error nothing more can be appended.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let appended = self.locked(|this| {
            let all = this.make_room(this.files()?, bytes.len() as u64)?;
            let Some(Current { file, .. }) = &mut this.current else { return Err(gone()) };
            let before = file.metadata()?;
            // Another process, or a person, has removed it.
            if before.nlink() == 0 {
                return Err(gone());
            }
            if let Err(error) = file.write_all(bytes) {
                // A torn end does no harm, and takes room.
                let _ = file.set_len(before.size());
                return Err(error);
            }
            Ok(all)
        });
        if appended.is_err() {
            self.current = None;
        }
        appended
    }

    fn locked<T>(&mut self, act: impl FnOnce(&mut Self) -> io::Result<T>) -> io::Result<T> {
        self.folder.lock()?;
        let done = act(self);
        let _ = self.folder.unlock();
        done
    }

    /// Removes the oldest until `more` bytes fit in; tells how many there are with them.
    fn make_room(&self, mut files: Vec<Segment>, more: u64) -> io::Result<u64> {
        files.retain(|file| !file.is_folder);
        let mut all = files.iter().map(|file| file.size).sum::<u64>() + more;
        // The one that is about to begin counts.
        let mut n = files.len() + usize::from(self.current.is_none());
        let current = self.current.as_ref().map(|current| current.number);
        for file in files.into_iter().filter(|file| Some(file.number) != current) {
            if all <= self.size && n <= MOST_FILES {
                break;
            }
            unlinkat(&self.folder, name(file.number).as_str(), UnlinkatFlags::NoRemoveDir)?;
            all -= file.size;
            n -= 1;
        }
        if all > self.size {
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, "the segment is larger than recorder.size"));
        }
        Ok(all)
    }

    fn files(&self) -> io::Result<Vec<Segment>> {
        files(&self.folder)
    }

    /// Gives all segments the first numbers that are free, in their order, and tells the next number: the last one there is was
    /// taken, as by a file that somebody put there. Another process finds the file it writes to under the new name, or begins
    /// anew where it made room by it.
    fn renumbered(&self, files: &[Segment]) -> io::Result<(u64, Vec<Segment>)> {
        let is_folder = |number: u64| files.iter().any(|file| file.is_folder && file.number == number);
        let mut free = (1..=LAST).filter(|number| !is_folder(*number));
        let mut renumbered = Vec::with_capacity(files.len());
        for file in files.iter().filter(|file| !file.is_folder) {
            let Some(number) = free.next().filter(|number| *number <= file.number) else { continue };
            renameat(&self.folder, name(file.number).as_str(), &self.folder, name(number).as_str())?;
            renumbered.push(Segment { number, ..*file });
        }
        let number = free.next().ok_or_else(|| io::Error::other("every number of a segment is taken"))?;
        Ok((number, renumbered))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    This,
    Any,
}

fn not_opened(path: &Path, error: &io::Error) -> FolderError {
    match without_end(path).symlink_metadata() {
        Ok(found) if found.is_symlink() => FolderError::new("it is a symbolic link", "name the folder itself"),
        Ok(found) if !found.is_dir() => {
            FolderError::new("it is no folder", "name one, or a place where one can be made")
        }
        Ok(_) | Err(_) => FolderError::new(format!("it cannot be opened: {error}"), "let this user read and write it"),
    }
}

fn usable(folder: &File, owner: Owner) -> Result<(), FolderError> {
    ::files::can_keep(folder).map_err(|error| FolderError::new(error, "name a folder on a disk"))?;
    let found = folder.metadata().map_err(|error| FolderError::new(error, "let this user read and write it"))?;
    let own = geteuid().as_raw();
    if found.uid() != own && owner == Owner::This {
        let what = format!("it belongs to user {}, and this is user {own}", found.uid());
        return Err(FolderError::new(what, "use a folder of its own"));
    }
    if found.mode() & 0o022 != 0 {
        let what = format!("others may write to it (mode {:o})", found.mode() & 0o777);
        return Err(FolderError::new(what, "take that from them: chmod go-w"));
    }
    let access = faccessat(folder, ".", AccessFlags::W_OK | AccessFlags::X_OK, AtFlags::AT_EACCESS);
    access.map_err(|error| FolderError::new(format!("it cannot be written to: {error}"), "let this user write to it"))
}

/// What the segments' files in a folder hold, oldest first; `longest` bytes in all at most.
pub fn read(path: &Path, longest: usize) -> io::Result<Vec<(String, Vec<u8>)>> {
    let folder = OpenOptions::new().read(true).custom_flags(OFlag::O_DIRECTORY.bits()).open(path)?;
    let mut left = longest;
    let mut all = Vec::new();
    for file in files(&folder)? {
        let name = name(file.number);
        match ::files::read_whole(&path.join(&name), left) {
            Ok(bytes) => {
                left -= bytes.len();
                all.push((name, bytes));
            }
            // It has made room meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // A pipe or a folder: nothing that was written here.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    number: u64,
    size: u64,
    /// Somebody's own, called like a segment: it stays, and no file gets its number.
    is_folder: bool,
}

/// In the order in which they were made.
fn files(folder: &File) -> io::Result<Vec<Segment>> {
    let mut files = Vec::new();
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    for entry in Dir::openat(folder, ".", flags, Mode::empty())?.iter() {
        let entry = entry?;
        let Some(number) = entry.file_name().to_str().ok().and_then(number) else { continue };
        match fstatat(folder, entry.file_name(), AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(found) => {
                let is_folder = SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR;
                files.push(Segment { number, size: u64::try_from(found.st_size).unwrap_or_default(), is_folder });
            }
            // Removed by another process, which has to hold no lock for it.
            Err(nix::errno::Errno::ENOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    files.sort_unstable_by_key(|file| file.number);
    Ok(files)
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
    OpenOptions::new().read(true).custom_flags(flags.bits()).open(without_end(path))
}

/// Without a slash or a dot at the end, which has a link followed that is to be refused.
fn without_end(path: &Path) -> PathBuf {
    path.components().collect()
}

fn name(number: u64) -> String {
    format!("{number:010}{ENDING}")
}

/// The number of a file that is called like a segment's; others are left alone.
fn number(of: &str) -> Option<u64> {
    let digits = of.strip_suffix(ENDING)?;
    let number = digits.parse().ok()?;
    (name(number) == of && (1..=LAST).contains(&number)).then_some(number)
}

/// The number of the segment after the newest, where there is one.
fn next(files: &[Segment]) -> Option<u64> {
    let newest = files.iter().rfind(|file| !file.is_folder).map_or(0, |file| file.number);
    let mut free = (newest + 1..=LAST).filter(|number| files.iter().all(|file| file.number != *number));
    free.next()
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the segment's file was removed")
}

const PARENT: &str = "expected a folder, or a place where one can be made: the folder around it has to be there";
const ENDING: &str = ".segment";
/// Names have ten digits, so that a list of them is in order: one a second for three hundred years.
const LAST: u64 = 9_999_999_999;
/// A process that ends soon after each start leaves small ones; looking at them takes time.
const MOST_FILES: usize = 256;

//! Reading the files that a configuration names: whole, bounded, and without ever waiting for somebody else. Also
//! [opening one for appending](append), and [whether that could be done](can_append), told without touching it.
//!
//! A path that is wrong by mistake (or on purpose) may be a pipe, which keeps whoever opens it waiting for a writer, or a
//! device, which need not end. All of those are told apart from a file before a byte is read:
//!
//! ```text
//!   open, without waiting ──> a regular file? ──no──> refused
//!                                  │yes
//!                                  └──> read, `longest` bytes at most ──longer──> refused
//! ```
#![forbid(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::{AccessFlags, access};

/// Reads a regular file of at most `longest` bytes whole. Blocks for as long as the disk does.
pub fn read_whole(path: &Path, longest: usize) -> io::Result<Vec<u8>> {
    // Without the flag the open of a pipe waits for a writer; to a file it means nothing. What is open is looked at, not
    // what the path leads to: that may be another thing by then.
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    read_at_most(file, longest)
}

/// The same for text in UTF-8.
pub fn read_text(path: &Path, longest: usize) -> io::Result<String> {
    let bytes = read_whole(path, longest)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// The same for what a user hands over, which may be a pipe when it is one of the process's own descriptors
/// (`/dev/stdin`, `/dev/fd/63`): their writer is there already.
pub fn read_given(path: &Path, longest: usize) -> io::Result<Vec<u8>> {
    if path.starts_with("/dev") { read_at_most(File::open(path)?, longest) } else { read_whole(path, longest) }
}

/// Opens the file for appending, or makes it. It may be a pipe that somebody reads from; where nobody does that is an error,
/// for an open that waits for a reader is ended by nothing. Writing then waits as usual.
pub fn append(path: &Path) -> io::Result<File> {
    let opened = OpenOptions::new().append(true).create(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path);
    let is_pipe = || std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
    let file = match opened {
        Err(error) if error.raw_os_error() == Some(Errno::ENXIO as i32) && is_pipe() => {
            return Err(io::Error::new(error.kind(), "it is a pipe, and nobody reads from it yet"));
        }
        opened => opened?,
    };
    let flags = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL)?);
    fcntl(&file, FcntlArg::F_SETFL(flags - OFlag::O_NONBLOCK))?;
    Ok(file)
}

/// Whether this process could append to the file, or make it when there is none. Nothing is opened, made or changed, so
/// nobody finds out whether a pipe has a reader.
pub fn can_append(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => Ok(access(path, AccessFlags::W_OK)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match std::fs::read_link(path) {
            // It is made where the link leads to. Links in a circle are another error.
            Ok(target) => can_append(&path.parent().unwrap_or(Path::new("")).join(target)),
            Err(_) => can_make(path),
        },
        Err(error) => Err(error),
    }
}

/// Whether this process could make something at the path, where nothing is yet.
pub fn can_make(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match access(folder, AccessFlags::W_OK | AccessFlags::X_OK) {
        Ok(()) => Ok(()),
        Err(errno) => {
            let error = io::Error::from(errno);
            Err(io::Error::new(error.kind(), format!("the folder {}: {error}", folder.display())))
        }
    }
}

fn read_at_most(file: File, longest: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more tells a file that is too long from one that is just as long as allowed.
    file.take(longest as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > longest {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {}", Size(longest))));
    }
    Ok(bytes)
}

/// A bound as people write it.
struct Size(usize);

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const KIB: usize = 1024;
        const MIB: usize = 1024 * KIB;
        match self.0 {
            bytes if bytes >= MIB && bytes.is_multiple_of(MIB) => write!(f, "{} MiB", bytes / MIB),
            bytes if bytes >= KIB && bytes.is_multiple_of(KIB) => write!(f, "{} KiB", bytes / KIB),
            bytes => write!(f, "{bytes} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use nix::sys::stat::Mode;

    #[test]
    fn a_file_is_read_whole_up_to_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![b'x'; 1024]).unwrap();
        assert_eq!(read_whole(&path, 1024).unwrap().len(), 1024);
        assert_eq!(read_text(&path, 2048).unwrap().len(), 1024);
        assert_eq!(read_whole(&path, 1023).unwrap_err().to_string(), "it has more than 1023 bytes");
        std::fs::write(&path, vec![b'x'; 1025]).unwrap();
        assert_eq!(read_whole(&path, 1024).unwrap_err().to_string(), "it has more than 1 KiB");
        std::fs::write(&path, [0xff]).unwrap();
        assert_eq!(read_text(&path, 1024).unwrap_err().to_string(), "it is not UTF-8");
        assert_eq!(read_whole(&folder.path().join("none"), 1).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn pipes_devices_and_folders_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        for path in [pipe.as_path(), folder.path(), Path::new("/dev/zero")] {
            let said = read_whole(path, 1024).unwrap_err().to_string();
            assert_eq!(said, "it is not a regular file", "{}", path.display());
        }
        assert!(read_given(&pipe, 1024).is_err());
    }

    #[test]
    fn whether_a_file_could_be_appended_to_is_told_without_touching_it() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        std::fs::write(&old, "x").unwrap();
        can_append(&old).unwrap();
        can_append(&new).unwrap();
        assert!(!new.exists());
        assert_eq!(std::fs::read(&old).unwrap(), b"x");
        can_append(Path::new("/dev/null")).unwrap();
        assert_eq!(can_append(folder.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(can_append(&old.join("in-a-file")).unwrap_err().kind(), io::ErrorKind::NotADirectory);
        let nowhere = can_append(&new.join("log")).unwrap_err();
        assert_eq!(nowhere.kind(), io::ErrorKind::NotFound);
        assert!(nowhere.to_string().contains(&format!("the folder {}", new.display())), "{nowhere}");
        // Root may write everywhere.
        if !nix::unistd::geteuid().is_root() {
            std::fs::set_permissions(&old, std::os::unix::fs::PermissionsExt::from_mode(0o400)).unwrap();
            assert_eq!(can_append(&old).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
    }

    #[test]
    fn a_link_to_where_nothing_is_yet_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let [link, lost, circle] = ["link", "lost", "circle"].map(|name| folder.path().join(name));
        for (to, at) in [("new", &link), ("nowhere/new", &lost), ("circle", &circle)] {
            std::os::unix::fs::symlink(to, at).unwrap();
        }
        can_append(&link).unwrap();
        append(&link).unwrap();
        assert!(folder.path().join("new").exists());
        assert_eq!(can_append(&lost).unwrap_err().kind(), append(&lost).unwrap_err().kind());
        assert!(can_append(&circle).is_err() && append(&circle).is_err());
    }

    #[test]
    fn a_pipe_is_appended_to_where_somebody_reads_it_and_never_waited_for() {
        use std::io::Write;
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        assert_eq!(append(&pipe).unwrap_err().to_string(), "it is a pipe, and nobody reads from it yet");
        let mut reader = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(&pipe).unwrap();
        let mut file = append(&pipe).unwrap();
        file.write_all(b"line").unwrap();
        let flags = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL).unwrap());
        assert!(!flags.contains(OFlag::O_NONBLOCK), "a full pipe is waited for, as a slow disk is");
        let mut read = [0; 4];
        reader.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"line");
    }

    #[test]
    fn what_is_handed_over_may_be_a_stream_and_is_bounded_all_the_same() {
        assert_eq!(read_given(Path::new("/dev/null"), 1024).unwrap(), []);
        assert_eq!(read_given(Path::new("/dev/zero"), 2 << 20).unwrap_err().to_string(), "it has more than 2 MiB");
    }
}

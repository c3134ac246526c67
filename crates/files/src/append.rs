//! Opening a file for appending, and whether that could be done, told without touching it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::place::{can_keep, can_make_file, may_write};

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
    can_keep(&file)?;
    let flags = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL)?);
    fcntl(&file, FcntlArg::F_SETFL(flags - OFlag::O_NONBLOCK))?;
    Ok(file)
}

/// Whether [`append`] would do, told without making or changing anything. A file that is there is opened, as it would be, and
/// closed again; nobody finds out whether a pipe has a reader, who would take that for the end.
pub fn can_append(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => append(path).map(drop),
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if found.file_type().is_socket() => Err(Errno::ENXIO.into()),
        Ok(_) => may_write(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match std::fs::read_link(path) {
            // It is made where the link leads to. Links in a circle are another error.
            Ok(target) => can_append(&path.parent().unwrap_or(Path::new("")).join(target)),
            Err(_) => can_make_file(path),
        },
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Read;

    use super::*;
    use nix::sys::stat::Mode;

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
    fn a_place_that_could_be_appended_to_is_one_that_can_be() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "").unwrap();
        for (to, link) in [("new", "link"), ("nowhere/new", "lost"), ("circle", "circle"), ("new/", "link-to-folder")] {
            std::os::unix::fs::symlink(to, at(link)).unwrap();
        }
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for (name, can) in [
            ("file", true),
            ("file/", false),
            ("file/new", false),
            ("new/", false),
            ("new/.", false),
            ("none/new", false),
            ("none/../new", false),
            (".", false),
            ("", false),
            ("lost", false),
            ("circle", false),
            ("link-to-folder", false),
            ("socket", false),
            ("link", true),
            ("new", true),
            ("/proc", false),
            ("/proc/new", false),
            ("/proc/self/status", false),
            ("/sys/new", false),
            ("/sys/kernel/notes", false),
            ("/dev/null", true),
        ] {
            let said = can_append(&at(name));
            assert_eq!((said.is_ok(), append(&at(name)).is_ok()), (can, can), "{name}: {said:?}");
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
}

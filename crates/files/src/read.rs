//! Reading a file whole. A path that is wrong by mistake (or on purpose) may be a pipe, which keeps whoever opens it waiting
//! for a writer, or a device, which need not end. All of those are told apart from a file before a byte is read:
//!
//! ```text
//!   open, without waiting ──> a regular file? ──no──> refused
//!                                  │yes
//!                                  └──> read, `longest` bytes at most ──longer──> refused
//! ```

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;

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
    fn what_is_handed_over_may_be_a_stream_and_is_bounded_all_the_same() {
        assert_eq!(read_given(Path::new("/dev/null"), 1024).unwrap(), []);
        assert_eq!(read_given(Path::new("/dev/zero"), 2 << 20).unwrap_err().to_string(), "it has more than 2 MiB");
    }
}

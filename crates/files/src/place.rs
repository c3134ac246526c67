//! Whether something could be made at a path, told without making it.

use std::fs::metadata;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::sys::statfs::{
    BPF_FS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC, FsType, PROC_SUPER_MAGIC, SECURITYFS_MAGIC,
    SELINUX_MAGIC, SYSFS_MAGIC, TRACEFS_MAGIC, fstatfs, statfs,
};
use nix::unistd::{AccessFlags, faccessat};

/// Whether this process could make a file or a socket at the path, where nothing is yet. What the kernel says of such a
/// path is the error: a name that ends in a slash is a folder's.
pub fn can_make_file(path: &Path) -> io::Result<()> {
    if names_a_folder(path) {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    can_make_in(folder_of(path))
}

/// Whether it could make a folder there, and only that.
pub fn can_make_folder(path: &Path) -> io::Result<()> {
    if path.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    can_make_in(folder_of(path))
}

/// Refuses what the kernel shows as files (`/proc`, `/sys`): some of it can be opened for writing, or belongs to root, and
/// nothing that is written there is kept.
pub fn can_keep(open: impl AsFd) -> io::Result<()> {
    kept_by(fstatfs(open)?.filesystem_type())
}

/// Whether nothing but a folder can have this name.
pub(crate) fn names_a_folder(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Whether this process may write to what is there. What it may is asked of the kernel, which knows of capabilities and of
/// file systems that are mounted for reading alone.
pub(crate) fn may_write(path: &Path) -> io::Result<()> {
    Ok(faccessat(AT_FDCWD, path, AccessFlags::W_OK, AtFlags::AT_EACCESS)?)
}

/// The folder in which the last name of the path would be made. [`Path::parent`] is another one for `new/.`, which nothing
/// can be made at while there is no `new`.
fn folder_of(path: &Path) -> &Path {
    let text = path.as_os_str().as_encoded_bytes();
    let is_dot = text.ends_with(b"/.");
    match path.parent() {
        Some(_) if is_dot => path,
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    }
}

fn can_make_in(folder: &Path) -> io::Result<()> {
    let can = || {
        if !metadata(folder)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        faccessat(AT_FDCWD, folder, AccessFlags::W_OK | AccessFlags::X_OK, AtFlags::AT_EACCESS)?;
        kept_by(statfs(folder)?.filesystem_type())
    };
    can().map_err(|error: io::Error| io::Error::new(error.kind(), format!("the folder {}: {error}", folder.display())))
}

fn kept_by(kind: FsType) -> io::Result<()> {
    if OF_THE_KERNEL.contains(&kind) {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "the kernel shows itself there and keeps no files"));
    }
    Ok(())
}

/// File systems that are the kernel's own words, and what is mounted below them as a rule.
const OF_THE_KERNEL: [FsType; 9] = [
    PROC_SUPER_MAGIC,
    SYSFS_MAGIC,
    CGROUP_SUPER_MAGIC,
    CGROUP2_SUPER_MAGIC,
    DEBUGFS_MAGIC,
    TRACEFS_MAGIC,
    SECURITYFS_MAGIC,
    SELINUX_MAGIC,
    BPF_FS_MAGIC,
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_could_be_made_is_what_can_be_made() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        for name in ["new", "new/", "new/.", "new/..", "none/new", "none/../new", "file/new", "link", "link/new"] {
            let path = folder.path().join(name);
            let said = can_make_folder(&path);
            assert_eq!(said.is_ok(), std::fs::create_dir(&path).is_ok(), "folder {name}: {said:?}");
            let _ = std::fs::remove_dir(&path);
            if name == "link" {
                // A file is made where the link leads to.
                continue;
            }
            let said = can_make_file(&path);
            assert_eq!(said.is_ok(), std::fs::File::create_new(&path).is_ok(), "file {name}: {said:?}");
            let _ = std::fs::remove_file(&path);
        }
    }

    #[test]
    fn nothing_is_made_where_the_kernel_shows_itself() {
        for folder in ["/proc", "/proc/self", "/sys"] {
            let path = Path::new(folder).join("new");
            for said in [can_make_file(&path), can_make_folder(&path)] {
                assert!(said.is_err(), "{}", path.display());
            }
        }
        assert_eq!(can_keep(std::fs::File::open("/proc").unwrap()).unwrap_err().kind(), io::ErrorKind::Unsupported);
        can_keep(tempfile::tempfile().unwrap()).unwrap();
    }
}

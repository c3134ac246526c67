//! Unix sockets that have a path.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;

use crate::place::{can_make_file, can_make_folder, names_a_folder};

/// Binds with mode 0660. A socket that nobody listens on any more is replaced, and its folder is made when only that is
/// missing; whatever else is there stays, and is an error.
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    can_bind(path)?;
    if let Some(folder) = missing_folder(path) {
        fs::create_dir(folder)?;
    }
    match UnixStream::connect(path) {
        Ok(_) => return Err(io::Error::new(io::ErrorKind::AddrInUse, "another process listens there")),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)?,
        Err(_) => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
    Ok(listener)
}

/// Whether [`bind`] could bind the path, unless a process listens there. Nothing is made or changed.
pub fn can_bind(path: &Path) -> io::Result<()> {
    // Of a path that is too long for a socket.
    SocketAddr::from_pathname(path)?;
    if names_a_folder(path) {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    match fs::symlink_metadata(path) {
        // A plain file refuses a connection just as a dead socket does; it must not be taken for one.
        Ok(found) if !found.file_type().is_socket() => {
            Err(io::Error::new(io::ErrorKind::AddrInUse, "there is something that is no socket"))
        }
        Ok(_) | Err(_) => match missing_folder(path) {
            Some(folder) => can_make_folder(folder),
            None => can_make_file(path),
        },
    }
}

fn missing_folder(path: &Path) -> Option<&Path> {
    path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_place_that_could_be_bound_is_one_that_can_be_and_no_other_thing_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "precious").unwrap();
        std::os::unix::fs::symlink("nowhere", at("link")).unwrap();
        std::os::unix::fs::symlink("file", at("link-to-file")).unwrap();
        drop(UnixListener::bind(at("dead")).unwrap());
        let long = "s".repeat(108);
        for (name, can) in [
            ("socket", true),
            ("dead", true),
            ("new/socket", true),
            ("file", false),
            ("link", false),
            ("link-to-file", false),
            ("link/socket", false),
            ("file/socket", false),
            ("none/none/socket", false),
            ("socket/", false),
            ("other/", false),
            ("none/socket/", false),
            (long.as_str(), false),
            ("/proc/socket", false),
            ("/proc/new/socket", false),
            ("/sys/socket", false),
        ] {
            let said = can_bind(&at(name));
            assert_eq!((said.is_ok(), bind(&at(name)).is_ok()), (can, can), "{name}: {said:?}");
        }
        assert!(!at("none").exists() && at("link").is_symlink());
        assert_eq!(fs::read(at("file")).unwrap(), b"precious");
    }

    #[test]
    fn a_socket_that_somebody_listens_on_stays_theirs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let theirs = bind(&path).unwrap();
        assert_eq!(bind(&path).unwrap_err().to_string(), "another process listens there");
        drop(theirs);
        bind(&path).unwrap();
    }
}

//! Files and sockets that the start opens beside the configuration: whether it could, looked at without touching any, and
//! what is wrong said at the key that names the place.

use std::io;
use std::path::Path as File;

use ::config::raw::path::Path;
use ::config::{Loaded, Report};
use control::BindError;
use model::cluster::UpstreamTls;
use model::config::{AccessLog, ControlSocket, Recorder};
use monitor::ConfigureError;
use monitor::spool::{Folder, FolderError};

use crate::error::Error;

/// Looks at all of them. What holds for this user may not hold for the one that will serve.
pub(crate) fn check(loaded: &Loaded) -> Result<(), Box<Report>> {
    let mut mistakes = Vec::new();
    match &loaded.config.access_log {
        AccessLog::Off | AccessLog::Stdout => {}
        AccessLog::File(path) => {
            mistakes.extend(files::can_append(path).err().map(|error| access_log_mistake(path, &error)));
        }
    }
    match &loaded.config.control.socket {
        ControlSocket::Off | ControlSocket::Default(_) => {}
        ControlSocket::Path(path) => {
            mistakes.extend(files::socket::can_bind(path).err().map(|error| socket_mistake(path, &error)));
        }
    }
    if let Some(Recorder { folder: Some(path), .. }) = &loaded.config.recorder {
        mistakes.extend(Folder::check(path).err().map(|error| folder_mistake(path, &error)));
    }
    refuse(loaded, &mistakes)
}

/// The report of a flight recorder's folder that cannot be used.
pub(crate) fn folder_refused(loaded: &Loaded, path: &File, error: &FolderError) -> Box<Report> {
    report(loaded, &[folder_mistake(path, error)])
}

/// The report of an access log that could not be opened, in the words of [`check`] where it finds the same.
pub(crate) fn access_log_refused(loaded: &Loaded, path: &File, error: &io::Error) -> Box<Report> {
    let found = files::can_append(path).err();
    report(loaded, &[access_log_mistake(path, found.as_ref().unwrap_or(error))])
}

/// Why the control API cannot listen: a report where [`check`] would have found it, for only a start knows what another process
/// has taken.
pub(crate) fn control_refused(loaded: &Loaded, error: BindError) -> Error {
    match &error {
        BindError::Unix { path, source } if files::socket::can_bind(path).is_err() => {
            Error::Config(report(loaded, &[socket_mistake(path, source)]))
        }
        BindError::Unix { .. } | BindError::Tcp { .. } => Error::Control(error),
    }
}

/// Why what a cluster needs for TLS cannot be had.
pub(crate) fn cluster_refused(loaded: &Loaded, error: ConfigureError) -> Error {
    match &error {
        ConfigureError::Tls { cluster, source } => {
            let tls = loaded.config.clusters.iter().find(|candidate| candidate.id == *cluster).map(|found| &found.tls);
            let key = tls.zip(source.path()).and_then(|(tls, path)| key_of(tls, path));
            let setting = ["clusters", cluster.as_str(), "tls"].into_iter().chain(key);
            let mend = "expected PEM files that may be read: authorities, or a certificate and its key";
            Error::Config(report(loaded, &[(Path::of(setting), error.to_string(), mend)]))
        }
        ConfigureError::Gone(gone) => Error::Monitor(*gone),
    }
}

/// Which key of `tls` names the file.
fn key_of(tls: &UpstreamTls, file: &File) -> Option<&'static str> {
    let client = tls.client_certificate.as_ref();
    let named = [
        ("ca", tls.ca.as_deref()),
        ("certificate", client.map(|files| files.certificate.as_path())),
        ("key", client.map(|files| files.key.as_path())),
    ];
    named.into_iter().find(|(_, path)| *path == Some(file)).map(|(key, _)| key)
}

/// What is worth a word: the process serves all the same.
pub(crate) fn warnings(loaded: &Loaded) -> Vec<String> {
    let unusable = |path: &File| {
        let error = control::access::token(path).err()?;
        Some(format!("control.token_file {}: {error}; no token is admitted until that is mended", path.display()))
    };
    loaded.config.control.token_file.as_deref().and_then(unusable).into_iter().collect()
}

/// The setting, what is wrong with it, what mends it.
type Mistake = (Path, String, &'static str);

fn access_log_mistake(path: &File, error: &io::Error) -> Mistake {
    let what = format!("the access log `{}` cannot be opened: {error}", path.display());
    (Path::of(["access_log"]), what, "expected off, stdout, or a file in a folder that exists and may be written")
}

fn socket_mistake(path: &File, error: &io::Error) -> Mistake {
    let what = format!("the control socket `{}` cannot be bound: {error}", path.display());
    (Path::of(["control", "socket"]), what, "expected off, or a path in a folder that may be written")
}

fn folder_mistake(path: &File, error: &FolderError) -> Mistake {
    let what = format!("the recorder's folder `{}` cannot be used: {error}", path.display());
    (Path::of(["recorder", "folder"]), what, error.mend())
}

fn refuse(loaded: &Loaded, mistakes: &[Mistake]) -> Result<(), Box<Report>> {
    if mistakes.is_empty() { Ok(()) } else { Err(report(loaded, mistakes)) }
}

fn report(loaded: &Loaded, mistakes: &[Mistake]) -> Box<Report> {
    loaded.refuse(mistakes.iter().map(|(path, what, mend)| (path.clone(), what.as_str(), *mend)))
}

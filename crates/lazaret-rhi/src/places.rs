//! Files and the socket that the start opens beside the configuration: whether it could, looked at without changing any, and
//! what is wrong said at the key that names the place.

use std::io;
use std::path::Path as File;

use config::raw::path::Path;
use config::{LoadedRhi, Report};

/// Looks at the logs. What holds for this user may not hold for the one that will serve.
pub(crate) fn check(loaded: &LoadedRhi) -> Result<(), Box<Report>> {
    let logs = [("main_log", &loaded.config.main_log), ("error_log", &loaded.config.error_log)];
    let mistakes: Vec<_> = logs
        .into_iter()
        .filter_map(|(key, log)| {
            let path = log.as_ref()?;
            Some((key, mistake(path, &files::can_append(path).err()?)))
        })
        .collect();
    if mistakes.is_empty() { Ok(()) } else { Err(report(loaded, &mistakes)) }
}

/// The report of a log that could not be opened, in the words of [`check`] where it finds the same.
pub(crate) fn log_refused(loaded: &LoadedRhi, path: &File, error: &io::Error) -> Box<Report> {
    let key = if loaded.config.main_log.as_deref() == Some(path) { "main_log" } else { "error_log" };
    let found = files::can_append(path).err();
    report(loaded, &[(key, mistake(path, found.as_ref().unwrap_or(error)))])
}

/// What is worth a word: the daemon does its work all the same.
pub(crate) fn warnings(loaded: &LoadedRhi) -> Option<String> {
    let path = &loaded.config.status_socket;
    let error = files::socket::can_bind(path).err()?;
    Some(format!("status_socket {}: {error}; there is none until that is mended", path.display()))
}

fn mistake(path: &File, error: &io::Error) -> String {
    format!("the log `{}` cannot be opened: {error}", path.display())
}

fn report(loaded: &LoadedRhi, mistakes: &[(&str, String)]) -> Box<Report> {
    let mend = "expected a file in a folder that exists and may be written";
    loaded.refuse(mistakes.iter().map(|(key, what)| (Path::of([*key]), what.as_str(), mend)))
}

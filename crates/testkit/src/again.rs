//! Saying aloud that a test measured once more, because the machine could not be believed.

use std::fs::OpenOptions;
use std::io::Write;

/// Leaves the line `MEASURED AGAIN <test>: <why>` on standard error and in the file that `LAZARET_AGAIN` names: `cargo xtask
/// test` repeats such lines at the end of a run.
pub fn again(test: &str, why: &str) {
    let why = why.replace(['\n', '\r'], " ");
    let line = format!("MEASURED AGAIN {test}: {why}\n");
    // As for skips: `eprintln!` is captured for passing tests, and a runner may capture this, too.
    std::io::stderr().lock().write_all(line.as_bytes()).expect("standard error is open");
    if let Some(path) = std::env::var_os("LAZARET_AGAIN") {
        let mut file = OpenOptions::new().append(true).create(true).open(path).expect("the file can be written");
        file.write_all(line.as_bytes()).expect("the file can be written");
    }
}

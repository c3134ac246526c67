//! Saying aloud that a test could not run here.

use std::fs::OpenOptions;
use std::io::Write;

/// Leaves the line `SKIPPED <test>: lacks <what>` on standard error and in the file that `LAZARET_SKIPS` names:
/// `cargo xtask test` repeats such lines at the end of a run and counts them. Under `CI=true` a skip is a failure: there
/// every test has what it needs.
///
/// ```no_run
/// # fn has_bird() -> bool { false }
/// if !has_bird() {
///     return testkit::skip("a_vip_leaves_bgp", "bird");
/// }
/// ```
pub fn skip(test: &str, what: &str) {
    let line = format!("SKIPPED {test}: lacks {what}\n");
    assert!(std::env::var_os("CI").is_none_or(|value| value != "true"), "{line}");
    // Straight to the descriptor, since `eprintln!` is captured for passing tests. A runner may capture it all the same,
    // hence the file.
    std::io::stderr().lock().write_all(line.as_bytes()).expect("standard error is open");
    if let Some(path) = std::env::var_os("LAZARET_SKIPS") {
        let mut file = OpenOptions::new().append(true).create(true).open(path).expect("the file can be written");
        // One write of one line: tests in other processes append, too.
        file.write_all(line.as_bytes()).expect("the file can be written");
    }
}

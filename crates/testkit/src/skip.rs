//! Saying aloud that a test could not run here.

use std::io::Write;

/// Prints `SKIPPED <test>: lacks <what>`, the form that `cargo xtask test` collects and repeats at the end of a run.
/// Under `CI=true` a skip is a failure: there every test has what it needs.
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
    // Straight to the descriptor: `println!` is captured for passing tests, and a skip that nobody sees is a lie.
    let written = std::io::stderr().lock().write_all(line.as_bytes());
    assert!(written.is_ok(), "standard error is closed");
}

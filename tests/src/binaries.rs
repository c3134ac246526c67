//! Finds the programs under test: they lie beside the test's own executable's folder.

use std::path::PathBuf;

/// The path of a program of this workspace (`lazaret`, `lazaret-rhi`, `patient`). `cargo xtask test` builds them before
/// the tests; a missing one ends the test with that word.
pub fn path(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let folder = test.parent().and_then(|deps| deps.parent()).expect("target/<profile>/deps/<test>");
    let program = folder.join(name);
    assert!(program.exists(), "{} is missing: run `cargo build --workspace --bins` first", program.display());
    program
}

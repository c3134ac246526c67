//! Rules for each Rust file: its head, its length, its unfinished ends, its tests.

use std::path::Path;

pub(crate) fn findings(path: &Path, text: &str) -> Vec<String> {
    let shown = path.display();
    let mut findings = Vec::new();
    if !text.starts_with("//! ") {
        findings.push(format!("{shown}:1: opens without `//!` saying what it is and why"));
    }
    let length = text.lines().count();
    if length > LONGEST {
        findings.push(format!("{shown}: {length} lines, above {LONGEST}; one idea per file"));
    } else if length > LONG {
        println!("note: {shown}: {length} lines, above {LONG}");
    }
    let mut is_test = is_test_file(path);
    for (number, line) in (1..).zip(text.lines()) {
        is_test |= line.trim_start().starts_with("#[cfg(test)]") || line.trim_start().starts_with("#[cfg(all(test");
        let code = line.split("//").next().unwrap_or_default();
        for (mark, why) in UNFINISHED.map(|[a, b, why]| (format!("{a}{b}"), why)) {
            if line.contains(&mark) {
                findings.push(format!("{shown}:{number}: {mark}: {why}"));
            }
        }
        let allows_panics = code.contains("allow(") && PANICS.iter().any(|lint| code.contains(lint));
        if allows_panics && !is_test {
            findings.push(format!(
                "{shown}:{number}: panics are allowed in tests alone; state the invariant in an `expect` attribute"
            ));
        }
    }
    findings
}

/// Whole files of test code, and crates that only tests and developers run.
fn is_test_file(path: &Path) -> bool {
    let is_development =
        ["crates/testkit", "tests", "xtask", "bench", "twins"].iter().any(|folder| path.starts_with(folder));
    let is_in_tests = path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "benches");
    is_development || is_in_tests || path.file_stem().is_some_and(|stem| stem == "tests")
}

const LONG: usize = 400;
const LONGEST: usize = 800;

/// Joined when used, so that this file does not find itself.
const UNFINISHED: [[&str; 3]; 6] = [
    ["TO", "DO", "a plan belongs in docs/roadmap.md"],
    ["FIX", "ME", "repair it, or describe it in docs/roadmap.md"],
    ["XX", "X:", "repair it, or describe it in docs/roadmap.md"],
    ["#[ig", "nore", "a test that does not run is no test"],
    ["#[should_", "panic", "ask for the error by name"],
    ["todo", "!(", "unfinished code does not go in"],
];

const PANICS: [&str; 3] = ["clippy::unwrap_used", "clippy::expect_used", "clippy::panic"];

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        findings(Path::new(path), text).len()
    }

    #[test]
    fn each_rule_finds_its_breach_and_nothing_else() {
        assert_eq!(found("crates/a/src/b.rs", "//! Good.\nfn main() {}\n"), 0);
        assert_eq!(found("crates/a/src/b.rs", "fn main() {}\n"), 1);
        assert_eq!(found("crates/a/src/b.rs", &format!("//! Long.\n{}", "\n".repeat(800))), 1);
        assert_eq!(found("crates/a/src/b.rs", &format!("//! Plan.\n// {}{}: more\n", "TO", "DO")), 1);
        let allow = "//! Panics.\n#![allow(clippy::panic)]\n";
        assert_eq!((found("crates/a/src/b.rs", allow), found("crates/a/tests/b.rs", allow)), (1, 0));
        assert_eq!(
            found("crates/a/src/b.rs", "//! Test.\n#[cfg(test)]\nmod tests {\n#![allow(clippy::panic)]\n}\n"),
            0
        );
    }
}

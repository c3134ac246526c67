//! Golden files: cases of an input and what is drawn of it, one after the other in one text file.
//!
//! A case is `=== its name`, the input, a line `---`, and the expected text. `UPDATE=1` writes what is drawn now.

#![allow(clippy::disallowed_methods)] // Golden files are read and written by the test alone.

use std::fmt::Write as _;

/// Runs `draw` on the input of each case of `tests/golden/<file>` and compares.
pub fn check(file: &str, draw: impl Fn(&str, &str) -> String) {
    let path = format!("{}/tests/golden/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let (mut written, mut wrong) = (String::new(), Vec::new());
    let (head, cases) = text.split_once("=== ").unwrap();
    written.push_str(head);
    for case in format!("=== {cases}").split("\n=== ").map(|case| case.trim_start_matches("=== ")) {
        let (name, rest) = case.split_once('\n').unwrap();
        let (input, expected) = rest.split_once("\n---\n").unwrap_or((rest.trim_end_matches("\n---"), ""));
        let drawn = draw(name, input);
        let drawn: String = drawn.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        if drawn.trim_end() != expected.trim_end() {
            wrong.push(format!("{name}:\n--- expected\n{}\n--- drawn\n{drawn}", expected.trim_end()));
        }
        write!(written, "=== {name}\n{input}\n---\n{}\n\n", drawn.trim_end()).unwrap();
    }
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(&path, written.trim_end().to_owned() + "\n").unwrap();
    } else {
        assert!(wrong.is_empty(), "{} of {path} differ:\n{}", wrong.len(), wrong.join("\n"));
    }
}

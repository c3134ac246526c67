//! The runner checked against itself.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

fn adder() -> impl FnMut(&str) -> String {
    let mut sum = 0;
    move |command: &str| {
        if command == "show" {
            return format!("sum:\n\n{sum}\n");
        }
        sum += command.lines().filter_map(|line| line.trim().parse::<i32>().ok()).sum::<i32>();
        if sum == 0 { String::new() } else { format!("{sum}") }
    }
}

const GOOD: &str = "# Sums.\n\n0\n----\n\n1\n\n# within a command\n2\n----\n3\n\n# Still the same sum.\nshow\n----\n----\nsum:\n\n3\n----\n----\n\n";

fn folder_with(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sums.txt");
    std::fs::write(&file, text).unwrap();
    (folder, file)
}

#[test]
fn a_file_that_holds_passes_and_prints_back_the_same() {
    let (folder, file) = folder_with(GOOD);
    check(folder.path(), |name| {
        assert_eq!(name, "sums");
        adder()
    });
    assert_eq!(check_file(&file, Mode::Update, adder()), "");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), GOOD);
}

#[test]
fn another_answer_fails_with_file_line_and_difference() {
    let (folder, file) = folder_with("# x\n1\n----\n1\n\n1\n----\n7\n");
    let report = check_file(&file, Mode::Compare, adder());
    assert!(report.contains("sums.txt:6: another answer\n    > 1\n    - 7\n    + 2\n"), "{report}");
    assert!(!report.contains(":2:"), "{report}");
    assert!(catch_unwind(AssertUnwindSafe(|| check(folder.path(), |_| adder()))).is_err());
}

#[test]
fn update_writes_the_answers_and_keeps_the_rest() {
    let (_folder, file) = folder_with("# note\n1\n----\n9\n\n\n# other\nshow\n----\n?\n");
    assert_eq!(check_file(&file, Mode::Update, adder()), "");
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text, "# note\n1\n----\n1\n\n\n# other\nshow\n----\n----\nsum:\n\n1\n----\n----\n\n");
    assert_eq!(check_file(&file, Mode::Compare, adder()), "");
}

#[test]
fn what_is_no_transcript_is_refused_with_its_line() {
    let wrong = |text| parse(text).map_err(|wrong| (wrong.line, wrong.what)).unwrap_err();
    assert_eq!(wrong("a\nb\n"), (1, "this command has no ---- after it"));
    assert_eq!(wrong("\n----\nx\n"), (2, "no command stands before this ----"));
    assert_eq!(wrong("a\n----\n1\nb\n----\n2\n").0, 5);
    assert_eq!(wrong("a\n----\n----\n1\n\n").0, 3);
}

#[test]
fn an_empty_folder_is_no_passed_test() {
    let folder = tempfile::tempdir().unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| check(folder.path(), |_| adder()))).is_err());
}

#[test]
fn the_difference_keeps_what_is_common() {
    assert_eq!(diff("a\nb\nc\n", "a\nx\nc\nd\n"), "      a\n    - b\n    + x\n      c\n    + d\n");
}

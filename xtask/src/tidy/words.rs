//! Words that do not belong into the repository: paths of one machine and talk of how the work was organised.

use std::path::Path;

pub(crate) fn findings(path: &Path, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let words = FORBIDDEN.map(|[a, b]| format!("{a}{b}"));
    for (number, line) in (1..).zip(text.lines()) {
        let lower = line.to_lowercase();
        for word in words.iter().filter(|word| stands_alone(&lower, word)) {
            findings.push(format!("{}:{number}: {word:?} says nothing to a reader of this repository", path.display()));
        }
    }
    findings
}

/// Whether `word` occurs with no letter or digit right before or behind it (where it begins or ends with one).
fn stands_alone(line: &str, word: &str) -> bool {
    let is_part = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    line.match_indices(word).any(|(at, _)| {
        let bytes = line.as_bytes();
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        let begins = is_part(word.as_bytes().first()) && is_part(before);
        let ends = is_part(word.as_bytes().last()) && is_part(bytes.get(at + word.len()));
        !begins && !ends
    })
}

/// Lower case; joined when used, so that this file does not find itself.
const FORBIDDEN: [[&str; 2]; 14] = [
    ["/wo", "rk/"],
    ["/ro", "ot/"],
    ["/tmp/tar", "get"],
    ["/home/", "runner"],
    ["issue ", "a"],
    ["issue ", "b"],
    ["issue ", "c"],
    ["the seed", "'s"],
    ["the seeds", "'"],
    ["seed ", "document"],
    ["this ses", "sion"],
    ["another ses", "sion"],
    ["as an ai", " "],
    ["language ", "model"],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_are_found_in_any_case_and_parts_of_words_are_not() {
        let line = format!("see Issue {} for it\nissue about\n", 'A');
        assert_eq!(findings(Path::new("x"), &line).len(), 1);
        assert!(stands_alone(&format!("in {}{}x", "/wo", "rk/"), &format!("{}{}", "/wo", "rk/")));
        assert!(!stands_alone("issue being", &format!("issue {}", 'b')));
    }
}

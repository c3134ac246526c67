//! The difference of two texts line by line, for people to read.

use std::fmt::Write as _;

/// Lines that only `wanted` has are marked `-`, those that only `got` has `+`; a longest common subsequence stays.
pub(super) fn diff(wanted: &str, got: &str) -> String {
    let wanted: Vec<&str> = wanted.lines().collect();
    let got: Vec<&str> = got.lines().collect();
    let common = common_lengths(&wanted, &got);
    let (mut i, mut j) = (0, 0);
    let mut text = String::new();
    while i < wanted.len() || j < got.len() {
        if i < wanted.len() && j < got.len() && wanted[i] == got[j] {
            let _ = writeln!(text, "      {}", wanted[i]);
            i += 1;
            j += 1;
        } else if j == got.len() || (i < wanted.len() && common[i + 1][j] >= common[i][j + 1]) {
            let _ = writeln!(text, "    - {}", wanted[i]);
            i += 1;
        } else {
            let _ = writeln!(text, "    + {}", got[j]);
            j += 1;
        }
    }
    text
}

/// `[i][j]`: length of the longest common subsequence of `a[i..]` and `b[j..]`.
fn common_lengths(a: &[&str], b: &[&str]) -> Vec<Vec<usize>> {
    let mut lengths = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            lengths[i][j] =
                if a[i] == b[j] { lengths[i + 1][j + 1] + 1 } else { lengths[i + 1][j].max(lengths[i][j + 1]) };
        }
    }
    lengths
}

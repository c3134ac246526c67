//! A comparison as text, JSON, a page, a picture, and many of them as tables of a document. Numbers have fixed digits, so equal figures are equal bytes.

pub mod text;

pub mod json;

pub mod html;

pub mod markdown;

pub mod picture;

pub mod replay;

mod chart;

use crate::compare::Estimate;

/// A number with as many digits as its size deserves.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    let text = if !(1e-9..100.0).contains(&size) {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    };
    // No minus in front of nothing.
    if text.trim_start_matches(['-', '0', '.']).is_empty() { text.trim_start_matches('-').to_owned() } else { text }
}

/// A mean with the half of its interval.
pub(crate) fn estimate(estimate: Option<Estimate>) -> String {
    match estimate {
        None => "-".to_owned(),
        Some(Estimate { mean, half: 0.0, .. }) => number(mean),
        Some(Estimate { mean, half, .. }) => format!("{} \u{b1} {}", number(mean), number(half)),
    }
}

/// What to think of figures of so few seeds; `None` where there are enough.
pub(crate) fn caution(seeds: usize) -> Option<String> {
    match seeds {
        0 | 1 => Some("one seed says nothing about luck: no intervals; take 10 seeds or more".to_owned()),
        2..FEW => Some(format!("the intervals of {seeds} seeds are wide and say little: take 10 seeds or more")),
        _ => None,
    }
}

/// Below, Student's t is more than half above that of many seeds.
const FEW: usize = 6;

/// The columns of the tables: heading, measure.
pub(crate) const COLUMNS: [(&str, &str); 8] = [
    ("failures", "failures"),
    ("added p50 ms", "added_p50"),
    ("added p99 ms", "added_p99"),
    ("extra load %", "extra_load"),
    ("healthy time lost s", "lost"),
    ("lost %", "lost_share"),
    ("detection s", "detection"),
    ("recovery s", "recovery"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_or_so_and_no_empty_minus() {
        let written = [0.0, -0.001, 0.5, 12.34, 1234.5, -3.25].map(number);
        assert_eq!(written, ["0", "0.00", "0.50", "12.3", "1234", "-3.25"]);
    }

    #[test]
    fn few_seeds_are_no_evidence_and_it_says_so() {
        assert!(caution(1).is_some_and(|text| text.contains("no intervals")));
        assert!(caution(2).is_some_and(|text| text.contains("2 seeds")));
        assert_eq!(caution(10), None);
    }
}

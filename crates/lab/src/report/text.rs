//! A comparison as a table for a terminal.

use super::{COLUMNS, caution, estimate};
use crate::compare::{Comparison, Estimate, Row};

/// The table, with a line for each policy.
pub fn render(comparison: &Comparison) -> String {
    let retries = if comparison.attempts > 1 {
        format!("up to {} attempts", comparison.attempts)
    } else {
        "no retries".to_owned()
    };
    let mut head: Vec<String> = vec!["policy".into()];
    head.extend(COLUMNS.iter().map(|(heading, _)| (*heading).to_owned()));
    head.extend(["failures above oracle".to_owned(), "p99 above oracle ms".to_owned()]);
    let mut lines = vec![head];
    lines.extend(comparison.rows.iter().map(line));
    let n = lines.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..n)
        .map(|at| lines.iter().filter_map(|line| line.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0))
        .collect();
    let note = caution(comparison.seeds).map(|note| format!("{note}\n")).unwrap_or_default();
    let mut text = format!(
        "{}\n{} seeds, {retries}; mean \u{b1} half of the 95 % interval\n{note}\n",
        comparison.title, comparison.seeds
    );
    for line in lines {
        for (at, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let blanks = " ".repeat(width - cell.chars().count());
            text += &if at == 0 { format!("{cell}{blanks}") } else { format!("  {blanks}{cell}") };
        }
        text.push('\n');
    }
    text
}

fn line(row: &Row) -> Vec<String> {
    let oracle = |above: Estimate| if row.policy.is_oracle() { "-".to_owned() } else { estimate(Some(above)) };
    let mut cells = vec![row.policy.label()];
    cells.extend(COLUMNS.iter().map(|(_, name)| estimate(row.measure(name))));
    cells.extend([oracle(row.failures_above), oracle(row.p99_above)]);
    cells
}

//! Columns that line up.

/// Writes rows (the first one is the head) with two blanks between columns and `indent` in front of each line.
pub(super) fn table(indent: &str, rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(indent);
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["A".to_owned(), "B".to_owned()], vec!["long".to_owned(), "ü".to_owned()]];
        assert_eq!(table("  ", &rows), "  A     B\n  long  ü\n");
        assert_eq!(table("", &[]), "");
    }
}

//! The documentation's table of metrics against the names that are written.
#![allow(missing_docs)]

use telemetry::names;

const OPERATIONS: &str = include_str!("../../../docs/operations.md");

#[test]
fn every_metric_stands_in_the_documentation_with_its_meaning() {
    let section = OPERATIONS.split("## Metrics").nth(1).unwrap_or_default();
    let documented: Vec<(String, String)> = section.lines().filter_map(row).collect();
    let written: Vec<(String, String)> =
        names::ALL.iter().map(|name| (name.name.to_owned(), name.help.to_owned())).collect();
    assert_eq!(documented, written);
}

/// Name (a counter's without its suffix) and meaning of a line of the table.
fn row(line: &str) -> Option<(String, String)> {
    let [name, kind, _, meaning] = line.strip_prefix("| `")?.strip_suffix(" |")?.split(" | ").collect::<Vec<_>>()[..]
    else {
        return None;
    };
    let name = name.trim_end_matches('`');
    let name = if kind.starts_with("counter") { name.strip_suffix("_total")? } else { name };
    Some((name.to_owned(), meaning.to_owned()))
}

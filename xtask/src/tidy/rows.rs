//! Who may import whom: the rows of ARCHITECTURE.md, and which outside crates a core may have.

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::run::cargo;

/// Every wrong arrow, from the manifests as cargo reads them.
pub(crate) fn findings() -> Result<Vec<String>> {
    let mut command = cargo(&["metadata", "--format-version", "1", "--no-deps", "--offline"]);
    let output = command.output().context("cargo metadata")?;
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let members: Vec<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    let mut findings = Vec::new();
    for package in &metadata.packages {
        let name = package.name.as_str();
        let Some(row) = Row::of(name) else {
            findings.push(format!("{name}: stands in no row; see xtask/src/tidy/rows.rs"));
            continue;
        };
        for dependency in &package.dependencies {
            let to = dependency.name.as_str();
            // Tests may look at everything.
            if dependency.kind.as_deref() == Some("dev") {
                continue;
            }
            if members.contains(&to) {
                if !may_import(name, row, to) {
                    findings.push(format!("{name}: may not import {to}"));
                }
            } else if let Some(allowed) = outside_of(name)
                && !allowed.contains(&to)
            {
                findings.push(format!("{name}: may not use the outside crate {to}"));
            }
        }
    }
    Ok(findings)
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Vocabulary,
    Core,
    Exchange,
    Board,
    /// Pure, over cores and board.
    Above,
    Shell,
    Lazaret,
    Rhi,
    Testkit,
    Development,
}

impl Row {
    fn of(name: &str) -> Option<Self> {
        let row = match name {
            "model" | "apisix" => Self::Vocabulary,
            "exchange" | "http2" => Self::Exchange,
            "board" => Self::Board,
            "bridge" | "recorder" | "lab" => Self::Above,
            "lazaret" => Self::Lazaret,
            "lazaret-rhi" => Self::Rhi,
            "testkit" => Self::Testkit,
            "end-to-end" | "bench" | "twins" | "xtask" => Self::Development,
            "files" | "io" | "upstream" | "proxy" | "monitor" | "source" | "control" | "rhi-agent" | "telemetry"
            | "patients" => Self::Shell,
            _ if CORES.contains(&name) => Self::Core,
            _ => return None,
        };
        Some(row)
    }
}

/// Pure: no clock, socket, thread, environment or hash order.
pub(crate) const CORES: [&str; 7] = ["config", "route", "health", "balance", "retry", "http1", "rhi"];

fn may_import(from: &str, row: Row, to: &str) -> bool {
    let Some(to_row) = Row::of(to) else { return false };
    match row {
        Row::Vocabulary => false,
        Row::Core | Row::Board | Row::Testkit => to_row == Row::Vocabulary,
        Row::Exchange => {
            to_row == Row::Vocabulary
                || matches!((from, to), ("exchange", "route" | "balance" | "retry") | ("http2", "http1"))
        }
        Row::Above => match to_row {
            Row::Vocabulary | Row::Core | Row::Exchange | Row::Board => true,
            Row::Above => matches!((from, to), ("lab", "bridge" | "recorder")),
            Row::Shell | Row::Lazaret | Row::Rhi | Row::Testkit | Row::Development => false,
        },
        Row::Shell => match to_row {
            Row::Vocabulary | Row::Core | Row::Exchange | Row::Board | Row::Above => true,
            Row::Shell => matches!(
                (from, to),
                ("proxy" | "monitor", "upstream")
                    | ("proxy" | "upstream" | "monitor" | "control", "io")
                    | (_, "telemetry" | "files")
            ),
            Row::Lazaret | Row::Rhi | Row::Testkit | Row::Development => false,
        },
        Row::Lazaret => match to_row {
            Row::Vocabulary | Row::Core | Row::Exchange | Row::Board | Row::Above => true,
            Row::Shell => to != "rhi-agent",
            Row::Lazaret | Row::Rhi | Row::Testkit | Row::Development => false,
        },
        Row::Rhi => to_row == Row::Vocabulary || matches!(to, "rhi" | "config" | "rhi-agent" | "telemetry" | "files"),
        Row::Development => true,
    }
}

/// The outside crates that a crate without sockets may use; `None` for the others.
fn outside_of(name: &str) -> Option<&'static [&'static str]> {
    let allowed: &[&str] = match name {
        "model" => &["ipnet", "serde"],
        "apisix" => &["serde", "serde_json"],
        "config" => &["annotate-snippets", "ipnet", "jsonc-parser", "serde", "serde-saphyr", "serde_json"],
        "health" => &["libm", "serde"],
        "balance" => &["libm", "xxhash-rust"],
        "retry" | "rhi" => &["serde"],
        "http1" => &["httparse", "wide"],
        "http2" => &["bytes", "http"],
        "bridge" => &["libm"],
        "recorder" => &["serde", "serde_json"],
        "route" | "exchange" => &[],
        "lab" => &["libm", "serde", "serde-saphyr", "serde_json"],
        "board" => &["arc-swap", "crossbeam-utils", "loom"],
        _ => return None,
    };
    Some(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(from: &str, to: &str) -> bool {
        may_import(from, Row::of(from).unwrap_or(Row::Vocabulary), to)
    }

    #[test]
    fn arrows_point_down_only() {
        for (from, to) in [("proxy", "upstream"), ("exchange", "retry"), ("control", "telemetry"), ("lazaret", "proxy")]
        {
            assert!(may(from, to), "{from} -> {to}");
        }
        for (from, to) in [
            ("model", "apisix"),
            ("health", "balance"),
            ("exchange", "health"),
            ("http2", "exchange"),
            ("exchange", "http1"),
            ("board", "exchange"),
            ("bridge", "monitor"),
            ("health", "bridge"),
            ("control", "proxy"),
            ("patients", "io"),
            ("lazaret", "rhi-agent"),
            ("lazaret-rhi", "health"),
            ("testkit", "http1"),
            ("proxy", "testkit"),
        ] {
            assert!(!may(from, to), "{from} -> {to}");
        }
    }
}

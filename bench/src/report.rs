//! The figures of a run, as tables, as JSON, and as a part of docs/performance.md.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::engine::Pace;
use crate::idle::Memory;
use crate::options::Options;
use crate::proxy::Proxy;
use crate::round::Round;
use crate::work::Work;

#[derive(Serialize)]
pub(crate) struct Report {
    connections: usize,
    rounds: usize,
    seconds: f64,
    pub(crate) date: String,
    /// Cores, by their model's name.
    pub(crate) machine: String,
    pub(crate) tables: Vec<Table>,
    pub(crate) memory: Vec<Memory>,
}

/// One work.
#[derive(Serialize)]
pub(crate) struct Table {
    pub(crate) title: String,
    base: &'static str,
    pub(crate) rows: Vec<Row>,
}

/// One proxy at one work.
#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) proxy: &'static str,
    version: String,
    /// CPU per request in microseconds: median of the rounds.
    pub(crate) cpu_us: f64,
    /// Least and most of the rounds.
    pub(crate) spread: [f64; 2],
    /// 20th percentile of all windows: noise only slows down.
    cpu_us_w20: f64,
    /// Requests per CPU-second against the base in the same rounds, median.
    ratio: Option<f64>,
    per_second: f64,
    /// Microseconds: median of the rounds, least and most.
    p50_us: Option<[f64; 3]>,
    p99_us: Option<[f64; 3]>,
    answered: u64,
    failed: u64,
    /// Median share of the core that others took.
    foreign: f64,
    resident_kib: u64,
}

impl Report {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            connections: options.connections,
            rounds: options.rounds,
            seconds: options.length.as_secs_f64(),
            date: date(),
            machine: machine(),
            tables: Vec::new(),
            memory: Vec::new(),
        }
    }

    pub(crate) fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Memory at rest, as a Markdown table.
    pub(crate) fn memory_text(&self) -> String {
        let mut text = "### Connections at rest, each after one answer\n\n\
                        | proxy | kind | connections | bytes each | MiB before | with them | 5 s after |\n\
                        |---|---|---|---|---|---|---|\n"
            .to_owned();
        for row in &self.memory {
            let [before, with, after] = row.resident.map(|kib| kib as f64 / 1024.0);
            let (version, kind, connections, bytes) = (&row.version, row.kind, row.connections, row.bytes);
            // Writing into a String does not fail.
            let _ = writeln!(
                text,
                "| {version} | {kind} | {connections} | {bytes} | {before:.1} | {with:.1} | {after:.1} |"
            );
        }
        text
    }

    /// Puts the tables between the marks of a document.
    pub(crate) fn write_into(&self, path: &Path) -> Result<()> {
        let name = path.display();
        let text = std::fs::read_to_string(path).with_context(|| name.to_string())?;
        let (before, rest) = text.split_once(BEGIN).with_context(|| format!("{name}: {BEGIN} is missing"))?;
        let (_, after) = rest.split_once(END).with_context(|| format!("{name}: {END} is missing"))?;
        let mut tables = format!(
            "{}, {}; {} connections, medians of {} rounds of {} s (least to most), built as packages are (`profile.dist`).\n",
            self.date, self.machine, self.connections, self.rounds, self.seconds
        );
        for table in &self.tables {
            tables += "\n";
            tables += &table.text();
        }
        if !self.memory.is_empty() {
            tables += "\n";
            tables += &self.memory_text();
        }
        std::fs::write(path, format!("{before}{BEGIN}\n{tables}{END}{after}")).with_context(|| name.to_string())
    }
}

impl Table {
    pub(crate) fn new(work: Work, proxies: &[Proxy], rounds: &[Round]) -> Self {
        let of = |name: &str| rounds.iter().filter(|round| round.proxy == name).collect::<Vec<_>>();
        let base = of(work.base());
        let rows = proxies.iter().map(|proxy| Row::new(proxy, work.pace(), &of(proxy.name), &base)).collect();
        Self { title: work.title(), base: work.base(), rows }
    }

    /// A Markdown table, readable as it is.
    pub(crate) fn text(&self) -> String {
        let has_latency = self.rows.iter().any(|row| row.p99_us.is_some());
        let mut text = format!(
            "### {}\n\n| proxy | CPU us/request | w20 | per CPU-second against {} | requests/s | {}failed | foreign | MiB |\n\
             |---|---|---|---|---|{}---|---|---|\n",
            self.title,
            self.base,
            if has_latency { "p50 us | p99 us | " } else { "" },
            if has_latency { "---|---|" } else { "" },
        );
        for row in &self.rows {
            let ratio = row.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
            let latency = |value: Option<[f64; 3]>| {
                value.map_or_else(String::new, |[median, least, most]| format!("{median:.0} ({least:.0}-{most:.0})"))
            };
            let latencies = if has_latency {
                format!("{} | {} | ", latency(row.p50_us), latency(row.p99_us))
            } else {
                String::new()
            };
            let _ = writeln!(
                text,
                "| {} | {:.1} ({:.1}-{:.1}) | {:.1} | {ratio} | {:.0} | {latencies}{} | {:.0} % | {} |",
                if row.proxy.starts_with("lazaret-") || row.proxy.ends_with("-two") { row.proxy } else { &row.version },
                row.cpu_us,
                row.spread[0],
                row.spread[1],
                row.cpu_us_w20,
                row.per_second,
                row.failed,
                row.foreign * 100.0,
                row.resident_kib / 1024,
            );
        }
        text
    }
}

impl Row {
    /// `base` are the rounds of the proxy that ratios refer to, in the same order.
    fn new(proxy: &Proxy, pace: Pace, own: &[&Round], base: &[&Round]) -> Self {
        let ratios = own.iter().zip(base).map(|(own, base)| base.cpu / own.cpu);
        let cpu = |share| percentile(own.iter().map(|round| round.cpu), share).unwrap_or(f64::NAN);
        let latency = |share| match pace {
            Pace::Closed => None,
            Pace::Poisson { .. } => {
                let each: Vec<f64> = own.iter().filter_map(|round| latency_of(round, share)).collect();
                let at = |share| percentile(each.iter().copied(), share);
                Some([at(0.5)?, at(0.0)?, at(1.0)?])
            }
        };
        Self {
            proxy: proxy.name,
            version: proxy.version.clone(),
            cpu_us: cpu(0.5),
            spread: [cpu(0.0), cpu(1.0)],
            cpu_us_w20: percentile(own.iter().flat_map(|round| round.windows.iter().copied()), 0.2).unwrap_or(f64::NAN),
            ratio: percentile(ratios, 0.5),
            per_second: percentile(own.iter().map(|round| round.per_second), 0.5).unwrap_or(0.0),
            p50_us: latency(0.5),
            p99_us: latency(0.99),
            answered: own.iter().map(|round| round.answered).sum(),
            failed: own.iter().map(|round| round.failed).sum(),
            foreign: percentile(own.iter().map(|round| round.foreign), 0.5).unwrap_or(0.0),
            resident_kib: own.iter().map(|round| round.resident).max().unwrap_or(0),
        }
    }
}

fn latency_of(round: &Round, share: f64) -> Option<f64> {
    percentile(round.latencies.iter().map(Duration::as_nanos).map(|nanos| nanos as f64 / 1000.0), share)
}

/// The value below which this share lies (nearest rank).
fn percentile(values: impl Iterator<Item = f64>, share: f64) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * share).ceil() as usize;
    values.get(rank.saturating_sub(1)).copied()
}

fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, name)| name);
    format!("{} x {model}", crate::options::all_cores())
}

fn date() -> String {
    let output = std::process::Command::new("date").arg("+%F").output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

const BEGIN: &str = "<!-- bench:begin -->";
const END: &str = "<!-- bench:end -->";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let of = |share| percentile([4.0, 1.0, 3.0, 2.0, 5.0].into_iter(), share);
        assert_eq!((of(0.0), of(0.2), of(0.5), of(0.99)), (Some(1.0), Some(1.0), Some(3.0), Some(5.0)));
        assert_eq!(percentile(std::iter::empty(), 0.5), None);
    }
}

//! The figures of a run, as a table, as JSON, and as a part of docs/performance.md.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::options::Options;
use crate::proxy::Proxy;
use crate::round::Round;

#[derive(Serialize)]
pub(crate) struct Report {
    connections: usize,
    rounds: usize,
    seconds: f64,
    /// Cores, by their model's name.
    machine: String,
    rows: Vec<Row>,
}

/// One proxy at one pace.
#[derive(Serialize)]
struct Row {
    proxy: &'static str,
    version: String,
    rate: Option<f64>,
    /// CPU per request in microseconds: median of the rounds.
    cpu_us: f64,
    /// 20th percentile of all windows: noise only slows down.
    cpu_us_w20: f64,
    /// Requests per CPU-second against nginx in the same rounds, median.
    ratio: Option<f64>,
    per_second: f64,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    answered: u64,
    failed: u64,
    /// Median share of the core that others took.
    foreign: f64,
    resident_kib: u64,
}

impl Report {
    pub(crate) fn new(proxies: &[Proxy], rounds: &[Round], options: &Options) -> Self {
        let mut rates: Vec<Option<f64>> = Vec::new();
        for round in rounds {
            if !rates.contains(&round.rate) {
                rates.push(round.rate);
            }
        }
        let mut rows = Vec::new();
        for rate in rates {
            for proxy in proxies {
                let of = |name| rounds.iter().filter(move |round| round.proxy == name && round.rate == rate);
                rows.push(Row::new(proxy, rate, &of(proxy.name).collect::<Vec<_>>(), &of(BASE).collect::<Vec<_>>()));
            }
        }
        Self {
            connections: options.connections,
            rounds: options.rounds,
            seconds: options.length.as_secs_f64(),
            machine: machine(),
            rows,
        }
    }

    pub(crate) fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// A Markdown table, readable as it is.
    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "{}; {} connections, medians of {} rounds of {} s\n\n\
             | proxy | load | CPU us/request | w20 | per CPU-second against {BASE} | requests/s | p50 us | p99 us | failed | foreign | MiB |\n\
             |---|---|---|---|---|---|---|---|---|---|---|\n",
            self.machine, self.connections, self.rounds, self.seconds
        );
        for row in &self.rows {
            let load = row.rate.map_or_else(|| "closed loop".to_owned(), |rate| format!("{rate:.0}/s"));
            let number =
                |value: Option<f64>, digits| value.map_or_else(String::new, |value| format!("{value:.digits$}"));
            let _ = writeln!(
                text,
                "| {} | {load} | {:.1} | {:.1} | {} | {:.0} | {} | {} | {} | {:.0} % | {} |",
                row.version,
                row.cpu_us,
                row.cpu_us_w20,
                number(row.ratio, 2),
                row.per_second,
                number(row.p50_us, 0),
                number(row.p99_us, 0),
                row.failed,
                row.foreign * 100.0,
                row.resident_kib / 1024,
            );
        }
        text
    }

    /// Puts the table between the marks of a document.
    pub(crate) fn write_into(&self, path: &Path) -> Result<()> {
        let name = path.display();
        let text = std::fs::read_to_string(path).with_context(|| name.to_string())?;
        let (before, rest) = text.split_once(BEGIN).with_context(|| format!("{name}: {BEGIN} is missing"))?;
        let (_, after) = rest.split_once(END).with_context(|| format!("{name}: {END} is missing"))?;
        std::fs::write(path, format!("{before}{BEGIN}\n{}{END}{after}", self.text())).with_context(|| name.to_string())
    }
}

impl Row {
    /// `base` are the rounds of the proxy that ratios refer to, in the same order.
    fn new(proxy: &Proxy, rate: Option<f64>, own: &[&Round], base: &[&Round]) -> Self {
        let ratios = own.iter().zip(base).map(|(own, base)| base.cpu / own.cpu);
        let latencies = own.iter().flat_map(|round| &round.latencies).map(Duration::as_nanos);
        let latencies: Vec<f64> = latencies.map(|nanos| nanos as f64 / 1000.0).collect();
        Self {
            proxy: proxy.name,
            version: proxy.version.clone(),
            rate,
            cpu_us: percentile(own.iter().map(|round| round.cpu), 0.5).unwrap_or(f64::NAN),
            cpu_us_w20: percentile(own.iter().flat_map(|round| round.windows.iter().copied()), 0.2).unwrap_or(f64::NAN),
            ratio: percentile(ratios, 0.5),
            per_second: percentile(own.iter().map(|round| round.per_second), 0.5).unwrap_or(0.0),
            p50_us: percentile(latencies.iter().copied(), 0.5),
            p99_us: percentile(latencies.iter().copied(), 0.99),
            answered: own.iter().map(|round| round.answered).sum(),
            failed: own.iter().map(|round| round.failed).sum(),
            foreign: percentile(own.iter().map(|round| round.foreign), 0.5).unwrap_or(0.0),
            resident_kib: own.iter().map(|round| round.resident).max().unwrap_or(0),
        }
    }
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

const BASE: &str = "nginx";
const BEGIN: &str = "<!-- bench:begin -->";
const END: &str = "<!-- bench:end -->";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let of = |share| percentile([4.0, 1.0, 3.0, 2.0, 5.0].into_iter(), share);
        assert_eq!((of(0.2), of(0.5), of(0.99)), (Some(1.0), Some(3.0), Some(5.0)));
        assert_eq!(percentile(std::iter::empty(), 0.5), None);
    }
}

//! A sweep: one template of a policy with many values for its numbers, over several scenarios, and those points that no other
//! one beats in everything.
//!
//! What a point costs is the mean over the scenarios of three things that pull against each other: the share of requests
//! that failed, the time added at the 99th percentile, the share of healthy time lost. The front is what is left when each
//! point goes that another one equals or beats in all three, and beats in one.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::compare::Comparison;
use crate::policy::{Policy, PolicyError};
use crate::report::number;

/// One number of the template, and what is tried for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Stands as `$name` in the template.
    pub name: String,
    /// In the order in which they are tried.
    pub values: Vec<String>,
}

/// One set of values with what it cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// `name=value`, with blanks between.
    pub name: String,
    /// Per cent of requests.
    pub failures: f64,
    /// Milliseconds.
    pub added_p99: f64,
    /// Per cent of healthy time.
    pub lost: f64,
    /// No other point beats it in everything.
    pub is_on_front: bool,
}

impl Axis {
    /// From `name=value,value`.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let wrong = || PolicyError(format!("{text}: a number of the template is set as name=value,value"));
        let (name, values) = text.split_once('=').ok_or_else(wrong)?;
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        let is_word = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !is_word || values.iter().any(String::is_empty) {
            return Err(wrong());
        }
        Ok(Self { name: name.to_owned(), values })
    }
}

/// A policy for each combination of values. The template is what stands in a `health_check` block beside its active check.
pub fn sweep(template: &str, axes: &[Axis]) -> Result<Vec<Policy>, PolicyError> {
    let n: usize = axes.iter().map(|axis| axis.values.len()).product();
    if n > MOST {
        return Err(PolicyError(format!("{n} combinations are more than {MOST}")));
    }
    if let Some(axis) = axes.iter().find(|axis| !template.contains(&format!("${}", axis.name))) {
        return Err(PolicyError(format!("${} does not stand in the template", axis.name)));
    }
    // The longest name first, so that $min leaves $minimum alone.
    let mut by_length: Vec<&Axis> = axes.iter().collect();
    by_length.sort_by_key(|axis| std::cmp::Reverse(axis.name.len()));
    let policies = (0..n).map(|point| {
        let (mut text, mut rest) = (template.to_owned(), point);
        let mut chosen = Vec::new();
        for axis in &by_length {
            let value = axis.values.get(rest % axis.values.len()).map_or("", String::as_str);
            rest /= axis.values.len();
            text = text.replace(&format!("${}", axis.name), value);
            chosen.push((axis.name.as_str(), value));
        }
        let named = axes.iter().filter_map(|axis| chosen.iter().find(|(name, _)| *name == axis.name));
        let name: Vec<String> = named.map(|(name, value)| format!("{name}={value}")).collect();
        Policy::native(&name.join(" "), "a point of the sweep", &text)
    });
    Ok(policies.collect())
}

/// What the points cost over all scenarios. Every comparison has the points, in the same order.
pub fn points(comparisons: &[Comparison]) -> Vec<Point> {
    let names = comparisons.first().map(|one| one.rows.iter().map(|row| &row.policy)).into_iter().flatten();
    let mut points: Vec<Point> = (0..)
        .zip(names)
        .filter(|(_, policy)| !policy.is_oracle())
        .map(|(place, policy)| {
            let mean = |measure: &str| {
                let rows = comparisons.iter().filter_map(|one| one.rows.get(place));
                let sum: f64 = rows.filter_map(|row| row.measure(measure)).map(|one| one.mean).sum();
                sum / comparisons.len() as f64
            };
            Point {
                name: policy.name.clone(),
                failures: mean("failure_share"),
                added_p99: mean("added_p99"),
                lost: mean("lost_share"),
                is_on_front: true,
            }
        })
        .collect();
    let all = points.clone();
    for point in &mut points {
        point.is_on_front = !all.iter().any(|other| other.beats(point));
    }
    points.sort_by(|a, b| b.is_on_front.cmp(&a.is_on_front).then(a.failures.total_cmp(&b.failures)));
    points
}

impl Point {
    fn beats(&self, other: &Self) -> bool {
        let pairs = [(self.failures, other.failures), (self.added_p99, other.added_p99), (self.lost, other.lost)];
        pairs.iter().all(|(mine, theirs)| mine <= theirs) && pairs.iter().any(|(mine, theirs)| mine < theirs)
    }
}

/// The points as a table, the front first.
pub fn text(points: &[Point]) -> String {
    let width = points.iter().map(|point| point.name.chars().count()).max().unwrap_or(0).max(5);
    let mut text = format!("{:<width$}  front  failures %  added p99 ms  lost %\n", "point");
    for point in points {
        let front = if point.is_on_front { "*" } else { "" };
        let [failures, p99, lost] = [point.failures, point.added_p99, point.lost].map(number);
        let _ = writeln!(text, "{:<width$}  {front:>5}  {failures:>10}  {p99:>12}  {lost:>6}", point.name);
    }
    text
}

/// The points as JSON.
pub fn json(points: &[Point]) -> String {
    let round = |value: f64| libm::round(value * 1e6) / 1e6;
    let points = points.iter().map(|point| {
        json!({
            "point": point.name,
            "front": point.is_on_front,
            "failures_percent": round(point.failures),
            "added_p99_ms": round(point.added_p99),
            "lost_percent": round(point.lost),
        })
    });
    let mut text = serde_json::to_string_pretty(&Value::Array(points.collect())).unwrap_or_default();
    text.push('\n');
    text
}

/// Combinations of one sweep.
const MOST: usize = 10_000;

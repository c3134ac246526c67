//! One small picture of a comparison's first seed, to stand in a document: for each policy the lanes of all destinations.
//!
//! Above what is true, then a group of lanes for each policy: served, served in part, out; and the failures of its clients.
//! A file of its own: no script, no font, and colours for both light and dark pages.

use std::fmt::Write;

use super::chart::escape;
use super::number;
use crate::compare::{Comparison, Plan, Row};
use crate::meter::Film;

/// The picture, as SVG.
pub fn render(plan: &Plan, comparison: &Comparison) -> String {
    let seconds = plan.scenario.duration.as_secs_f64();
    let n = plan.scenario.destinations.len();
    let rows: Vec<(&Row, &Film)> = comparison
        .rows
        .iter()
        .filter_map(|row| Some((row, row.film.as_ref()?)))
        .filter(|one| !is_keeper(one.0))
        .collect();
    let group = n * LANE + GAP;
    let height = HEAD + (rows.len() + 1) * group + FOOT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{0}\">\
         <style>{STYLE}</style><rect width=\"{WIDTH}\" height=\"{height}\" class=\"page\"/>\
         <text x=\"8\" y=\"16\" class=\"title\">{0}</text>\n",
        escape(&comparison.title)
    );
    let mut top = HEAD;
    if let Some((_, film)) = rows.first() {
        name(&mut svg, "what is true", "", top, n);
        for lane in 0..n {
            let changes = film.truths.get(lane).map(Vec::as_slice).unwrap_or_default();
            bars(&mut svg, changes, seconds, top + lane * LANE, |value| if value > 0.0 { "sick" } else { "well" });
        }
        top += group;
    }
    for (row, film) in rows {
        let failures = row.measure("failures").map(|failures| format!("{} failures", number(failures.mean)));
        name(&mut svg, &row.policy.label(), &failures.unwrap_or_default(), top, n);
        for lane in 0..n {
            let changes = film.shares.get(lane).map(Vec::as_slice).unwrap_or_default();
            bars(&mut svg, changes, seconds, top + lane * LANE, |value| match value {
                value if value >= 1.0 => "in",
                value if value > 0.0 => "part",
                _ => "out",
            });
        }
        top += group;
    }
    for quarter in 0..=4 {
        let at = seconds * f64::from(quarter) / 4.0;
        let _ = write!(
            svg,
            "<text x=\"{:.0}\" y=\"{}\" class=\"tick\">{} s</text>",
            x(at, seconds),
            height - 6,
            number(at)
        );
    }
    svg + "\n</svg>\n"
}

/// The oracle that does nothing shows nothing.
fn is_keeper(row: &Row) -> bool {
    row.policy.name == "keep"
}

fn name(svg: &mut String, name: &str, below: &str, top: usize, n: usize) {
    let middle = top + n * LANE / 2;
    let _ = write!(svg, "<text x=\"8\" y=\"{middle}\" class=\"name\">{}</text>", escape(name));
    let _ = writeln!(svg, "<text x=\"8\" y=\"{}\" class=\"below\">{}</text>", middle + 12, escape(below));
}

fn bars(svg: &mut String, changes: &[(f64, f64)], seconds: f64, y: usize, class: fn(f64) -> &'static str) {
    // Neighbours that look alike, and what is shorter than half a pixel, are one.
    let mut drawn: Vec<(f64, &'static str)> = Vec::new();
    for (at, value) in changes {
        let class = class(*value);
        let is_short = drawn.last().is_some_and(|(since, _)| x(*at, seconds) - x(*since, seconds) < 0.5);
        if is_short {
            drawn.pop();
        }
        if drawn.last().is_none_or(|(_, last)| *last != class) {
            drawn.push((*at, class));
        }
    }
    let ends = drawn.iter().skip(1).map(|(at, _)| *at).chain([seconds]);
    for ((from, class), to) in drawn.iter().zip(ends) {
        let (left, right) = (x(*from, seconds), x(to, seconds));
        let _ = write!(
            svg,
            "<rect x=\"{left:.1}\" y=\"{y}\" width=\"{:.1}\" height=\"{}\" class=\"{class}\"/>",
            right - left,
            LANE - 2
        );
    }
    svg.push('\n');
}

fn x(at: f64, seconds: f64) -> f64 {
    LEFT as f64 + at / seconds * (WIDTH - LEFT - RIGHT) as f64
}

const WIDTH: usize = 760;
const LEFT: usize = 196;
const RIGHT: usize = 24;
const HEAD: usize = 28;
const LANE: usize = 9;
const GAP: usize = 12;
const FOOT: usize = 14;

const STYLE: &str = "text{font:11px system-ui,sans-serif;fill:#1b2733}.title{font-weight:600;font-size:13px}\
    .below,.tick{fill:#5c6b7a;font-size:10px}.tick{text-anchor:middle}.page{fill:#fff}.well{fill:#e4ebf1}.sick{fill:#b3341f}\
    .in{fill:#2a7f9e}.part{fill:#9cc7d6}.out{fill:#f0b429}\
    @media(prefers-color-scheme:dark){.page{fill:#12181f}text{fill:#dde5ec}.below,.tick{fill:#93a3b3}.well{fill:#2a3542}}";

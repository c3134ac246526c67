//! Drawings of one run: lanes of destinations, and curves.

use std::fmt::Write;

use super::number;
use crate::meter::Film;

/// Lanes: for each destination what is true (above) and whether it serves (below).
pub(crate) fn lanes(film: &Film, ids: &[String], seconds: f64) -> String {
    let height = ids.len() * LANE + FOOT;
    let mut svg = open(height, "state and truth of each destination");
    for (n, id) in ids.iter().enumerate() {
        let top = n * LANE;
        let _ = write!(svg, "<text x=\"{}\" y=\"{}\" class=\"name\">{}</text>", LEFT - 8, top + 20, escape(id));
        let truth = film.truths.get(n).map(Vec::as_slice).unwrap_or_default();
        let share = film.shares.get(n).map(Vec::as_slice).unwrap_or_default();
        bars(&mut svg, truth, seconds, top + 4, 7, |value| if value > 0.0 { "sick" } else { "well" });
        bars(&mut svg, share, seconds, top + 13, 13, |value| match value {
            value if value >= 1.0 => "in",
            value if value > 0.0 => "part",
            _ => "out",
        });
    }
    axis(&mut svg, seconds, height);
    svg + "</svg>"
}

/// Lanes of pairs: for each destination since when (seconds) it was what as it was (above) and as it would have been (below).
#[allow(clippy::type_complexity, reason = "a pair of lanes")]
pub(crate) fn pairs(
    ids: &[String],
    lanes: &[(Vec<(f64, &'static str)>, Vec<(f64, &'static str)>)],
    seconds: f64,
) -> String {
    let height = ids.len() * LANE + FOOT;
    let mut svg = open(height, "how each destination served, and would have");
    for (n, (id, (was, would))) in ids.iter().zip(lanes).enumerate() {
        let top = n * LANE;
        let _ = write!(svg, "<text x=\"{}\" y=\"{}\" class=\"name\">{}</text>", LEFT - 8, top + 20, escape(id));
        rectangles(&mut svg, was, "in", seconds, top + 4, 10);
        rectangles(&mut svg, would, "in", seconds, top + 16, 10);
    }
    axis(&mut svg, seconds, height);
    svg + "</svg>"
}

/// A curve of one value per bin, with the greatest one written beside it.
pub(crate) fn curve(values: &[f64], bin: f64, seconds: f64, most: f64, label: &str, class: &str) -> String {
    let height = CURVE + FOOT;
    let mut svg = open(height, label);
    let top = most.max(1e-9);
    let mut path = String::new();
    for (n, value) in values.iter().enumerate() {
        let y = CURVE as f64 - (value / top).min(1.0) * (CURVE as f64 - 6.0);
        for at in [n, n + 1] {
            let start = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{start}{:.1} {y:.1}", x(at as f64 * bin, seconds));
        }
    }
    let _ = write!(svg, "<path d=\"{path}\" class=\"{class}\"/>");
    let _ = write!(svg, "<text x=\"{}\" y=\"14\" class=\"name\">{}</text>", LEFT - 8, number(most));
    let _ = write!(svg, "<text x=\"{}\" y=\"{CURVE}\" class=\"name\">0</text>", LEFT - 8);
    axis(&mut svg, seconds, height);
    svg + "</svg>"
}

/// Text in a page.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn open(height: usize, label: &str) -> String {
    format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">", escape(label))
}

fn bars(
    svg: &mut String,
    changes: &[(f64, f64)],
    seconds: f64,
    y: usize,
    height: usize,
    class: fn(f64) -> &'static str,
) {
    // What is shorter than a pixel is drawn as one, but for what is usual.
    let usual = class(1.0);
    let drawn: Vec<(f64, &'static str)> = changes.iter().map(|(at, value)| (*at, class(*value))).collect();
    rectangles(svg, &drawn, usual, seconds, y, height);
}

fn rectangles(svg: &mut String, changes: &[(f64, &'static str)], usual: &str, seconds: f64, y: usize, height: usize) {
    let ends = changes.iter().skip(1).map(|(at, _)| *at).chain([seconds]);
    for ((from, class), to) in changes.iter().zip(ends) {
        let width = (x(to, seconds) - x(*from, seconds)).max(if *class == usual { 0.0 } else { 1.0 });
        let _ = write!(
            svg,
            "<rect x=\"{:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{height}\" class=\"{class}\"/>",
            x(*from, seconds)
        );
    }
}

fn axis(svg: &mut String, seconds: f64, height: usize) {
    for tenth in 0..=10 {
        let at = seconds * f64::from(tenth) / 10.0;
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" class=\"tick\">{} s</text>",
            x(at, seconds),
            height - 3,
            number(at)
        );
    }
}

fn x(at: f64, seconds: f64) -> f64 {
    LEFT as f64 + at / seconds * (WIDTH - LEFT - RIGHT) as f64
}

const WIDTH: usize = 1000;
const LEFT: usize = 70;
const RIGHT: usize = 20;
const LANE: usize = 30;
const CURVE: usize = 80;
const FOOT: usize = 18;

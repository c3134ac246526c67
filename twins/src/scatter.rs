//! Predicted against measured: one self-contained SVG, a panel per kind of promise.
//!
//! Both axes are logarithmic with room for zero (log10 of one more). The band is what the promise allows: a point within it
//! was predicted well enough. What happened in one world alone has no point.

use std::fmt::Write as _;

use crate::promise::Of;
use crate::report::Row;

/// The drawing.
pub fn scatter(rows: &[Row]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.contestant.as_str()) {
            names.push(&row.contestant);
        }
    }
    let (width, height) = (2.0 * STEP + MARGIN, 2.0 * STEP + MARGIN + 30.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for (number, of) in Of::ALL.into_iter().enumerate() {
        let corner = ((number % 2) as f64 * STEP + MARGIN, (number / 2) as f64 * STEP + MARGIN);
        panel(&mut svg, rows, &names, of, corner);
    }
    for (number, name) in names.iter().enumerate() {
        let x = MARGIN + number as f64 * 125.0;
        let y = height - 16.0;
        // Writing into a String does not fail.
        let _ = writeln!(
            svg,
            "<circle cx=\"{x}\" cy=\"{}\" r=\"4\" fill=\"{}\"/><text x=\"{}\" y=\"{y}\">{name}</text>",
            y - 4.0,
            color(number),
            x + 9.0
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn panel(svg: &mut String, rows: &[Row], names: &[&str], of: Of, (left, top): (f64, f64)) {
    let mut points = Vec::new();
    for row in rows {
        for promise in row.promises().into_iter().filter(|promise| promise.of == of) {
            if let (Some(predicted), Some(measured)) = (promise.predicted, promise.measured) {
                points.push((row, promise.is_kept(), predicted, measured));
            }
        }
    }
    let most = points.iter().fold(1.0, |most: f64, (_, _, x, y)| most.max(*x).max(*y)) * 1.3;
    let scale = |value: f64| (1.0 + value.max(0.0)).log10() / (1.0 + most).log10() * SIDE;
    let place = |x: f64, y: f64| (left + scale(x), top + SIDE - scale(y));
    let edge = |sign: f64| {
        (0..=BAND).map(move |step| {
            let y = 10.0_f64.powf((1.0 + most).log10() * f64::from(step) / f64::from(BAND)) - 1.0;
            ((y + sign * of.tolerance(y)).clamp(0.0, most), y)
        })
    };
    let band: Vec<String> = (edge(-1.0).chain(edge(1.0).collect::<Vec<_>>().into_iter().rev()))
        .map(|(x, y)| place(x, y))
        .map(|(x, y)| format!("{x:.1},{y:.1}"))
        .collect();
    let _ = writeln!(
        svg,
        "<polygon points=\"{}\" fill=\"#e8eef4\"/><rect x=\"{left}\" y=\"{top}\" width=\"{SIDE}\" height=\"{SIDE}\" \
         fill=\"none\" stroke=\"#999\"/><line x1=\"{left}\" y1=\"{}\" x2=\"{}\" y2=\"{top}\" stroke=\"#bbb\"/>\
         <text x=\"{left}\" y=\"{}\" font-size=\"14\">{}</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\" \
         fill=\"#555\">predicted</text><text transform=\"translate({},{}) rotate(-90)\" text-anchor=\"end\" \
         fill=\"#555\">measured</text>",
        band.join(" "),
        top + SIDE,
        left + SIDE,
        top - 8.0,
        of.as_str(),
        left + SIDE,
        top + SIDE + 30.0,
        left - 30.0,
        top,
    );
    for tick in TICKS.into_iter().filter(|tick| *tick <= most) {
        let (x, y) = place(tick, tick);
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555\">{tick}</text><text x=\"{:.1}\" \
             y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{tick}</text>",
            top + SIDE + 15.0,
            left - 5.0,
            y + 4.0
        );
    }
    for (row, is_kept, predicted, measured) in points {
        let number = names.iter().position(|name| **name == row.contestant).unwrap_or(0);
        let (x, y) = place(predicted, measured);
        let stroke = if is_kept { "#fff" } else { "#d00" };
        let _ = writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{}\" stroke=\"{stroke}\"><title>{} {}: predicted \
             {predicted:.1}, measured {measured:.1}</title></circle>",
            color(number),
            row.script,
            row.contestant
        );
    }
}

fn color(number: usize) -> &'static str {
    COLORS.get(number % COLORS.len()).copied().unwrap_or("#000")
}

const COLORS: [&str; 7] = ["#1b6ca8", "#7a3e9d", "#2e8b57", "#d98200", "#8c5a2b", "#c2185b", "#555555"];
const TICKS: [f64; 7] = [0.0, 1.0, 5.0, 20.0, 100.0, 1000.0, 10_000.0];
const SIDE: f64 = 290.0;
const STEP: f64 = 370.0;
const MARGIN: f64 = 60.0;
const BAND: u32 = 100;

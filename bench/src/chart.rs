//! The figures of one work as bars: one self-contained SVG.

use std::fmt::Write as _;

use crate::report::Table;

/// CPU per request of each proxy, the spread as a line.
pub(crate) fn bars(table: &Table, machine: &str, date: &str) -> String {
    let rows = &table.rows;
    let most = rows.iter().map(|row| row.spread[1].max(row.cpu_us)).fold(1.0, f64::max);
    let scale = WIDTH / most;
    let height = TOP + STEP * rows.len() as f64 + 30.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"760\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"10\" y=\"20\" font-size=\"15\">{}: CPU per request, microseconds</text>\n",
        escape(&table.title)
    );
    for (number, row) in rows.iter().enumerate() {
        let y = TOP + STEP * number as f64;
        let color = if row.proxy.starts_with("lazaret") { "#1b6ca8" } else { "#9aa5b1" };
        let (width, low, high) = (row.cpu_us * scale, LEFT + row.spread[0] * scale, LEFT + row.spread[1] * scale);
        let middle = y + 10.0;
        // Writing into a String does not fail.
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><rect x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" \
             height=\"20\" fill=\"{color}\"/><line x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"{middle}\" y2=\"{middle}\" \
             stroke=\"#333\"/><text x=\"{:.1}\" y=\"{}\">{:.1}</text>",
            LEFT - 8.0,
            y + 15.0,
            escape(row.proxy),
            high.max(LEFT + width) + 6.0,
            y + 15.0,
            row.cpu_us,
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"10\" y=\"{}\" fill=\"#555\">{date}, {}</text>\n</svg>",
        height - 10.0,
        escape(machine)
    );
    svg
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

const LEFT: f64 = 130.0;
const WIDTH: f64 = 540.0;
const TOP: f64 = 36.0;
const STEP: f64 = 30.0;

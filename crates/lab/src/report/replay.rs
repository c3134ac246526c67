//! What other policies would have done with recordings, as one page that needs nothing beside itself.
//!
//! For each recording and policy: a lane per destination, above as it was and below as it would have been; how many attempts
//! failed, and how many of them would have been left.

use std::fmt::Write;

use model::id::DestinationKey;
use model::time::Timestamp;
use recorder::Recording;

use super::chart::{curve, escape, pairs};
use super::html::{STYLE, begin};
use crate::replay::question::film::{Lane, Serving};
use crate::replay::question::{Answer, Row};
use crate::replay::text;

/// A recording, and what was answered about it.
pub struct Asked<'a> {
    /// What was recorded.
    pub recording: &'a Recording,
    /// One for each policy.
    pub answers: &'a [Answer],
    /// Its times as those of the wall.
    pub wall: &'a dyn Fn(Timestamp) -> String,
}

/// The page.
pub fn render(asked: &[Asked<'_>]) -> String {
    let mut page = begin("What other policies would have done", STYLE);
    for (number, one) in asked.iter().enumerate() {
        let until = one.recording.header.saved_at;
        let _ = writeln!(page, "<p>{}</p>", escape(text::head(one.recording, until, one.wall).trim_end()));
        table(&mut page, number, one.answers);
        page += LEGEND;
        one.answers.iter().for_each(|answer| section(&mut page, number, one.recording, answer));
    }
    let _ = writeln!(page, "<p>{}</p>", escape(text::NOTE.trim_end()));
    page + "</body></html>\n"
}

/// Sums of all destinations, a line for each policy.
fn table(page: &mut String, number: usize, answers: &[Answer]) {
    *page += "<table><thead><tr><th>policy</th><th>ejections recorded</th><th>out recorded s</th><th>ejections</th><th>out \
              s</th><th>failures</th><th>spared</th><th>moved</th><th>unseen s</th></tr></thead><tbody>\n";
    for answer in answers {
        let sum = |of: &dyn Fn(&Row) -> u64| answer.rows.iter().map(|(_, row)| of(row)).sum::<u64>();
        let seconds = |of: &dyn Fn(&Row) -> std::time::Duration| {
            let all: std::time::Duration = answer.rows.iter().map(|(_, row)| of(row)).sum();
            format!("{:.1}", all.as_secs_f64())
        };
        let cells = [
            sum(&|row| row.recorded.ejections).to_string(),
            seconds(&|row| row.recorded.out),
            sum(&|row| row.other.ejections).to_string(),
            seconds(&|row| row.other.out),
            answer.failures.recorded.iter().sum::<u64>().to_string(),
            sum(&|row| row.spared).to_string(),
            sum(&|row| row.moved).to_string(),
            seconds(&|row| row.unseen),
        ];
        let name = escape(&answer.policy);
        let _ = write!(page, "<tr><th><a href=\"#{number}-{name}\">{name}</a></th>");
        cells.iter().for_each(|cell| *page += &format!("<td>{cell}</td>"));
        *page += "</tr>\n";
    }
    *page += "</tbody></table>\n";
}

fn section(page: &mut String, number: usize, recording: &Recording, answer: &Answer) {
    let (from, until) = (recording.begins_at(), recording.header.saved_at);
    let seconds = until.since(from).as_secs_f64().max(0.1);
    let name = escape(&answer.policy);
    let _ = writeln!(page, "<section id=\"{number}-{name}\"><h2>{name}</h2>");
    let ids: Vec<String> = answer.rows.iter().map(|(key, _)| shown(key)).collect();
    let drawn = |lane: &Lane| -> Vec<(f64, &'static str)> {
        lane.changes().iter().map(|(at, serving)| (at.since(from).as_secs_f64(), class(*serving))).collect()
    };
    let lanes: Vec<_> = answer.lanes.iter().map(|(recorded, other)| (drawn(recorded), drawn(other))).collect();
    *page += &pairs(&ids, &lanes, seconds);
    let failures = &answer.failures;
    let most = failures.recorded.iter().copied().max().unwrap_or(0) as f64;
    let bin = failures.width.as_secs_f64();
    let recorded: Vec<f64> = failures.recorded.iter().map(|count| *count as f64).collect();
    let left: Vec<f64> = failures
        .recorded
        .iter()
        .zip(&failures.spared)
        .map(|(all, spared)| all.saturating_sub(*spared) as f64)
        .collect();
    for (what, values, class) in [("failed attempts", recorded, "failures"), ("those left", left, "p99")] {
        let shown = values.iter().take((seconds / bin).ceil() as usize).copied().collect::<Vec<f64>>();
        let _ = write!(page, "<p class=\"what\">{what}, each {bin:.1} s</p>");
        *page += &curve(&shown, bin, seconds, most, what, class);
    }
    *page += "</section>\n";
}

fn shown(key: &DestinationKey) -> String {
    key.to_string()
}

fn class(serving: Serving) -> &'static str {
    match serving {
        Serving::In => "in",
        Serving::Part => "part",
        Serving::Out => "out",
        Serving::Gone => "gone",
    }
}

const LEGEND: &str = "<p class=\"legend\">above as it was, below as it would have been: <span class=\"key in\"></span> serves \
    <span class=\"key out\"></span> out <span class=\"key part\"></span> in part</p>\n";

//! A comparison as one page that needs nothing beside itself: no script, no network.

use std::fmt::Write;

use super::chart::{curve, escape, lanes};
use super::{COLUMNS, caution, estimate};
use crate::compare::{Comparison, Plan};

/// The page.
pub fn render(plan: &Plan, comparison: &Comparison) -> String {
    let seconds = plan.scenario.duration.as_secs_f64();
    let ids: Vec<String> = plan.scenario.destinations.iter().map(|server| server.id.clone()).collect();
    let title = escape(&comparison.title);
    let retries =
        if comparison.attempts > 1 { format!("up to {} attempts", comparison.attempts) } else { "no retries".into() };
    let mut page = begin(&title, STYLE);
    let _ = writeln!(
        page,
        "<p>{} seeds, {retries}. Mean \u{b1} half of the 95 % interval; the drawings show the first seed and the first proxy.</p>",
        comparison.seeds
    );
    if let Some(note) = caution(comparison.seeds) {
        let _ = writeln!(page, "<p>{}</p>", escape(&note));
    }
    table(&mut page, comparison);
    page += "<p class=\"legend\"><span class=\"key sick\"></span> sick in truth <span class=\"key in\"></span> serves \
             <span class=\"key out\"></span> out <span class=\"key part\"></span> in part</p>\n";
    let films = || comparison.rows.iter().filter_map(|row| row.film.as_ref());
    let most_failures = films().flat_map(|film| &film.failures).copied().max().unwrap_or(0);
    let most_p99 = films().flat_map(|film| &film.p99).copied().fold(0.0, f64::max);
    for row in &comparison.rows {
        let Some(film) = &row.film else { continue };
        let name = escape(&row.policy.name);
        let (label, about) = (escape(&row.policy.label()), escape(&row.policy.about));
        let _ = writeln!(page, "<section id=\"{name}\"><h2>{label}</h2><p>{about}</p>");
        page += &lanes(film, &ids, seconds);
        let failures: Vec<f64> = film.failures.iter().map(|count| f64::from(*count)).collect();
        let _ = write!(page, "<p class=\"what\">failures, each {} s</p>", film.bin);
        page += &curve(&failures, film.bin, seconds, f64::from(most_failures), "failures", "failures");
        page += "<p class=\"what\">99th percentile of those served, ms</p>";
        page += &curve(&film.p99, film.bin, seconds, most_p99, "99th percentile", "p99");
        page += "</section>\n";
    }
    page + "</body></html>\n"
}

/// A page up to its heading.
pub(super) fn begin(title: &str, style: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}</title><style>{style}</style></head><body>\n<h1>{title}</h1>\n"
    )
}

fn table(page: &mut String, comparison: &Comparison) {
    *page += "<table><thead><tr><th>policy</th>";
    for (heading, _) in COLUMNS {
        let _ = write!(page, "<th>{heading}</th>");
    }
    *page += "<th>failures above oracle</th><th>p99 above oracle ms</th></tr></thead><tbody>\n";
    for row in &comparison.rows {
        let name = escape(&row.policy.name);
        let class = if row.policy.is_oracle() { " class=\"oracle\"" } else { "" };
        let label = escape(&row.policy.label());
        let _ = write!(page, "<tr{class}><th><a href=\"#{name}\">{label}</a></th>");
        for (_, measure) in COLUMNS {
            let _ = write!(page, "<td>{}</td>", estimate(row.measure(measure)));
        }
        for above in [row.failures_above, row.p99_above] {
            let text = if row.policy.is_oracle() { "-".to_owned() } else { estimate(Some(above)) };
            let _ = write!(page, "<td>{text}</td>");
        }
        *page += "</tr>\n";
    }
    *page += "</tbody></table>\n";
}

pub(super) const STYLE: &str = "\
body{font:15px/1.45 system-ui,sans-serif;max-width:1280px;margin:2rem auto;padding:0 1rem;color:#1b2733;background:#fff}\
h1{font-size:1.5rem}h2{font-size:1.1rem;margin:2.2rem 0 .2rem}p{margin:.2rem 0 .6rem}\
table{border-collapse:collapse;display:block;overflow-x:auto}th,td{padding:.3rem .6rem;text-align:right;white-space:nowrap;\
border-bottom:1px solid #d5dde5;font-variant-numeric:tabular-nums}thead th{white-space:normal;vertical-align:bottom}\
tbody th{text-align:left;font-weight:600}tr.oracle{color:#5c6b7a}a{color:inherit}\
svg{width:100%;height:auto;display:block}.name{font-size:11px;text-anchor:end;fill:#1b2733}\
.tick{font-size:10px;text-anchor:middle;fill:#5c6b7a}.what{font-size:12px;color:#5c6b7a;margin:.6rem 0 0}\
rect.well{fill:#e4ebf1}rect.sick{fill:#b3341f}rect.in{fill:#2a7f9e}rect.out{fill:#f0b429}rect.part{fill:#9cc7d6}rect.gone{fill:none}\
path{fill:none;stroke-width:1.3}path.failures{stroke:#b3341f}path.p99{stroke:#2a7f9e}\
.key{display:inline-block;width:1.6em;height:.8em;margin-left:1em}.key.sick{background:#b3341f}.key.in{background:#2a7f9e}\
.key.out{background:#f0b429}.key.part{background:#9cc7d6}\
@media(prefers-color-scheme:dark){body{background:#12181f;color:#dde5ec}.name{fill:#dde5ec}rect.well{fill:#2a3542}\
th,td{border-color:#2f3b47}tr.oracle,.tick,.what{color:#93a3b3;fill:#93a3b3}}";

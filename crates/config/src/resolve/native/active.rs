//! `health_check.active`: how destinations are probed.

use model::active::{ActiveCheck, ActivePolicy, ProbeKind, ProbeRequest, ProbeRound, ProbeStart, StatusRange};

use super::Context;
use crate::policy_names::Named;
use crate::raw::Value;
use crate::raw::section::{Field, Reading, Section};
use crate::report::Diagnostic;
use crate::resolve::matching;
use crate::resolve::policy::{self, ActiveName};

/// Resolves the block; `None` when it is switched off. An empty block is on.
pub fn resolve(r: &mut Reading<'_>, context: &Context<'_>, field: &Field<'_>) -> Option<ActiveCheck> {
    let mut s = match field.node.value {
        Value::Null => Section::empty(field.path.clone(), field.key_span),
        Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::List(_) | Value::Map(_) => {
            field.section_like(r, "a block such as {path: /health, interval: 5s}")?
        }
    };
    let defaults = &context.defaults;
    let enabled = s.take(r, "enabled").and_then(|f| f.flag(r)).unwrap_or(true);
    let kind = s.take(r, "kind").and_then(|f| kind(r, &f)).unwrap_or(ProbeKind::Http);
    let interval = s.take(r, "interval").and_then(|f| f.duration(r)).unwrap_or(defaults.probe_interval);
    let unhealthy_interval = s.take(r, "unhealthy_interval").and_then(|f| f.duration(r)).unwrap_or(interval);
    let timeout = s.take(r, "timeout").and_then(|f| f.duration(r)).unwrap_or(defaults.probe_timeout);
    let named = s.take(r, "policy").and_then(|f| policy::active(r, &f, context.names));
    let threshold = s.take(r, "threshold").and_then(|f| f.whole_u32(r, 1)).unwrap_or(defaults.probe_threshold);
    let confirm = s.take(r, "confirm_interval").and_then(|f| f.duration(r)).unwrap_or(defaults.confirm_interval);
    let starts = [("probe_first", ProbeStart::ProbeFirst), ("eligible", ProbeStart::Eligible)];
    let start = s.take(r, "start").and_then(|f| f.word(r, &starts)).unwrap_or(defaults.probe_start);
    let rounds = [("destination", ProbeRound::Destination), ("cluster", ProbeRound::Cluster)];
    let round = s.take(r, "round").and_then(|f| f.word(r, &rounds)).unwrap_or(ProbeRound::Destination);
    refuse_unfit(r, &mut s, kind);
    let request = request(r, &mut s);
    s.renamed(r, &[("http_version", "http"), ("protocol", "http")]);
    s.finish(r);
    let policy = match named {
        Some(Named::Custom(name)) => ActivePolicy::Custom(name),
        Some(Named::BuiltIn(ActiveName::ConsecutiveFailures)) | None => ActivePolicy::ConsecutiveFailures { threshold },
    };
    enabled.then_some(ActiveCheck {
        kind,
        interval,
        unhealthy_interval,
        timeout,
        policy,
        confirm_interval: confirm,
        start,
        round,
        request,
    })
}

fn kind(r: &mut Reading<'_>, field: &Field<'_>) -> Option<ProbeKind> {
    field.word(r, &[("http", ProbeKind::Http), ("tcp", ProbeKind::Tcp), ("grpc", ProbeKind::Grpc)])
}

/// Refuses keys that the kind has no use for: they would have no effect.
fn refuse_unfit(r: &mut Reading<'_>, s: &mut Section<'_>, kind: ProbeKind) {
    let (word, unfit): (&str, &[&'static str]) = match kind {
        ProbeKind::Http => ("http", &["service"]),
        ProbeKind::Tcp => ("tcp", &["service"]),
        ProbeKind::Grpc => ("grpc", &["http", "method", "path", "query", "expect"]),
    };
    for key in unfit {
        if let Some(field) = s.take(r, key) {
            r.error(field.key_span, format!("`{key}` has no meaning for {word} probes"), "expected it to be left out");
        }
    }
}

fn request(r: &mut Reading<'_>, s: &mut Section<'_>) -> ProbeRequest {
    let method = s.take(r, "method").and_then(|f| method(r, &f)).unwrap_or_else(|| "GET".to_owned());
    let path = s.take(r, "path").and_then(|f| begins_with(r, &f, '/'));
    let query = s.take(r, "query").and_then(|f| begins_with(r, &f, '?'));
    let host = s.take(r, "host").and_then(|f| f.text(r).filter(|_| is_header(r, &f))).map(str::to_owned);
    let headers = s.take(r, "headers").map(|f| headers(r, &f)).unwrap_or_default();
    let http = s.take(r, "http").and_then(|f| super::cluster::http(r, &f));
    let service = s.take(r, "service").and_then(|f| f.text(r)).map(str::to_owned);
    let healthy_threshold = s.take(r, "healthy_threshold").and_then(|f| f.whole_u32(r, 1)).unwrap_or(1);
    let mut expect_statuses = vec![StatusRange::SUCCESS];
    let mut expect_body = None;
    if let Some(mut expect) = s.take(r, "expect").and_then(|f| f.section(r)) {
        if let Some(field) = expect.take(r, "status") {
            expect_statuses = field.list(r).iter().filter_map(|item| status_range(r, item)).collect();
            if expect_statuses.is_empty() && !r.has_errors() {
                field.refuse(r, "no status is expected", "expected one range at least, such as \"200-299\"");
            }
        }
        expect_body = expect.take(r, "body").and_then(|f| f.text(r)).map(str::to_owned);
        expect.finish(r);
    }
    ProbeRequest { method, path, query, host, headers, expect_statuses, expect_body, http, service, healthy_threshold }
}

fn method(r: &mut Reading<'_>, field: &Field<'_>) -> Option<String> {
    matching::methods(r, std::slice::from_ref(field)).pop()
}

/// A path with its `/`, a query with its `?`.
fn begins_with(r: &mut Reading<'_>, field: &Field<'_>, first: char) -> Option<String> {
    let text = field.text(r)?;
    let name = &field.name;
    if !text.starts_with(first) {
        let diagnostic = Diagnostic::error(format!("`{name}` does not begin with {first}"))
            .label(format!("expected {first} in front"))
            .help(format!("did you mean `{first}{text}`?"));
        r.note(field.node.span, diagnostic);
        return None;
    }
    if text.bytes().any(|b| b <= b' ' || b == 0x7f) {
        field.refuse(r, format!("`{name}` holds blanks or control characters"), "expected them as %20 and so on");
        return None;
    }
    Some(text.to_owned())
}

fn is_header(r: &mut Reading<'_>, field: &Field<'_>) -> bool {
    let fits = field.node.scalar().is_some_and(matching::is_header_value);
    if !fits {
        field.refuse(r, format!("`{}` cannot stand in a header", field.name), "expected no control characters");
    }
    fits
}

fn headers(r: &mut Reading<'_>, field: &Field<'_>) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    let Some(mut s) = field.section(r) else { return headers };
    for entry in s.take_all(r) {
        let Some(value) = entry.any_text(r) else { continue };
        if !matching::is_header_name(&entry.name) {
            r.error(entry.key_span, format!("`{}` is no header name", entry.name), "expected letters, digits and -");
        } else if is_header(r, &entry) {
            headers.push((entry.name.clone(), value.to_owned()));
        }
    }
    headers
}

fn status_range(r: &mut Reading<'_>, field: &Field<'_>) -> Option<StatusRange> {
    let text = field.text(r)?;
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let parse = |text: &str| text.trim().parse::<u16>().ok().filter(|status| (100..=599).contains(status));
    match (parse(low), parse(high)) {
        (Some(low), Some(high)) if low <= high => Some(StatusRange { low, high }),
        (Some(_) | None, Some(_) | None) => {
            field.refuse(r, format!("`{text}` is no status"), "expected a status or a range such as \"200-299\"");
            None
        }
    }
}

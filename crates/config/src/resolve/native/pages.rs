//! What clients see of answers that are our own: `error_pages`, `maintenance`, `request_id`.

use model::config::RequestId;
use model::page::{ErrorPage, LONGEST_BODY, Maintenance, PageStatus};

use super::networks;
use super::split::header_name;
use crate::raw::Value;
use crate::raw::section::{Field, Reading};
use crate::resolve::matching;

/// `error_pages: {503: {body: …, content_type: text/html}, 5xx: {body: …}}`.
pub fn error_pages(r: &mut Reading<'_>, field: &Field<'_>) -> Vec<ErrorPage> {
    let Some(mut section) = field.section_like(r, PAGES) else { return Vec::new() };
    let mut pages = Vec::new();
    for page in section.take_all(r) {
        let status = match page.name.as_str() {
            "4xx" => Some(PageStatus::Class(4)),
            "5xx" => Some(PageStatus::Class(5)),
            text => text.parse().ok().filter(|status| (400..=599).contains(status)).map(PageStatus::One),
        };
        if status.is_none() {
            r.error(
                page.key_span,
                format!("`{}` is no status of an error", page.name),
                "expected 400 to 599, 4xx or 5xx",
            );
        }
        let Some(mut s) = page.section_like(r, PAGE) else { continue };
        let body = s.take(r, "body").and_then(|field| body(r, &field));
        let file = s.take(r, "file").and_then(|field| field.file(r));
        if body.is_some() == file.is_some() && !r.has_errors() {
            let what = if file.is_some() { "the page has a body and a file" } else { "the page has no body" };
            r.error(s.span, what, format!("expected {PAGE}"));
        }
        let content_type = s.take(r, "content_type").and_then(|field| content_type(r, &field));
        s.finish(r);
        if let Some(status) = status {
            let content_type = content_type.unwrap_or_else(|| HTML.to_owned());
            pages.push(ErrorPage { status, content_type, body: body.unwrap_or_default().into(), file });
        }
    }
    pages
}

/// `maintenance: {status: 503, body: …, retry_after: 10m, allow: [10.0.0.0/8]}`; `None` when it is switched off.
pub fn maintenance(r: &mut Reading<'_>, field: &Field<'_>) -> Option<Maintenance> {
    if let Value::Bool(is_on) = field.node.value {
        let rules = Maintenance { status: 503, body: None, retry_after: None, allow: Vec::new() };
        return is_on.then_some(rules);
    }
    let mut s = field.section_like(r, "true, or a block such as {status: 503, retry_after: 10m}")?;
    let is_on = s.take(r, "enabled").and_then(|field| field.flag(r)).unwrap_or(true);
    let status = s.take(r, "status").and_then(|field| field.whole(r, 400..=599)).unwrap_or(503);
    let body = s.take(r, "body").and_then(|field| body(r, &field));
    let retry_after = s.take(r, "retry_after").and_then(|field| field.duration(r));
    let allow = s.take(r, "allow").map(|field| networks(r, &field)).unwrap_or_default();
    s.finish(r);
    is_on.then_some(Maintenance {
        status: u16::try_from(status).unwrap_or(503),
        body,
        retry_after: retry_after.map(|span| u32::try_from(span.as_secs().max(1)).unwrap_or(u32::MAX)),
        allow,
    })
}

/// `request_id: off`, or `{header: x-request-id}`.
pub fn request_id(r: &mut Reading<'_>, field: &Field<'_>) -> RequestId {
    if !matches!(field.node.value, Value::Map(_)) {
        if field.node.scalar() != Some("off") && field.node.value != Value::Bool(false) {
            field.refuse(r, "`request_id` names no header", "expected off, or {header: x-request-id}");
        }
        return RequestId::Off;
    }
    let Some(mut s) = field.section(r) else { return RequestId::Off };
    let name = s.take(r, "header").map(|field| (header_name(r, &field), field));
    s.finish(r);
    match name {
        Some((Some(name), field)) if model::transform::is_reserved(&name) || name == "host" => {
            field.refuse(r, format!("`{name}` has another meaning"), "expected such as x-request-id");
            RequestId::Off
        }
        Some((Some(name), _)) => RequestId::Header(name),
        Some((None, _)) => RequestId::Off,
        None => {
            field.refuse(r, "`request_id` names no header", "expected off, or {header: x-request-id}");
            RequestId::Off
        }
    }
}

fn body(r: &mut Reading<'_>, field: &Field<'_>) -> Option<String> {
    let text = field.any_text(r)?;
    if text.len() > LONGEST_BODY {
        field.refuse(r, format!("`{}` has {} bytes", field.name, text.len()), "expected 64 KiB at most");
        return None;
    }
    Some(text.to_owned())
}

fn content_type(r: &mut Reading<'_>, field: &Field<'_>) -> Option<String> {
    let text = field.text(r)?;
    if text.contains('/') && matching::is_header_value(text) {
        return Some(text.to_owned());
    }
    field.refuse(r, format!("`{text}` is no media type"), "expected such as text/html; charset=utf-8");
    None
}

const PAGES: &str = "a page for each status, such as {503: {body: Back soon}, 5xx: {file: errors/5xx.html}}";
const PAGE: &str = "one of {body: TEXT} and {file: PATH}";
const HTML: &str = "text/html; charset=utf-8";

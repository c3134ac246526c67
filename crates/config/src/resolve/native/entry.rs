//! Who may use a route and how often: `allow`, `deny` with networks, `limit_requests`, `limit_connections`.

use model::entry::{ConnectionLimit, LimitKey, RequestLimit};
use model::route::RoutePolicy;

use super::networks;
use super::split::header_name;
use crate::raw::Value;
use crate::raw::section::{Field, Reading, Section};

/// Takes the keys. `deny` was taken before: with a status it is the route's action.
pub fn resolve(r: &mut Reading<'_>, s: &mut Section<'_>, policy: &mut RoutePolicy) {
    if let Some(field) = s.take(r, "allow") {
        policy.access.allow = networks(r, &field);
        if policy.access.allow.is_empty() && !r.has_errors() {
            field.refuse(r, "`allow` admits nobody", "expected networks, or no `allow` to admit everybody");
        }
    }
    policy.limit_requests = s.take(r, "limit_requests").and_then(|field| requests(r, &field));
    policy.limit_connections = s.take(r, "limit_connections").and_then(|field| connections(r, &field));
}

/// Whether the value lists networks (and is no status).
pub fn is_list(field: &Field<'_>) -> bool {
    match &field.node.value {
        Value::List(_) => true,
        Value::Text(text) => text.contains(['.', ':']),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Map(_) => false,
    }
}

/// `limit_connections: 20`, or `{per_client: 20}`.
pub fn connections(r: &mut Reading<'_>, field: &Field<'_>) -> Option<ConnectionLimit> {
    if !matches!(field.node.value, Value::Map(_)) {
        return field.whole_u32(r, 1).map(|per_client| ConnectionLimit { per_client });
    }
    let mut s = field.section(r)?;
    let per_client = s.take(r, "per_client").and_then(|field| field.whole_u32(r, 1));
    if per_client.is_none() && !r.has_errors() {
        r.error(s.span, "`limit_connections` has no number", "expected `per_client`");
    }
    s.finish(r);
    per_client.map(|per_client| ConnectionLimit { per_client })
}

fn requests(r: &mut Reading<'_>, field: &Field<'_>) -> Option<RequestLimit> {
    let mut s = field.section_like(r, "a block such as {rate: 10/s}")?;
    let rate = match s.take(r, "rate") {
        Some(field) => rate(r, &field),
        None => {
            r.error(s.span, "`limit_requests` has no rate", "expected `rate`, such as 10/s");
            None
        }
    };
    let burst = s.take(r, "burst").and_then(|field| field.whole(r, 1..=MOST_BURST));
    let key = s.take(r, "key").and_then(|field| key(r, &field)).unwrap_or_default();
    s.finish(r);
    let rate = rate?;
    // What comes in one second may come at once.
    let burst = burst.and_then(|burst| u32::try_from(burst).ok()).unwrap_or(rate.ceil().max(1.0) as u32);
    Some(RequestLimit { rate, burst, key })
}

/// `10` or `10/s`, `600/m`, `1000/h`.
fn rate(r: &mut Reading<'_>, field: &Field<'_>) -> Option<f64> {
    let text = field.text(r)?;
    let (number, seconds) = match text.split_once('/') {
        None => (text, Some(1.0)),
        Some((number, "s")) => (number, Some(1.0)),
        Some((number, "m")) => (number, Some(60.0)),
        Some((number, "h")) => (number, Some(3600.0)),
        Some((number, _)) => (number, None),
    };
    let rate = number.trim().parse::<f64>().ok().zip(seconds).map(|(number, seconds)| number / seconds);
    let rate = rate.filter(|rate| (LEAST_RATE..=MOST_RATE).contains(rate));
    if rate.is_none() {
        field.refuse(r, format!("`{text}` is no rate"), "expected such as 10/s, 600/m or 1000/h, up to 1000000/s");
    }
    rate
}

fn key(r: &mut Reading<'_>, field: &Field<'_>) -> Option<LimitKey> {
    if !matches!(field.node.value, Value::Map(_)) {
        return field.word(r, &[("client_address", ())]).map(|()| LimitKey::ClientAddress);
    }
    let mut s = field.section(r)?;
    let name = s.take(r, "header").and_then(|field| header_name(r, &field));
    if name.is_none() {
        r.error(s.span, "`key` names no header", "expected client_address, or {header: NAME}");
    }
    s.finish(r);
    name.map(LimitKey::Header)
}

/// One a day.
const LEAST_RATE: f64 = 1.0 / 86_400.0;
const MOST_RATE: f64 = 1e6;
const MOST_BURST: i64 = 1_000_000;

//! `retry`: what is tried again on the next destination.

use model::retry::{NonIdempotent, RetryBudget, RetryConditions, RetryRules, RouteRetry, TryPace};

use crate::raw::Value;
use crate::raw::section::{Field, Reading, Section};
use crate::report::{Diagnostic, suggest};

/// Resolves the block; `retry: off` turns it off.
pub fn resolve(r: &mut Reading<'_>, field: &Field<'_>, default: &RetryRules) -> RetryRules {
    if is_off(field) {
        return RetryRules::off();
    }
    let Some(mut s) = field.section_like(r, RULES) else {
        return default.clone();
    };
    let enabled = s.take(r, "enabled").and_then(|f| f.flag(r)).unwrap_or(true);
    let common = Common::take(r, &mut s);
    let per_try_timeout = s.take(r, "per_try_timeout").and_then(|field| {
        if field.node.scalar() == Some("adaptive") {
            field.refuse(
                r,
                "`adaptive` is a route's to choose",
                "expected a duration; a route may have `retry: {per_try_timeout: adaptive}`",
            );
            return None;
        }
        field.duration(r)
    });
    let replay = s.take(r, "replay").and_then(|f| f.bytes(r).map(|bytes| (f, bytes)));
    let replay = replay.and_then(|(field, bytes)| {
        if bytes > MAX_REPLAY {
            field.refuse(r, "`replay` is out of range", "expected 16MiB at most: each request may hold as much");
        }
        (bytes <= MAX_REPLAY).then_some(bytes)
    });
    let client_timeout = s.take(r, "client_timeout").and_then(|f| f.duration(r));
    let margin = s.take(r, "network_margin").and_then(|f| percent(r, &f, 90));
    let budget = s.take(r, "budget").and_then(|f| budget(r, &f, default.budget));
    s.finish(r);
    RetryRules {
        conditions: common.conditions.unwrap_or_else(|| default.conditions.clone()),
        attempts: if enabled { common.attempts.unwrap_or(default.attempts) } else { 1 },
        per_try_timeout,
        pace: TryPace::Given,
        non_idempotent: common.non_idempotent.unwrap_or(NonIdempotent::Never),
        replay: replay.unwrap_or(default.replay),
        client_timeout,
        network_margin_percent: margin.unwrap_or(default.network_margin_percent),
        budget: budget.unwrap_or(default.budget),
    }
}

/// Resolves `retry` of a route: what it has in place of the cluster's rules. `retry: off` turns it off there.
pub fn of_route(r: &mut Reading<'_>, field: &Field<'_>) -> Option<RouteRetry> {
    if is_off(field) {
        return Some(RouteRetry { attempts: Some(1), ..RouteRetry::default() });
    }
    let mut s = field.section_like(r, RULES)?;
    let common = Common::take(r, &mut s);
    let per_try = s.take(r, "per_try_timeout").map(|field| match &field.node.value {
        Value::Text(text) if text == "adaptive" => (None, TryPace::Adaptive),
        Value::Null => (Some(None), TryPace::Given),
        Value::Text(_) | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Map(_) => {
            (field.duration(r).map(Some), TryPace::Given)
        }
    });
    for key in ["replay", "client_timeout", "network_margin", "budget"] {
        if let Some(field) = s.take(r, key) {
            field.refuse(r, format!("`{key}` is the cluster's alone"), "expected it in `retry` of the cluster");
        }
    }
    s.finish(r);
    let (per_try_timeout, pace) = per_try.unwrap_or_default();
    Some(RouteRetry {
        conditions: common.conditions,
        attempts: common.attempts,
        per_try_timeout,
        pace,
        non_idempotent: common.non_idempotent,
    })
}

/// What clusters and routes say alike.
struct Common {
    conditions: Option<RetryConditions>,
    attempts: Option<u8>,
    non_idempotent: Option<NonIdempotent>,
}

impl Common {
    fn take(r: &mut Reading<'_>, s: &mut Section<'_>) -> Self {
        let conditions = s.take(r, "conditions").map(|f| conditions(r, &f));
        let attempts = s.take(r, "attempts").and_then(|f| f.whole(r, 1..=100)).and_then(|n| u8::try_from(n).ok());
        let always = s.take(r, "non_idempotent").and_then(|f| f.flag(r));
        let keys = [("trusted", NonIdempotent::WithKey), ("ignored", NonIdempotent::Never)];
        let keyed = s.take(r, "idempotency_key").and_then(|f| f.word(r, &keys));
        let non_idempotent = match always {
            Some(true) => Some(NonIdempotent::Always),
            Some(false) => Some(keyed.unwrap_or(NonIdempotent::Never)),
            None => keyed,
        };
        Self { conditions, attempts, non_idempotent }
    }
}

fn budget(r: &mut Reading<'_>, field: &Field<'_>, default: RetryBudget) -> Option<RetryBudget> {
    let mut s = field.section(r)?;
    let share = s.take(r, "share").and_then(|f| percent(r, &f, 100));
    let per_second = s.take(r, "per_second").and_then(|f| f.whole(r, 0..=1000)).and_then(|n| u16::try_from(n).ok());
    s.finish(r);
    Some(RetryBudget {
        percent: share.unwrap_or(default.percent),
        per_second: per_second.unwrap_or(default.per_second),
    })
}

fn is_off(field: &Field<'_>) -> bool {
    match &field.node.value {
        Value::Bool(false) => true,
        Value::Text(text) => text == "off",
        Value::Null | Value::Bool(true) | Value::Number(_) | Value::List(_) | Value::Map(_) => false,
    }
}

fn conditions(r: &mut Reading<'_>, field: &Field<'_>) -> RetryConditions {
    let mut found = RetryConditions { error: false, timeout: false, invalid_header: false, statuses: Vec::new() };
    for item in field.list(r) {
        let Some(text) = item.text(r) else { continue };
        let status = text.strip_prefix("http_").and_then(|digits| digits.parse::<u16>().ok());
        match (text, status) {
            ("error", _) => found.error = true,
            ("timeout", _) => found.timeout = true,
            ("invalid_header", _) => found.invalid_header = true,
            ("non_idempotent", _) => {
                let diagnostic = Diagnostic::error("`non_idempotent` is no condition")
                    .label("it is a key of its own")
                    .help("write `non_idempotent: true` beside `conditions`");
                r.note(item.node.span, diagnostic);
            }
            ("off", _) => item.refuse(r, "`off` is no condition", "expected `retry: off` in place of the block"),
            (_, Some(status)) if STATUSES.contains(&status) => {
                if !found.statuses.contains(&status) {
                    found.statuses.push(status);
                }
            }
            (_, Some(_) | None) => {
                let diagnostic = Diagnostic::error(format!("unknown condition `{text}`"))
                    .label(format!("expected one of {}", WORDS.join(", ")))
                    .maybe_help(suggest::did_you_mean(text, WORDS));
                r.note(item.node.span, diagnostic);
            }
        }
    }
    found
}

fn percent(r: &mut Reading<'_>, field: &Field<'_>, most: u8) -> Option<u8> {
    let text = field.text(r)?;
    let number = text.strip_suffix('%').and_then(|digits| digits.trim().parse::<u8>().ok()).filter(|n| *n <= most);
    if number.is_none() {
        field.refuse(
            r,
            format!("`{}` is no share: `{text}`", field.name),
            format!("expected a percentage from 0% to {most}%"),
        );
    }
    number
}

const RULES: &str = "off, or a block such as {attempts: 3, conditions: [error, timeout]}";
const STATUSES: [u16; 7] = [500, 502, 503, 504, 403, 404, 429];
const WORDS: [&str; 10] = [
    "error",
    "timeout",
    "invalid_header",
    "http_500",
    "http_502",
    "http_503",
    "http_504",
    "http_403",
    "http_404",
    "http_429",
];
const MAX_REPLAY: u64 = 16 << 20;

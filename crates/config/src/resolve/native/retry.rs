//! `retry`: what is tried again on the next destination.

use model::retry::{NonIdempotent, RetryConditions, RetryRules};

use crate::raw::Value;
use crate::raw::section::{Field, Reading};
use crate::report::{Diagnostic, suggest};

/// Resolves the block; `retry: off` turns it off.
pub fn resolve(r: &mut Reading<'_>, field: &Field<'_>, default: &RetryRules) -> RetryRules {
    let is_off = match &field.node.value {
        Value::Bool(false) => true,
        Value::Text(text) => text == "off",
        Value::Null | Value::Bool(true) | Value::Number(_) | Value::List(_) | Value::Map(_) => false,
    };
    if is_off {
        return RetryRules::off();
    }
    let Some(mut s) = field.section(r) else {
        return default.clone();
    };
    let enabled = s.take(r, "enabled").and_then(|f| f.flag(r)).unwrap_or(true);
    let conditions = s.take(r, "conditions").map(|f| conditions(r, &f));
    let attempts = s.take(r, "attempts").and_then(|f| f.whole(r, 1..=100)).and_then(|n| u8::try_from(n).ok());
    let per_try_timeout = match s.take(r, "per_try_timeout") {
        Some(field) if field.node.scalar() == Some("adaptive") => {
            field.refuse(r, "adaptive timeouts are not supported yet", "expected a duration");
            None
        }
        Some(field) => field.duration(r),
        None => None,
    };
    let always = s.take(r, "non_idempotent").and_then(|f| f.flag(r)).unwrap_or(false);
    let keys = [("trusted", true), ("ignored", false)];
    let trusts_key = s.take(r, "idempotency_key").and_then(|f| f.word(r, &keys)).unwrap_or(false);
    let replay = s.take(r, "replay").and_then(|f| f.bytes(r).map(|bytes| (f, bytes)));
    let replay = replay.and_then(|(field, bytes)| {
        if bytes > MAX_REPLAY {
            field.refuse(r, "`replay` is out of range", "expected 16MiB at most: each request may hold as much");
        }
        (bytes <= MAX_REPLAY).then_some(bytes)
    });
    let client_timeout = s.take(r, "client_timeout").and_then(|f| f.duration(r));
    let margin = s.take(r, "network_margin").and_then(|f| percent(r, &f));
    s.not_yet(r, &[("budget", "a configurable retry budget; the built-in one holds")]);
    s.finish(r);
    RetryRules {
        conditions: conditions.unwrap_or_else(|| default.conditions.clone()),
        attempts: if enabled { attempts.unwrap_or(default.attempts) } else { 1 },
        per_try_timeout,
        non_idempotent: match (always, trusts_key) {
            (true, true | false) => NonIdempotent::Always,
            (false, true) => NonIdempotent::WithKey,
            (false, false) => NonIdempotent::Never,
        },
        replay: replay.unwrap_or(default.replay),
        client_timeout,
        network_margin_percent: margin.unwrap_or(default.network_margin_percent),
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

fn percent(r: &mut Reading<'_>, field: &Field<'_>) -> Option<u8> {
    let text = field.text(r)?;
    let number = text.strip_suffix('%').and_then(|digits| digits.trim().parse::<u8>().ok()).filter(|n| *n <= 90);
    if number.is_none() {
        field.refuse(r, format!("`{}` is no share: `{text}`", field.name), "expected a percentage from 0% to 90%");
    }
    number
}

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

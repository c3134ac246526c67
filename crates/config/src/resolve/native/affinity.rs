//! `session_affinity`: a client stays with its destination.

use model::affinity::{AffinityCookie, AffinityFailurePolicy, AffinityPolicy, SessionAffinity};

use crate::raw::section::{Field, Reading, Section};
use crate::resolve::matching;

/// Resolves the block; `None` when it is switched off.
pub fn resolve(r: &mut Reading<'_>, field: &Field<'_>) -> Option<SessionAffinity> {
    let mut s = field.section(r)?;
    let enabled = s.take(r, "enabled").and_then(|f| f.flag(r)).unwrap_or(true);
    let policy = s.take(r, "policy").and_then(|f| policy(r, &f)).unwrap_or(AffinityPolicy::HashCookie);
    let failure_policy = s.take(r, "failure_policy").and_then(|f| f.word(r, &FAILURE_POLICIES));
    let key_name = match s.take(r, "key_name") {
        Some(field) => key_name(r, &field),
        None => {
            r.error(field.key_span, "the affinity has no key name", "expected `key_name`, the name of its cookie");
            None
        }
    };
    let cookie = s.take(r, "cookie").and_then(|f| f.section(r)).map(|section| cookie(r, section)).unwrap_or_default();
    s.finish(r);
    let failure_policy = failure_policy.unwrap_or(AffinityFailurePolicy::Redistribute);
    let affinity = SessionAffinity { policy, failure_policy, key_name: key_name?, cookie };
    enabled.then_some(affinity)
}

/// Names an affinity policy.
pub fn policy(r: &mut Reading<'_>, field: &Field<'_>) -> Option<AffinityPolicy> {
    let words = [
        ("HashCookie", Some(AffinityPolicy::HashCookie)),
        ("ArrCookie", None),
        ("Cookie", None),
        ("CustomHeader", None),
    ];
    let policy = field.word(r, &words)?;
    if policy.is_none() {
        let text = field.text(r).unwrap_or_default();
        field.refuse(r, format!("affinity by `{text}` is not supported yet"), "expected HashCookie");
    }
    policy
}

/// The name of a cookie.
pub fn key_name(r: &mut Reading<'_>, field: &Field<'_>) -> Option<String> {
    let text = field.text(r)?;
    if !matching::is_header_name(text) {
        field.refuse(r, format!("`{text}` is no cookie name"), "expected letters, digits, - and _");
        return None;
    }
    Some(text.to_owned())
}

/// Failure policies by name.
pub const FAILURE_POLICIES: [(&str, AffinityFailurePolicy); 2] =
    [("Redistribute", AffinityFailurePolicy::Redistribute), ("Return503Error", AffinityFailurePolicy::Return503Error)];

fn cookie(r: &mut Reading<'_>, mut s: Section<'_>) -> AffinityCookie {
    let default = AffinityCookie::default();
    let cookie = AffinityCookie {
        path: s.take(r, "path").and_then(|f| cookie_text(r, &f)).unwrap_or(default.path),
        domain: s.take(r, "domain").and_then(|f| cookie_text(r, &f)),
        http_only: s.take(r, "http_only").and_then(|f| f.flag(r)).unwrap_or(default.http_only),
        secure: s.take(r, "secure").and_then(|f| f.flag(r)).unwrap_or(default.secure),
        same_site: s.take(r, "same_site").and_then(|f| f.word(r, &SAME_SITE)).map(str::to_owned),
        max_age: s.take(r, "max_age").and_then(|f| f.duration(r)),
    };
    s.finish(r);
    cookie
}

/// A text that can stand in an attribute of a cookie.
pub fn cookie_text(r: &mut Reading<'_>, field: &Field<'_>) -> Option<String> {
    let text = field.text(r)?;
    if text.contains([';', ',']) || !matching::is_header_value(text) || !text.is_ascii() {
        field.refuse(r, format!("`{text}` cannot stand in a cookie"), "expected no ; and no ,");
        return None;
    }
    Some(text.to_owned())
}

const SAME_SITE: [(&str, &str); 3] = [("Strict", "Strict"), ("Lax", "Lax"), ("None", "None")];

//! `SessionAffinity`: a client stays with its destination. Nothing inside a block that is switched off is looked at.

use model::affinity::{AffinityCookie, AffinityFailurePolicy, AffinityPolicy, SessionAffinity};

use super::Flag;
use crate::raw::section::{Field, Reading, Section};
use crate::resolve::native::affinity as native;

/// Resolves the block of a cluster.
pub fn resolve(r: &mut Reading<'_>, field: &Field<'_>) -> Option<SessionAffinity> {
    let mut s = field.section(r)?;
    if s.take_flag(r, "Enabled", "enabled", Flag::Off) == Flag::Off {
        s.ignore_rest();
        return None;
    }
    let policy = s.take_filled(r, "Policy", "policy").and_then(|f| native::policy(r, &f));
    let failure =
        s.take_filled(r, "FailurePolicy", "failure_policy").and_then(|f| f.word(r, &native::FAILURE_POLICIES));
    let key_name = match s.take_filled(r, "AffinityKeyName", "key_name") {
        Some(field) => native::key_name(r, &field),
        None => {
            r.error(
                field.key_span,
                "the affinity has no key name",
                "expected `AffinityKeyName`, the name of its cookie",
            );
            None
        }
    };
    let cookie = s.take_as(r, "Cookie", "cookie").and_then(|f| f.section(r));
    let cookie = cookie.map(|section| cookie_of(r, section)).unwrap_or_default();
    s.finish(r);
    Some(SessionAffinity {
        policy: policy.unwrap_or(AffinityPolicy::HashCookie),
        failure_policy: failure.unwrap_or(AffinityFailurePolicy::Redistribute),
        key_name: key_name?,
        cookie,
    })
}

fn cookie_of(r: &mut Reading<'_>, mut s: Section<'_>) -> AffinityCookie {
    let default = AffinityCookie::default();
    let http_only = s.take_flag(r, "HttpOnly", "http_only", Flag::On) == Flag::On;
    let secure = s.take_filled(r, "SecurePolicy", "secure").and_then(|f| f.word(r, &SECURE)).unwrap_or(Flag::Off);
    let same_site = s.take_filled(r, "SameSite", "same_site").and_then(|f| f.word(r, &SAME_SITE)).flatten();
    let expiration = s.take_filled(r, "Expiration", "max_age");
    let max_age = s.take_filled(r, "MaxAge", "max_age").and_then(|f| f.duration(r));
    let expires = expiration.and_then(|field| field.duration(r).map(|span| (field, span)));
    if let (Some((field, _)), None) = (&expires, max_age) {
        r.warn(field.key_span, "`Expiration` is sent as Max-Age");
    }
    let cookie = AffinityCookie {
        path: s.take_filled(r, "Path", "path").and_then(|f| native::cookie_text(r, &f)).unwrap_or(default.path),
        domain: s.take_filled(r, "Domain", "domain").and_then(|f| native::cookie_text(r, &f)),
        http_only,
        secure: secure == Flag::On,
        same_site: same_site.map(str::to_owned),
        max_age: max_age.or(expires.map(|(_, span)| span)),
    };
    // Consent is asked for by the application; the cookie of a proxy is always sent.
    s.take(r, "IsEssential");
    s.finish(r);
    cookie
}

/// Listeners are plain, so a cookie that is as secure as the request is not.
const SECURE: [(&str, Flag); 3] = [("SameAsRequest", Flag::Off), ("Always", Flag::On), ("None", Flag::Off)];
const SAME_SITE: [(&str, Option<&str>); 4] =
    [("Strict", Some("Strict")), ("Lax", Some("Lax")), ("None", Some("None")), ("Unspecified", None)];

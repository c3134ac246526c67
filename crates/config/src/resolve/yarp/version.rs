//! `Version` and `VersionPolicy` of a cluster's `HttpRequest`: which HTTP destinations are spoken to in.
//!
//! As .NET's HttpClient understands them: over TLS, ALPN chooses between what is allowed; without TLS there is nothing to
//! choose by, and HTTP/2 is spoken only where nothing lower is allowed.
//!
//! | Version | OrLower | OrHigher | Exact |
//! |---|---|---|---|
//! | 1.0 | 1.1, with a warning | 2-or-1.1, with a warning | 1.1, with a warning |
//! | 1.1 | 1.1 | 2-or-1.1 | 1.1 |
//! | 2 (also unset) | 2-or-1.1 | 2 | 2 |
//! | 3 | 2-or-1.1 | 2, with a warning | 2, with a warning |

use model::upstream::UpstreamHttp;

use crate::origin::Origin;
use crate::raw::path::Path;
use crate::raw::section::{Reading, Section};

/// A cluster that says nothing: HTTP/2 or lower.
pub const DEFAULT: UpstreamHttp = UpstreamHttp::Http2OrHttp1;

/// Takes both keys; `native` is the name of what they come to.
pub fn resolve(r: &mut Reading<'_>, request: &mut Section<'_>, native: Path) -> UpstreamHttp {
    let policy = request.take_filled(r, "VersionPolicy", "version_policy");
    let version = request.take_filled(r, "Version", "version");
    if let Some(field) = version.as_ref().or(policy.as_ref()) {
        r.origins.record(native, Origin::File { line: r.line(field.node.span) }, field.node.span);
    }
    let policy = policy.and_then(|f| f.word(r, &POLICIES)).unwrap_or(Policy::OrLower);
    let Some(field) = version else {
        return of(Version::Two, policy);
    };
    let version = match field.node.scalar().unwrap_or_default() {
        "1.0" => Version::Ten,
        "1.1" | "1" => Version::Eleven,
        "2" | "2.0" => Version::Two,
        "3" | "3.0" => Version::Three,
        other => {
            field.refuse(r, format!("`{}` cannot be `{other}`", field.name), "expected 1.0, 1.1, 2 or 3");
            return DEFAULT;
        }
    };
    match (version, policy) {
        (Version::Ten, Policy::OrLower | Policy::OrHigher | Policy::Exact) => {
            r.warn(field.node.span, "HTTP/1.1 is used towards destinations, not 1.0");
        }
        (Version::Three, Policy::OrHigher | Policy::Exact) => {
            r.warn(field.node.span, "HTTP/2 is used towards destinations, though HTTP/3 is demanded");
        }
        (Version::Eleven | Version::Two | Version::Three, _) => {}
    }
    of(version, policy)
}

fn of(version: Version, policy: Policy) -> UpstreamHttp {
    match (version, policy) {
        (Version::Ten | Version::Eleven, Policy::OrLower | Policy::Exact) => UpstreamHttp::Http1,
        (Version::Ten | Version::Eleven, Policy::OrHigher) => UpstreamHttp::Http2OrHttp1,
        (Version::Two | Version::Three, Policy::OrLower) => UpstreamHttp::Http2OrHttp1,
        (Version::Two | Version::Three, Policy::OrHigher | Policy::Exact) => UpstreamHttp::Http2,
    }
}

#[derive(Clone, Copy)]
enum Version {
    Ten,
    Eleven,
    Two,
    Three,
}

#[derive(Clone, Copy)]
enum Policy {
    OrLower,
    OrHigher,
    Exact,
}

const POLICIES: [(&str, Policy); 3] = [
    ("RequestVersionOrLower", Policy::OrLower),
    ("RequestVersionOrHigher", Policy::OrHigher),
    ("RequestVersionExact", Policy::Exact),
];

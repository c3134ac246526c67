//! `clusters`: destinations and the policies over them.

use std::collections::BTreeMap;

use model::available::AvailablePolicy;
use model::balancing::LoadBalancing;
use model::cluster::{Cluster, Compat, HealthCheck, Queue, UpstreamHost, UpstreamTls, Verify};
use model::guards::{AnsweringDestination, Guards, LastDestination};
use model::id::ClusterId;
use model::passive::PassivePolicy;
use model::ratio::Ratio;
use model::timeouts::Timeouts;
use model::tls::CertificateFiles;
use model::upstream::{SendProxy, UpstreamHttp};

use super::{Context, active, affinity, destination, dns, each, hash, passive, queue, retry};
use crate::raw::Value;
use crate::raw::section::{Field, Reading, Section};
use crate::resolve::{self, policy};

/// Resolves one cluster.
pub fn resolve(r: &mut Reading<'_>, context: &Context<'_>, field: &Field<'_>) -> Option<Cluster> {
    let mut s = field.section(r)?;
    let compat = s.take(r, "compat");
    let compat = resolve::compat(r, compat, s.path.join("compat"), context.compat);
    let load_balancing = s.take(r, "load_balancing").and_then(|f| policy::balancing(r, &f, context.names));
    let load_balancing = hash::applied(r, &mut s, load_balancing.unwrap_or_default());
    let session_affinity = s.take(r, "session_affinity").and_then(|f| affinity::resolve(r, &f));
    let health_check = s.take(r, "health_check").and_then(|f| f.section(r));
    let is_sticky = session_affinity.is_some() || matches!(load_balancing, LoadBalancing::ConsistentHash(_));
    let spread = if is_sticky { Spread::ByClient } else { Spread::ByLoad };
    let health_check = health_check.map(|section| health(r, context, section, compat, spread));
    let retry = s.take(r, "retry").map(|f| retry::resolve(r, &f, &context.defaults.retry));
    let queue = s.take(r, "queue").and_then(|f| queue::resolve(r, &f, compat)).unwrap_or(Queue::of(compat));
    let timeouts = s.take(r, "timeouts").and_then(|f| f.section(r));
    let timeouts = timeouts.map(|section| timeouts_of(r, section, context.defaults.timeouts));
    let tls = s.take(r, "tls").and_then(|f| f.section(r)).map(|section| tls(r, section));
    let hosts = [("destination", UpstreamHost::Destination), ("original", UpstreamHost::Original)];
    let host = s.take(r, "host").and_then(|f| f.word(r, &hosts)).unwrap_or_default();
    let family = dns::family(r, &mut s);
    let outbound = dns::outbound(r, &mut s);
    let http = s.take(r, "http").and_then(|f| Some((http(r, &f)?, f)));
    if let Some((UpstreamHttp::Http2 | UpstreamHttp::Http2OrHttp1, field)) = &http
        && outbound.proxy_protocol == SendProxy::V2
    {
        let why = "expected 1.1: an HTTP/2 connection carries many clients, and a PROXY header names one";
        field.refuse(r, "`http` 2 and `proxy_protocol` exclude each other", why);
    }
    let http = http.map(|(http, _)| http).unwrap_or_default();
    let metadata = s.take(r, "metadata").map(|f| metadata(r, &f)).unwrap_or_default();
    let destinations = each(r, &mut s, "destinations", destination::resolve);
    s.not_yet(r, &[("transforms", "transforms"), ("hash", "ConsistentHash")]);
    s.renamed(
        r,
        &[
            ("http_version", "http"),
            ("protocol", "http"),
            ("guards", "health_check.guards"),
            ("max_ejected_percent", "health_check.guards.max_ejected"),
        ],
    );
    s.finish(r);
    Some(Cluster {
        id: ClusterId::from(field.name.as_str()),
        compat,
        load_balancing,
        session_affinity,
        health_check: health_check.unwrap_or(HealthCheck {
            available_destinations_policy: AvailablePolicy::HealthyOrPanic,
            active: None,
            passive: None,
            guards: Guards::default(),
        }),
        retry: retry.unwrap_or_else(|| context.defaults.retry.clone()),
        queue,
        timeouts: timeouts.unwrap_or(context.defaults.timeouts),
        tls: tls.unwrap_or_default(),
        host,
        http,
        outbound,
        family,
        metadata,
        destinations,
    })
}

/// What decides which destination a client's requests come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spread {
    ByLoad,
    ByClient,
}

fn health(
    r: &mut Reading<'_>,
    context: &Context<'_>,
    mut s: Section<'_>,
    compat: Compat,
    spread: Spread,
) -> HealthCheck {
    let available = s.take(r, "available_destinations_policy").and_then(|f| available(r, context, &f));
    let active = s.take_raw(r, "active", "active").and_then(|f| active::resolve(r, context, &f));
    let passive = s.take_raw(r, "passive", "passive").and_then(|f| passive::resolve(r, context, &f, compat));
    let available = available.unwrap_or(AvailablePolicy::HealthyOrPanic);
    let origin = passive.as_ref().map(|(_, origin)| *origin);
    let guards = match (s.take(r, "guards"), origin) {
        (Some(field), _) => guards(r, &field).unwrap_or_default(),
        (None, Some(passive::Origin::DefaultSet)) => match available {
            // Whoever wants a 503 when nobody is good gets it.
            AvailablePolicy::HealthyAndUnknown => Guards { last: LastDestination::Leaves, ..Guards::native() },
            AvailablePolicy::HealthyOrPanic | AvailablePolicy::PanicThreshold(_) | AvailablePolicy::Custom(_) => {
                Guards::native()
            }
        },
        (None, Some(passive::Origin::Named) | None) => Guards::default(),
    };
    s.finish(r);
    let passive = passive.map(|(mut check, origin)| {
        // A limit that counts per client falls on the destination of that client alone, which then asks for less for all.
        if (origin, spread) == (passive::Origin::DefaultSet, Spread::ByClient) {
            check.policies.retain(|policy| !matches!(policy, PassivePolicy::Overload(_)));
        }
        check
    });
    HealthCheck { available_destinations_policy: available, active, passive, guards }
}

/// `guards`: the recommended ones as `true`.
fn guards(r: &mut Reading<'_>, field: &Field<'_>) -> Option<Guards> {
    if let Value::Bool(is_on) = field.node.value {
        return is_on.then(Guards::native);
    }
    let mut s = field.section(r)?;
    let words = [("leaves", LastDestination::Leaves), ("stays", LastDestination::Stays)];
    let answering = [("leaves", AnsweringDestination::Leaves), ("stays", AnsweringDestination::Stays)];
    let guards = Guards {
        max_ejected: s.take(r, "max_ejected").and_then(|f| f.rate(r)).and_then(Ratio::new),
        spacing: s.take(r, "spacing").and_then(|f| f.duration(r)),
        last: s.take(r, "last").and_then(|f| f.word(r, &words)).unwrap_or_default(),
        answering: s.take(r, "answering").and_then(|f| f.word(r, &answering)).unwrap_or_default(),
    };
    s.finish(r);
    Some(guards)
}

fn available(r: &mut Reading<'_>, context: &Context<'_>, field: &Field<'_>) -> Option<AvailablePolicy> {
    let Value::Map(_) = field.node.value else {
        return policy::available(r, field, context.names);
    };
    let mut s = field.section(r)?;
    let name = s.take(r, "name").and_then(|f| f.word(r, &[("PanicThreshold", ())]));
    let percent = s.take(r, "percent").and_then(|f| f.whole(r, 0..=100));
    let span = s.span;
    s.finish(r);
    if name.is_some() && percent.is_none() {
        r.error(span, "`PanicThreshold` needs its percentage", "expected {name: PanicThreshold, percent: 50}");
    }
    let percent = f64::from(u8::try_from(percent?).ok()?);
    name.and(Ratio::new(percent / 100.0)).map(AvailablePolicy::PanicThreshold)
}

fn timeouts_of(r: &mut Reading<'_>, mut s: Section<'_>, default: Timeouts) -> Timeouts {
    let connect = s.take(r, "connect").and_then(|f| f.duration(r)).unwrap_or(default.connect);
    let idle = s.take(r, "idle").and_then(|f| f.duration(r)).unwrap_or(default.idle);
    let pool_idle = s.take(r, "pool_idle").and_then(|f| f.duration(r)).unwrap_or(default.pool_idle);
    let pool_size = match s.take(r, "pool_size") {
        Some(field) if field.node.scalar() == Some("none") => None,
        Some(field) => field.whole_u32(r, 0),
        None => default.pool_size,
    };
    let http2_ping = s.take(r, "http2_ping").and_then(|f| f.duration(r)).or(default.http2_ping);
    let tunnel_idle = s.take(r, "tunnel_idle").and_then(|f| f.duration(r)).unwrap_or(default.tunnel_idle);
    s.not_yet(r, &[("total", "total limits per cluster; the route's `timeout` works")]);
    s.finish(r);
    Timeouts { connect, idle, tunnel_idle, pool_idle, pool_size, http2_ping }
}

/// Which HTTP is spoken; `2` written as a number counts.
pub fn http(r: &mut Reading<'_>, field: &Field<'_>) -> Option<UpstreamHttp> {
    let words = [("1.1", UpstreamHttp::Http1), ("2", UpstreamHttp::Http2), ("2-or-1.1", UpstreamHttp::Http2OrHttp1)];
    field.word(r, &words)
}

fn tls(r: &mut Reading<'_>, mut s: Section<'_>) -> UpstreamTls {
    let ca = s.take(r, "ca").and_then(|f| f.file(r));
    let server_name = s.take(r, "server_name").and_then(|f| f.text(r)).map(str::to_owned);
    let words = [("full", Verify::Full), ("none", Verify::DangerousNone), ("dangerous_none", Verify::DangerousNone)];
    let verify = s.take(r, "verify").and_then(|f| f.word(r, &words)).unwrap_or_default();
    let certificate = s.take(r, "certificate");
    let key = s.take(r, "key");
    s.finish(r);
    let client_certificate = match (&certificate, &key) {
        (Some(certificate), Some(key)) => certificate.file(r).zip(key.file(r)),
        (Some(one), None) => refuse_half(r, one, "key"),
        (None, Some(one)) => refuse_half(r, one, "certificate"),
        (None, None) => None,
    };
    let client_certificate = client_certificate.map(|(certificate, key)| CertificateFiles { certificate, key });
    UpstreamTls { ca, server_name, verify, client_certificate }
}

/// A certificate is of no use without its key, nor a key without its certificate.
fn refuse_half<T>(r: &mut Reading<'_>, one: &Field<'_>, other: &str) -> Option<T> {
    r.error(one.key_span, format!("`{}` needs `{other}` beside it", one.name), "expected both, or neither");
    None
}

fn metadata(r: &mut Reading<'_>, field: &Field<'_>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    if let Some(mut s) = field.section(r) {
        for entry in s.take_all(r) {
            if let Some(text) = entry.any_text(r) {
                all.insert(entry.name.clone(), text.to_owned());
            }
        }
    }
    all
}

//! Clusters, written down.

use model::affinity::{AffinityFailurePolicy, AffinityPolicy, SessionAffinity};
use model::balancing::{HashKey, LoadBalancing};
use model::cluster::{Cluster, Compat, Queue, UpstreamHost, Verify};
use model::retry::{NonIdempotent, RetryConditions, RetryRules};
use model::upstream::{Family, SendProxy, Tunnels};

use super::{Writer, bytes, destination, health, list, optional, quoted, span};
use crate::check::facts;
use crate::timespan;

/// Writes one cluster.
pub fn write(w: &mut Writer<'_>, cluster: &Cluster) {
    let facts = facts::of_cluster(cluster);
    let compat = match cluster.compat {
        Compat::None => "none",
        Compat::Yarp => "yarp",
        Compat::Nginx => "nginx",
    };
    w.value("compat", compat.to_owned());
    w.value(
        "load_balancing",
        match &cluster.load_balancing {
            LoadBalancing::PowerOfTwoChoices => "PowerOfTwoChoices".to_owned(),
            LoadBalancing::RoundRobin => "RoundRobin".to_owned(),
            LoadBalancing::LeastRequests => "LeastRequests".to_owned(),
            LoadBalancing::Random => "Random".to_owned(),
            LoadBalancing::FirstAlphabetical => "FirstAlphabetical".to_owned(),
            LoadBalancing::ConsistentHash(_) => "ConsistentHash".to_owned(),
            LoadBalancing::PeakEwma => "PeakEwma".to_owned(),
            LoadBalancing::Custom(name) => quoted(name.as_str()),
        },
    );
    match &cluster.load_balancing {
        LoadBalancing::ConsistentHash(HashKey::ClientAddress) => w.value("hash", "client_address".to_owned()),
        LoadBalancing::ConsistentHash(HashKey::Path) => w.value("hash", "path".to_owned()),
        LoadBalancing::ConsistentHash(HashKey::Header(name)) => {
            w.value("hash", format!("{{header: {}}}", quoted(name)))
        }
        LoadBalancing::ConsistentHash(HashKey::Cookie(name)) => {
            w.value("hash", format!("{{cookie: {}}}", quoted(name)))
        }
        LoadBalancing::PowerOfTwoChoices
        | LoadBalancing::RoundRobin
        | LoadBalancing::LeastRequests
        | LoadBalancing::Random
        | LoadBalancing::FirstAlphabetical
        | LoadBalancing::PeakEwma
        | LoadBalancing::Custom(_) => {}
    }
    match &cluster.session_affinity {
        None => w.value("session_affinity", "null".to_owned()),
        Some(session) => w.block("session_affinity", |w| affinity(w, session)),
    }
    w.block("health_check", |w| health::write(w, &cluster.health_check, &facts, cluster.compat));
    w.block("retry", |w| retry(w, &cluster.retry));
    if cluster.queue == Queue::OFF {
        w.value("queue", "off".to_owned());
    } else {
        w.block("queue", |w| {
            w.value("length", cluster.queue.length.to_string());
            w.value("busy_timeout", timespan::format(cluster.queue.busy_timeout));
            w.value("unavailable_timeout", timespan::format(cluster.queue.unavailable_timeout));
        });
    }
    let timeouts = &cluster.timeouts;
    w.block("timeouts", |w| {
        w.value("connect", timespan::format(timeouts.connect));
        w.value("idle", timespan::format(timeouts.idle));
        w.value("tunnel_idle", timespan::format(timeouts.tunnel_idle));
        w.value("pool_idle", timespan::format(timeouts.pool_idle));
        w.value("pool_size", timeouts.pool_size.map_or_else(|| "none".to_owned(), |n| n.to_string()));
        w.value("http2_ping", span(timeouts.http2_ping));
    });
    let tls = &cluster.tls;
    w.block("tls", |w| {
        w.value("ca", optional(tls.ca.as_ref().map(|path| path.display().to_string()).as_deref()));
        w.value("server_name", optional(tls.server_name.as_deref()));
        let verify = match tls.verify {
            Verify::Full => "full",
            Verify::DangerousNone => "none",
        };
        w.value("verify", verify.to_owned());
        if let Some(files) = &tls.client_certificate {
            w.value("certificate", quoted(&files.certificate.display().to_string()));
            w.value("key", quoted(&files.key.display().to_string()));
        }
    });
    let host = match cluster.host {
        UpstreamHost::Destination => "destination",
        UpstreamHost::Original => "original",
    };
    w.value("host", host.to_owned());
    let family = match cluster.family {
        Family::Auto => "auto",
        Family::V4 => "v4",
        Family::V6 => "v6",
        Family::Both => "both",
    };
    w.value("family", family.to_owned());
    let sources: Vec<_> = cluster.outbound.source_addresses.iter().map(ToString::to_string).collect();
    w.value("source_addresses", list(sources.iter().map(String::as_str)));
    let is_closing = cluster.outbound.tunnels == Tunnels::CloseOnUnhealthy;
    w.value("close_on_unhealthy", is_closing.to_string());
    let announced = match cluster.outbound.proxy_protocol {
        SendProxy::Off => "off",
        SendProxy::V2 => "v2",
    };
    w.value("proxy_protocol", quoted(announced));
    w.value("http", quoted(super::http(cluster.http)));
    let metadata: Vec<_> =
        cluster.metadata.iter().map(|(name, value)| format!("{}: {}", quoted(name), quoted(value))).collect();
    w.value("metadata", format!("{{{}}}", metadata.join(", ")));
    let probes = facts.probes.iter().map(Some).chain(std::iter::repeat(None));
    let destinations: Vec<_> = cluster.destinations.iter().zip(probes).collect();
    w.map(
        "destinations",
        &destinations,
        |(one, _)| one.id.as_str(),
        |w, (one, probe)| destination::write(w, one, *probe),
    );
}

fn affinity(w: &mut Writer<'_>, affinity: &SessionAffinity) {
    let policy = match affinity.policy {
        AffinityPolicy::HashCookie => "HashCookie",
    };
    w.value("policy", policy.to_owned());
    let failure = match affinity.failure_policy {
        AffinityFailurePolicy::Redistribute => "Redistribute",
        AffinityFailurePolicy::Return503Error => "Return503Error",
    };
    w.value("failure_policy", failure.to_owned());
    w.value("key_name", quoted(&affinity.key_name));
    let cookie = &affinity.cookie;
    w.block("cookie", |w| {
        w.value("path", quoted(&cookie.path));
        w.value("domain", optional(cookie.domain.as_deref()));
        w.value("http_only", cookie.http_only.to_string());
        w.value("secure", cookie.secure.to_string());
        w.value("same_site", optional(cookie.same_site.as_deref()));
        w.value("max_age", span(cookie.max_age));
    });
}

fn retry(w: &mut Writer<'_>, retry: &RetryRules) {
    w.value("conditions", conditions(&retry.conditions));
    w.value("attempts", retry.attempts.to_string());
    w.value("per_try_timeout", span(retry.per_try_timeout));
    w.value("non_idempotent", (retry.non_idempotent == NonIdempotent::Always).to_string());
    let key = if retry.non_idempotent == NonIdempotent::WithKey { "trusted" } else { "ignored" };
    w.value("idempotency_key", key.to_owned());
    w.value("replay", bytes(retry.replay));
    w.value("client_timeout", span(retry.client_timeout));
    w.value("network_margin", format!("{}%", retry.network_margin_percent));
    w.block("budget", |w| {
        w.value("share", format!("{}%", retry.budget.percent));
        w.value("per_second", retry.budget.per_second.to_string());
    });
}

/// What may be repeated, as a list.
pub fn conditions(conditions: &RetryConditions) -> String {
    let named =
        [("error", conditions.error), ("timeout", conditions.timeout), ("invalid_header", conditions.invalid_header)];
    let words = named.iter().filter(|(_, is_on)| *is_on).map(|(word, _)| (*word).to_owned());
    let words: Vec<_> = words.chain(conditions.statuses.iter().map(|status| format!("http_{status}"))).collect();
    format!("[{}]", words.join(", "))
}

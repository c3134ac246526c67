//! `Clusters`: destinations and the policies over them.

use model::cluster::{Cluster, UpstreamHost, UpstreamTls, Verify};
use model::id::ClusterId;
use model::timeouts::Timeouts;
use model::upstream::{Family, Outbound, UpstreamHttp};

use super::ignored::{self, alarm, warning};
use super::metadata::Metadata;
use super::{Context, Flag, affinity, destination, each, health, version};
use crate::raw::section::{Field, Reading, Section};
use crate::report::Diagnostic;
use crate::resolve::{self, policy};

/// Resolves one cluster.
pub fn resolve(r: &mut Reading<'_>, context: &Context<'_>, field: &Field<'_>) -> Option<Cluster> {
    let mut s = field.section(r)?;
    let compat = s.take_filled(r, "Compat", "compat");
    let compat = resolve::compat(r, compat, s.path.join("compat"), context.compat);
    let load_balancing = s.take_filled(r, "LoadBalancingPolicy", "load_balancing");
    let load_balancing = load_balancing.and_then(|f| policy::balancing(r, &f, context.names)).unwrap_or_default();
    let session_affinity = s.take_as(r, "SessionAffinity", "session_affinity").and_then(|f| affinity::resolve(r, &f));
    let metadata = s.take_as(r, "Metadata", "metadata");
    let metadata = Metadata::read(r, metadata.as_ref());
    let health_check = s.take_as(r, "HealthCheck", "health_check").and_then(|f| f.section(r));
    let health_check = health::resolve(r, context, health_check, &metadata);
    let tls = http_client(r, &mut s);
    let (timeouts, http) = http_request(r, &mut s, context.defaults.timeouts);
    let destinations = each(r, &mut s, "Destinations", "destinations", destination::resolve);
    s.take(r, "ClusterId");
    s.finish(r);
    metadata.name_strangers(r);
    Some(Cluster {
        id: ClusterId::from(field.name.as_str()),
        compat,
        load_balancing,
        session_affinity,
        health_check,
        retry: context.defaults.retry.clone(),
        queue: Default::default(),
        timeouts,
        tls,
        host: UpstreamHost::Destination,
        http,
        outbound: Outbound::default(),
        family: Family::default(),
        metadata: metadata.into_texts(),
        destinations,
    })
}

fn http_client(r: &mut Reading<'_>, s: &mut Section<'_>) -> UpstreamTls {
    let mut tls = UpstreamTls::default();
    let Some(mut client) = s.take_as(r, "HttpClient", "tls").and_then(|f| f.section(r)) else {
        return tls;
    };
    if client.take_flag(r, "DangerousAcceptAnyServerCertificate", "verify", Flag::Off) == Flag::On {
        tls.verify = Verify::DangerousNone;
    }
    if let Some(field) = client.take_filled(r, "MaxConnectionsPerServer", "max_connections")
        && field.whole(r, 1..=i64::from(i32::MAX)).is_some()
    {
        let diagnostic = Diagnostic::alarm("`MaxConnectionsPerServer` is not honoured");
        r.note(field.key_span, diagnostic.label("destinations get as many connections as there are requests"));
    }
    ignored::name(
        r,
        &mut client,
        &[
            warning("SslProtocols", "TLS 1.2 and 1.3 are used", &[]),
            warning("EnableMultipleHttp2Connections", "there are as many as streams need", &["true"]),
            warning("RequestHeaderEncoding", "header bytes pass unchanged", &[]),
            warning("ResponseHeaderEncoding", "header bytes pass unchanged", &[]),
            alarm("WebProxy", "destinations are reached directly, past the proxy", &[]),
        ],
    );
    client.finish(r);
    tls
}

fn http_request(r: &mut Reading<'_>, s: &mut Section<'_>, default: Timeouts) -> (Timeouts, UpstreamHttp) {
    let mut timeouts = default;
    let Some(mut request) = s.take_as(r, "HttpRequest", "timeouts").and_then(|f| f.section(r)) else {
        return (timeouts, version::DEFAULT);
    };
    if let Some(idle) = request.take_filled(r, "ActivityTimeout", "idle").and_then(|f| f.duration(r)) {
        timeouts.idle = idle;
        // The same timer there: it is reset by every byte, also of an upgraded connection.
        timeouts.tunnel_idle = idle;
    }
    let http = version::resolve(r, &mut request, s.path.join("http"));
    let buffering = [warning("AllowResponseBuffering", "responses are passed on as they come", &["false"])];
    ignored::name(r, &mut request, &buffering);
    request.finish(r);
    (timeouts, http)
}

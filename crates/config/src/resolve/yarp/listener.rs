//! Where a YARP host listens: `Kestrel:Endpoints`, else `Urls`, else port 5000 of the loopback.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use model::address::{Scheme, Url};
use model::entry::Entry;
use model::id::ListenerId;
use model::listener::{Http2Limits, Listener, SelfCheck};

use super::Context;
use super::endpoint_tls::{self, Certificate, Wish};
use super::ignored::{self, warning};
use crate::defaults::YARP_LISTENER;
use crate::origin::Origin;
use crate::raw::path::Path;
use crate::raw::section::{Field, Reading, Section};
use crate::report::Diagnostic;
use crate::resolve::native;
use crate::source::Span;

/// Reads the endpoints of the file.
pub fn resolve(r: &mut Reading<'_>, s: &mut Section<'_>, context: &Context<'_>) -> Vec<Listener> {
    let mut wanted: Vec<Wanted> = Vec::new();
    let mut default = None;
    let urls = s.take_filled(r, "Urls", "listeners");
    if let Some(mut kestrel) = s.take_as(r, "Kestrel", "listeners").and_then(|field| field.section(r)) {
        if let Some(mut endpoints) = kestrel.take(r, "Endpoints").and_then(|field| field.section(r)) {
            for field in endpoints.take_all(r) {
                wanted.extend(endpoint(r, &field));
            }
        }
        if let Some(mut certificates) = kestrel.take(r, "Certificates").and_then(|field| field.section(r)) {
            default = certificates.take(r, "Default").and_then(|field| endpoint_tls::certificate(r, &field));
            ignored::name(r, &mut certificates, &[warning("Development", "there is no development certificate", &[])]);
            certificates.finish(r);
        }
        ignored::name(
            r,
            &mut kestrel,
            &[
                warning("Limits", "the limits of a YARP host's defaults hold", &[]),
                warning("EndpointDefaults", "only what each endpoint says itself holds", &[]),
            ],
        );
        kestrel.finish(r);
    }
    if wanted.is_empty()
        && let Some(field) = urls
        && let Some(text) = field.text(r)
    {
        for (index, url) in text.split(';').map(str::trim).filter(|url| !url.is_empty()).enumerate() {
            let name = if index == 0 { "http".to_owned() } else { format!("http{}", index + 1) };
            wanted.push(Wanted { name, url: url.to_owned(), span: field.node.span, tls: Wish::default() });
        }
    }
    if wanted.is_empty() {
        let address = YARP_LISTENER.parse().unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 5000)));
        return vec![listener("http", address, context)];
    }
    let listeners = bind_all(r, &wanted, default.as_ref(), context);
    native::listener::refuse_shared_addresses(r, &listeners);
    listeners
}

struct Wanted {
    name: String,
    url: String,
    span: Span,
    tls: Wish,
}

fn endpoint(r: &mut Reading<'_>, field: &Field<'_>) -> Option<Wanted> {
    let mut s = field.section(r)?;
    let url = match s.take_filled(r, "Url", "address") {
        Some(url) => url.text(r).map(|text| (text.to_owned(), url.node.span)),
        None => {
            r.error(field.key_span, format!("endpoint `{}` has no address", field.name), "expected `Url`");
            None
        }
    };
    let tls = endpoint_tls::take(r, &mut s);
    s.finish(r);
    let (url, span) = url?;
    Some(Wanted { name: field.name.clone(), url, span, tls })
}

/// A listener for each URL. A TLS one without any certificate is named and left out, unless nothing else would be left.
fn bind_all(
    r: &mut Reading<'_>,
    wanted: &[Wanted],
    default: Option<&Certificate>,
    context: &Context<'_>,
) -> Vec<Listener> {
    let mut listeners = Vec::new();
    let mut bare = Vec::new();
    for one in wanted {
        let Some((scheme, address)) = socket_address(r, one) else { continue };
        let tls = match scheme {
            Scheme::Http => None,
            Scheme::Https => {
                let settings = endpoint_tls::settings(r, &one.name, &one.tls, default);
                if settings.is_none() {
                    bare.push(one);
                    continue;
                }
                settings
            }
        };
        let path = Path::of(["listeners", one.name.as_str(), "address"]);
        let origin = Origin::File { line: r.line(one.span) };
        r.origins.record(path, origin, one.span);
        listeners.push(Listener { tls, ..listener(&one.name, address, context) });
    }
    for one in bare {
        let message = format!("nobody listens on {}: it has no certificate", one.url);
        let diagnostic = if listeners.is_empty() { Diagnostic::error(message) } else { Diagnostic::warning(message) };
        let expected = "expected `Certificate: {Path, KeyPath}` of the endpoint, or `Kestrel:Certificates:Default`";
        r.note(one.span, diagnostic.label(expected));
    }
    listeners
}

fn socket_address(r: &mut Reading<'_>, wanted: &Wanted) -> Option<(Scheme, SocketAddr)> {
    let Ok(url) = Url::parse(&wanted.url) else {
        let what = format!("`{}` is no address to listen on", wanted.url);
        r.error(
            wanted.span,
            what,
            "expected http://host:port or https://host:port, host being *, localhost or an IP address",
        );
        return None;
    };
    let ip = match url.host.parse::<IpAddr>() {
        Ok(ip) => ip,
        Err(_) if url.host == "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        // Kestrel takes any other name for "every address", and listens on both families with one socket.
        Err(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    Some((url.scheme, SocketAddr::new(ip, url.port)))
}

fn listener(name: &str, address: SocketAddr, context: &Context<'_>) -> Listener {
    Listener {
        id: ListenerId::from(name),
        address,
        limits: context.defaults.limits,
        trusted_proxies: Vec::new(),
        self_check: SelfCheck::Off,
        entry: Entry::default(),
        tls: None,
        http2: Http2Limits::default(),
    }
}

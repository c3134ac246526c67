//! Under which names the API answers over TCP.
//!
//! A web page may send its visitor's browser to a name of its own that leads to 127.0.0.1 (DNS rebinding): to the browser
//! the API then is that page's own site, and the page may read what it answers. Such a request always names the page's
//! host, so names that nobody has set are refused. An address names nobody else: it is always good.

use std::net::{IpAddr, Ipv6Addr};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::HOST;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::access::Peer;
use crate::routes::{Failure, Shared};

/// Lets a request on that comes over the unix socket, or names this API.
pub(crate) async fn judge(State(context): Shared, request: Request, next: Next) -> Response {
    let is_tcp = request.extensions().get::<Peer>().is_none_or(|peer| *peer == Peer::Tcp);
    if is_tcp && let Some(stranger) = stranger(&request, &context.process.published().config.control.names) {
        let text = format!("{stranger} is no name of this API: use an address, localhost, or one of control.names");
        return Failure::new(StatusCode::MISDIRECTED_REQUEST, text).into_response();
    }
    next.run(request).await
}

/// The host that a request names, when it is none of ours. A request of HTTP/1.0 need not name one; no browser leaves it
/// out.
fn stranger(request: &Request, names: &[String]) -> Option<String> {
    let mut hosts = request.headers().get_all(HOST).into_iter().map(|host| host.to_str().unwrap_or("that").to_owned());
    let target = request.uri().authority().map(|authority| authority.as_str().to_owned());
    hosts.by_ref().chain(target).find(|host| !is_ours(host, names))
}

fn is_ours(host: &str, names: &[String]) -> bool {
    let name = without_port(host).trim_end_matches('.').to_ascii_lowercase();
    is_address(&name)
        || name == "localhost"
        || name.ends_with(".localhost")
        || names.iter().any(|ours| ours.eq_ignore_ascii_case(&name))
}

fn is_address(name: &str) -> bool {
    match name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
        None => name.parse::<IpAddr>().is_ok(),
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        Some(_) | None => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_localhost_and_the_names_that_are_set_are_ours() {
        let names = ["lb1.example.org".to_owned()];
        for host in [
            "127.0.0.1:9090",
            "127.0.0.1",
            "10.0.0.5:9090",
            "[::1]:9090",
            "[::1]",
            "localhost:9090",
            "LocalHost.",
            "api.localhost",
            "LB1.example.org:9090",
            "lb1.example.org.",
        ] {
            assert!(is_ours(host, &names), "{host}");
        }
        for host in ["evil.test:9090", "evil.test", "", ":9090", "127.0.0.1.evil.test", "x.lb1.example.org", "[evil]"] {
            assert!(!is_ours(host, &names), "{host}");
        }
    }
}

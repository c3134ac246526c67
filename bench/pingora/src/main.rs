//! Pingora as a load balancer, for the side-by-side bench: what its own quick start builds, with one worker thread, round
//! robin, kept connections, and the same fields added as the other proxies add.
//!
//! `pingora-peer LISTEN DESTINATION...`

use std::sync::Arc;

use async_trait::async_trait;
use pingora_core::prelude::{HttpPeer, Result};
use pingora_core::server::Server;
use pingora_core::server::configuration::ServerConf;
use pingora_http::RequestHeader;
use pingora_load_balancing::LoadBalancer;
use pingora_load_balancing::selection::RoundRobin;
use pingora_proxy::{ProxyHttp, Session, http_proxy_service};

struct Balancer(Arc<LoadBalancer<RoundRobin>>);

#[async_trait]
impl ProxyHttp for Balancer {
    type CTX = ();

    fn new_ctx(&self) {}

    async fn upstream_peer(&self, _: &mut Session, (): &mut ()) -> Result<Box<HttpPeer>> {
        let destination = self.0.select(b"", 256);
        let destination =
            destination.ok_or_else(|| pingora_core::Error::new_str("no destination was named on the command line"))?;
        Ok(Box::new(HttpPeer::new(destination, false, String::new())))
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        request: &mut RequestHeader,
        (): &mut (),
    ) -> Result<()> {
        if let Some(client) = session.client_addr().and_then(|client| client.as_inet()) {
            request.insert_header("X-Forwarded-For", client.ip().to_string())?;
        }
        request.insert_header("X-Forwarded-Proto", "http")?;
        if let Some(host) = request.headers.get("host").cloned() {
            request.insert_header("X-Forwarded-Host", host)?;
        }
        Ok(())
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let listen = words.next().ok_or("usage: pingora-peer LISTEN DESTINATION...")?;
    let destinations = LoadBalancer::try_from_iter(words)?;
    let conf = ServerConf { threads: 1, upstream_keepalive_pool_size: 256, ..ServerConf::default() };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let mut service = http_proxy_service(&server.configuration, Balancer(Arc::new(destinations)));
    service.add_tcp(&listen);
    server.add_service(service);
    server.run_forever()
}

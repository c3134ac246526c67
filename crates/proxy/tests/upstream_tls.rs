//! TLS towards destinations: whose connection serves whom, and what ALPN chooses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;

use model::address::Url;
use model::cluster::{Cluster, UpstreamTls, Verify};
use model::upstream::UpstreamHttp;
use support::origin::Origin;
use support::{Setup, cluster, host_route, setup};
use testkit::client::Client;

/// A cluster at the origin, under one of its names.
fn at(origin: &Origin, id: &str, name: &str, tls: UpstreamTls, http: UpstreamHttp) -> Cluster {
    let mut cluster = cluster(id, &[origin.address]);
    cluster.destinations[0].address = Url::parse(&format!("https://{}/", origin.address)).unwrap();
    cluster.destinations[0].host = Some(name.to_owned());
    cluster.tls = UpstreamTls { server_name: Some(name.to_owned()), ..tls };
    cluster.http = http;
    cluster
}

fn verifying(origin: &Origin) -> UpstreamTls {
    UpstreamTls { ca: Some(origin.ca.clone()), ..UpstreamTls::default() }
}

/// Each cluster behind the host of its id.
fn behind_their_ids(origin: &Origin, clusters: Vec<Cluster>) -> Setup {
    let mut setup = setup(&[origin.address]);
    setup.routes = clusters.iter().map(|cluster| host_route(cluster.id.as_str(), cluster.id.as_str())).collect();
    setup.clusters = clusters;
    setup
}

/// The status, and what the origin knows: the connection's number, its SNI, whether it showed a certificate, ALPN.
fn ask(client: &mut Client, host: &str) -> (u16, Vec<String>) {
    client.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    let response = client.response();
    (response.status(), response.text().split(' ').map(str::to_owned).collect())
}

/// TLS-01
#[test]
fn clusters_at_one_address_share_no_connection_whatever_tells_them_apart() {
    for (http, protocol) in [(UpstreamHttp::Http1, "http/1.1"), (UpstreamHttp::Http2, "h2")] {
        let origin = Origin::start(&["h2", "http/1.1"]);
        let ours = verifying(&origin);
        let careless = UpstreamTls { verify: Verify::DangerousNone, ..UpstreamTls::default() };
        let known = UpstreamTls { client_certificate: Some(origin.client.clone()), ..ours.clone() };
        let clusters = vec![
            at(&origin, "a", "a.test", ours.clone(), http),
            at(&origin, "b", "b.test", ours, http),
            at(&origin, "careless", "a.test", careless, http),
            at(&origin, "known", "a.test", known, http),
        ];
        let proxy = behind_their_ids(&origin, clusters).start();
        let mut clients: Vec<_> = (0..3).map(|_| proxy.client()).collect();
        let mut users = BTreeMap::new();
        for round in 0..24 {
            let client = &mut clients[round % 3];
            for (host, name, shown) in [
                ("a", "a.test", "unknown"),
                ("careless", "a.test", "unknown"),
                ("b", "b.test", "unknown"),
                ("known", "a.test", "known"),
            ] {
                let (status, told) = ask(client, host);
                assert_eq!((status, &told[1..]), (200, &[name, shown, protocol].map(str::to_owned)[..]), "{host}");
                assert_eq!(users.entry(told[0].clone()).or_insert(host), &host, "a connection has two users");
            }
        }
        assert_eq!(users.len(), 4, "connections are reused: {users:?}");
    }
}

#[test]
fn alpn_chooses_what_a_cluster_of_both_versions_speaks() {
    for (protocols, chosen) in [(&["h2", "http/1.1"][..], "h2"), (&["http/1.1"], "http/1.1"), (&[], "-")] {
        let origin = Origin::start(protocols);
        let cluster = at(&origin, "a", "a.test", verifying(&origin), UpstreamHttp::Http2OrHttp1);
        let proxy = behind_their_ids(&origin, vec![cluster]).start();
        let mut client = proxy.client();
        for _ in 0..3 {
            let (status, told) = ask(&mut client, "a");
            assert_eq!((status, told[3].as_str()), (200, chosen));
            assert_eq!(told[0], "1", "the connection is used again");
        }
    }
}

#[test]
fn a_cluster_of_http2_alone_takes_no_other_choice() {
    let origin = Origin::start(&["http/1.1"]);
    let cluster = at(&origin, "a", "a.test", verifying(&origin), UpstreamHttp::Http2);
    let proxy = behind_their_ids(&origin, vec![cluster]).start();
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response().status(), 502);
}

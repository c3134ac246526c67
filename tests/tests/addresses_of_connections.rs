//! Which addresses connections to destinations start from and go to: `source_addresses`, and destinations at IPv6 addresses
//! behind listeners of both families. (sozu-proxy/sozu #1254, #1261)

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use end_to_end::process::{Lazaret, free_address, get, request};
use testkit::name_server::{NameServer, Says};

/// A destination that notes who connects, and with what head; it answers once per connection.
struct Destination {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<(IpAddr, String)>>>,
}

impl Destination {
    fn start(at: &str) -> Self {
        let listener = TcpListener::bind(at).unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<(IpAddr, String)>>> = Arc::default();
        let all = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let all = Arc::clone(&all);
                thread::spawn(move || serve(stream, &all));
            }
        });
        Self { address, seen }
    }

    /// Connections that brought a request to `path`: whose, and the whole heads.
    fn to(&self, path: &str) -> Vec<(IpAddr, String)> {
        let line = format!("GET {path} ");
        self.seen.lock().unwrap().iter().filter(|(_, head)| head.starts_with(&line)).cloned().collect()
    }

    /// Where they started.
    fn peers(&self, path: &str) -> BTreeSet<IpAddr> {
        self.to(path).into_iter().map(|(peer, _)| peer).collect()
    }
}

fn serve(mut stream: TcpStream, all: &Mutex<Vec<(IpAddr, String)>>) -> Option<()> {
    let peer = stream.peer_addr().ok()?.ip();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut chunk = [0; 4096];
        let n = stream.read(&mut chunk).ok().filter(|n| *n > 0)?;
        head.extend_from_slice(&chunk[..n]);
    }
    all.lock().unwrap().push((peer, String::from_utf8(head).ok()?));
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok").ok()
}

fn value<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(one, _)| one.eq_ignore_ascii_case(name))
        .map(|(_, v)| v)
}

#[test]
fn requests_and_probes_start_at_the_own_addresses_and_another_family_where_the_system_says() {
    let (four, six) = (Destination::start("127.0.0.1:0"), Destination::start("[::1]:0"));
    let lazaret = Lazaret::start(&format!(
        "workers: 1\nroutes:\n  six: {{match: {{path: /six}}, cluster: six}}\n  four: {{match: {{path: /four}}, cluster: \
         four}}\nclusters:\n  four:\n    source_addresses: [127.0.0.2, 127.0.0.3]\n    health_check: {{active: {{interval: \
         200ms, path: /probe}}}}\n    destinations: {{a: {{address: \"http://{}/\"}}}}\n  six:\n    source_addresses: \
         [127.0.0.2]\n    destinations: {{b: {{address: \"http://{}/\"}}}}\n",
        four.address, six.address
    ));
    let own: BTreeSet<IpAddr> = [[127, 0, 0, 2], [127, 0, 0, 3]].map(IpAddr::from).into();
    for _ in 0..20 {
        assert_eq!(get(lazaret.proxy, "/four").map(|answer| answer.status), Some(200));
        assert_eq!(get(lazaret.proxy, "/six").map(|answer| answer.status), Some(200));
    }
    assert_eq!(four.peers("/four"), own);
    assert_eq!(six.peers("/six"), ["::1".parse().unwrap()].into());
    lazaret.wait_until("probes started at both", || four.peers("/probe") == own);
}

#[test]
fn destinations_at_ipv6_addresses_serve_clients_of_both_families() {
    let six = Destination::start("[::1]:0");
    let port = free_address().port();
    let lazaret = Lazaret::start(&format!(
        "listeners: {{web: {{address: \"[::]:{port}\"}}}}\nroutes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: \
         app}}}}\nclusters:\n  app:\n    health_check: {{active: {{interval: 500ms, path: /probe}}}}\n    destinations: {{d: \
         {{address: \"http://{}/\"}}}}\n",
        six.address
    ));
    lazaret.wait_until("d is Healthy", || lazaret.health("app", "d").starts_with("healthy/"));
    let probe = six.to("/probe").remove(0).1;
    assert_eq!(value(&probe, "host"), Some(six.address.to_string().as_str()), "brackets and port: {probe}");
    for (client, path) in [("[::1]", "/from-six"), ("127.0.0.1", "/from-four")] {
        let to: SocketAddr = format!("{client}:{port}").parse().unwrap();
        assert_eq!(get(to, path).map(|answer| answer.status), Some(200), "{client}");
        let head = six.to(path).remove(0).1;
        let bare = client.trim_matches(['[', ']']);
        assert_eq!(value(&head, "x-forwarded-for"), Some(bare), "bare, and IPv4 as IPv4: {head}");
        assert_eq!(value(&head, "host"), Some(six.address.to_string().as_str()), "{head}");
    }
}

/// IPV6-01: at a socket of both families an IPv4 client has an IPv4 address, for every list that asks.
#[test]
fn lists_of_ipv4_networks_hold_for_ipv4_clients_of_a_listener_of_both_families() {
    let destination = Destination::start("127.0.0.1:0");
    let (open, shut) = (free_address().port(), free_address().port());
    let _lazaret = Lazaret::start(&format!(
        "trusted_proxies: [127.0.0.0/8]\nlisteners:\n  open: {{address: \"[::]:{open}\", allow: [127.0.0.0/8]}}\n  shut: \
         {{address: \"[::]:{shut}\", deny: [127.0.0.0/8]}}\nroutes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app, \
         transforms: [{{forwarded: \"for\", for_format: IpAndPort}}]}}}}\nclusters: {{app: {{destinations: {{d: {{address: \
         \"http://{}/\"}}}}}}}}\n",
        destination.address
    ));
    let ask = |client: &str, port: u16, path: &str| {
        let to: SocketAddr = format!("{client}:{port}").parse().unwrap();
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: a.test\r\nForwarded: for=192.0.2.9\r\nConnection: close\r\n\r\n");
        request(to, &head).map(|answer| answer.status)
    };
    assert_eq!((ask("127.0.0.1", open, "/four"), ask("[::1]", open, "/no")), (Some(200), None));
    assert_eq!((ask("127.0.0.1", shut, "/no"), ask("[::1]", shut, "/six")), (None, Some(200)));
    // From a trusted proxy the client that it names stays, and IPv4 is written as IPv4; from anyone else it is the peer.
    let four = destination.to("/four").remove(0).1;
    let forwarded = value(&four, "forwarded").unwrap_or_default();
    assert!(forwarded.contains("192.0.2.9") || forwarded.contains("127.0.0.1:"), "{four}");
    assert!(!four.contains("::ffff"), "{four}");
    let six = destination.to("/six").remove(0).1;
    let forwarded = value(&six, "forwarded").unwrap_or_default();
    assert!(forwarded.starts_with("for=\"[::1]:") && forwarded.ends_with('"'), "quoted and in brackets: {six}");
    assert!(destination.to("/no").is_empty());
}

#[test]
fn of_a_name_with_both_families_each_address_is_a_destination() {
    let six = Destination::start("[::1]:0");
    let port = six.address.port();
    let four = Destination::start(&format!("127.0.0.1:{port}"));
    let server = NameServer::start();
    server.say("app.test", Says::addresses(&["127.0.0.1", "::1"], 60));
    let lazaret = Lazaret::start(&format!(
        "dns: {{servers: [\"{}\"]}}\nroutes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    \
         family: both\n    load_balancing: RoundRobin\n    health_check: {{active: {{interval: 500ms, path: /probe}}}}\n    \
         destinations: {{d: {{address: \"http://app.test:{port}/\"}}}}\n",
        server.addr()
    ));
    for id in ["d%5B127.0.0.1%5D", "d%5B::1%5D"] {
        lazaret.wait_until("it is Healthy", || lazaret.health("app", id).starts_with("healthy/"));
    }
    for _ in 0..4 {
        assert_eq!(get(lazaret.proxy, "/name").map(|answer| answer.status), Some(200));
    }
    assert!(!four.to("/name").is_empty() && !six.to("/name").is_empty(), "both are served from");
    let head = six.to("/name").remove(0).1;
    assert_eq!(value(&head, "host"), Some(format!("app.test:{port}").as_str()), "the Host is the name's");
    drop(lazaret);
}

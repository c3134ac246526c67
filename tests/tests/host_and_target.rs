//! A request is routed by the very host that its destination gets to see: a target in absolute form replaces the Host
//! field, and what is ambiguous is refused. (haproxy/haproxy #1378, httpwg/http-core #191, tempesta-tech/tempesta #1870)

use end_to_end::process::Lazaret;
use testkit::client::Client;
use testkit::destination::Destination;
use testkit::message::Message;

struct World {
    lazaret: Lazaret,
    a: Destination,
    b: Destination,
}

impl World {
    fn start() -> Self {
        let (a, b) = (Destination::answering(200, "a"), Destination::answering(200, "b"));
        let lazaret = Lazaret::start(&format!(
            "routes:\n  a: {{match: {{hosts: [a.test]}}, cluster: a}}\n  b: {{match: {{hosts: [b.test]}}, cluster: b}}\nclusters:\n  a: {{host: original, destinations: {{one: {{address: \
             \"{}\"}}}}}}\n  b: {{host: original, destinations: {{one: {{address: \"{}\"}}}}}}\n",
            a.url(),
            b.url()
        ));
        Self { lazaret, a, b }
    }

    fn send(&self, head: &str) -> Message {
        let mut client = Client::connect(self.lazaret.proxy);
        client.send(head);
        client.response()
    }

    fn count(&self) -> (usize, usize) {
        (self.a.requests().len(), self.b.requests().len())
    }
}

#[test]
fn the_authority_of_an_absolute_target_routes_and_is_what_the_destination_sees() {
    let world = World::start();
    let cases = [
        ("GET http://b.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n", "/x", "b.test"),
        ("GET http://B.TEST/x HTTP/1.1\r\nHost: a.test\r\n\r\n", "/x", "b.test"),
        ("GET http://b.test:80/ HTTP/1.1\r\nHost: b.test:80\r\n\r\n", "/", "b.test"),
        ("GET http://b.test HTTP/1.1\r\nHost: b.test\r\n\r\n", "/", "b.test"),
        ("GET http://b.test?q=1 HTTP/1.1\r\nHost: b.test\r\n\r\n", "/?q=1", "b.test"),
        ("GET http://b.test/x?q=http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "/x?q=http://a.test/", "b.test"),
    ];
    for (head, target, host) in cases {
        let before = world.count();
        let response = world.send(head);
        assert_eq!((response.status(), response.text().as_str()), (200, "b"), "{head}");
        assert_eq!(world.count(), (before.0, before.1 + 1), "{head}");
        let got = world.b.requests().pop().expect("it was counted").message;
        assert_eq!(got.target(), target, "{head}");
        let hosts: Vec<_> = got.values("host").iter().map(|host| host.to_ascii_lowercase()).collect();
        assert_eq!(hosts.len(), 1, "{head}");
        assert_eq!(hosts[0].trim_end_matches(":80"), host, "{head}");
        assert_eq!(got.values("x-forwarded-host"), got.values("host"), "{head}");
    }
}

#[test]
fn options_for_a_whole_server_becomes_an_asterisk() {
    let world = World::start();
    for head in ["OPTIONS http://a.test HTTP/1.1\r\nHost: b.test\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n"]
    {
        let response = world.send(head);
        assert_eq!((response.status(), response.text().as_str()), (200, "a"), "{head}");
        let got = world.a.requests().pop().expect("it was answered").message;
        assert_eq!((got.method().as_str(), got.target().as_str()), ("OPTIONS", "*"), "{head}");
        assert_eq!(got.values("host"), ["a.test"], "{head}");
    }
    assert_eq!(world.b.requests().len(), 0);
}

#[test]
fn what_is_ambiguous_is_refused_and_reaches_nobody() {
    let world = World::start();
    for head in [
        "GET http:///x HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET http://user@b.test/x HTTP/1.1\r\nHost: b.test\r\n\r\n",
        "GET http://a.test@b.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET /x HTTP/1.1\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: a.test, b.test\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost : a.test\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: a.test/\r\n\r\n",
        // No TLS was spoken here, so that such a target is none of this listener's.
        "GET https://b.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET https://b.test/x HTTP/1.1\r\nHost: b.test\r\n\r\n",
        "GET ftp://b.test/x HTTP/1.1\r\nHost: b.test\r\n\r\n",
        "GET http://b.test:x/ HTTP/1.1\r\nHost: b.test\r\n\r\n",
    ] {
        let response = world.send(head);
        assert_eq!(response.status(), 400, "{head}");
        assert_eq!(world.count(), (0, 0), "{head}");
    }
}

//! Fields that concern one connection end with it, in both directions, and a client cannot make the proxy drop its own
//! fields or the framing by naming them in Connection. (cloudflare/pingora #734 and #706, golang/go #16875)

use end_to_end::process::Lazaret;
use testkit::client::{Client, End};
use testkit::destination::{Act, Destination, Moment};
use testkit::message::Message;

fn start() -> (Destination, Lazaret) {
    let destination = Destination::start(|moment| match moment {
        Moment::Accepted => Vec::new(),
        Moment::Request(_) => vec![
            Act::ReadBody,
            Act::Send(
                b"HTTP/1.1 200 OK\r\nConnection: X-Bar, keep-alive\r\nX-Bar: 1\r\nKeep-Alive: timeout=5\r\n\
                  Proxy-Connection: keep-alive\r\nX-Stays: 1\r\nContent-Length: 2\r\n\r\nok"
                    .to_vec(),
            ),
        ],
    });
    let lazaret = Lazaret::start(&format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters: {{app: {{host: original, destinations: \
         {{one: {{address: \"{}\"}}}}}}}}\n",
        destination.url()
    ));
    (destination, lazaret)
}

fn absent(message: &Message, names: &[&str]) {
    for name in names {
        assert_eq!(message.values(name), Vec::<String>::new(), "{name} in {}", String::from_utf8_lossy(&message.head));
    }
}

#[test]
fn fields_that_the_client_names_end_here_and_those_of_the_proxy_stay() {
    let (destination, lazaret) = start();
    let mut client = Client::connect(lazaret.proxy);
    client.send(
        "POST /x HTTP/1.1\r\nHost: a.test\r\nConnection: close, X-Foo, X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Proto, \
         Host, Cookie, Content-Length\r\nX-Foo: 1\r\nX-Forwarded-For: 192.0.2.1\r\nCookie: a=b\r\nKeep-Alive: 5\r\n\
         Proxy-Connection: keep-alive\r\nX-Stays: 1\r\nContent-Length: 5\r\n\r\nhello",
    );
    let response = client.response();
    let got = destination.requests().pop().expect("it was forwarded").message;
    absent(&got, &["x-foo", "keep-alive", "proxy-connection"]);
    let connection = got.values("connection").join(",").to_ascii_lowercase();
    assert!(!connection.contains("close") && !connection.contains("foo"), "Connection: {connection}");
    assert_eq!(got.values("x-stays"), ["1"]);
    // Neither the host, nor the framing, nor what the proxy says of the client can be removed.
    assert_eq!(got.values("host"), ["a.test"]);
    assert_eq!((got.values("content-length").len(), got.text().as_str()), (1, "hello"));
    assert_eq!(got.values("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(got.values("x-forwarded-host"), ["a.test"]);
    assert_eq!(got.values("x-forwarded-proto"), ["http"]);

    assert_eq!(response.status(), 200);
    absent(&response, &["x-bar", "keep-alive", "proxy-connection"]);
    assert_eq!(response.values("x-stays"), ["1"]);
    let connection = response.values("connection").join(",").to_ascii_lowercase();
    assert!(connection.contains("close") && !connection.contains("x-bar"), "Connection: {connection}");
    assert_eq!(client.rest().1, End::Closed, "the client asked for the end of its connection");
}

#[test]
fn the_end_of_a_clients_connection_is_not_that_of_the_destinations() {
    let (destination, lazaret) = start();
    for _ in 0..8 {
        let mut client = Client::connect(lazaret.proxy);
        client.send("GET /x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
        assert_eq!(client.response().status(), 200);
    }
    assert_eq!(destination.requests().len(), 8);
    // Each worker has a pool of its own.
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    assert!(destination.connections() <= workers.min(8), "{} connections", destination.connections());
    let last = destination.requests().into_iter().filter(|request| request.number_on_connection > 1).count();
    assert!(workers >= 8 || last > 0, "no connection was used twice");
}

#[test]
fn an_offer_to_change_the_protocol_and_its_settings_end_here() {
    let (destination, lazaret) = start();
    let mut client = Client::connect(lazaret.proxy);
    client.send(
        "GET /x HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: \
         AAMAAABkAAQAAP__\r\n\r\n",
    );
    assert_eq!(client.response().status(), 200);
    let got = destination.requests().pop().expect("it was forwarded").message;
    absent(&got, &["http2-settings", "upgrade"]);
}

#[test]
fn only_trailers_survive_of_te() {
    let (destination, lazaret) = start();
    let mut client = Client::connect(lazaret.proxy);
    client.send("GET /x HTTP/1.1\r\nHost: a.test\r\nConnection: TE\r\nTE: trailers, gzip\r\n\r\n");
    assert_eq!(client.response().status(), 200);
    let got = destination.requests().pop().expect("it was forwarded").message;
    assert_eq!(got.values("te"), ["trailers"]);
}

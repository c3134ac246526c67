//! Destination, client and relay against each other.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use testkit::certificates::Authority;
use testkit::client::{Client, End};
use testkit::destination::{Act, Destination, Moment, answer, refusing};
use testkit::eventually;
use testkit::message::Expect;
use testkit::relay::{Relay, Wire};

const SHORT: Duration = Duration::from_millis(200);

fn on_request(acts: Vec<Act>) -> Destination {
    Destination::start(move |moment| match moment {
        Moment::Accepted => Vec::new(),
        Moment::Request(_) => acts.clone(),
    })
}

#[test]
fn a_destination_answers_and_keeps_what_it_was_sent() {
    let destination = Destination::answering(200, "hello");
    let mut client = Client::connect(destination.addr());
    assert_eq!(client.get("/a").text(), "hello");
    client.send("POST /b HTTP/1.1\r\nHost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: 1\r\n\r\n");
    assert_eq!(client.response().status(), 200);
    let requests = destination.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!((requests[1].number_on_connection, requests[1].message.text().as_str()), (2, "abc"));
    assert_eq!(requests[1].message.raw_body, b"3\r\nabc\r\n0\r\nT: 1\r\n\r\n");
    assert_eq!((destination.requests_to("/a").len(), destination.connections()), (1, 1));
}

#[test]
fn a_reset_is_a_reset_and_a_close_is_a_close() {
    for (act, end) in [(Act::Reset, End::Reset), (Act::Close, End::Closed), (Act::HalfClose, End::Closed)] {
        let destination = on_request(vec![Act::Send(b"HTTP".to_vec()), Act::Pause(SHORT), act.clone()]);
        let mut client = Client::connect(destination.addr());
        client.send("GET / HTTP/1.1\r\n\r\n");
        let (bytes, how) = client.rest();
        assert_eq!((bytes.as_slice(), how), (&b"HTTP"[..], end), "{act:?}");
    }
}

#[test]
fn a_stalled_destination_says_nothing_and_a_dropped_one_resets() {
    let destination = on_request(vec![Act::Stall]);
    let mut client = Client::connect(destination.addr());
    client.send("GET / HTTP/1.1\r\n\r\n");
    assert_eq!(client.within(SHORT).rest(), (Vec::new(), End::Open));
    drop(destination);
    assert_ne!(client.within(Duration::from_secs(10)).rest().1, End::Open);
}

#[test]
fn a_cut_body_is_given_back_as_far_as_it_came() {
    let destination =
        on_request(vec![Act::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc".to_vec()), Act::Close]);
    let mut client = Client::connect(destination.addr());
    client.send("GET / HTTP/1.1\r\n\r\n");
    let (message, result) = client.try_response(Expect::Response);
    assert_eq!((message.status(), message.text().as_str()), (200, "abc"));
    assert!(result.is_err());
}

#[test]
fn nobody_listens_at_a_refusing_address() {
    assert!(std::net::TcpStream::connect(refusing()).is_err());
}

#[test]
fn a_relay_passes_swallows_and_cuts() {
    let destination = Destination::answering(200, "hello");
    let relay = Relay::start(destination.addr());
    let mut client = Client::connect(relay.addr());
    assert_eq!(client.get("/").status(), 200);
    relay.set(Wire::Swallow);
    client.send("GET / HTTP/1.1\r\n\r\n");
    assert_eq!(client.within(SHORT).rest().1, End::Open);
    assert_eq!(destination.requests().len(), 1);
    relay.set(Wire::Cut);
    client.send("GET / HTTP/1.1\r\n\r\n");
    assert_ne!(client.within(Duration::from_secs(10)).rest().1, End::Open);
    relay.set(Wire::Pass);
    assert_eq!(Client::connect(relay.addr()).get("/").status(), 200);
}

#[test]
fn a_leaf_is_trusted_under_its_own_authority_alone() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let server = authority.issue(&["app.test"]).server_config();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let serving = thread::spawn(move || {
        for _ in 0..3 {
            let (tcp, _) = listener.accept().unwrap();
            let tls = rustls::ServerConnection::new(server.clone()).unwrap();
            let mut stream = rustls::StreamOwned::new(tls, tcp);
            // Two of the three clients refuse the handshake.
            if stream.read(&mut [0; 1024]).is_ok() {
                stream.write_all(b"HTTP/1.1 204 No\r\n\r\n").unwrap();
            }
        }
    });
    let status = |name, authority: &Authority| {
        let mut client = Client::connect_tls(addr, name, &authority.client_config());
        client.try_send("GET / HTTP/1.1\r\n\r\n").ok()?;
        Some(client.response().status())
    };
    assert_eq!(status("app.test", &authority), Some(204));
    assert_eq!(status("other.test", &authority), None);
    assert_eq!(status("app.test", &stranger), None);
    serving.join().unwrap();
}

#[test]
fn a_script_may_act_before_anything_is_read() {
    let destination = Destination::start(|moment| match moment {
        Moment::Accepted => vec![Act::Reset],
        Moment::Request(_) => answer(200, ""),
    });
    let mut client = Client::connect(destination.addr());
    assert_eq!(client.rest().1, End::Reset);
    eventually("the connection is counted", Duration::from_secs(5), || (destination.connections() == 1).then_some(()));
}

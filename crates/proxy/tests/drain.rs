//! A planned stop and a reload of listeners lose no request.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::net::TcpStream;
use std::time::Duration;

use model::id::ListenerId;
use proxy::Drain;
use support::setup;
use testkit::client::{Client, End};
use testkit::destination::{Act, Destination, Moment};
use testkit::wait::eventually;

const BOUND: Duration = Duration::from_secs(5);

#[test]
fn a_drain_finishes_what_is_in_flight_and_ends_who_waits() {
    let destination = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => vec![
            Act::Pause(Duration::from_millis(300)),
            Act::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec()),
        ],
    });
    let mut proxy = setup(&[destination.addr()]).start();
    let mut idle = proxy.client();
    assert_eq!(idle.get("/").status(), 200);
    let mut busy = proxy.client();
    busy.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("the request is in flight", BOUND, || (destination.requests().len() == 2).then_some(()));
    proxy.workers.drain(Drain::within(BOUND));
    assert_eq!(idle.rest(), (vec![], End::Closed));
    let response = busy.response();
    assert_eq!((response.text().as_str(), response.value("connection").as_deref()), ("ok", Some("close")));
    eventually("all threads have ended", BOUND, || proxy.workers.is_finished().then_some(()));
    assert!(TcpStream::connect(proxy.addr).is_err());
}

#[test]
fn the_grace_bounds_a_drain() {
    let destination = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => vec![Act::Stall],
    });
    let mut proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("the request is in flight", BOUND, || (destination.requests().len() == 1).then_some(()));
    proxy.workers.drain(Drain::within(Duration::from_millis(100)));
    eventually("all threads have ended", BOUND, || proxy.workers.is_finished().then_some(()));
    assert_ne!(client.rest().1, End::Open);
}

#[test]
fn listeners_come_change_and_go_while_others_serve() {
    let destination = Destination::answering(200, "ok");
    let setup = setup(&[destination.addr()]);
    let listener = setup.listener.clone();
    let mut proxy = setup.start();
    let mut client = proxy.client();
    assert_eq!(client.get("/").status(), 200);
    let mut more = listener.clone();
    more.id = ListenerId::from("more");
    let mut strict = listener.clone();
    strict.limits.body = Some(1);
    let take_over = |proxy: &mut support::Proxy, listeners: &[_]| {
        let prepared = proxy.workers.prepare_listeners(listeners).unwrap();
        proxy.workers.take_over(prepared);
    };
    take_over(&mut proxy, &[strict, more.clone()]);
    let addr_of =
        |proxy: &support::Proxy, id: &str| proxy.workers.addresses().find(|(found, _)| found.as_str() == id).unwrap().1;
    let second = addr_of(&proxy, "more");
    assert_eq!(addr_of(&proxy, "web"), proxy.addr);
    eventually("the new listener accepts and the new limit holds", BOUND, || {
        assert_eq!(Client::connect(second).get("/").status(), 200);
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nxx");
        let status = client.response().status();
        client = proxy.client();
        (status == 413).then_some(())
    });
    let mut other = Client::connect(second);
    assert_eq!(other.get("/").status(), 200);
    take_over(&mut proxy, &[listener]);
    assert_eq!(other.rest(), (vec![], End::Closed));
    eventually("nobody listens there", BOUND, || TcpStream::connect(second).is_err().then_some(()));
    assert_eq!(proxy.client().get("/").status(), 200);
    // An address that is taken changes nothing.
    let mut taken = more;
    taken.address = destination.addr();
    assert!(proxy.workers.prepare_listeners(&[taken]).is_err());
    assert_eq!(proxy.client().get("/").status(), 200);
}

#[test]
fn listeners_that_exchange_their_names_keep_their_sockets() {
    let destination = Destination::answering(200, "ok");
    let setup = setup(&[destination.addr()]);
    let mut one = setup.listener.clone();
    let mut proxy = setup.start();
    let mut two = one.clone();
    two.id = ListenerId::from("two");
    // Ports that are known, as those of a file are: the ones that the system gave away a moment ago.
    for listener in [&mut one, &mut two] {
        listener.address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    }
    let prepared = proxy.workers.prepare_listeners(&[one.clone(), two.clone()]).unwrap();
    proxy.workers.take_over(prepared);
    let mut client = Client::connect(one.address);
    assert_eq!(client.get("/").status(), 200);
    std::mem::swap(&mut one.id, &mut two.id);
    one.limits.body = Some(1);
    let prepared = proxy.workers.prepare_listeners(&[one.clone(), two.clone()]).unwrap();
    // Not taken over yet, and never touched by one that is not.
    drop(proxy.workers.prepare_listeners(&[]).unwrap());
    assert_eq!(client.get("/").status(), 200);
    proxy.workers.take_over(prepared);
    let addresses: Vec<_> = proxy.workers.addresses().map(|(id, address)| (id.to_string(), address)).collect();
    assert_eq!(addresses, [("two".to_owned(), one.address), ("web".to_owned(), two.address)]);
    eventually("the new limit holds under the new name", BOUND, || {
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nxx");
        let status = client.response().status();
        client = Client::connect(one.address);
        (status == 413).then_some(())
    });
    assert_eq!(Client::connect(two.address).get("/").status(), 200);
}

/// Connects `count` clients that send their request at once, while the worker is busy with accepting none of them.
fn crowd(to: std::net::SocketAddr, count: usize) -> Vec<TcpStream> {
    let connect = |_| {
        let mut stream = TcpStream::connect(to).unwrap();
        stream.set_read_timeout(Some(BOUND)).unwrap();
        std::io::Write::write_all(&mut stream, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        stream
    };
    (0..count).map(connect).collect()
}

/// How many of them got a whole answer, and how many of these ended their connection by it.
fn answered(crowd: Vec<TcpStream>) -> (usize, usize) {
    let mut answers = (0, 0);
    for mut stream in crowd {
        let mut answer = Vec::new();
        let is_whole = std::io::Read::read_to_end(&mut stream, &mut answer).is_ok();
        let text = String::from_utf8_lossy(&answer).to_lowercase();
        answers.0 += usize::from(is_whole && text.starts_with("http/1.1 200") && text.ends_with("ok"));
        answers.1 += usize::from(text.contains("connection: close"));
    }
    answers
}

#[test]
fn who_waits_in_the_queue_of_a_listener_that_moves_or_drains_is_served() {
    let destination = Destination::answering(200, "ok");
    let setup = setup(&[destination.addr()]);
    let listener = setup.listener.clone();
    let mut proxy = setup.start();
    for round in 0..5 {
        let waiting = crowd(proxy.addr, 40);
        let mut moved = listener.clone();
        moved.id = ListenerId::from(format!("moved-{round}").as_str());
        // Port 0 under another id is another port: the one before is closed.
        let prepared = proxy.workers.prepare_listeners(&[moved]).unwrap();
        proxy.workers.take_over(prepared);
        proxy.addr = proxy.workers.addresses().next().unwrap().1;
        assert_eq!(answered(waiting).0, 40, "round {round}");
    }
    let waiting = crowd(proxy.addr, 40);
    proxy.workers.drain(Drain::within(BOUND));
    assert_eq!(answered(waiting).0, 40);
    eventually("all threads have ended", BOUND, || proxy.workers.is_finished().then_some(()));
}

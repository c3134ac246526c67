//! `max_connections` over real sockets: who has a place at a destination, and who gets it next.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::num::NonZeroU32;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use model::balancing::LoadBalancing;
use model::id::Slot;
use model::outcome::OutcomeClass;
use support::http2::{self, H2, run};
use support::places::{asking, came_of_it, held_back, holds, nothing_is_left, one_place, until, waits};
use support::setup;
use testkit::client::Client;
use testkit::destination::{Act, Destination, Moment, answer, refusing};
use testkit::wait::eventually;

#[test]
fn a_full_destination_is_passed_by_and_all_streams_of_a_connection_count() {
    let (a, go) = held_back();
    let b = Destination::answering(200, "b");
    let proxy = setup(&[a.addr(), b.addr()])
        .with(|cluster| cluster.destinations[0].max_connections = NonZeroU32::new(1))
        .start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        let request = http::Request::get("http://a.test/1").body(()).unwrap();
        let (first, _) = client.start(request, true).await;
        for _ in 0..3 {
            assert_eq!(client.get("/2").await.text(), "b");
        }
        go.send(()).unwrap();
        assert_eq!(http2::answer(first).await.unwrap().text(), "/1");
    });
    assert_eq!(a.requests().len(), 1);
}

/// While the next attempt waits for the end of a response that is kept, its destination is still at work on it.
#[test]
fn a_response_that_is_kept_has_its_place_until_it_is_read() {
    let pause = Duration::from_millis(120);
    let failing = Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => {
            let head = b"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\n".to_vec();
            vec![Act::Send(head), Act::Pause(pause), Act::Send(b"no".to_vec())]
        }
    });
    let good = Destination::answering(200, "good");
    let proxy = setup(&[failing.addr(), good.addr()])
        .retrying()
        .with(|cluster| {
            cluster.load_balancing = LoadBalancing::FirstAlphabetical;
            cluster.destinations[0].max_connections = NonZeroU32::new(1);
        })
        .start();
    let is_free = || proxy.board.take_place(Slot(0), NonZeroU32::MIN).is_some();
    let started = Instant::now();
    let mut client = asking(&proxy, "/1");
    holds(&proxy, 1);
    eventually("the place is free", Duration::from_secs(5), || is_free().then_some(()));
    assert!(started.elapsed() >= pause, "{:?}", started.elapsed());
    assert_eq!(client.response().text(), "good");
    run(async {
        let client = H2::connect(proxy.addr).await;
        let started = Instant::now();
        let (response, _send) = client.start(http2::get("/2").body(()).unwrap(), true).await;
        until(|| proxy.board.in_flight(Slot(0)) == 1).await;
        until(is_free).await;
        assert!(started.elapsed() >= pause, "{:?}", started.elapsed());
        assert_eq!(http2::answer(response).await.unwrap().text(), "good");
    });
    nothing_is_left(&proxy, 1);
}

#[test]
fn a_stream_of_events_has_its_place_until_it_ends() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n";
    let destination = Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) if request.number == 1 => vec![Act::Send(head.as_bytes().to_vec()), Act::Stall],
        Moment::Request(_) => answer(200, "next"),
    });
    let proxy = one_place(&destination).start();
    let stream = asking(&proxy, "/events");
    eventually("the stream runs", Duration::from_secs(5), || (proxy.count(0, OutcomeClass::Ok) == 1).then_some(()));
    let mut next = asking(&proxy, "/");
    waits(&proxy, 1);
    drop(stream);
    assert_eq!(next.response().text(), "next");
}

#[test]
fn who_waits_goes_by_a_reloaded_limit() {
    for most in [NonZeroU32::new(4), None] {
        let (go, wait): (Sender<()>, Receiver<()>) = channel();
        let wait = Mutex::new(wait);
        let held = Destination::start(move |moment| match moment {
            Moment::Request(request) if request.message.target() == "/1" => {
                let _ = wait.lock().unwrap().recv_timeout(Duration::from_secs(20));
                answer(200, "first")
            }
            Moment::Accepted | Moment::Request(_) => vec![],
        });
        let free = Destination::answering(200, "other");
        let proxy = one_place(&held).start();
        let mut first = asking(&proxy, "/1");
        holds(&proxy, 1);
        let mut waiting: Vec<Client> = Vec::new();
        for n in 1..=3 {
            waiting.push(asking(&proxy, "/2"));
            waits(&proxy, n);
        }
        // Its address changes, too: what has begun stays where it is.
        let changed = setup(&[free.addr()]).with(|cluster| cluster.destinations[0].max_connections = most);
        proxy.board.publish(Arc::new(support::snapshot(changed)));
        for client in &mut waiting {
            assert_eq!(client.response().text(), "other", "{most:?}");
        }
        go.send(()).unwrap();
        assert_eq!(first.response().text(), "first");
        came_of_it(&proxy, "served", 3);
        nothing_is_left(&proxy, 1);
    }
}

#[test]
fn a_lower_limit_holds_once_those_before_it_are_through() {
    let (destination, go) = held_back();
    let make =
        |most| one_place(&destination).with(|cluster| cluster.destinations[0].max_connections = NonZeroU32::new(most));
    let proxy = make(2).start();
    let mut clients = vec![asking(&proxy, "/1"), asking(&proxy, "/2")];
    holds(&proxy, 2);
    proxy.board.publish(Arc::new(support::snapshot(make(1))));
    clients.push(asking(&proxy, "/3"));
    waits(&proxy, 1);
    go.send(()).unwrap();
    holds(&proxy, 1);
    waits(&proxy, 1);
    (0..2).for_each(|_| go.send(()).unwrap());
    for client in &mut clients {
        assert_eq!(client.response().status(), 200);
    }
    nothing_is_left(&proxy, 1);
}

#[test]
fn a_place_goes_from_one_worker_to_the_next_in_line_on_another() {
    let destination = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => [vec![Act::Pause(Duration::from_millis(2))], answer(200, "one")].concat(),
    });
    let proxy = one_place(&destination).start_with(3);
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                let mut client = proxy.client();
                for _ in 0..10 {
                    assert_eq!(client.get("/").text(), "one");
                }
            });
        }
    });
    assert_eq!(destination.requests().len(), 120);
    nothing_is_left(&proxy, 1);
}

#[test]
fn a_tunnel_has_its_place_until_it_ends() {
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n";
    let destination = Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) if request.number == 1 => vec![Act::Send(switch.as_bytes().to_vec()), Act::Echo],
        Moment::Request(_) => answer(200, "next"),
    });
    let proxy = one_place(&destination).start();
    let mut tunnel = proxy.client();
    tunnel.send("GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
    assert_eq!(tunnel.response().status(), 101);
    let mut next = asking(&proxy, "/");
    waits(&proxy, 1);
    tunnel.send("still here");
    assert_eq!(tunnel.exactly(10), b"still here");
    waits(&proxy, 1);
    drop(tunnel);
    assert_eq!(next.response().text(), "next");
    nothing_is_left(&proxy, 1);
}

/// Clients that wait, that leave at once, after a while, or with the answer half read; destinations that answer, break
/// off at any point, or refuse: whatever an exchange dies of, its place is there again.
#[test]
fn however_an_exchange_ends_its_place_is_given_back() {
    let good = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n".to_vec();
    let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhi".to_vec();
    let events = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n".to_vec();
    let destination = Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) => match request.message.target().as_str() {
            "/reset" => vec![Act::Reset],
            "/close" => vec![Act::Close],
            "/stall" => vec![Act::Stall],
            "/half" => vec![Act::Send(good.clone()), Act::Stall],
            "/cut" => vec![Act::Send(cut.clone()), Act::Reset],
            "/events" => vec![Act::Send(events.clone()), Act::Stall],
            "/junk" => vec![Act::Send(b"junk\r\n\r\n".to_vec()), Act::Close],
            "/failed" => answer(503, "no"),
            _ => answer(200, "fine"),
        },
    });
    let refused = refusing();
    let make = || {
        let mut setup = setup(&[destination.addr(), refused]).retrying().with(|cluster| {
            cluster.load_balancing = LoadBalancing::RoundRobin;
            cluster.queue.busy_timeout = Duration::from_millis(200);
            cluster.queue.length = 4;
            for destination in &mut cluster.destinations {
                destination.max_connections = NonZeroU32::new(2);
            }
        });
        setup.routes[0].timeout = Some(Duration::from_millis(500));
        setup
    };
    let proxy = make().start_with(2);
    let paths = ["/fine", "/reset", "/close", "/stall", "/half", "/cut", "/events", "/junk", "/failed"];
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let (proxy, paths) = (&proxy, &paths);
            scope.spawn(move || {
                for round in 0..27usize {
                    let path = paths[(round + 2 * thread) % paths.len()];
                    let mut client = asking(proxy, path);
                    match (round / paths.len() + thread) % 3 {
                        0 => drop(client.within(Duration::from_secs(2)).rest()),
                        1 => client.reset(),
                        _ => drop(client.within(Duration::from_millis(60)).rest()),
                    }
                }
            });
        }
        scope.spawn(|| {
            run(async {
                let client = H2::connect(proxy.addr).await;
                for path in paths.iter().cycle().take(27) {
                    let (response, mut send) = client.start(http2::get(path).body(()).unwrap(), true).await;
                    if tokio::time::timeout(Duration::from_millis(100), http2::answer(response)).await.is_err() {
                        send.send_reset(h2::Reason::CANCEL);
                    }
                }
            });
        });
    });
    nothing_is_left(&proxy, 2);
    assert_eq!(proxy.client().get("/fine").text(), "fine");
}

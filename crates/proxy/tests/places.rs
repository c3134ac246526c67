//! `max_connections` and the queue before it, over real sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::num::NonZeroU32;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use model::affinity::{AffinityCookie, AffinityFailurePolicy, AffinityPolicy, SessionAffinity};
use model::balancing::LoadBalancing;
use model::cluster::Queue;
use model::id::Slot;
use model::outcome::OutcomeClass;
use support::http2::{self, H2, run};
use support::{Proxy, Setup, setup};
use testkit::client::Client;
use testkit::destination::{Act, Destination, Moment, answer, refusing};
use testkit::wait::eventually;

/// A destination that answers each request, with its target, when it is told to.
fn held_back() -> (Destination, Sender<()>) {
    let (go, wait): (Sender<()>, Receiver<()>) = channel();
    let wait = Arc::new(Mutex::new(wait));
    let destination = Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) => {
            let _ = wait.lock().unwrap().recv_timeout(Duration::from_secs(20));
            answer(200, &request.message.target())
        }
    });
    (destination, go)
}

fn one_place(destination: &Destination) -> Setup {
    setup(&[destination.addr()]).with(|cluster| {
        cluster.destinations[0].max_connections = NonZeroU32::new(1);
        cluster.queue.busy_timeout = Duration::from_secs(20);
    })
}

fn asking(proxy: &Proxy, path: &str) -> Client {
    let mut client = proxy.client();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    client
}

fn waits(proxy: &Proxy, n: usize) {
    proxy.counts(&format!("lazaret_queue_waiting{{cluster=\"c\"}} {n}"));
}

/// What came of waiting, so often.
fn came_of_it(proxy: &Proxy, result: &str, n: usize) {
    proxy.counts(&format!("lazaret_queued_total{{cluster=\"c\",result=\"{result}\"}} {n}"));
}

/// All places are free again, and nobody waits.
fn nothing_is_left(proxy: &Proxy, most: u32) {
    let most = NonZeroU32::new(most).unwrap();
    eventually("each place is given back", Duration::from_secs(5), || {
        let all: Vec<_> = (0..most.get()).map_while(|_| proxy.board.take_place(Slot(0), most)).collect();
        (all.len() == most.get() as usize).then_some(())
    });
    eventually("nobody waits", Duration::from_secs(5), || (!proxy.scrape().contains(WAITING)).then_some(()));
}

/// The same snapshot with nobody available.
fn eject_all(proxy: &Proxy, make: impl Fn() -> Setup) {
    let mut empty = support::snapshot(make());
    Arc::get_mut(&mut empty.clusters[0]).unwrap().available.clear();
    empty.config = Arc::clone(&proxy.board.load().config);
    proxy.board.publish(Arc::new(empty));
}

/// The same as `eventually`, while the connection of HTTP/2 goes on. [`run`] bounds it.
async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

const WAITING: &str = "lazaret_queue_waiting{";

fn holds(proxy: &Proxy, n: u32) {
    eventually("places are taken", Duration::from_secs(5), || (proxy.board.in_flight(Slot(0)) == n).then_some(()));
}

#[test]
fn requests_wait_in_the_order_of_their_arrival_and_one_that_leaves_holds_nobody_up() {
    let (destination, go) = held_back();
    let proxy = one_place(&destination).start();
    let mut first = asking(&proxy, "/1");
    holds(&proxy, 1);
    let mut waiting: Vec<Client> = Vec::new();
    for n in 2..=4 {
        waiting.push(asking(&proxy, &format!("/{n}")));
        waits(&proxy, n - 1);
    }
    // The second one leaves.
    drop(waiting.remove(0));
    waits(&proxy, 2);
    go.send(()).unwrap();
    assert_eq!(first.response().text(), "/1");
    let mut last = asking(&proxy, "/5");
    waits(&proxy, 2);
    for client in &mut waiting {
        go.send(()).unwrap();
        client.response();
    }
    go.send(()).unwrap();
    assert_eq!(last.response().text(), "/5");
    let targets: Vec<String> = destination.requests().iter().map(|one| one.message.target()).collect();
    assert_eq!(targets, ["/1", "/3", "/4", "/5"]);
    let lines = proxy.log(5);
    assert_eq!(lines.iter().filter(|line| line.contains("\"status\":499")).count(), 1, "{lines:?}");
    came_of_it(&proxy, "served", 3);
    came_of_it(&proxy, "client-gone", 1);
    nothing_is_left(&proxy, 1);
}

#[test]
fn a_wait_has_an_end_and_a_queue_a_length() {
    let (destination, go) = held_back();
    let proxy = one_place(&destination)
        .with(|cluster| {
            cluster.queue.busy_timeout = Duration::from_millis(300);
            cluster.queue.length = 1;
        })
        .start();
    let mut first = asking(&proxy, "/1");
    holds(&proxy, 1);
    let started = Instant::now();
    let mut second = asking(&proxy, "/2");
    waits(&proxy, 1);
    let response = asking(&proxy, "/3").response();
    assert_eq!((response.status(), response.value("retry-after").as_deref()), (503, Some("1")));
    let expected = "lazaret; error=connection_limit_reached; details=\"queue-full\"";
    assert_eq!(response.value("proxy-status").as_deref(), Some(expected));
    assert_eq!(second.response().value("proxy-status").map(|value| value.contains("queue-timeout")), Some(true));
    assert!(started.elapsed() >= Duration::from_millis(300));
    go.send(()).unwrap();
    assert_eq!(first.response().status(), 200);
    assert_eq!(destination.requests().len(), 1);
    let all = || OutcomeClass::ALL.into_iter().map(|class| proxy.count(0, class)).sum::<u64>();
    eventually("the first one is told of", Duration::from_secs(5), || (all() > 0).then_some(()));
    assert_eq!(all(), 1, "who waited in vain is held against nobody");
}

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

#[test]
fn sessions_that_fill_the_queue_keep_nobody_from_a_destination_that_is_free() {
    let (held, go) = held_back();
    let free = Destination::answering(200, "free");
    let proxy = setup(&[held.addr(), free.addr()])
        .with(|cluster| {
            cluster.load_balancing = LoadBalancing::FirstAlphabetical;
            cluster.session_affinity = Some(SessionAffinity {
                policy: AffinityPolicy::HashCookie,
                failure_policy: AffinityFailurePolicy::Return503Error,
                key_name: "pin".to_owned(),
                cookie: AffinityCookie::default(),
            });
            cluster.destinations.iter_mut().for_each(|one| one.max_connections = NonZeroU32::new(1));
            cluster.queue = Queue { length: 1, busy_timeout: Duration::from_secs(20), ..Queue::DEFAULT };
        })
        .start();
    go.send(()).unwrap();
    let cookie = |response: &testkit::message::Message| {
        response.value("set-cookie").unwrap().split(';').next().unwrap().to_owned()
    };
    let here = cookie(&proxy.client().get("/0"));
    let asking = |path: &str, cookie: &str| {
        let mut client = proxy.client();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n"));
        client
    };
    let mut first = asking("/1", &here);
    holds(&proxy, 1);
    let mut second = asking("/2", &here);
    waits(&proxy, 1);
    let third = proxy.client().get("/3");
    assert_eq!(third.text(), "free", "it may go where nobody waits");
    assert_eq!(asking("/4", &cookie(&third)).response().text(), "free", "and so may a session of that one");
    assert_eq!(asking("/5", &here).response().status(), 503, "the queue is as long as it may be");
    (0..2).for_each(|_| go.send(()).unwrap());
    assert_eq!((first.response().text(), second.response().text()), ("/1".to_owned(), "/2".to_owned()));
    came_of_it(&proxy, "queue-full", 1);
    nothing_is_left(&proxy, 1);
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
fn where_nobody_is_available_a_request_may_wait_for_one_that_comes_back() {
    let destination = Destination::answering(200, "back");
    let make =
        || setup(&[destination.addr()]).with(|cluster| cluster.queue.unavailable_timeout = Duration::from_secs(20));
    let proxy = make().start();
    let full = proxy.board.load();
    eject_all(&proxy, make);
    let mut client = asking(&proxy, "/");
    waits(&proxy, 1);
    proxy.board.publish(full);
    assert_eq!(client.response().text(), "back");
}

#[test]
fn a_wait_for_one_that_comes_back_is_bounded_in_time_and_number() {
    let destination = Destination::answering(200, "back");
    let make = || {
        setup(&[destination.addr()]).with(|cluster| {
            cluster.queue.unavailable_timeout = Duration::from_millis(300);
            cluster.queue.length = 1;
        })
    };
    let proxy = make().start();
    eject_all(&proxy, make);
    let started = Instant::now();
    let mut first = asking(&proxy, "/1");
    waits(&proxy, 1);
    for (response, is_at_once) in [(asking(&proxy, "/2").response(), true), (first.response(), false)] {
        assert_eq!(response.status(), 503);
        let expected = "lazaret; error=destination_unavailable; details=\"none-available\"";
        assert_eq!(response.value("proxy-status").as_deref(), Some(expected));
        assert!(is_at_once || started.elapsed() >= Duration::from_millis(300));
    }
    assert_eq!(destination.requests().len(), 0);
}

#[test]
fn streams_of_http2_wait_as_connections_do_and_one_that_is_reset_leaves() {
    let (destination, go) = held_back();
    let proxy = one_place(&destination).start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        let ask = |path| client.start(http2::get(path).body(()).unwrap(), true);
        let (first, _first) = ask("/1").await;
        until(|| proxy.board.in_flight(Slot(0)) == 1).await;
        let (second, mut reset) = ask("/2").await;
        until(|| proxy.scrape().contains("waiting{cluster=\"c\"} 1")).await;
        let (third, _third) = ask("/3").await;
        until(|| proxy.scrape().contains("waiting{cluster=\"c\"} 2")).await;
        reset.send_reset(h2::Reason::CANCEL);
        drop(second);
        until(|| proxy.scrape().contains("result=\"client-gone\"} 1")).await;
        go.send(()).unwrap();
        assert_eq!(http2::answer(first).await.unwrap().text(), "/1");
        go.send(()).unwrap();
        assert_eq!(http2::answer(third).await.unwrap().text(), "/3");
    });
    assert_eq!(destination.requests().len(), 2);
    nothing_is_left(&proxy, 1);
}

#[test]
fn the_total_deadline_ends_a_wait_over_either_version() {
    let (destination, go) = held_back();
    let mut setup = one_place(&destination);
    setup.routes[0].timeout = Some(Duration::from_millis(400));
    setup.routes.push(support::host_route("patient.test", "c"));
    let proxy = setup.start();
    let mut first = proxy.client();
    first.send("GET /1 HTTP/1.1\r\nHost: patient.test\r\n\r\n");
    holds(&proxy, 1);
    let started = Instant::now();
    let mut second = asking(&proxy, "/2");
    waits(&proxy, 1);
    let answer = run(async { H2::connect(proxy.addr).await.get("/3").await });
    assert_eq!((answer.status.as_u16(), second.response().status()), (504, 504));
    assert!((300..3000).contains(&started.elapsed().as_millis()), "{:?}", started.elapsed());
    came_of_it(&proxy, "deadline", 2);
    go.send(()).unwrap();
    assert_eq!(first.response().text(), "/1");
    assert_eq!(destination.requests().len(), 1);
    nothing_is_left(&proxy, 1);
}

#[test]
fn who_waits_is_told_when_the_last_destination_is_ejected() {
    let (destination, go) = held_back();
    let make = || one_place(&destination);
    let proxy = make().start();
    let mut first = asking(&proxy, "/1");
    holds(&proxy, 1);
    let mut waiting: Vec<Client> = Vec::new();
    for n in 1..=3 {
        waiting.push(asking(&proxy, "/2"));
        waits(&proxy, n);
    }
    let started = Instant::now();
    eject_all(&proxy, make);
    for client in &mut waiting {
        let response = client.response();
        assert_eq!(response.status(), 503);
        assert!(response.value("proxy-status").unwrap().contains("none-available"));
    }
    assert!(started.elapsed() < Duration::from_secs(5), "long before the wait would have ended");
    go.send(()).unwrap();
    assert_eq!(first.response().status(), 200);
    nothing_is_left(&proxy, 1);
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

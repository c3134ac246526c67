//! The queue before destinations that are full or gone, over real sockets: in what order requests wait, and for how long.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use model::affinity::{AffinityCookie, AffinityFailurePolicy, AffinityPolicy, SessionAffinity};
use model::balancing::LoadBalancing;
use model::cluster::Queue;
use model::id::Slot;
use model::outcome::OutcomeClass;
use support::http2::{self, H2, run};
use support::places::{asking, came_of_it, eject_all, held_back, holds, nothing_is_left, one_place, until, waits};
use support::setup;
use testkit::client::Client;
use testkit::destination::Destination;
use testkit::wait::eventually;

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

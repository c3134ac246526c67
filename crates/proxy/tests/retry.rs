//! A failed attempt goes to the next destination when that is safe, within the time the client has.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use board::Trend;
use model::address::Url;
use model::cluster::Verify;
use model::id::Slot;
use model::outcome::OutcomeClass;
use model::retry::{NonIdempotent, RouteRetry, TryPace};
use model::upstream::UpstreamHttp;
use support::setup;
use testkit::destination::{Act, Destination, Moment, refusing};
use testkit::wait::eventually;

fn acting(acts: Vec<Act>) -> Destination {
    Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => acts.clone(),
    })
}

fn send(proxy: &support::Proxy, method: &str) -> u16 {
    let mut client = proxy.client();
    client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"));
    client.response().status()
}

#[test]
fn a_reset_after_the_request_is_repeated_for_idempotent_methods() {
    for (method, status) in [("GET", 200), ("PUT", 200), ("DELETE", 200), ("POST", 502), ("PATCH", 502)] {
        let (a, b) = (acting(vec![Act::ReadBody, Act::Reset]), Destination::answering(200, "b"));
        let proxy = setup(&[a.addr(), b.addr()]).retrying().start();
        assert_eq!(send(&proxy, method), status, "{method}");
        assert_eq!(b.requests().len(), usize::from(status == 200), "{method}");
        if status == 200 {
            assert_eq!(b.requests()[0].message.text(), "body");
        }
        let line = proxy.log(1).remove(0);
        assert!(line.contains("{\"destination\":\"d1\",\"outcome\":\"reset\",\"status\":null"), "{line}");
        assert_eq!(proxy.count(0, OutcomeClass::AppFail), 1);
    }
}

#[test]
fn others_are_repeated_where_it_is_allowed() {
    let (a, b) = (acting(vec![Act::ReadBody, Act::Reset]), Destination::answering(200, "b"));
    let proxy = setup(&[a.addr(), b.addr()])
        .retrying()
        .with(|cluster| cluster.retry.non_idempotent = NonIdempotent::Always)
        .start();
    assert_eq!(send(&proxy, "POST"), 200);
}

#[test]
fn what_was_not_sent_is_repeated_for_every_method() {
    let b = Destination::answering(200, "b");
    let proxy = setup(&[refusing(), b.addr()]).retrying().start();
    assert_eq!(send(&proxy, "POST"), 200);
    assert_eq!(b.requests()[0].message.text(), "body");
    let line = proxy.log(1).remove(0);
    assert!(line.contains("{\"destination\":\"d1\",\"outcome\":\"refused\""), "{line}");
    assert!(line.contains("{\"destination\":\"d2\",\"outcome\":\"ok\",\"status\":200"), "{line}");
    assert_eq!(proxy.count(0, OutcomeClass::ConnFail), 1);
}

#[test]
fn nobody_left_is_an_answer_with_its_reason() {
    let proxy = setup(&[refusing()]).retrying().start();
    let response = proxy.client().get("/");
    assert_eq!((response.status(), response.text().as_str()), (502, "502 Bad Gateway: connection-refused\n"));
    let status = response.value("proxy-status").unwrap();
    assert_eq!(status, "lazaret; error=connection_refused; details=\"connection-refused\"");
}

#[test]
fn a_listed_status_is_held_and_is_the_answer_when_nothing_better_comes() {
    let a = Destination::answering(503, "a is busy");
    let b = Destination::answering(200, "b");
    let proxy = setup(&[a.addr(), b.addr()]).retrying().start();
    assert_eq!(proxy.client().get("/").text(), "b");
    let proxy = setup(&[a.addr(), refusing()]).retrying().start();
    let response = proxy.client().get("/");
    assert_eq!((response.status(), response.text().as_str()), (503, "a is busy"));
    let line = proxy.log(1).remove(0);
    assert!(line.contains("\"status\":503") && line.contains("\"outcome\":\"refused\""), "{line}");
}

#[test]
fn a_body_beyond_the_replay_buffer_is_not_repeated() {
    let (a, b) = (acting(vec![Act::ReadBody, Act::Reset]), Destination::answering(200, "b"));
    let proxy = setup(&[a.addr(), b.addr()]).retrying().with(|cluster| cluster.retry.replay = 1024).start();
    let mut client = proxy.client();
    let body = "x".repeat(300_000);
    client.send(format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
    assert_eq!(client.response().status(), 502);
    assert_eq!(b.requests().len(), 0);
    assert!(proxy.log(1).remove(0).contains("\"retry_denied\":\"body\""));
}

#[test]
fn a_destination_that_hangs_costs_one_per_try_timeout() {
    let (a, c) = (acting(vec![Act::Stall]), Destination::answering(200, "c"));
    let proxy = setup(&[a.addr(), c.addr()])
        .retrying()
        .with(|cluster| cluster.retry.per_try_timeout = Some(Duration::from_millis(300)))
        .start();
    let started = Instant::now();
    assert_eq!(proxy.client().get("/").text(), "c");
    assert!(started.elapsed() >= Duration::from_millis(300));
    assert_eq!(proxy.count(0, OutcomeClass::Timeout), 1);
}

#[test]
fn the_time_of_a_try_bounds_its_connection_so_that_nothing_is_sent_late() {
    // It takes connections and says nothing.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, b) = (mute.local_addr().unwrap(), Destination::answering(200, "b"));
    for http in [UpstreamHttp::Http1, UpstreamHttp::Http2OrHttp1] {
        let proxy = setup(&[address, b.addr()])
            .retrying()
            .with(|cluster| {
                cluster.destinations[0].address = Url::parse(&format!("https://{address}/")).unwrap();
                cluster.tls.verify = Verify::DangerousNone;
                cluster.http = http;
                cluster.timeouts.connect = Duration::from_secs(60);
                cluster.retry.per_try_timeout = Some(Duration::from_millis(300));
            })
            .start();
        assert_eq!(send(&proxy, "POST"), 200);
        let line = proxy.log(1).remove(0);
        assert!(line.contains("{\"destination\":\"d1\",\"outcome\":\"connect_timeout\",\"status\":null"), "{line}");
        assert_eq!(proxy.count(0, OutcomeClass::ConnFail), 1);
    }
}

#[test]
fn the_total_deadline_cuts_the_running_attempt() {
    let (a, b) = (acting(vec![Act::Stall]), acting(vec![Act::Stall]));
    let mut setup = setup(&[a.addr(), b.addr()])
        .retrying()
        .with(|cluster| cluster.retry.per_try_timeout = Some(Duration::from_millis(300)));
    setup.routes[0].timeout = Some(Duration::from_millis(500));
    let proxy = setup.start();
    let started = Instant::now();
    let mut client = proxy.client();
    let response = client.get("/");
    let took = started.elapsed();
    assert_eq!(response.status(), 504);
    assert!(response.value("proxy-status").unwrap().contains("details=\"deadline\""));
    assert!(took >= Duration::from_millis(500), "{took:?}");
    assert_eq!((a.requests().len(), b.requests().len()), (1, 1));
    assert!(proxy.log(1).remove(0).contains("\"reason\":\"deadline\""));
    // In flight nowhere, and the client's connection goes on.
    eventually("nothing is in flight", Duration::from_secs(5), || {
        (proxy.board.in_flight(Slot(0)) + proxy.board.in_flight(Slot(1)) == 0).then_some(())
    });
    assert_eq!(client.get("/").status(), 504);
}

#[test]
fn nothing_is_repeated_once_the_head_has_gone_out() {
    let b = acting(vec![Act::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".to_vec()), Act::Stall]);
    let c = Destination::answering(200, "c");
    let mut setup = setup(&[b.addr(), c.addr()]).retrying();
    setup.routes[0].timeout = Some(Duration::from_millis(300));
    let proxy = setup.start();
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let (message, result) = client.try_response(testkit::message::Expect::Response);
    assert_eq!((message.status(), result.is_err()), (200, true));
    assert_eq!(c.requests().len(), 0);
}

#[test]
fn a_sent_request_is_not_repeated_where_all_that_is_left_fails_most_of_what_it_gets() {
    let (a, b) = (acting(vec![Act::ReadBody, Act::Reset]), Destination::answering(200, "b"));
    let proxy = setup(&[a.addr(), b.addr()]).retrying().start();
    proxy.board.set_trend(Slot(1), Trend::Failing);
    assert_eq!(send(&proxy, "GET"), 502);
    assert!(proxy.log(1)[0].contains("\"retry_denied\":\"pool\""));
    proxy.board.set_trend(Slot(1), Trend::Steady);
    assert_eq!(send(&proxy, "GET"), 200);
}

#[test]
fn a_repeated_request_is_marked_and_one_that_comes_marked_is_not_repeated_again() {
    let (a, b) = (acting(vec![Act::ReadBody, Act::Reset]), Destination::answering(200, "b"));
    let proxy = setup(&[a.addr(), b.addr()]).retrying().start();
    assert_eq!(send(&proxy, "GET"), 200);
    let mark = |destination: &Destination, at: usize| destination.requests()[at].message.value("lazaret-attempt");
    assert_eq!((mark(&a, 0), mark(&b, 0).as_deref()), (None, Some("2")));

    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nLazaret-Attempt: 2\r\n\r\n");
    assert_eq!(client.response().status(), 502);
    assert_eq!((mark(&a, 1).as_deref(), b.requests().len()), (Some("2"), 1), "it goes on as it came");
    assert!(proxy.log(2)[1].contains("\"retry_denied\":\"hop\""), "{:?}", proxy.log(2));

    // What nobody got any of is no repetition.
    let proxy = setup(&[refusing(), b.addr()]).retrying().start();
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nLazaret-Attempt: 2\r\n\r\n");
    assert_eq!((client.response().status(), mark(&b, 1).as_deref()), (200, Some("3")));
}

#[test]
fn a_route_may_retry_less_than_its_cluster() {
    let (a, b) = (acting(vec![Act::ReadBody, Act::Reset]), Destination::answering(200, "b"));
    let mut setup = setup(&[a.addr(), b.addr()]).retrying();
    setup.routes[0].policy.retry = Some(RouteRetry { attempts: Some(1), ..RouteRetry::default() });
    let proxy = setup.start();
    assert_eq!(send(&proxy, "GET"), 502);
    assert_eq!(b.requests().len(), 0);
    assert!(proxy.log(1)[0].contains("\"retry_denied\":\"attempts\""), "{:?}", proxy.log(1));
}

#[test]
fn a_learnt_time_gives_up_a_hanging_destination_for_what_may_go_elsewhere_alone() {
    let slow = vec![Act::ReadBody, Act::Pause(Duration::from_millis(800))];
    let late = [slow, testkit::destination::answer(200, "a")].concat();
    let a = Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) if request.message.target() == "/slow" => late.clone(),
        Moment::Request(_) => testkit::destination::answer(200, "a"),
    });
    let b = Destination::answering(200, "b");
    let mut setup = setup(&[a.addr(), b.addr()]).retrying();
    setup.routes[0].policy.retry = Some(RouteRetry { pace: TryPace::Adaptive, ..RouteRetry::default() });
    let proxy = setup.start();
    let mut client = proxy.client();
    let mut ask = |method: &str, path: &str| {
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"));
        client.response().text()
    };
    assert_eq!(ask("GET", "/slow"), "a", "nothing is known yet");
    for _ in 0..150 {
        assert_eq!(ask("GET", "/"), "a");
    }
    assert_eq!(ask("GET", "/slow"), "b");
    assert_eq!(ask("POST", "/slow"), "a", "a slow answer is better than none");
    let line = proxy.log(153).remove(151);
    assert!(line.contains("{\"destination\":\"d1\",\"outcome\":\"per_try_timeout\""), "{line}");
    assert_eq!(proxy.count(0, OutcomeClass::Timeout), 1);
}

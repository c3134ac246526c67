//! The life of an HTTP/2 connection: who leaves it and when, and what a client cannot make grow.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::Reason;
use http::Request;
use model::outcome::OutcomeClass;
use proxy::Drain;
use support::http2::{H2, answer, get, run};
use support::raw::{DATA, GOAWAY, HEADERS, PING, RST_STREAM, Raw, SETTINGS, field};
use support::setup;
use testkit::destination::{Act, Destination, Moment};
use testkit::wait::eventually;

const BOUND: Duration = Duration::from_secs(5);
/// `:status: 200` of HPACK's static table (RFC 7541 appendix A).
const STATUS_200: u8 = 0x88;
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn slow(pause: Duration) -> Destination {
    Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => vec![Act::Pause(pause), Act::Send(OK.to_vec())],
    })
}

/// A request's header block for `/`.
fn block() -> Vec<u8> {
    [(":method", "GET"), (":scheme", "http"), (":authority", "a.test"), (":path", "/")]
        .iter()
        .flat_map(|(name, value)| field(name, value))
        .collect()
}

#[test]
fn a_drain_says_so_twice_and_serves_every_stream_that_was_on_its_way() {
    let destination = slow(Duration::from_millis(300));
    let mut proxy = setup(&[destination.addr()]).start();
    let mut raw = Raw::connect(proxy.addr);
    raw.headers(1, &block(), 0x5);
    eventually("the request is in flight", BOUND, || (destination.requests().len() == 1).then_some(()));
    proxy.workers.drain(Drain::within(BOUND));
    let first = raw.expect(GOAWAY);
    // RFC 9113 6.8: the largest id first, so that nothing that is on its way is lost …
    assert_eq!(first.payload[..8], [0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    let ping = raw.expect(PING);
    raw.headers(3, &block(), 0x5);
    raw.frame(PING, 0x1, 0, &ping.payload);
    // … and after a round trip the last one that is served.
    let second = raw.expect(GOAWAY);
    assert_eq!(second.payload[..8], [0, 0, 0, 3, 0, 0, 0, 0]);
    raw.headers(5, &block(), 0x5);
    let frames = raw.rest();
    let mut ended: Vec<_> = frames.iter().filter(|f| f.kind == DATA && f.flags & 1 == 1).map(|f| f.stream).collect();
    // Which comes first is nobody's promise.
    ended.sort_unstable();
    assert_eq!(ended, [1, 3]);
    assert!(frames.iter().all(|f| f.stream != 5 || f.kind == RST_STREAM), "a later one is not served");
    eventually("the process could exit", BOUND, || proxy.workers.is_finished().then_some(()));
    assert_eq!(destination.requests().len(), 2);
}

#[test]
fn a_connection_ends_as_soon_as_its_last_stream_is_done() {
    let destination = slow(Duration::from_millis(200));
    let mut proxy = setup(&[destination.addr()]).start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        let (mut going, mut sends) = (Vec::new(), Vec::new());
        for _ in 0..50 {
            let (response, send) = client.start(get("/").body(()).unwrap(), true).await;
            going.push(response);
            sends.push(send);
        }
        while destination.requests().len() < 50 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let started = Instant::now();
        proxy.workers.drain(Drain::within(Duration::from_secs(60)));
        for response in going {
            assert_eq!(answer(response).await.unwrap().text(), "ok");
        }
        assert!(client.send.clone().ready().await.is_err(), "no new stream");
        client.driver.await.unwrap().unwrap();
        assert!(started.elapsed() < Duration::from_secs(10), "not only at the end of the grace");
    });
    eventually("all threads have ended", BOUND, || proxy.workers.is_finished().then_some(()));
}

#[test]
fn a_connection_without_streams_is_told_to_go() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()])
        .listening(|listener| {
            listener.limits.header_timeout = Duration::from_millis(200);
            listener.limits.keepalive = Duration::from_millis(400);
        })
        .start();
    run(async {
        // Before its first stream the time for a head counts, then the time between two.
        for (served, least) in [(0, 150), (1, 350)] {
            let client = H2::connect(proxy.addr).await;
            let idle = Instant::now();
            for _ in 0..served {
                assert_eq!(client.get("/").await.status, 200);
            }
            client.driver.await.unwrap().unwrap();
            assert!(idle.elapsed() >= Duration::from_millis(least), "{:?}", idle.elapsed());
        }
    });
    // Who does not come to the end of the preface is closed as well.
    let mut half = TcpStream::connect(proxy.addr).unwrap();
    half.write_all(b"PRI * HTTP/2.0\r\n\r\nSM").unwrap();
    half.set_read_timeout(Some(BOUND)).unwrap();
    let mut bytes = Vec::new();
    assert!(half.read_to_end(&mut bytes).is_ok());
}

#[test]
fn a_preface_behind_a_request_is_refused() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    assert_eq!(client.get("/").status(), 200);
    client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert_eq!(client.response().status(), 505);
}

#[test]
fn streams_beyond_the_limit_are_refused_and_the_others_are_served() {
    let destination = slow(Duration::from_millis(200));
    let proxy = setup(&[destination.addr()]).listening(|listener| listener.http2.streams = 2).start();
    let mut raw = Raw::connect(proxy.addr);
    for stream in [1, 3, 5] {
        raw.headers(stream, &block(), 0x5);
    }
    let refused = raw.expect(RST_STREAM);
    assert_eq!((refused.stream, refused.code()), (5, Reason::REFUSED_STREAM));
    let mut ended = vec![raw.expect(DATA).stream, raw.expect(DATA).stream];
    ended.sort_unstable();
    assert_eq!(ended, [1, 3]);
}

#[test]
fn a_client_that_opens_streams_to_reset_them_is_told_to_calm_down() {
    // CVE-2023-44487
    let destination = slow(Duration::from_secs(5));
    let proxy = setup(&[destination.addr()]).start();
    let mut raw = Raw::connect(proxy.addr);
    let mut stream = 1;
    let goaway = loop {
        raw.headers(stream, &block(), 0x5);
        raw.frame(RST_STREAM, 0, stream, &8u32.to_be_bytes());
        stream += 2;
        if let Some(found) = raw.poll(GOAWAY) {
            break found;
        }
        assert!(stream < 20_000, "ten thousand streams were opened and reset");
    };
    assert_eq!(goaway.goaway_code(), Reason::ENHANCE_YOUR_CALM);
    raw.rest();
    let counted = proxy.count(0, OutcomeClass::AppFail) + proxy.count(0, OutcomeClass::ConnFail);
    assert_eq!(counted, 0, "nobody else is to blame");
}

/// So many streams, opened and reset in one go.
fn given_up(streams: u32) -> Vec<u8> {
    let pair = |stream| {
        [Raw::bytes(HEADERS, 0x5, stream, &block()), Raw::bytes(RST_STREAM, 0, stream, &8u32.to_be_bytes())].concat()
    };
    (0..streams).flat_map(|number| pair(number * 2 + 1)).collect()
}

#[test]
fn who_gives_up_all_it_may_open_at_once_goes_on() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()]).start();
    let mut raw = Raw::connect(proxy.addr);
    raw.ping();
    raw.stream.write_all(&given_up(100)).unwrap();
    raw.headers(201, &block(), 0x5);
    assert_eq!(raw.expect(HEADERS).stream, 201);
}

#[test]
fn who_gives_up_far_more_in_one_go_is_told_to_calm_down() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()]).start();
    let mut raw = Raw::connect(proxy.addr);
    raw.ping();
    let _ = raw.stream.write_all(&given_up(1000));
    assert_eq!(raw.expect(GOAWAY).goaway_code(), Reason::ENHANCE_YOUR_CALM);
}

#[test]
fn streams_that_are_served_before_they_are_reset_count_as_well() {
    let destination = slow(Duration::from_secs(5));
    let proxy = setup(&[destination.addr()]).start();
    let mut raw = Raw::connect(proxy.addr);
    for stream in (1..).step_by(2) {
        assert!(stream < 1000, "hundreds of streams were given up");
        raw.headers(stream, &block(), 0x5);
        raw.ping();
        raw.frame(RST_STREAM, 0, stream, &8u32.to_be_bytes());
        if let Some(goaway) = raw.poll(GOAWAY) {
            assert_eq!(goaway.goaway_code(), Reason::ENHANCE_YOUR_CALM);
            assert!(stream > 300, "some may be given up: {stream}");
            return;
        }
    }
}

#[test]
fn a_header_block_without_end_ends_the_connection() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()]).start();
    let mut raw = Raw::connect(proxy.addr);
    raw.frame(HEADERS, 0x1, 1, &block());
    let mut sent = 0;
    // CONTINUATION without END_HEADERS, for ever.
    while sent < 10_000 && raw.try_frame(0x9, 0, 1, &field("x", "y")).is_ok() {
        sent += 1;
        if raw.poll(GOAWAY).is_some() {
            break;
        }
    }
    assert!(sent < 10_000, "a frame more was always welcome");
    assert!(destination.requests().is_empty());
}

#[test]
fn pings_and_settings_that_are_not_read_stop_the_reading() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()]).start();
    for (kind, payload) in [(PING, &[7u8; 8][..]), (SETTINGS, &[])] {
        let mut raw = Raw::connect(proxy.addr);
        raw.stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        // Answers are not read: once sockets are full, nothing more is taken. 100 MB would be without a bound.
        let many: Vec<u8> = (0..10_000).flat_map(|_| Raw::bytes(kind, 0, 0, payload)).collect();
        let mut sent = 0usize;
        while sent < 100 << 20 {
            match raw.stream.write(&many) {
                Ok(length) => sent += length,
                Err(_) => break,
            }
        }
        assert!(sent < 100 << 20, "{kind}: {sent} bytes");
    }
}

#[test]
fn heads_within_the_limits_pass_and_those_beyond_are_refused_with_their_own_status() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()])
        .listening(|listener| {
            listener.limits.request_line = 1024;
            listener.limits.header_bytes = 4096;
            listener.limits.header_fields = 20;
        })
        .start();
    // As HTTP/1.1 text: "GET " path " HTTP/1.1", then Host, one field, the empty line.
    let path = 1024 - "GET  HTTP/1.1".len();
    let value = 4096 - "Host: a.test\r\nx: \r\n\r\n".len();
    run(async {
        let client = H2::connect(proxy.addr).await;
        for (path, value, fields, status, word) in [
            (path, 1, 0, 200, ""),
            (path + 1, 1, 0, 414, "request-line-too-long"),
            (1, value, 0, 200, ""),
            (1, value + 1, 0, 431, "header-too-large"),
            (1, 1, 18, 200, ""),
            (1, 1, 19, 431, "too-many-fields"),
        ] {
            let mut request = get(&format!("/{}", "p".repeat(path - 1))).header("x", "v".repeat(value));
            for field in 0..fields {
                request = request.header(format!("y{field}"), "1");
            }
            let found = client.call(request.body(()).unwrap()).await;
            assert_eq!(found.status, status, "{path} {value} {fields}");
            assert!(word.is_empty() || found.value("proxy-status").unwrap().contains(word), "{found:?}");
        }
        // Far beyond: the h2 layer answers before it takes the fields.
        let huge = client.call(get("/").header("x", "v".repeat(12_000)).body(()).unwrap()).await;
        assert_eq!(huge.status, 431);
        assert_eq!(client.get("/").await.status, 200, "only that stream is refused");
    });
}

#[test]
fn each_time_limit_is_a_504_with_its_name() {
    let destination = slow(Duration::from_secs(5));
    for (word, total, idle) in [
        ("deadline", Some(Duration::from_millis(150)), Duration::from_secs(60)),
        ("response-timeout", None, Duration::from_millis(150)),
        ("response-timeout", Some(Duration::from_secs(300)), Duration::from_millis(150)),
    ] {
        let mut setup = setup(&[destination.addr()]).with(|cluster| cluster.timeouts.idle = idle);
        setup.routes[0].timeout = total;
        let proxy = setup.start();
        run(async {
            let client = H2::connect(proxy.addr).await;
            // A client that leaves meanwhile changes nothing for the others.
            let (gone, mut send) = client.start(get("/gone").body(()).unwrap(), true).await;
            send.send_reset(Reason::CANCEL);
            let found = client.get("/").await;
            assert_eq!(found.status, 504);
            assert!(found.value("proxy-status").unwrap().contains(word), "{found:?}");
            assert!(answer(gone).await.is_err());
        });
    }
}

/// SMUGGLING-05 (RFC 9113 8.1)
#[test]
fn trailers_that_are_no_trailers_never_reach_a_destination() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()]).start();
    let post: Vec<u8> = [(":method", "POST"), (":scheme", "http"), (":authority", "a.test"), (":path", "/")]
        .iter()
        .flat_map(|(name, value)| field(name, value))
        .collect();
    // The HTTP/2 layer leaves these two out, and takes the others for an error.
    for (name, is_dropped) in [
        (":path", true),
        (":authority", true),
        (":status", false),
        ("connection", false),
        ("transfer-encoding", false),
        ("Upper", false),
    ] {
        let mut raw = Raw::connect(proxy.addr);
        raw.headers(1, &post, 0x4);
        raw.frame(DATA, 0, 1, b"x");
        raw.headers(1, &field(name, "/admin"), 0x5);
        if is_dropped {
            assert_eq!(raw.expect(HEADERS).payload.first(), Some(&STATUS_200), "{name}");
            continue;
        }
        raw.stream.shutdown(std::net::Shutdown::Write).unwrap();
        let frames = raw.rest();
        assert!(frames.iter().all(|frame| frame.kind != HEADERS), "{name}: {frames:?}");
        assert!(frames.iter().any(|frame| [RST_STREAM, GOAWAY].contains(&frame.kind)), "{name}: {frames:?}");
    }
    for request in destination.requests() {
        let text = [request.message.head, request.message.raw_body].concat();
        assert!(!String::from_utf8_lossy(&text).contains("/admin"), "{}", String::from_utf8_lossy(&text));
    }
    assert_eq!(proxy.count(0, OutcomeClass::AppFail) + proxy.count(0, OutcomeClass::ConnFail), 0);
}

#[test]
fn a_client_that_stalls_in_its_body_is_told_so() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()]).with(|cluster| cluster.timeouts.idle = Duration::from_millis(200)).start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        let request = Request::post("http://a.test/").body(()).unwrap();
        let (response, mut send) = client.start(request, false).await;
        send.send_data(Bytes::from_static(b"half"), false).unwrap();
        let found = answer(response).await.unwrap();
        assert_eq!(found.status, 408);
        assert!(found.value("proxy-status").unwrap().contains("request-body-timeout"));
    });
}

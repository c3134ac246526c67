//! Responses taken ahead of slow clients where either side speaks HTTP/2.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use model::id::Slot;
use model::outcome::OutcomeClass;
use model::route::Buffering;
use model::upstream::UpstreamHttp;
use support::http2::{H2, answer, get, run};
use support::{Proxy, Setup, setup};
use testkit::destination::{Act, Destination, Moment};

const BOUND: Duration = Duration::from_secs(5);
/// More than all windows and sockets on the way take.
const LARGE: usize = 24 << 20;

fn ahead(mut setup: Setup, response: usize) -> Setup {
    setup.routes[0].policy.buffering = Buffering::On { request: 0, response: response as u64 };
    setup
}

/// An HTTP/1.1 destination that says this and then does that.
fn destination(text: String, last: Act) -> Destination {
    Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => vec![Act::Send(text.clone().into_bytes()), last.clone()],
    })
}

fn large(fields: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n{fields}\r\n{}", "x".repeat(LARGE))
}

/// A destination that speaks HTTP/2 by prior knowledge and answers with `LARGE` bytes.
fn http2_destination() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
    });
    address
}

async fn serve(stream: tokio::net::TcpStream) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        tokio::spawn(async move {
            let mut send = respond.send_response(http::Response::new(()), false).unwrap();
            let mut body = Bytes::from(vec![b'x'; LARGE]);
            while !body.is_empty() {
                send.reserve_capacity(body.len());
                let room = std::future::poll_fn(|context| send.poll_capacity(context)).await;
                let Some(Ok(room)) = room else { return };
                let part = body.split_to(room.min(body.len()));
                let is_over = body.is_empty();
                send.send_data(part, is_over).unwrap();
            }
        });
    }
}

/// Waits, without a client that reads, until the destination's part was judged.
async fn is_judged(proxy: &Proxy, class: OutcomeClass) {
    let judged = async {
        while proxy.count(0, class) == 0 || proxy.board.in_flight(Slot(0)) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(BOUND, judged).await.expect("the destination is done with");
}

#[test]
fn a_slow_http2_client_occupies_no_destination() {
    let destination = destination(large(""), Act::Pause(Duration::ZERO));
    let proxy = ahead(setup(&[destination.addr()]), LARGE + (1 << 20)).start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        let (response, _) = client.start(get("/").body(()).unwrap(), true).await;
        is_judged(&proxy, OutcomeClass::Ok).await;
        let answer = answer(response).await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.body.len(), answer.reset), (200, LARGE, None));
        assert!(answer.body.iter().all(|byte| *byte == b'x'));
    });
}

#[test]
fn a_slow_http1_client_occupies_no_stream_of_an_http2_destination() {
    let destination = http2_destination();
    let proxy =
        ahead(setup(&[destination]), LARGE + (1 << 20)).with(|cluster| cluster.http = UpstreamHttp::Http2).start();
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    run(is_judged(&proxy, OutcomeClass::Ok));
    let message = client.response();
    assert_eq!((message.status(), message.body.len()), (200, LARGE));
}

#[test]
fn trailers_wait_behind_the_body_that_was_taken_ahead() {
    let body = "x".repeat(4 << 20);
    let text = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\nChecksum: 77\r\n\r\n",
        body.len()
    );
    let destination = destination(text, Act::Pause(Duration::ZERO));
    let proxy = ahead(setup(&[destination.addr()]), 8 << 20).start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        let (response, _) = client.start(get("/").body(()).unwrap(), true).await;
        is_judged(&proxy, OutcomeClass::Ok).await;
        let answer = answer(response).await.unwrap();
        assert_eq!((answer.body.len(), answer.trailers["checksum"].as_bytes()), (body.len(), &b"77"[..]));
    });
}

#[test]
fn beyond_the_bound_and_for_event_streams_the_destination_waits_for_an_http2_client() {
    for (fields, most) in [("", 256 << 10), ("Content-Type: text/event-stream\r\n", LARGE)] {
        let destination = destination(large(fields), Act::Pause(Duration::ZERO));
        let proxy = ahead(setup(&[destination.addr()]), most).start();
        run(async {
            let client = H2::connect(proxy.addr).await;
            let (response, _) = client.start(get("/").body(()).unwrap(), true).await;
            let response = response.await.unwrap();
            // Others come and go meanwhile, so the proxy has had its turn.
            for _ in 0..20 {
                let other = H2::connect(proxy.addr).await;
                let (next, _) = other.start(get("/").body(()).unwrap(), true).await;
                assert_eq!(next.await.unwrap().status(), 200);
            }
            assert_eq!(proxy.count(0, OutcomeClass::Ok), 0, "{most}");
            drop(response);
        });
    }
}

#[test]
fn what_was_taken_ahead_of_a_break_reaches_an_http2_client_before_the_reset() {
    let half = LARGE / 2;
    let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n{}", "x".repeat(half));
    let destination = destination(text, Act::Close);
    let proxy = ahead(setup(&[destination.addr()]), LARGE).start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        let (response, _) = client.start(get("/").body(()).unwrap(), true).await;
        is_judged(&proxy, OutcomeClass::Cut).await;
        let answer = answer(response).await.unwrap();
        assert_eq!((answer.body.len(), answer.reset), (half, Some(Reason::INTERNAL_ERROR)));
    });
    assert!(proxy.log(1)[0].contains("body-cut"));
}

#[test]
fn a_client_that_leaves_ends_what_waits_for_it() {
    let destination = destination(large(""), Act::Pause(Duration::ZERO));
    let proxy = ahead(setup(&[destination.addr()]), LARGE + (1 << 20)).start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        let (response, _) = client.start(get("/").body(()).unwrap(), true).await;
        is_judged(&proxy, OutcomeClass::Ok).await;
        drop(response);
        drop(client);
    });
    assert!(proxy.log(1)[0].contains("client-gone"));
}

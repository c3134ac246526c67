//! Bodies over HTTP/2: whole or visibly broken, with back-pressure both ways, and early answers (RFC 9113 8.1).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::{Reason, SendStream};
use http::Request;
use model::outcome::OutcomeClass;
use support::http2::{H2, answer, get, run};
use support::setup;
use testkit::destination::{Act, Destination, Moment};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn acting(acts: Vec<Act>) -> Destination {
    Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => acts.clone(),
    })
}

fn post() -> http::request::Builder {
    Request::post("http://a.test/")
}

/// Sends as flow control allows; the bytes that went before the stream was reset.
async fn upload(send: &mut SendStream<Bytes>, mut body: Bytes) -> usize {
    let mut sent = 0;
    while !body.is_empty() {
        send.reserve_capacity(body.len());
        match std::future::poll_fn(|context| send.poll_capacity(context)).await {
            Some(Ok(room)) if room > 0 => {
                let part = body.split_to(room.min(body.len()));
                sent += part.len();
                if send.send_data(part, body.is_empty()).is_err() {
                    return sent;
                }
            }
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return sent,
        }
    }
    sent
}

#[test]
fn large_bodies_pass_in_both_directions() {
    let body = "0123456789abcdef".repeat(256 * 1024);
    for head in [format!("Content-Length: {}", body.len()), "Connection: close".to_owned()] {
        let end = if head.starts_with("Connection") { Act::Close } else { Act::Pause(Duration::ZERO) };
        let text = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}");
        let destination = acting(vec![Act::ReadBody, Act::Send(text.into_bytes()), end]);
        let proxy = setup(&[destination.addr()]).start();
        run(async {
            let client = H2::connect(proxy.addr).await;
            for length in [Some(body.len()), None] {
                let mut request = post();
                if let Some(length) = length {
                    request = request.header("content-length", length);
                }
                let (response, mut send) = client.start(request.body(()).unwrap(), false).await;
                let sending = upload(&mut send, Bytes::from(body.clone()));
                let (sent, found) = tokio::join!(sending, answer(response));
                let found = found.unwrap();
                assert_eq!((sent, found.reset), (body.len(), None));
                assert!(found.text() == body);
            }
        });
        for request in destination.requests() {
            assert!(request.message.text() == body);
        }
    }
}

#[test]
fn an_early_answer_comes_whole_and_the_rest_of_the_upload_is_called_off() {
    let refusal = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 8\r\nConnection: close\r\n\r\ntoo much";
    for end in [vec![Act::HalfClose, Act::ReadBody], vec![Act::Pause(Duration::from_millis(50)), Act::Reset]] {
        let mut acts = vec![Act::Send(refusal.as_bytes().to_vec())];
        acts.extend(end);
        let destination = acting(acts);
        let proxy = setup(&[destination.addr()]).retrying().start();
        run(async {
            let client = H2::connect(proxy.addr).await;
            let (response, mut send) = client.start(post().body(()).unwrap(), false).await;
            let size = 50 << 20;
            let sending = upload(&mut send, Bytes::from(vec![b'x'; size]));
            let (sent, found) = tokio::join!(sending, answer(response));
            let found = found.unwrap();
            assert_eq!((found.status.as_u16(), found.text().as_str(), found.reset), (413, "too much", None));
            assert!(sent < size, "the upload ended early");
            // RFC 9113 8.1: a complete response, then RST_STREAM with NO_ERROR.
            let reset = std::future::poll_fn(|context| send.poll_reset(context)).await.unwrap();
            assert_eq!(reset, Reason::NO_ERROR);
            assert_eq!(destination.requests().len(), 1, "not repeated");
        });
        proxy.log(1);
        assert_eq!(proxy.count(0, OutcomeClass::Ok), 1);
    }
}

#[test]
fn a_cut_body_is_a_reset_and_never_a_clean_end() {
    for text in [
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nnonsense",
    ] {
        let destination = acting(vec![Act::Send(text.as_bytes().to_vec()), Act::Close]);
        let proxy = setup(&[destination.addr()]).start();
        run(async {
            let client = H2::connect(proxy.addr).await;
            let found = client.get("/").await;
            assert_eq!((found.status.as_u16(), found.reset), (200, Some(Reason::INTERNAL_ERROR)), "{text}");
        });
        assert!(proxy.log(1)[0].contains("\"reason\":\"body-cut\""));
        assert_eq!(proxy.count(0, OutcomeClass::Cut), 1);
    }
}

#[test]
fn a_body_that_is_not_as_long_as_declared_is_a_stream_error_and_nobodys_failure() {
    let destination = acting(vec![Act::ReadBody, Act::Send(OK.to_vec())]);
    let proxy = setup(&[destination.addr()]).start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        for body in ["short", "longer than declared"] {
            let request = post().header("content-length", "10").body(()).unwrap();
            let (response, mut send) = client.start(request, false).await;
            send.send_data(Bytes::from_static(body.as_bytes()), true).unwrap();
            let error = answer(response).await.unwrap_err();
            assert_eq!(error.reason(), Some(Reason::PROTOCOL_ERROR), "{body}");
        }
        assert_eq!(client.post("/", "fine").await.status, 200);
    });
    proxy.log(3);
    let [ok, neutral] = [OutcomeClass::Ok, OutcomeClass::Neutral].map(|class| proxy.count(0, class));
    assert_eq!(ok, 1);
    assert!(neutral <= 2 && proxy.count(0, OutcomeClass::AppFail) == 0);
    assert!(destination.requests().iter().all(|request| request.message.text() != "longer than declared"));
}

#[test]
fn a_client_that_cancels_is_gone_and_nobodys_failure() {
    let destination = acting(vec![Act::Stall]);
    let proxy = setup(&[destination.addr()]).start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        let (response, mut send) = client.start(get("/").body(()).unwrap(), true).await;
        while destination.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        send.send_reset(Reason::CANCEL);
        assert!(answer(response).await.is_err());
        while proxy.count(0, OutcomeClass::Neutral) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(proxy.log(1)[0].contains("\"status\":499"));
}

#[test]
fn a_body_is_sent_again_to_another_destination() {
    let first = acting(vec![Act::ReadBody, Act::Reset]);
    let second = acting(vec![Act::ReadBody, Act::Send(OK.to_vec())]);
    let proxy = setup(&[first.addr(), second.addr()]).retrying().start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        let request = Request::put("http://a.test/").body(()).unwrap();
        let (response, mut send) = client.start(request, false).await;
        send.send_data(Bytes::from_static(b"one "), false).unwrap();
        send.send_data(Bytes::from_static(b"two"), true).unwrap();
        assert_eq!(answer(response).await.unwrap().text(), "ok");
    });
    assert_eq!(second.requests()[0].message.text(), "one two");
    assert_eq!(first.requests()[0].message.text(), "one two");
}

#[test]
fn the_best_answer_is_held_when_the_next_attempt_is_worse() {
    let first =
        acting(vec![Act::Send(b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\nX-From: first\r\n\r\nbusy".to_vec())]);
    let proxy = setup(&[first.addr(), testkit::destination::refusing()]).retrying().start();
    run(async {
        let found = H2::connect(proxy.addr).await.get("/").await;
        assert_eq!((found.status.as_u16(), found.text().as_str(), found.value("x-from")), (503, "busy", Some("first")));
    });
}

/// Accepts one connection and sends a response without end, until it is blocked; how many bytes went.
fn endless() -> (std::net::SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let written = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&written);
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 4096];
        let _ = stream.read(&mut head).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n").unwrap();
        let block = vec![b'x'; 64 * 1024];
        while let Ok(length) = stream.write(&block) {
            count.fetch_add(length, Ordering::SeqCst);
        }
    });
    (addr, written)
}

#[test]
fn a_client_that_reads_nothing_stops_the_destination() {
    let (addr, written) = endless();
    let proxy = setup(&[addr]).start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        let (response, _) = client.start(get("/").body(()).unwrap(), true).await;
        let response = response.await.unwrap();
        // The client's window is 64 KiB and it gives none of it back; the rest waits in sockets.
        let mut before = 0;
        let mut same = 0;
        while same < 20 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let now = written.load(Ordering::SeqCst);
            same = if now == before { same + 1 } else { 0 };
            before = now;
        }
        assert!(before < 16 << 20, "{before} bytes left the destination");
        drop(response);
    });
}

#[test]
fn a_destination_that_reads_nothing_stops_the_client() {
    // The kernel takes connections and some bytes for it; nobody reads them.
    let destination = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = setup(&[destination.local_addr().unwrap()]).start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        let (_response, mut send) = client.start(post().body(()).unwrap(), false).await;
        let body = Bytes::from(vec![b'x'; 64 << 20]);
        let sending = tokio::time::timeout(Duration::from_secs(1), upload(&mut send, body)).await;
        assert!(sending.is_err(), "64 MiB went nowhere");
        // Another stream has room all the same: the connection's window is larger than a stream's.
        let (_other, mut other) = client.start(post().body(()).unwrap(), false).await;
        assert_eq!(upload(&mut other, Bytes::from_static(b"room")).await, 4);
    });
}

#[test]
fn events_are_flushed_at_once_and_messages_reach_the_destination_before_the_end() {
    let events = |n: usize| Act::Send(format!("a\r\nevent {n:03}\n\r\n").into_bytes());
    let mut acts = vec![Act::Send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec())];
    for n in 0..5 {
        acts.extend([Act::Pause(Duration::from_millis(100)), events(n)]);
    }
    acts.push(Act::Send(b"0\r\n\r\n".to_vec()));
    let destination = acting(acts);
    let proxy = setup(&[destination.addr()]).start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        // Bidirectional: the request is never ended by the client.
        let (response, mut send) = client.start(post().body(()).unwrap(), false).await;
        send.send_data(Bytes::from_static(b"first message"), false).unwrap();
        let mut body = response.await.unwrap().into_body();
        let mut at = tokio::time::Instant::now();
        for n in 0..5 {
            let event = body.data().await.unwrap().unwrap();
            body.flow_control().release_capacity(event.len()).unwrap();
            assert_eq!(event, format!("event {n:03}\n"));
            let gap = at.elapsed();
            at = tokio::time::Instant::now();
            assert!(n == 0 || (Duration::from_millis(50)..Duration::from_millis(300)).contains(&gap), "{gap:?}");
        }
        // The client never ends its request: behind the whole answer it is told to stop, which takes nothing back
        // (RFC 9113 8.1).
        loop {
            match body.data().await {
                None => break,
                // The end has a frame of its own where it did not come with the last event.
                Some(Ok(more)) => assert!(more.is_empty(), "{more:?} behind the end"),
                Some(Err(error)) => break assert_eq!(error.reason(), Some(Reason::NO_ERROR)),
            }
        }
    });
}

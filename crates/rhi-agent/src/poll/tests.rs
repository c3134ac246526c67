//! Reading answers, and asking a server that does what it should not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

fn api() -> UpstreamRef {
    UpstreamRef { kind: "upstreams".to_owned(), id: "api".to_owned() }
}

fn nodes(words: &[Option<&str>]) -> Answer {
    let node = |word: &Option<&str>| Node { address: "10.1.0.1:80".to_owned(), status: word.map(str::to_owned) };
    Answer::Nodes { name: Some("/apisix/upstreams/api".to_owned()), nodes: words.iter().map(node).collect() }
}

#[test]
fn every_form_of_an_answer_is_read() {
    let failed = Answer::Failed;
    for (status, body, expected) in [
        (
            200,
            r#"{"name":"/apisix/upstreams/api","nodes":[{"ip":"10.1.0.1","port":80,"status":"healthy"}]}"#,
            nodes(&[Some("healthy")]),
        ),
        (200, r#"{"name":"/apisix/upstreams/api","nodes":[{"ip":"10.1.0.1","port":80}]}"#, nodes(&[None])),
        (
            200,
            r#"{"name":"/apisix/upstreams/api","nodes":[{"ip":"10.1.0.1","port":80,"status":"healthy","purge_time":1.5}]}"#,
            nodes(&[]),
        ),
        (200, r#"{"name":"/apisix/upstreams/api","type":"http","nodes":{}}"#, nodes(&[])),
        (404, r#"{"error_msg":"upstreams[api] not found"}"#, Answer::UnknownObject),
        (404, r#"{"error_msg":"no checker for upstreams[api]"}"#, Answer::NoChecker),
        (404, "<html>404 Not Found</html>", Answer::UnknownObject),
        (400, r#"{"error_msg":"invalid src type upstream"}"#, failed(PollFailure::Status(400))),
        (503, r#"{"error_msg":"x"}"#, failed(PollFailure::Status(503))),
        (200, "<html>hello</html>", failed(PollFailure::Unreadable)),
        (200, r#"{"ok":true}"#, failed(PollFailure::Unreadable)),
        (200, "", failed(PollFailure::Unreadable)),
    ] {
        assert_eq!(read(StatusCode::from_u16(status).unwrap(), body.as_bytes()), expected, "{status} {body}");
    }
}

#[test]
fn ids_are_one_encoded_segment() {
    let upstream = UpstreamRef { kind: "upstreams".to_owned(), id: "a/b c".to_owned() };
    assert_eq!(path("/", &upstream), "/v1/healthcheck/upstreams/a%2Fb%20c");
    assert_eq!(path("/base/", &api()), "/base/v1/healthcheck/upstreams/api");
}

/// A server that answers one connection with these bytes, and gives back what it was asked.
async fn served(answer: Vec<u8>) -> (Answer, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let length = stream.read(&mut request).await.unwrap();
        // The reader may have had enough before everything is written.
        let _ = stream.write_all(&answer).await;
        String::from_utf8(request[..length].to_vec()).unwrap()
    });
    let upstream = api();
    let answer = tokio::time::timeout(Duration::from_secs(20), ask(&url, &upstream)).await.unwrap();
    (answer, server.await.unwrap())
}

#[tokio::test]
async fn a_poll_asks_for_json_and_reads_the_nodes() {
    let body = r#"{"name":"/apisix/upstreams/api","nodes":[{"ip":"10.1.0.1","port":80,"status":"healthy"}]}"#;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let (answer, request) = served(head.into_bytes()).await;
    assert_eq!(answer, nodes(&[Some("healthy")]));
    assert!(request.starts_with("GET /v1/healthcheck/upstreams/api HTTP/1.1\r\n"), "{request}");
    assert!(request.to_ascii_lowercase().contains("accept: application/json\r\n"), "{request}");
}

#[tokio::test]
async fn a_body_that_is_cut_is_a_transport_error_and_an_endless_one_is_unreadable() {
    let (answer, _) = served(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{".to_vec()).await;
    assert_eq!(answer, Answer::Failed(PollFailure::Transport));
    let (answer, _) = served(b"not http at all\r\n\r\n".to_vec()).await;
    assert_eq!(answer, Answer::Failed(PollFailure::Transport));
    let mut long = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    long.resize(MAX_BODY + 65_536, b' ');
    let (answer, _) = served(long).await;
    assert_eq!(answer, Answer::Failed(PollFailure::Unreadable));
}

#[tokio::test]
async fn interim_responses_without_end_do_not_hold_a_poll_past_its_bound() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // On a thread of its own: what is tested would keep this one busy.
    let flood = std::thread::spawn({
        let listener = listener.into_std().unwrap();
        move || {
            listener.set_nonblocking(false).unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            let interim = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(1000);
            let mut sent = 0;
            while sent < 64 * MAX_BODY && std::io::Write::write_all(&mut stream, &interim).is_ok() {
                sent += interim.len();
            }
            sent
        }
    });
    assert_eq!(ask(&url, &api()).await, Answer::Failed(PollFailure::Transport));
    assert!(flood.join().unwrap() < 64 * MAX_BODY, "the connection was closed on it");
}

#[tokio::test]
async fn nobody_there_is_refused_and_a_silent_server_is_a_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (answers, mut answered) = mpsc::channel(4);
    let deadline = Instant::now() + Duration::from_millis(50);
    let polls = start(&url, 7, BTreeSet::from([api()]), deadline, &answers);
    let answer = answered.recv().await.unwrap();
    assert_eq!(answer, Answered { cycle: 7, upstream: api(), answer: Answer::Failed(PollFailure::Timeout) });
    drop((polls, listener));
    assert_eq!(ask(&url, &api()).await, Answer::Failed(PollFailure::Refused));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_came_while_the_daemon_stood_still_is_heard() {
    let start = Instant::now();
    let deadline = start + Duration::from_secs(5);
    let answering = |millis| async move {
        tokio::time::sleep_until(start + Duration::from_millis(millis)).await;
        nodes(&[])
    };
    // One is read a moment after the pause, one is not there in time.
    let (mut soon, mut never) = (pin!(by(deadline, answering(20_400))), pin!(by(deadline, answering(90_000))));
    assert!(futures_util::poll!(&mut soon).is_pending() && futures_util::poll!(&mut never).is_pending());
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!(tokio::join!(soon, never), (nodes(&[]), Answer::Failed(PollFailure::Timeout)));
    assert_eq!(start.elapsed(), Duration::from_secs(21), "a second more, and no longer");
    // Where nothing stood still the deadline is met.
    let (start, late) = (Instant::now(), by(Instant::now() + Duration::from_secs(5), answering(90_000)));
    assert_eq!((late.await, start.elapsed()), (Answer::Failed(PollFailure::Timeout), Duration::from_secs(5)));
}

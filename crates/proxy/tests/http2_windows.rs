//! Destinations that break the rules of HTTP/2's windows (RFC 9113 6.9).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use model::upstream::UpstreamHttp;
use support::setup;
use testkit::frames::{Connection, Frames, OK};
use testkit::message::Message;

const WINDOW_UPDATE: u8 = 8;
/// With what a window begins with, more than the largest one (RFC 9113 6.9.1).
const TOO_MUCH: [u8; 4] = 0x7fff_ffff_u32.to_be_bytes();
const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
/// Its body is on its way.
const POST: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nsome";

/// The answer that a client gets whose destination does this once the request's head has come.
fn answer(request: &str, script: impl Fn(&mut Connection) + Send + Sync + 'static) -> Message {
    let destination = Frames::start(move |mut connection| {
        connection.greet(&[]);
        connection.head();
        script(&mut connection);
        connection.stall();
    });
    let proxy = setup(&[destination.address]).with(|cluster| cluster.http = UpstreamHttp::Http2).start();
    let mut client = proxy.client();
    client.send(request);
    client.response()
}

#[test]
fn a_window_that_overflows_ends_the_exchange_at_once_as_a_broken_protocol() {
    // That of the whole connection, and that of a stream whose body is on its way.
    for (request, stream) in [(GET, 0), (POST, 0), (POST, 1)] {
        let answer = answer(request, move |connection| connection.frame(WINDOW_UPDATE, 0, stream, &TOO_MUCH));
        assert_eq!(answer.status(), 502, "{request:?}, stream {stream}");
        let why = answer.value("proxy-status").unwrap_or_default();
        assert!(why.contains("http_protocol_error"), "{why}");
    }
}

#[test]
fn the_window_of_a_stream_on_which_nothing_is_sent_any_more_does_not_count() {
    let answer = answer(GET, |connection| {
        connection.frame(WINDOW_UPDATE, 0, 1, &TOO_MUCH);
        connection.headers(1, OK, &[], true);
    });
    assert_eq!(answer.status(), 200);
}

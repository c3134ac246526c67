//! WebSocket through the real program between a client and a server of tungstenite, and frame by frame: what a server
//! answers to good and to bad frames is the same through the proxy as without.

use std::time::Duration;

use end_to_end::clients::frames::{Frame, close, converse, frame};
use end_to_end::clients::site::Site;
use end_to_end::clients::websocket::{Echo, RESET};
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

/// Runs a conversation, 30 s at most.
fn run(conversation: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), conversation).await.unwrap() });
}

async fn open(site: &Site) -> WebSocketStream<TcpStream> {
    let stream = TcpStream::connect(site.lazaret.proxy).await.unwrap();
    let url = format!("ws://{}/socket", site.lazaret.proxy);
    tokio_tungstenite::client_async(url, stream).await.unwrap().0
}

fn start() -> (Echo, Site) {
    let echo = Echo::start();
    let (route, cluster) = echo.config();
    let site = Site::start(&route, &cluster);
    (echo, site)
}

#[test]
fn a_hundred_messages_and_a_large_one_come_back_and_the_closing_handshake_is_whole() {
    let (_echo, site) = start();
    run(async {
        let mut socket = open(&site).await;
        for number in 0..100 {
            let message = Message::text(format!("message {number}"));
            socket.send(message.clone()).await.unwrap();
            assert_eq!(socket.next().await.unwrap().unwrap(), message);
        }
        let large: Vec<u8> = (0u32..).flat_map(u32::to_be_bytes).take(4 << 20).collect();
        socket.send(Message::binary(large.clone())).await.unwrap();
        assert!(socket.next().await.unwrap().unwrap().into_data() == large, "the large message was changed");
        socket.send(Message::Ping("are you there".into())).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), Message::Pong("are you there".into()));
        let end = CloseFrame { code: CloseCode::Normal, reason: "enough".into() };
        socket.close(Some(end.clone())).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), Message::Close(Some(end)));
        assert!(socket.next().await.is_none(), "the connection ends with the handshake");
    });
    let line = site.lazaret.log_line("/socket");
    assert_eq!((&line["status"], &line["reason"]), (&101.into(), &"".into()), "{line}");
}

#[test]
fn a_server_that_resets_in_the_middle_is_seen_as_an_error() {
    let (_echo, site) = start();
    run(async {
        let mut socket = open(&site).await;
        socket.send(Message::text("one")).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), Message::text("one"));
        socket.send(Message::text(RESET)).await.unwrap();
        let end = socket.next().await.unwrap();
        assert!(matches!(end, Err(Error::Protocol(_) | Error::Io(_))), "{end:?}");
    });
    assert_eq!(site.lazaret.log_line("/socket")["reason"], "tunnel-cut");
}

#[test]
fn frames_good_and_bad_are_answered_through_the_proxy_as_without() {
    let (echo, site) = start();
    let bye = || close(1000, "bye");
    let cases: Vec<(&str, Vec<Frame>)> = vec![
        ("an empty text", vec![frame(0x81, ""), bye()]),
        (
            "lengths at the edges",
            [125, 126, 127, 65_535, 65_536].map(|n| frame(0x82, vec![b'*'; n])).into_iter().chain([bye()]).collect(),
        ),
        ("many pings", (0..50u8).map(|n| frame(0x89, [n])).chain([bye()]).collect()),
        ("a ping of 125 bytes", vec![frame(0x89, [0xfe; 125]), bye()]),
        ("a ping that is too long", vec![frame(0x89, [0xfe; 126]), bye()]),
        ("an unasked pong", vec![frame(0x8a, "unasked"), frame(0x81, "on"), bye()]),
        ("reserved bits", vec![frame(0x81, "fine"), frame(0x91, "not"), bye()]),
        ("all reserved bits in a ping", vec![frame(0xf9, "not"), bye()]),
        ("a reserved opcode", vec![frame(0x83, "not"), bye()]),
        ("a reserved control opcode", vec![frame(0x8b, "not"), bye()]),
        ("fragments with a ping between", vec![frame(0x01, "one "), frame(0x89, "?"), frame(0x80, "two"), bye()]),
        ("a fragmented ping", vec![frame(0x09, "one "), frame(0x80, "two"), bye()]),
        ("a continuation of nothing", vec![frame(0x80, "two"), bye()]),
        ("a text amid fragments", vec![frame(0x01, "one "), frame(0x81, "two"), bye()]),
        ("text of several bytes a letter", vec![frame(0x81, "Hello-µ@ßöäüàá-UTF-8!!"), bye()]),
        ("a letter cut by fragments", vec![frame(0x01, [0xce]), frame(0x80, [0xba]), bye()]),
        ("no UTF-8", vec![frame(0x81, [0xce, 0xba, 0xed, 0xa0, 0x80]), bye()]),
        ("a text that ends in a letter", vec![frame(0x81, [0xce]), bye()]),
        ("frames behind the close", vec![bye(), frame(0x81, "late")]),
        ("a close without a code", vec![frame(0x88, "")]),
        ("a close of one byte", vec![frame(0x88, "x")]),
        ("a close with a long reason", vec![close(1000, &"r".repeat(123))]),
        ("a close that is too long", vec![close(1000, &"r".repeat(124))]),
        ("a close whose reason is no UTF-8", vec![frame(0x88, [3, 232, 0xce])]),
        ("a code that must not be sent", vec![close(1005, "")]),
        ("a code of nobody", vec![close(999, "")]),
        ("a code of an application", vec![close(4999, "mine")]),
        (
            "a megabyte in fragments",
            (0..64)
                .map(|n| frame(if n == 0 { 0x02 } else { 0x00 }, vec![n; 16_384]))
                .chain([frame(0x80, ""), bye()])
                .collect(),
        ),
    ];
    let mut answered = 0;
    for (name, frames) in &cases {
        let direct = converse(echo.addr, frames, usize::MAX);
        answered += usize::from(!direct.is_empty());
        // In one piece and, unless there is much, byte by byte.
        let all: usize = frames.iter().map(|frame| frame.payload.len()).sum();
        let pieces = if all < 10_000 { vec![usize::MAX, 1] } else { vec![usize::MAX, 1000] };
        for piece in pieces {
            let through = converse(site.lazaret.proxy, frames, piece);
            assert!(direct == through, "{name}, pieces of {piece}: {direct:?} directly, {through:?} through the proxy");
        }
    }
    // To what breaks the rules this server says nothing and closes.
    assert!(answered >= cases.len() / 2, "only {answered} of {} were answered at all", cases.len());
}

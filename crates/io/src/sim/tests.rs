//! The simulated network behaves as a real one where shells can tell, and in virtual time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::Stream;

fn address() -> SocketAddr {
    "10.0.0.1:80".parse().unwrap()
}

async fn connected(io: &Sim) -> (SimStream, SimStream) {
    let listener = io.listen(io.bind(address(), Share::First).unwrap()).unwrap();
    let (near, far) = tokio::join!(io.connect(address()), listener.accept());
    (near.unwrap(), far.unwrap().0)
}

#[tokio::test(start_paused = true)]
async fn addresses_refuse_hang_or_fail_as_told() {
    let io = Sim::new();
    assert_eq!(io.connect(address()).await.err().unwrap().kind(), io::ErrorKind::ConnectionRefused);
    io.set_behaviour(address(), Behaviour::Unreachable);
    assert_eq!(io.connect(address()).await.err().unwrap().kind(), io::ErrorKind::HostUnreachable);
    io.set_behaviour(address(), Behaviour::Fail(24));
    assert_eq!(io.connect(address()).await.err().unwrap().raw_os_error(), Some(24));
    io.set_behaviour(address(), Behaviour::Hang);
    assert!(tokio::time::timeout(Duration::from_secs(3600), io.connect(address())).await.is_err());
    assert_eq!(io.now(), Timestamp::from_secs(3600));
}

#[tokio::test(start_paused = true)]
async fn bytes_take_the_latency_of_their_address() {
    let io = Sim::new();
    io.set_latency(address(), Duration::from_millis(10));
    let (mut near, mut far) = connected(&io).await;
    assert_eq!(io.now(), Timestamp::from_millis(10));
    near.write_all(b"hello").await.unwrap();
    let mut seen = [0; 5];
    far.read_exact(&mut seen).await.unwrap();
    assert_eq!((&seen, io.now()), (b"hello", Timestamp::from_millis(20)));
}

#[tokio::test(start_paused = true)]
async fn an_end_in_order_lets_the_rest_be_read() {
    let (mut near, mut far) = connected(&Sim::new()).await;
    far.write_all(b"bye").await.unwrap();
    drop(far);
    let mut seen = Vec::new();
    near.read_to_end(&mut seen).await.unwrap();
    assert_eq!(seen, b"bye");
    assert_eq!(near.write_all(b"?").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test(start_paused = true)]
async fn a_half_closed_connection_still_answers() {
    let (mut near, mut far) = connected(&Sim::new()).await;
    near.write_all(b"ask").await.unwrap();
    near.shutdown().await.unwrap();
    let mut seen = Vec::new();
    far.read_to_end(&mut seen).await.unwrap();
    far.write_all(b"answer").await.unwrap();
    drop(far);
    let mut seen = Vec::new();
    near.read_to_end(&mut seen).await.unwrap();
    assert_eq!(seen, b"answer");
}

#[tokio::test(start_paused = true)]
async fn a_reset_loses_what_was_not_read() {
    let (mut near, mut far) = connected(&Sim::new()).await;
    far.write_all(b"lost").await.unwrap();
    far.reset_on_drop();
    drop(far);
    assert_eq!(near.read(&mut [0; 4]).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);

    let (mut near, far) = connected(&Sim::new()).await;
    near.write_all(b"unread").await.unwrap();
    drop(far);
    assert_eq!(near.read(&mut [0; 4]).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test(start_paused = true)]
async fn a_writer_waits_for_its_reader() {
    let (mut near, mut far) = connected(&Sim::new()).await;
    let big = vec![7; 200_000];
    let mut seen = Vec::new();
    let (written, read) = tokio::join!(
        async {
            near.write_all(&big).await.unwrap();
            near.shutdown().await
        },
        far.read_to_end(&mut seen)
    );
    written.unwrap();
    assert_eq!(read.unwrap(), big.len());
    let blocked = tokio::time::timeout(Duration::from_secs(1), far.write_all(&big)).await;
    assert!(blocked.is_err());
}

#[tokio::test(start_paused = true)]
async fn closing_a_listener_resets_those_who_wait_and_refuses_the_next() {
    let io = Sim::new();
    let listener = io.bind(address(), Share::First).unwrap();
    assert_eq!(io.bind(address(), Share::First).err().unwrap().kind(), io::ErrorKind::AddrInUse);
    let joined = io.bind(address(), Share::Join).unwrap();
    let mut near = io.connect(address()).await.unwrap();
    drop(listener);
    io.connect(address()).await.unwrap();
    drop(joined);
    assert_eq!(near.read(&mut [0; 1]).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(io.connect(address()).await.err().unwrap().kind(), io::ErrorKind::ConnectionRefused);
    assert_eq!(io.accepted(address()), 2);
}

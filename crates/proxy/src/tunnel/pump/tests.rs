//! The pump over pipes in memory.
#![allow(clippy::unwrap_used)]

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex};

use super::{Ended, Pump};

async fn pump(pump: &mut Pump, client: &mut (impl AsyncRead + AsyncWrite + Unpin), far: &mut DuplexStream) -> Ended {
    let mut scratch = vec![0; 1024];
    poll_fn(|context| pump.poll(context, client, far, &mut scratch)).await
}

#[tokio::test]
async fn what_was_read_before_goes_first_and_each_end_is_passed_on() {
    // Wide enough for the answer: it is read when all of it is sent.
    let (mut client, mut near) = duplex(1024);
    let (mut far, mut destination) = duplex(16);
    let mut both = Pump::new(b"early ".to_vec(), b"head ".to_vec());
    let talk = async {
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        let mut text = String::new();
        destination.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "early question");
        destination.write_all(&[b'a'; 500]).await.unwrap();
        drop(destination);
        let mut text = String::new();
        client.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, format!("head {}", "a".repeat(500)));
    };
    let (ended, ()) = tokio::join!(pump(&mut both, &mut near, &mut far), talk);
    assert_eq!(ended, Ended::Closed);
    assert_eq!((both.sent_up(), both.sent_down(), both.moved()), (14, 505, 8 + 14 + 500 + 505));
}

#[tokio::test(start_paused = true)]
async fn no_more_than_one_read_is_held_and_none_when_it_was_taken() {
    let (mut client, mut near) = duplex(1 << 20);
    let (mut far, mut destination) = duplex(16);
    client.write_all(&[b'x'; 100_000]).await.unwrap();
    let mut both = Pump::new(Vec::new(), Vec::new());
    let mut scratch = vec![0; 1024];
    let polled = poll_fn(|context| Poll::Ready(both.poll(context, &mut near, &mut far, &mut scratch))).await;
    assert!(polled.is_pending());
    assert_eq!((both.up.held.len(), both.sent_up()), (1024 - 16, 16));
    let mut read = vec![0; 100_000];
    let read_all = async {
        destination.read_exact(&mut read).await.unwrap();
        // The pump looks once more when the last of it was taken.
        tokio::task::yield_now().await;
    };
    tokio::select! {
        biased;
        ended = pump(&mut both, &mut near, &mut far) => unreachable!("the tunnel is still open, and ended with {ended:?}"),
        () = read_all => {}
    }
    assert_eq!((both.up.held.capacity(), both.down.held.capacity()), (0, 0));
}

/// Ends every call with this error once it was asked.
struct Broken(io::ErrorKind);

impl AsyncRead for Broken {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(self.0.into()))
    }
}

impl AsyncWrite for Broken {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(self.0.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn a_side_that_breaks_ends_it_and_is_named() {
    let (mut far, _destination) = duplex(16);
    let mut both = Pump::new(Vec::new(), b"for nobody".to_vec());
    let ended = pump(&mut both, &mut Broken(io::ErrorKind::ConnectionReset), &mut far).await;
    assert_eq!(ended, Ended::ClientGone);
    let (_client, near) = duplex(16);
    let mut both = Pump::new(Vec::new(), Vec::new());
    let mut scratch = vec![0; 64];
    let (mut near, mut broken) = (near, Broken(io::ErrorKind::ConnectionReset));
    let ended = poll_fn(|context| both.poll(context, &mut near, &mut broken, &mut scratch)).await;
    assert_eq!(ended, Ended::DestinationGone);
}

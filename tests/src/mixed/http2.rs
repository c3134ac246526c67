//! HTTP/2 clients of the mixed load: some streams at a time on one connection each.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::SendRequest;
use model::random::Random;
use tokio::net::TcpStream;

use super::{SHARE, Tally, content};

/// Runs `clients` clients until the time is over.
pub(super) fn clients(proxy: SocketAddr, clients: u64, until: Instant, tally: &Tally) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let set = tokio::task::LocalSet::new();
    set.block_on(&runtime, async {
        // The futures borrow the tally, so they are polled here and not spawned.
        let mut all: Vec<_> =
            (0..clients).map(|number| Box::pin(client(proxy, 1_000 + number, until, tally))).collect();
        std::future::poll_fn(|context| {
            all.retain_mut(|one| one.as_mut().poll(context).is_pending());
            if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    });
}

async fn client(proxy: SocketAddr, number: u64, until: Instant, tally: &Tally) {
    let mut random = Random::new(number);
    let mut turn = 0;
    while Instant::now() < until {
        let Ok(stream) = TcpStream::connect(proxy).await else {
            Tally::count(&tally.failed);
            continue;
        };
        let Ok((mut requests, connection)) = h2::client::handshake(stream).await else {
            Tally::count(&tally.failed);
            continue;
        };
        let driver = tokio::task::spawn_local(connection);
        // A GOAWAY ends the connection in order, and another one follows.
        while Instant::now() < until && !driver.is_finished() {
            turn += 1;
            let id = number * 1_000_000 + turn;
            let Ok(ready) = requests.clone().ready().await else { break };
            requests = ready;
            exchange(&mut requests, id, &mut random, tally).await;
        }
        driver.abort();
    }
}

async fn exchange(requests: &mut SendRequest<Bytes>, id: u64, random: &mut Random, tally: &Tally) {
    let request = http::Request::get(format!("http://a.test/id/{id}")).body(()).expect("a request");
    let Ok((response, mut stream)) = requests.send_request(request, true) else {
        return Tally::count(&tally.failed);
    };
    if random.below(100) < SHARE {
        stream.send_reset(h2::Reason::CANCEL);
        return Tally::count(&tally.left);
    }
    match tokio::time::timeout(Duration::from_secs(20), body(response)).await {
        Ok(Ok((200, bytes))) if bytes == content(id) => Tally::count(&tally.right),
        Ok(Ok((200, _))) => Tally::count(&tally.wrong),
        // A stream that a GOAWAY left out is the client's to send again.
        Ok(Err(error)) if error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM) => {}
        Ok(Ok(_) | Err(_)) | Err(_) => {
            Tally::count(&tally.failed);
            Tally::count(&tally.failed_gets);
        }
    }
}

async fn body(response: h2::client::ResponseFuture) -> Result<(u16, Vec<u8>), h2::Error> {
    let response = response.await?;
    let status = response.status().as_u16();
    let mut body = response.into_body();
    let mut all = Vec::new();
    while let Some(part) = body.data().await {
        let part = part?;
        body.flow_control().release_capacity(part.len())?;
        all.extend_from_slice(&part);
    }
    Ok((status, all))
}

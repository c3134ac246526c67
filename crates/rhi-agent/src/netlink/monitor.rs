//! Watches addresses and interfaces, on a socket of its own, and says no more than "something changed".
//!
//! What changed is found out by reading, so a lost message costs nothing as long as the loss itself is noticed: an
//! overrun of the socket's buffer is a change like any other. The buffer is raised all the same.

use std::io;
use std::time::Duration;

use futures_util::StreamExt;
use nix::sys::socket::{setsockopt, sockopt};
use rtnetlink::MulticastGroup;
use rtnetlink::sys::AsyncSocket;
use tokio::sync::mpsc;

/// Bytes asked for; with CAP_NET_ADMIN the kernel grants them beyond `net.core.rmem_max`.
const RECEIVE_BUFFER: usize = 4 * 1024 * 1024;
/// A socket that broke is opened anew after this.
const REOPEN_AFTER: Duration = Duration::from_secs(1);

/// Says on the channel (of one place: what does not fit is the same news) that something changed, for ever.
pub async fn run(changes: mpsc::Sender<()>) {
    let mut is_first_failure = true;
    loop {
        match watch(&changes).await {
            Ok(Ended::NobodyListens) => return,
            Ok(Ended::SocketClosed) => is_first_failure = true,
            Err(error) if is_first_failure => {
                is_first_failure = false;
                tracing::error!(target: "rhi_agent", %error, "changes of addresses cannot be watched");
            }
            Err(_) => {}
        }
        tokio::time::sleep(REOPEN_AFTER).await;
        if let Err(mpsc::error::TrySendError::Closed(())) = changes.try_send(()) {
            return;
        }
    }
}

enum Ended {
    NobodyListens,
    SocketClosed,
}

async fn watch(changes: &mpsc::Sender<()>) -> io::Result<Ended> {
    let groups = [MulticastGroup::Link, MulticastGroup::Ipv4Ifaddr, MulticastGroup::Ipv6Ifaddr];
    let (mut connection, _handle, mut messages) = rtnetlink::new_multicast_connection(&groups)?;
    setsockopt(connection.socket_mut().socket_mut(), sockopt::RcvBufForce, &RECEIVE_BUFFER)?;
    let connection = tokio::spawn(connection);
    // Whatever happened before the socket was open is found by one look after it.
    let mut news = changes.try_send(());
    while !matches!(news, Err(mpsc::error::TrySendError::Closed(()))) {
        if messages.next().await.is_none() {
            connection.abort();
            return Ok(Ended::SocketClosed);
        }
        news = changes.try_send(());
    }
    connection.abort();
    Ok(Ended::NobodyListens)
}

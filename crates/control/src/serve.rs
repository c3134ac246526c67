//! The accept loop: bounded connections, each with its peer, until the process says stop.
//!
//! The health of a site is read here, so a crowd of connections that say nothing must not keep a reader out: whoever comes
//! is accepted, and when there are too many the one that was there longest goes. TCP and unix socket have places apart.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::{AbortHandle, JoinSet};

use crate::access::Peer;
use crate::connection::StallGuard;
use crate::context::Context;
use crate::listen::Listeners;
use crate::routes;

/// So many connections at once, of each kind of socket.
const CONNECTIONS: usize = 256;
/// A request's head must come within this time, also on a connection that is kept alive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of a request's head, and of buffers per connection.
const BUFFER: usize = 16 * 1024;
/// Pause after a failed accept (no descriptor left), so that it does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often readiness is looked at until it is there.
const READINESS_TICK: Duration = Duration::from_millis(100);

/// Answers until `stop` ends. Open connections are cut then: a planned stop calls it last of all, so that the API goes
/// on answering while traffic drains.
pub async fn serve(context: Arc<Context>, listeners: Listeners, stop: impl Future<Output = ()>) -> std::io::Result<()> {
    let tcp = TcpListener::from_std(listeners.tcp)?;
    // The socket's owner stays in scope: it removes the path at the end.
    let unix_owner = listeners.unix;
    let unix = match &unix_owner {
        Some(socket) => Some(UnixListener::from_std(socket.listener.try_clone()?)?),
        None => None,
    };
    let router = routes::router(Arc::clone(&context));
    let (mut by_tcp, mut by_unix) = (Places::default(), Places::default());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while !context.is_ready() {
            tokio::time::sleep(READINESS_TICK).await;
        }
    });
    tokio::pin!(stop);
    let mut shortage = Shortage::default();
    loop {
        while tasks.try_join_next().is_some() {}
        tokio::select! {
            () = &mut stop => return Ok(()),
            accepted = tcp.accept() => match accepted {
                Ok((stream, _)) => {
                    shortage.end();
                    let _ = stream.set_nodelay(true);
                    by_tcp.enter(tasks.spawn(connection(stream, Peer::Tcp, router.clone())));
                }
                Err(error) => shortage.pause(error).await,
            },
            accepted = accept_unix(unix.as_ref()) => match accepted.and_then(|stream| Ok((stream.peer_cred()?, stream))) {
                Ok((credentials, stream)) => {
                    shortage.end();
                    let peer = Peer::Unix { uid: credentials.uid() };
                    by_unix.enter(tasks.spawn(connection(stream, peer, router.clone())));
                }
                Err(error) => shortage.pause(error).await,
            },
        }
    }
}

async fn accept_unix(listener: Option<&UnixListener>) -> std::io::Result<tokio::net::UnixStream> {
    match listener {
        Some(listener) => listener.accept().await.map(|(stream, _)| stream),
        None => std::future::pending().await,
    }
}

/// The connections of one kind of socket, the oldest first.
#[derive(Default)]
struct Places(VecDeque<AbortHandle>);

impl Places {
    /// Adds one; where there is no room for it, the oldest is closed.
    fn enter(&mut self, connection: AbortHandle) {
        if self.0.len() >= CONNECTIONS {
            self.0.retain(|one| !one.is_finished());
        }
        if self.0.len() >= CONNECTIONS
            && let Some(oldest) = self.0.pop_front()
        {
            oldest.abort();
        }
        self.0.push_back(connection);
    }
}

/// Whether accepting fails: said once a spell, not once a try.
#[derive(Default)]
struct Shortage {
    is_on: bool,
}

impl Shortage {
    async fn pause(&mut self, error: std::io::Error) {
        if !self.is_on {
            tracing::warn!(target: "control", %error, "control connection cannot be accepted");
        }
        self.is_on = true;
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }

    fn end(&mut self) {
        self.is_on = false;
    }
}

async fn connection<S>(stream: S, peer: Peer, router: Router)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        TowerToHyperService::new(router.clone()).call(request)
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(StallGuard::new(stream)), service)
        .await;
    if let Err(error) = served {
        // A peer that breaks off or breaks the protocol is no news on an API.
        tracing::debug!(target: "control", %error, "control connection ended");
    }
}

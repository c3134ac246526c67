//! The status socket: HTTP/1.1 over a unix socket (0660), so that `curl --unix-socket` will do.
//!
//! | request | who |
//! |---|---|
//! | `GET /status`, `GET /vips/{address}` | whoever may open the socket: its owner and its group |
//! | `POST /reload` | root and the daemon's own user, told by the peer's uid |
//!
//! At most [`MAX_CONNECTIONS`] at a time, each for at most [`CONNECTION_LIMIT`]: a client that hangs costs nothing.

use std::convert::Infallible;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use apisix::error::ErrorBody;
use apisix::rhi::RhiStatus;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// Connections at a time; more wait in the listener's queue.
pub const MAX_CONNECTIONS: usize = 16;
/// How long one connection may last.
pub const CONNECTION_LIMIT: Duration = Duration::from_secs(10);

/// What the driver is asked.
#[derive(Debug)]
pub enum Ask {
    /// For the document.
    Status(oneshot::Sender<RhiStatus>),
    /// To read the configuration again; the answer says why it was refused.
    Reload(oneshot::Sender<Result<(), String>>),
}

/// The socket's file, removed when this is dropped.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It may be gone already; then there is nothing to remove.
        let _ = fs::remove_file(&self.path);
    }
}

/// Opens the socket, as [`files::socket::bind`] does. To be called within a runtime.
pub fn bind(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let listener = files::socket::bind(path)?;
    let file = SocketFile { path: path.to_owned() };
    listener.set_nonblocking(true)?;
    Ok((UnixListener::from_std(listener)?, file))
}

/// Serves for ever.
pub async fn serve(listener: UnixListener, asks: mpsc::Sender<Ask>) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let asks = asks.clone();
                tokio::spawn(async move {
                    // A connection that takes too long is closed without a word.
                    let _ = tokio::time::timeout(CONNECTION_LIMIT, converse(stream, asks)).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(target: "rhi_agent", %error, "status socket: accept failed");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn converse(stream: UnixStream, asks: mpsc::Sender<Ask>) {
    let uid = stream.peer_cred().ok().map(|cred| cred.uid());
    let service = service_fn(move |request: Request<Incoming>| {
        let asks = asks.clone();
        async move { Ok::<_, Infallible>(answer(&request, uid, &asks).await) }
    });
    if let Err(error) = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await
    {
        tracing::debug!(target: "rhi_agent", %error, "status socket");
    }
}

async fn answer(request: &Request<Incoming>, uid: Option<u32>, asks: &mpsc::Sender<Ask>) -> Response<Full<Bytes>> {
    let path = request.uri().path();
    match (request.method(), path, path.strip_prefix("/vips/")) {
        (&Method::GET, "/status", _) => match status(asks).await {
            Some(status) => json(StatusCode::OK, &status),
            None => ending(),
        },
        (&Method::GET, _, Some(address)) => match (status(asks).await, address.parse::<IpAddr>()) {
            (None, _) => ending(),
            (Some(status), Ok(address)) => match status.vips.iter().find(|vip| vip.address == address.to_string()) {
                Some(vip) => json(StatusCode::OK, vip),
                None => refuse(StatusCode::NOT_FOUND, &format!("no VIP {address}")),
            },
            (Some(_), Err(_)) => refuse(StatusCode::BAD_REQUEST, "this is no address"),
        },
        (&Method::POST, "/reload", _) if !may_change(uid) => {
            refuse(StatusCode::FORBIDDEN, "only root and the daemon's own user may do this")
        }
        (&Method::POST, "/reload", _) => match reload(asks).await {
            Some(Ok(())) => json(StatusCode::OK, &serde_json::json!({"reloaded": true})),
            Some(Err(why)) => refuse(StatusCode::UNPROCESSABLE_ENTITY, &why),
            None => ending(),
        },
        (_, "/status" | "/reload", _) | (_, _, Some(_)) => refuse(StatusCode::METHOD_NOT_ALLOWED, "not this way"),
        (_, _, None) => refuse(StatusCode::NOT_FOUND, "GET /status, GET /vips/{address}, POST /reload"),
    }
}

fn may_change(uid: Option<u32>) -> bool {
    uid.is_some_and(|uid| uid == 0 || uid == nix::unistd::geteuid().as_raw())
}

async fn status(asks: &mpsc::Sender<Ask>) -> Option<RhiStatus> {
    let (reply, status) = oneshot::channel();
    asks.send(Ask::Status(reply)).await.ok()?;
    status.await.ok()
}

async fn reload(asks: &mpsc::Sender<Ask>) -> Option<Result<(), String>> {
    let (reply, done) = oneshot::channel();
    asks.send(Ask::Reload(reply)).await.ok()?;
    done.await.ok()
}

fn ending() -> Response<Full<Bytes>> {
    refuse(StatusCode::SERVICE_UNAVAILABLE, "the daemon is about to end")
}

fn refuse(status: StatusCode, why: &str) -> Response<Full<Bytes>> {
    json(status, &ErrorBody::new(why))
}

fn json(status: StatusCode, document: &impl Serialize) -> Response<Full<Bytes>> {
    // Our documents are maps of texts and numbers, which always serialise.
    let body = serde_json::to_vec(document).unwrap_or_default();
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

//! Asking the running daemon over its status socket.

use std::io;
use std::path::Path;
use std::time::Duration;

use apisix::error::ErrorBody;
use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

/// The daemon answers from memory; this is for one that hangs.
const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_BODY: usize = 16 * 1024 * 1024;

/// Why there is no answer.
pub(crate) enum NoAnswer {
    /// Nobody answers there.
    Unreachable(String),
    /// The daemon refused.
    Refused(StatusCode, String),
}

/// One request; the body of a good answer.
pub(crate) fn ask(socket: &Path, method: Method, path: &str) -> Result<Bytes, NoAnswer> {
    let unreachable = |why: String| NoAnswer::Unreachable(format!("{}: {why}", socket.display()));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| unreachable(error.to_string()))?;
    let answer = runtime.block_on(async {
        tokio::time::timeout(TIMEOUT, exchange(socket, method, path))
            .await
            .unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut)))
    });
    let (status, body) = answer.map_err(|error| unreachable(error.to_string()))?;
    if status.is_success() {
        return Ok(body);
    }
    let words = serde_json::from_slice::<ErrorBody>(&body).map(|error| error.error_msg).unwrap_or_default();
    Err(NoAnswer::Refused(status, words))
}

async fn exchange(socket: &Path, method: Method, path: &str) -> io::Result<(StatusCode, Bytes)> {
    let stream = UnixStream::connect(socket).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, "localhost")
        .body(Empty::<Bytes>::new())
        .map_err(io::Error::other)?;
    let response = sender.send_request(request).await.map_err(io::Error::other)?;
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_BODY).collect().await.map_err(io::Error::other)?;
    Ok((status, body.to_bytes()))
}

//! A small HTTP client for the control API: one connection per request, over TCP or a unix socket.

use std::fmt;
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::Failure;
use super::target::Target;

/// Time for an answer's head and for its body, each; a reload may take 30 s by itself.
const PATIENCE: Duration = Duration::from_secs(35);
/// Time to connect.
const CONNECT: Duration = Duration::from_secs(5);
/// Longest answer that is read: a recording of the largest `recorder.size`, and its frames.
const ANSWER_BYTES: usize = (1 << 30) + (64 << 20);

/// A client of one process.
pub(super) struct Client {
    target: Target,
}

/// An answer, read whole.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) text: String,
}

/// The same, of any kind.
pub(super) struct Bytes {
    pub(super) status: u16,
    pub(super) bytes: Vec<u8>,
}

impl Client {
    pub(super) fn new(target: Target) -> Self {
        Self { target }
    }

    /// One request; the body is read whole.
    pub(super) async fn ask(&self, method: &str, path: &str, token: Option<&str>) -> Result<Answer, Failure> {
        let Bytes { status, bytes } = self.ask_bytes(method, path, token).await?;
        Ok(Answer { status, text: String::from_utf8_lossy(&bytes).into_owned() })
    }

    /// The same for a body that is no text.
    pub(super) async fn ask_bytes(&self, method: &str, path: &str, token: Option<&str>) -> Result<Bytes, Failure> {
        let response = self.send(method, path, token).await?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), ANSWER_BYTES).collect();
        let body = timeout(PATIENCE, body).await.map_err(|_| self.silent())?.map_err(|error| self.broken(&error))?;
        Ok(Bytes { status, bytes: body.to_bytes().into() })
    }

    /// One GET whose body is read piece by piece.
    pub(super) async fn open(&self, path: &str) -> Result<Response<Incoming>, Failure> {
        self.send("GET", path, None).await
    }

    async fn send(&self, method: &str, path: &str, token: Option<&str>) -> Result<Response<Incoming>, Failure> {
        let mut request = Request::builder().method(method).uri(path).header("accept", "application/json");
        request = match &self.target {
            Target::Tcp(authority) => request.header("host", authority),
            Target::Unix(_) => request.header("host", "localhost"),
        };
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Empty::new()).map_err(|error| Failure::failed(error.to_string()))?;
        match &self.target {
            Target::Tcp(authority) => {
                let stream = timeout(CONNECT, TcpStream::connect(authority)).await.map_err(|_| self.silent())?;
                self.exchange(stream.map_err(|error| self.broken(&error))?, request).await
            }
            Target::Unix(path) => {
                let stream = timeout(CONNECT, UnixStream::connect(path)).await.map_err(|_| self.silent())?;
                self.exchange(stream.map_err(|error| self.broken(&error))?, request).await
            }
        }
    }

    async fn exchange<S>(
        &self,
        stream: S,
        request: Request<Empty<hyper::body::Bytes>>,
    ) -> Result<Response<Incoming>, Failure>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.map_err(|error| self.broken(&error))?;
        // It ends with the body; its error shows there.
        tokio::spawn(connection);
        let response = timeout(PATIENCE, sender.send_request(request)).await.map_err(|_| self.silent())?;
        response.map_err(|error| self.broken(&error))
    }

    fn silent(&self) -> Failure {
        Failure::unreachable(format!("the control API at {self} does not answer"))
    }

    fn broken(&self, error: &dyn fmt::Display) -> Failure {
        Failure::unreachable(format!("the control API at {self} cannot be reached: {error}"))
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            Target::Tcp(authority) => f.write_str(authority),
            Target::Unix(path) => path.display().fmt(f),
        }
    }
}

/// Encodes a text as one path segment or query value (RFC 3986 2.3: unreserved characters stand for themselves).
pub(super) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_encoded() {
        assert_eq!(encode("cluster1/destination 1"), "cluster1%2Fdestination%201");
        assert_eq!(encode("a-b._~ü"), "a-b._~%C3%BC");
    }
}

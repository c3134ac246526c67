//! A client of HTTP/2 by prior knowledge, on the library `h2`.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use h2::client::SendRequest;
use tokio::task::JoinHandle;

/// A connection.
pub struct Connection {
    /// Makes streams.
    pub requests: SendRequest<Bytes>,
    /// Ends with the connection.
    pub driver: JoinHandle<Result<(), h2::Error>>,
}

/// What came of a request whose head was answered.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its `Proxy-Status`, or nothing.
    pub why: String,
    /// What came of its content.
    pub body: Vec<u8>,
    /// How it broke off, where it did.
    pub reset: Option<Reason>,
}

/// Runs one client's side, 60 s at most.
pub fn run<T>(exchange: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let bounded = async { tokio::time::timeout(Duration::from_secs(60), exchange).await };
    runtime.block_on(bounded).expect("it ends within 60 s")
}

/// Connects.
pub async fn connect(to: SocketAddr) -> Connection {
    let stream = tokio::net::TcpStream::connect(to).await.expect("it listens");
    stream.set_nodelay(true).expect("an open socket");
    let (requests, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    Connection { requests, driver: tokio::spawn(connection) }
}

/// Sends a GET with these fields and reads its answer to the end.
///
/// # Errors
/// There was no answer, not even its head.
pub async fn get(requests: &SendRequest<Bytes>, path: &str, fields: &[(String, String)]) -> Result<Answer, h2::Error> {
    let mut request = http::Request::get(format!("http://a.test{path}"));
    for (name, value) in fields {
        request = request.header(name, value);
    }
    let request = request.body(()).expect("a request");
    let (response, _stream) = requests.clone().ready().await?.send_request(request, true)?;
    let (head, mut content) = response.await?.into_parts();
    let why = head.headers.get("proxy-status").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let mut answer = Answer { status: head.status.as_u16(), why, body: Vec::new(), reset: None };
    while let Some(piece) = content.data().await {
        match piece {
            Ok(piece) => {
                answer.body.extend_from_slice(&piece);
                let _ = content.flow_control().release_capacity(piece.len());
            }
            Err(error) => {
                answer.reset = Some(error.reason().unwrap_or(Reason::INTERNAL_ERROR));
                break;
            }
        }
    }
    Ok(answer)
}

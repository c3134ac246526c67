//! An HTTP/2 client that says exactly what a test wants: the `h2` crate over a plain connection by prior knowledge.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request, StatusCode};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// A connection.
pub struct H2 {
    pub send: SendRequest<Bytes>,
    /// Ends with the connection.
    pub driver: JoinHandle<Result<(), h2::Error>>,
}

/// A response that came to its end, or did not.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub head: HeaderMap,
    pub body: Vec<u8>,
    pub trailers: HeaderMap,
    /// Whether the head was the end.
    pub is_head_alone: bool,
    /// How the stream broke off.
    pub reset: Option<Reason>,
}

/// Runs a test's client side, for a bounded time.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(BOUND, test).await.expect("the test comes to its end in time") })
}

impl H2 {
    pub async fn connect(addr: SocketAddr) -> Self {
        Self::with(addr, &h2::client::Builder::new()).await
    }

    pub async fn with(addr: SocketAddr, builder: &h2::client::Builder) -> Self {
        let stream = TcpStream::connect(addr).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (send, connection) = builder.handshake(stream).await.unwrap();
        Self { send, driver: tokio::spawn(connection) }
    }

    /// Sends a request's head; `is_over`: nothing follows.
    pub async fn start(&self, request: Request<()>, is_over: bool) -> (ResponseFuture, SendStream<Bytes>) {
        let mut send = self.send.clone().ready().await.unwrap();
        send.send_request(request, is_over).unwrap()
    }

    /// A request without a body, to its end.
    pub async fn call(&self, request: Request<()>) -> Answer {
        let (response, _send) = self.start(request, true).await;
        answer(response).await.unwrap()
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call(get(path).body(()).unwrap()).await
    }

    /// A request with this body in one piece.
    pub async fn post(&self, path: &str, body: &str) -> Answer {
        let request = Request::post(format!("http://a.test{path}")).body(()).unwrap();
        let (response, mut send) = self.start(request, false).await;
        send.send_data(Bytes::copy_from_slice(body.as_bytes()), true).unwrap();
        answer(response).await.unwrap()
    }
}

impl Answer {
    pub fn value(&self, name: &str) -> Option<&str> {
        self.head.get(name).map(|value| value.to_str().unwrap())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

pub fn get(path: &str) -> http::request::Builder {
    Request::get(format!("http://a.test{path}"))
}

/// The whole response; an error when not even its head came.
pub async fn answer(response: ResponseFuture) -> Result<Answer, h2::Error> {
    let (parts, body) = response.await?.into_parts();
    let is_head_alone = body.is_end_stream();
    Ok(rest(
        Answer {
            status: parts.status,
            head: parts.headers,
            body: Vec::new(),
            trailers: HeaderMap::new(),
            is_head_alone,
            reset: None,
        },
        body,
    )
    .await)
}

async fn rest(mut answer: Answer, mut body: RecvStream) -> Answer {
    while let Some(piece) = body.data().await {
        match piece {
            Ok(piece) => {
                body.flow_control().release_capacity(piece.len()).unwrap();
                answer.body.extend_from_slice(&piece);
            }
            Err(error) => {
                answer.reset = error.reason();
                return answer;
            }
        }
    }
    match body.trailers().await {
        Ok(trailers) => answer.trailers = trailers.unwrap_or_default(),
        Err(error) => answer.reset = error.reason(),
    }
    answer
}

const BOUND: Duration = Duration::from_secs(20);

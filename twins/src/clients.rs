//! Clients that send on a schedule of their own: a slow answer delays nobody else (open loop).
//!
//! Each request has a task; connections that are free are used again, for less than any proxy's idle time. One that is closed
//! without an answer (as HAProxy does when its own connection to a server breaks) is a failure: no client could repeat a POST
//! then. A client whose patience is over closes its connection.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http1::body::Body;
use http1::connection::Persistence;
use http1::limits::HeadLimits;
use http1::request::Parsed;
use http1::response::{RequestKind, ResponseHead};
use lab::chance::Chance;
use lab::meter::Fate;
use lab::scenario::Scenario;
use lab::sim::source::Request;
use model::request::Method;
use model::time::Timestamp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::destinations::bad_request;
use crate::seen::Asked;

/// Sends a scenario's requests to a proxy and waits for the end of each.
pub async fn ask(scenario: &Scenario, chance: Chance, to: SocketAddr, began: Instant) -> Vec<Asked> {
    let pool = Arc::new(Pool { to, free: Mutex::default() });
    // The lab numbers the requests of each stream of its own from here on.
    let patience = |number: u64| {
        let traffic = usize::try_from(number >> 48).ok().and_then(|stream| scenario.traffic.get(stream));
        traffic.map_or(Duration::ZERO, |traffic| traffic.patience)
    };
    let mut tasks = JoinSet::new();
    let mut all = Vec::new();
    for (at, request) in lab::requests(scenario, chance) {
        let due = began + at.since(Timestamp::ZERO);
        tokio::time::sleep_until(due).await;
        let is_bad = bad_request(scenario, chance, request.number, at).is_some();
        let (pool, until) = (Arc::clone(&pool), due + patience(request.number));
        tasks.spawn(async move {
            let late = Instant::now().saturating_duration_since(due);
            let fate = match tokio::time::timeout_at(until, pool.ask(&request)).await {
                Ok(fate) => fate,
                Err(_) => Fate::GaveUp,
            };
            let took = Instant::now().saturating_duration_since(due + late);
            Asked { at, took, late, fate, is_bad }
        });
        while let Some(Ok(one)) = tasks.try_join_next() {
            all.push(one);
        }
    }
    while let Some(one) = tasks.join_next().await {
        all.extend(one);
    }
    all
}

/// Connections to one proxy that wait for a request.
struct Pool {
    to: SocketAddr,
    free: Mutex<Vec<TcpStream>>,
}

impl Pool {
    async fn ask(&self, request: &Request) -> Fate {
        let free = self.free().pop();
        let (answer, stream) = self.exchange(free, request).await;
        if let Some(stream) = stream {
            let mut free = self.free();
            if free.len() < MOST_FREE {
                free.push(stream);
            }
        }
        match answer {
            Answer::Status(status @ (429 | 500..)) => Fate::Status(status),
            Answer::Status(_) => Fate::Served,
            Answer::Cut | Answer::Nothing => Fate::Cut,
        }
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn exchange(&self, free: Option<TcpStream>, request: &Request) -> (Answer, Option<TcpStream>) {
        let stream = match free {
            Some(stream) => Ok(stream),
            None => TcpStream::connect(self.to).await,
        };
        let Ok(mut stream) = stream else { return (Answer::Nothing, None) };
        let _ = stream.set_nodelay(true);
        match converse(&mut stream, request).await {
            Ok((answer, Persistence::KeepAlive)) => (answer, Some(stream)),
            Ok((answer, Persistence::Close)) => (answer, None),
            Err(_) => (Answer::Nothing, None),
        }
    }
}

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Status(u16),
    /// It broke off after its head.
    Cut,
    /// Not even a head.
    Nothing,
}

async fn converse(stream: &mut TcpStream, request: &Request) -> io::Result<(Answer, Persistence)> {
    let (name, length) = match request.method {
        Method::Post => ("POST", "Content-Length: 0\r\n"),
        Method::Put => ("PUT", "Content-Length: 0\r\n"),
        Method::Delete => ("DELETE", ""),
        Method::Get
        | Method::Head
        | Method::Options
        | Method::Trace
        | Method::Patch
        | Method::Connect
        | Method::Other => ("GET", ""),
    };
    let text = format!("{name} /{} HTTP/1.1\r\nHost: twins.test\r\n{length}\r\n", request.number);
    stream.write_all(text.as_bytes()).await?;
    let mut bytes = Vec::with_capacity(1024);
    let mut head = ResponseHead::default();
    loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match head.parse(&bytes, &HeadLimits::RESPONSE, RequestKind::Other) {
            Ok(Parsed::Complete) => break,
            Ok(Parsed::Partial) => {}
            Err(_) => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
    let (status, persistence) = (head.status(), head.persistence());
    let mut body = Body::of_response(head.framing());
    bytes.drain(..head.len());
    while !body.is_done() {
        if bytes.is_empty() {
            match stream.read_buf(&mut bytes).await {
                Ok(0) if body.end_of_input().is_ok() => break,
                Ok(0) | Err(_) => return Ok((Answer::Cut, Persistence::Close)),
                Ok(_) => {}
            }
        }
        let Ok(advance) = body.advance(&bytes) else { return Ok((Answer::Cut, Persistence::Close)) };
        bytes.drain(..advance.taken);
    }
    Ok((Answer::Status(status), persistence))
}

const MOST_FREE: usize = 256;

//! The demo's client: a bounded number of connections that send at a fixed pace and count what a user would notice.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::screen::Seen;

/// Every so many-th request is a POST: it may not be repeated once it was sent.
const POST_EVERY: u32 = 10;
/// A client that waits longer than this has given up.
const PATIENCE: Duration = Duration::from_secs(3);

/// Counts, shared with the screen.
#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    failures: AtomicU64,
    unsafe_failures: AtomicU64,
    slowest_micros: AtomicU64,
    is_over: AtomicBool,
}

/// Running clients; [`Client::stop`] ends them.
pub(crate) struct Client {
    counts: Arc<Counts>,
    threads: Vec<JoinHandle<()>>,
}

impl Client {
    /// Starts `connections` clients that send `rate` requests a second in all.
    pub(crate) fn start(to: SocketAddr, connections: u32, rate: u32) -> Self {
        let counts = Arc::new(Counts::default());
        let every = Duration::from_secs(1) * connections / rate.max(1);
        let threads = (0..connections)
            .map(|number| {
                let counts = Arc::clone(&counts);
                let first = every * number / connections;
                std::thread::spawn(move || send(to, first, every, &counts))
            })
            .collect();
        Self { counts, threads }
    }

    /// What was seen so far.
    pub(crate) fn seen(&self) -> Seen {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Seen {
            requests: read(&self.counts.requests),
            failures: read(&self.counts.failures),
            unsafe_failures: read(&self.counts.unsafe_failures),
            slowest: Duration::from_micros(read(&self.counts.slowest_micros)),
        }
    }

    /// Ends all clients and waits for their last answers.
    pub(crate) fn stop(&mut self) {
        self.counts.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A client thread does not panic; if one did, its counts are in already.
            let _ = thread.join();
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stop();
    }
}

fn send(to: SocketAddr, first: Duration, every: Duration, counts: &Counts) {
    let start = Instant::now();
    let mut connection = None;
    for number in 0u32.. {
        if let Some(wait) = (first + every * number).checked_sub(start.elapsed()) {
            std::thread::sleep(wait);
        }
        if counts.is_over.load(Ordering::Relaxed) {
            return;
        }
        let is_post = number % POST_EVERY == POST_EVERY - 1;
        let sent_at = Instant::now();
        counts.requests.fetch_add(1, Ordering::Relaxed);
        match exchange(to, &mut connection, if is_post { POST } else { GET }) {
            Ok(status) if status < 500 => {}
            Ok(_) | Err(_) => {
                connection = None;
                counts.failures.fetch_add(1, Ordering::Relaxed);
                if is_post {
                    counts.unsafe_failures.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        let took = u64::try_from(sent_at.elapsed().as_micros()).unwrap_or(u64::MAX);
        counts.slowest_micros.fetch_max(took, Ordering::Relaxed);
    }
}

const GET: &str = "GET / HTTP/1.1\r\nHost: demo.test\r\n\r\n";
const POST: &str = "POST / HTTP/1.1\r\nHost: demo.test\r\nContent-Length: 2\r\n\r\nhi";

/// One request and its whole answer; the status.
fn exchange(to: SocketAddr, connection: &mut Option<TcpStream>, request: &str) -> std::io::Result<u16> {
    let invalid = || std::io::Error::from(std::io::ErrorKind::InvalidData);
    let stream = match connection {
        Some(stream) => stream,
        None => {
            let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_nodelay(true)?;
            connection.insert(stream)
        }
    };
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let n = stream.read(&mut chunk)?;
        if n == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        answer.extend_from_slice(chunk.get(..n).ok_or_else(invalid)?);
        let text = String::from_utf8_lossy(&answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok())
            .unwrap_or(0);
        if body.len() >= length {
            return head.get(9..12).and_then(|status| status.parse().ok()).ok_or_else(invalid);
        }
    }
}

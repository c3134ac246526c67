//! A bounded load of keepalive clients on plain threads, which tells failures before an answer's head from those after.
//!
//! Each client sends on its own schedule (open loop: a slow answer does not slow the schedule down, missed slots are
//! caught up) until the time is over, so that the number of requests is bounded by `rate` times `duration`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// What to send.
#[derive(Clone, Debug)]
pub struct Load {
    /// Where to.
    pub to: SocketAddr,
    /// Connections at a time.
    pub clients: usize,
    /// Requests a second, all clients together.
    pub rate: u32,
    /// How long.
    pub duration: Duration,
    /// Every so many-th request is a POST with a small body; 0: none.
    pub post_every: u32,
    /// Request path.
    pub path: &'static str,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Requests sent.
    pub sent: u64,
    /// Answers with a status below 500.
    pub ok: u64,
    /// GETs that got no answer head, or one with a status of 500 or more.
    pub get_failed_before_head: u64,
    /// POSTs likewise.
    pub post_failed_before_head: u64,
    /// Answers that broke off after their head.
    pub failed_after_head: u64,
    /// One line per failure, 20 at most.
    pub failures: Vec<String>,
    /// Milliseconds from each request to its answer, sorted.
    pub latencies_ms: Vec<f64>,
}

impl Outcome {
    fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.ok += other.ok;
        self.get_failed_before_head += other.get_failed_before_head;
        self.post_failed_before_head += other.post_failed_before_head;
        self.failed_after_head += other.failed_after_head;
        self.failures.extend(other.failures);
        self.failures.truncate(20);
        self.latencies_ms.extend(other.latencies_ms);
    }

    fn failed(&mut self, line: String) {
        if self.failures.len() < 20 {
            self.failures.push(line);
        }
    }
}

/// Runs the load and waits for its end.
pub fn run(load: &Load) -> Outcome {
    let start = Instant::now();
    let mut all = Outcome::default();
    let threads: Vec<_> = (0..load.clients)
        .map(|client| {
            let load = load.clone();
            std::thread::spawn(move || one_client(&load, client, start))
        })
        .collect();
    for thread in threads {
        match thread.join() {
            Ok(outcome) => all.add(outcome),
            Err(_) => all.failed("a client thread panicked".to_owned()),
        }
    }
    all.latencies_ms.sort_by(f64::total_cmp);
    all
}

fn one_client(load: &Load, client: usize, start: Instant) -> Outcome {
    let mut outcome = Outcome::default();
    let every = Duration::from_secs_f64(load.clients as f64 / f64::from(load.rate));
    let first = every.mul_f64(client as f64 / load.clients as f64);
    let mut connection: Option<TcpStream> = None;
    for number in 0u32.. {
        let due = first + every * number;
        if due >= load.duration {
            break;
        }
        if let Some(wait) = due.checked_sub(start.elapsed()) {
            std::thread::sleep(wait);
        }
        let is_post = load.post_every > 0 && number % load.post_every == 0;
        one_request(load, is_post, &mut connection, &mut outcome);
    }
    outcome
}

fn one_request(load: &Load, is_post: bool, connection: &mut Option<TcpStream>, outcome: &mut Outcome) {
    let sent_at = Instant::now();
    outcome.sent += 1;
    let result = exchange(load, is_post, connection);
    if !matches!(result, Ok(Answer { keep: true, .. })) {
        *connection = None;
    }
    match result {
        Ok(answer) if answer.status < 500 => {
            outcome.ok += 1;
            outcome.latencies_ms.push(sent_at.elapsed().as_secs_f64() * 1e3);
        }
        Ok(answer) => before_head(outcome, is_post, format!("{} {}", answer.status, answer.head)),
        Err(Failure::BeforeHead(why)) => before_head(outcome, is_post, why),
        Err(Failure::AfterHead(why)) => {
            outcome.failed_after_head += 1;
            outcome.failed(format!("after head: {why}"));
        }
    }
}

fn before_head(outcome: &mut Outcome, is_post: bool, why: String) {
    if is_post {
        outcome.post_failed_before_head += 1;
    } else {
        outcome.get_failed_before_head += 1;
    }
    outcome.failed(format!("{}: {why}", if is_post { "POST" } else { "GET" }));
}

struct Answer {
    status: u16,
    head: String,
    keep: bool,
}

enum Failure {
    BeforeHead(String),
    AfterHead(String),
}

fn exchange(load: &Load, is_post: bool, connection: &mut Option<TcpStream>) -> Result<Answer, Failure> {
    let before = |error: std::io::Error| Failure::BeforeHead(error.to_string());
    let stream = match connection {
        Some(stream) => stream,
        None => {
            let stream = TcpStream::connect_timeout(&load.to, Duration::from_secs(5)).map_err(before)?;
            stream.set_nodelay(true).map_err(before)?;
            stream.set_read_timeout(Some(Duration::from_secs(10))).map_err(before)?;
            connection.insert(stream)
        }
    };
    let request = if is_post {
        format!("POST {} HTTP/1.1\r\nHost: load.test\r\nContent-Length: 5\r\n\r\nhello", load.path)
    } else {
        format!("GET {} HTTP/1.1\r\nHost: load.test\r\n\r\n", load.path)
    };
    stream.write_all(request.as_bytes()).map_err(before)?;
    let mut buffer = Vec::with_capacity(2048);
    let mut chunk = [0u8; 4096];
    let head_end = loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        match stream.read(&mut chunk).map_err(before)? {
            0 => return Err(Failure::BeforeHead("closed before a head".to_owned())),
            n => buffer.extend_from_slice(&chunk[..n]),
        }
    };
    let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
    let status = head.get(9..12).and_then(|digits| digits.parse().ok()).unwrap_or(0);
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    let mut got = buffer.len() - head_end;
    while got < length.unwrap_or(0) {
        match stream.read(&mut chunk) {
            Ok(0) => return Err(Failure::AfterHead(format!("{got} of {length:?} bytes"))),
            Ok(n) => got += n,
            Err(error) => return Err(Failure::AfterHead(error.to_string())),
        }
    }
    let head_line = head.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" | ");
    Ok(Answer { status, head: head_line, keep: length.is_some() && !lower.contains("connection: close") })
}

//! Clients that take their time: what they hold is bounded in time, and those beside them are served as fast as without
//! them. (hyperium/hyper #2675, #3970; RFC 9110 15.5.9)
//!
//! Shares of the latency are ratios within one run. Their bounds are wide here, so that a busy machine is no failure;
//! `LAZARET_LONG=1` takes the usual times and the bound of 1.2.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use end_to_end::control::is_long;
use end_to_end::load::{Load, run};
use end_to_end::process::{Lazaret, free_address};
use end_to_end::secured::Offer;
use rustls::pki_types::ServerName;
use testkit::certificates::Authority;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_rustls::TlsConnector;

/// How much slower the others may be served (their p99), and by how many milliseconds more.
const WIDE: (f64, f64) = (4.0, 50.0);

fn p99(mut latencies_ms: Vec<f64>) -> f64 {
    latencies_ms.sort_by(f64::total_cmp);
    latencies_ms.get(latencies_ms.len() * 99 / 100).copied().unwrap_or(f64::MAX)
}

/// Ordinary clients of two of our own, one without and one with slow clients, in short turns: what else the machine does
/// meets both. All of them are served.
fn are_served_as_fast(alone: SocketAddr, beside: SocketAddr, path: &'static str, turns: u32, bound: (f64, f64)) {
    let serve = |to| {
        let duration = Duration::from_millis(250);
        let outcome = run(&Load { to, clients: 8, rate: 800, duration, post_every: 0, path });
        assert_eq!(outcome.ok, outcome.sent, "{:?}", outcome.failures);
        outcome.latencies_ms
    };
    let (mut of_alone, mut of_beside) = (Vec::new(), Vec::new());
    for _ in 0..turns {
        of_alone.extend(serve(alone));
        of_beside.extend(serve(beside));
    }
    let (count, alone, beside) = (of_beside.len(), p99(of_alone), p99(of_beside));
    println!("p99 of {count} others: {alone:.2} ms alone, {beside:.2} ms beside them, ratio {:.2}", beside / alone);
    assert!(beside <= alone * bound.0 + bound.1, "{beside} ms in place of {alone} ms");
}

/// How a slow client's connection ended, and after how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    By408,
    Closed,
}

/// SLOW-01
#[test]
fn nine_hundred_that_send_their_heads_byte_by_byte_are_cut_in_time_and_slow_nobody_down() {
    let (limit, tick) = if is_long() { (5, 1_000) } else { (4, 200) };
    let (limit, tick) = (Duration::from_secs(limit), Duration::from_millis(tick));
    let (authority, folder) = (Authority::new(), tempfile::tempdir().expect("a folder"));
    let (certificate, key) = authority.issue(&["a.test"]).write(folder.path(), "a");
    let tls = free_address();
    let limits = format!("{{header_timeout: {0}s, tls_handshake: {0}s, keepalive: 60s}}", limit.as_secs());
    let bare = "routes: {all: {match: {path: \"/{**rest}\"}, respond: {status: 200, body: ok}}}\n";
    let alone = Lazaret::start(bare);
    let lazaret = Lazaret::start(&format!(
        "listeners:\n  web: {{address: \"$PROXY\", limits: {limits}}}\n  tls:\n    address: \"{tls}\"\n    limits: \
         {limits}\n    tls: {{certificates: [{{certificate: \"{}\", key: \"{}\"}}]}}\n{bare}",
        certificate.display(),
        key.display()
    ));
    let (descriptors, resident) = (lazaret.descriptors(), lazaret.resident());

    let (plain, offer) = (lazaret.proxy, Offer::new(&authority).config());
    let slow = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let mut clients = tokio::task::JoinSet::new();
            for number in 0..900 {
                let connector = TlsConnector::from(Arc::clone(&offer));
                clients.spawn(async move {
                    // All at once would be a burst of handshakes and nothing of this test's.
                    tokio::time::sleep(Duration::from_millis(number % 300)).await;
                    let to = if number < 300 { plain } else { tls };
                    let since = Instant::now();
                    let stream = tokio::net::TcpStream::connect(to).await.expect("it listens");
                    let ended = if number < 300 {
                        trickle(stream, HEAD, tick).await
                    } else if number < 600 {
                        let name = ServerName::try_from("a.test").expect("a name");
                        let stream = connector.connect(name, stream).await.expect("hands are shaken");
                        trickle(stream, HEAD, tick).await
                    } else {
                        trickle(stream, HELLO, tick).await
                    };
                    (number, ended, since.elapsed())
                });
            }
            clients.join_all().await
        })
    });
    lazaret.wait_until("they are connected", || {
        let handshakes = |how: &str| lazaret.metric("lazaret_tls_handshakes_total", &[how]);
        let shaken = handshakes("result=\"full\"") + handshakes("result=\"resumed\"");
        shaken == 300.0 && lazaret.descriptors() >= descriptors + 800
    });
    are_served_as_fast(alone.proxy, lazaret.proxy, "/", if is_long() { 5 } else { 3 }, WIDE);
    for (number, ended, after) in slow.join().expect("they end") {
        assert_eq!(ended, if number < 600 { Ended::By408 } else { Ended::Closed }, "client {number}");
        // The clock of a handshake and that of a head begin when the connection is taken.
        let late = Duration::from_secs(if is_long() { 3 } else { 10 });
        let bounds = limit.saturating_sub(Duration::from_millis(100))..limit + late;
        assert!(bounds.contains(&after), "client {number} was cut after {after:?}");
    }
    lazaret.wait_until("their descriptors are free", || lazaret.descriptors() <= descriptors + 16);
    let room = 32 << 20;
    assert!(lazaret.resident() < resident + room, "{} bytes, {resident} before", lazaret.resident());
    lazaret.wait_until("handshakes that did not end are counted", || {
        lazaret.metric("lazaret_tls_handshakes_total", &["result=\"tls-handshake-timeout\""]) == 300.0
    });
    lazaret.wait_until("heads that did not end are in the log", || {
        lazaret.access_log().iter().filter(|line| line["reason"] == "header-timeout").count() == 600
    });
}

#[test]
fn who_connects_ahead_of_time_is_served_within_the_time_for_a_head_and_closed_without_a_word_after_it() {
    let lazaret = Lazaret::start(
        "listeners: {web: {address: \"$PROXY\", limits: {header_timeout: 3s, keepalive: 60s}}}\nroutes: {all: {match: \
         {path: \"/{**rest}\"}, respond: {status: 200, body: ok}}}\n",
    );
    let connect = || {
        let stream = TcpStream::connect(lazaret.proxy).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("an open socket");
        stream
    };
    let mut silent: Vec<_> = (0..100).map(|_| connect()).collect();
    let mut late = connect();
    std::thread::sleep(Duration::from_secs(1));
    late.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").expect("it is open");
    let mut answer = String::new();
    late.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    for stream in &mut silent {
        assert!(matches!(stream.read(&mut [0; 64]), Ok(0)), "it is closed, and nothing is said");
    }
}

const HEAD: &[u8] = b"GET / HTTP/1.1\r\nHost: a.test\r\nX-Filler: ";
/// The beginning of a TLS record that announces a ClientHello of 512 bytes.
const HELLO: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";

/// Sends byte by byte, however often a byte is wanted, until the other side has had enough.
async fn trickle(stream: impl AsyncRead + AsyncWrite, bytes: &[u8], tick: Duration) -> Ended {
    let (mut reading, mut writing) = tokio::io::split(stream);
    let mut answer = Vec::new();
    let mut buffer = [0; 1024];
    for byte in bytes.iter().chain(std::iter::repeat(&b'x')) {
        if writing.write_all(&[*byte]).await.is_err() || writing.flush().await.is_err() {
            break;
        }
        match tokio::time::timeout(tick, reading.read(&mut buffer)).await {
            Err(_) => {}
            Ok(Ok(n)) if n > 0 => answer.extend_from_slice(&buffer[..n]),
            Ok(_) => break,
        }
    }
    if answer.starts_with(b"HTTP/1.1 408 ") { Ended::By408 } else { Ended::Closed }
}

/// SLOW-01
#[test]
fn two_hundred_that_read_a_kilobyte_a_second_slow_nobody_down_at_a_destination_with_four_threads() {
    let pools = [Pool::start(), Pool::start()];
    let start = |pool: &Pool| {
        Lazaret::start(&format!(
            "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app, buffering: on}}}}\nclusters: {{app: \
             {{destinations: {{one: {{address: \"http://{}/\"}}}}}}}}\n",
            pool.address
        ))
    };
    let [alone, lazaret] = [start(&pools[0]), start(&pools[1])];
    let slow = SlowReaders::start(lazaret.proxy, 200);
    lazaret.wait_until("they read", || slow.have_begun());
    lazaret.wait_until("no thread of the destination waits for them", || pools[1].busy() == 0);
    let (turns, bound) = if is_long() { (80, (1.2, 0.0)) } else { (4, WIDE) };
    are_served_as_fast(alone.proxy, lazaret.proxy, "/quick", turns, bound);
    if is_long() {
        // To the end of all of them: about 100 s.
        slow.read_to_the_end();
    }
    assert_eq!(lazaret.metric("lazaret_unbuffered_total", &[]), 0.0);
}

const BODY: usize = 100_000;

/// A destination that works on four requests at a time, from their heads to the last byte of their answers.
struct Pool {
    address: SocketAddr,
    state: Arc<(Mutex<usize>, Condvar)>,
}

const THREADS: usize = 4;

impl Pool {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let state = Arc::new((Mutex::new(0), Condvar::new()));
        let shared = Arc::clone(&state);
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        Self { address, state }
    }

    fn busy(&self) -> usize {
        *self.state.0.lock().expect("no thread panics with it")
    }
}

fn serve(mut stream: TcpStream, (busy, freed): &(Mutex<usize>, Condvar)) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut head = Vec::new();
    let mut byte = [0; 2048];
    loop {
        match stream.read(&mut byte)? {
            0 => return Ok(()),
            n => head.extend_from_slice(&byte[..n]),
        }
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        let body = if head.starts_with(b"GET /slow ") { vec![b'x'; BODY] } else { b"quick".to_vec() };
        head.clear();
        *freed
            .wait_while(busy.lock().expect("no thread panics with it"), |busy| *busy == THREADS)
            .expect("likewise") += 1;
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        let sent = stream.write_all(&[answer.as_bytes(), &body].concat());
        *busy.lock().expect("no thread panics with it") -= 1;
        freed.notify_one();
        sent?;
    }
}

/// Clients that take a kilobyte each second.
struct SlowReaders {
    begun: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<usize>>,
}

impl SlowReaders {
    fn start(to: SocketAddr, many: usize) -> Self {
        let (begun, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let thread = std::thread::spawn({
            let (begun, is_over) = (Arc::clone(&begun), Arc::clone(&is_over));
            move || {
                let mut streams: Vec<_> = (0..many).map(|_| (ask(to), 0)).collect();
                let mut whole = 0;
                while !streams.is_empty() && !is_over.load(Ordering::Relaxed) {
                    let turn = Instant::now();
                    streams.retain_mut(|(stream, read)| {
                        let mut piece = [0; 1_000];
                        let n = stream.read(&mut piece).expect("it goes on");
                        begun.fetch_add(u64::from(*read == 0), Ordering::Relaxed);
                        *read += n;
                        whole += usize::from(n == 0 && *read > BODY);
                        n > 0
                    });
                    std::thread::sleep(Duration::from_secs(1).saturating_sub(turn.elapsed()));
                }
                whole
            }
        });
        Self { begun, is_over, thread: Some(thread) }
    }

    /// Each of them has got its first piece.
    fn have_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed) == 200
    }

    fn read_to_the_end(mut self) {
        let whole = self.thread.take().expect("it is there until now").join().expect("it ends");
        assert_eq!(whole, 200, "answers came whole");
    }
}

impl Drop for SlowReaders {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Asks for the large body, with little room for it on the client's side.
fn ask(to: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    socket.set_recv_buffer_size(4096).expect("an open socket");
    socket.connect(&to.into()).expect("it listens");
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("an open socket");
    stream.write_all(b"GET /slow HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").expect("it is open");
    stream
}

//! What a connection may cost is bounded, from the first SYN to the end of the TLS handshake: each destination that does not
//! come up in time is given up and the next one tried, whatever the method, as nothing was sent; and nothing of it is left.
//! (coredns/coredns #715; RFC 9110 9.2.2)
//!
//! 12 requests of each kind; `LAZARET_LONG=1`: 50.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use end_to_end::control::{attempts, is_long};
use end_to_end::process::{Lazaret, poll};
use testkit::certificates::Authority;
use testkit::client::Client;
use tokio_rustls::TlsAcceptor;

const CONNECT: Duration = Duration::from_millis(300);
/// A busy machine may be late by so much, at each destination.
const LATE: Duration = Duration::from_millis(700);

/// TIMEOUT-03
#[test]
fn each_destination_that_does_not_come_up_costs_one_connect_timeout_and_leaves_nothing_behind() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().expect("a folder");
    let (one, two) = (Full::new(), Full::new());
    let (silent, stuck) = (Mute::start(b""), Mute::start(b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03"));
    let good = serve_tls(&authority);
    // A name of the certificate, so that the port is all that differs.
    let list = [("a", one.address), ("b", silent.address), ("c", stuck.address), ("d", two.address), ("e", good)];
    let list = list.map(|(id, address)| format!("{id}: {{address: \"https://localhost:{}/\"}}", address.port()));
    let lazaret = Lazaret::start(&format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    load_balancing: \
         FirstAlphabetical\n    timeouts: {{connect: {}ms}}\n    tls: {{ca: \"{}\"}}\n    retry: {{attempts: 5}}\n    \
         destinations: {{{}}}\n",
        CONNECT.as_millis(),
        authority.write(folder.path()).display(),
        list.join(", ")
    ));
    let descriptors = lazaret.descriptors();
    let requests = if is_long() { 50 } else { 12 };
    // Three at a time: more would ask more of the retry budget than its floor pays.
    let proxy = lazaret.proxy;
    std::thread::scope(|scope| {
        for lane in 0..3 {
            scope.spawn(move || {
                for number in (lane..requests * 2).step_by(3) {
                    let method = if number % 2 == 0 { "GET" } else { "POST" };
                    let mut client = Client::connect(proxy);
                    client.within(Duration::from_secs(30));
                    let body = if method == "POST" { "Content-Length: 5\r\n\r\nhello" } else { "\r\n" };
                    let sent = Instant::now();
                    client.send(format!("{method} /{number} HTTP/1.1\r\nHost: a.test\r\n{body}"));
                    let response = client.response();
                    let took = sent.elapsed();
                    assert_eq!((response.status(), response.text().as_str()), (200, "good"), "{method} {number}");
                    let bounds = CONNECT * 4 - CONNECT / 6..(CONNECT + LATE) * 4;
                    assert!(bounds.contains(&took), "{method} {number} took {took:?}");
                }
            });
        }
    });
    lazaret.wait_until("every line is in the log", || lazaret.access_log().len() == requests * 2);
    for line in lazaret.access_log() {
        let tried = attempts(&line);
        assert_eq!(tried.last().map(String::as_str), Some("e:ok"), "{line}");
        assert_eq!(tried.len(), 5, "{line}");
        for attempt in &line["attempts"].as_array().expect("they are a list")[..4] {
            let took = Duration::from_millis(attempt["ms"].as_f64().expect("a number") as u64);
            assert!((CONNECT - CONNECT / 6..CONNECT + LATE).contains(&took), "{attempt}");
        }
    }
    assert_eq!(lazaret.metric("lazaret_attempts_total", &["outcome=\"conn_fail\""]), requests as f64 * 8.0);
    // What was given up is closed, by a side that does not wait for the other.
    for mute in [&silent, &stuck] {
        for _ in 0..requests * 2 {
            let lasted = mute.ended.recv_timeout(Duration::from_secs(10)).expect("the connection is closed");
            assert!(lasted < CONNECT + LATE, "it was open for {lasted:?}");
        }
    }
    // Once the two that took no more connections do, they get none that is still wanted.
    for full in [one, two] {
        full.none_is_open();
    }
    assert!(poll(Duration::from_secs(10), || lazaret.descriptors() <= descriptors + 8), "{}", lazaret.descriptors());
}

/// A listener whose queue is full: a further SYN is dropped, as by a host that is not there.
struct Full {
    address: SocketAddr,
    listener: TcpListener,
    queued: Vec<TcpStream>,
}

impl Full {
    fn new() -> Self {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
        socket.listen(0).expect("a bound socket");
        let listener = TcpListener::from(socket);
        let address = listener.local_addr().expect("a bound listener has an address");
        let mut queued = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
            queued.push(stream);
            assert!(queued.len() < 64, "its queue has no end");
        }
        Self { address, listener, queued }
    }

    /// Takes all that wait: but for our own they are closed already.
    fn none_is_open(self) {
        let own: Vec<_> = self.queued.iter().map(|one| one.local_addr().expect("an open socket")).collect();
        self.listener.set_nonblocking(true).expect("an open socket");
        let mut taken = Vec::new();
        // What was given up may have left a SYN that is sent again for a while.
        poll(Duration::from_secs(2), || {
            taken.extend(self.listener.accept().ok());
            false
        });
        assert!(!taken.is_empty());
        for (mut stream, peer) in taken.into_iter().filter(|(_, peer)| !own.contains(peer)) {
            stream.set_nonblocking(false).expect("an open socket");
            stream.set_read_timeout(Some(Duration::from_secs(5))).expect("an open socket");
            assert!(!matches!(stream.read(&mut [0; 64]), Ok(n) if n > 0), "{peer} is still used");
        }
    }
}

/// Takes connections, says `words` once something came, and nothing more; tells how long each was open.
struct Mute {
    address: SocketAddr,
    ended: Receiver<Duration>,
}

impl Mute {
    fn start(words: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let (sender, ended) = channel();
        // Ends with the test's process.
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let sender = sender.clone();
                std::thread::spawn(move || {
                    let since = Instant::now();
                    let mut buffer = [0; 4096];
                    let _ = stream.read(&mut buffer);
                    let _ = std::io::Write::write_all(&mut stream, words);
                    while stream.read(&mut buffer).is_ok_and(|n| n > 0) {}
                    sender.send(since.elapsed())
                });
            }
        });
        Self { address, ended }
    }
}

/// Answers every request over TLS with "good"; the thread ends with the test's process.
fn serve_tls(authority: &Authority) -> SocketAddr {
    let acceptor = TlsAcceptor::from(authority.issue(&["localhost"]).server_config());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("a bound listener has an address");
    listener.set_nonblocking(true).expect("an open socket");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let listener = tokio::net::TcpListener::from_std(listener).expect("an open socket");
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let mut stream = acceptor.accept(stream).await.ok()?;
                    let mut head = Vec::new();
                    loop {
                        if stream.read_buf(&mut head).await.ok()? == 0 {
                            return None;
                        }
                        let is_whole = head.ends_with(b"\r\n\r\n") || head.ends_with(b"\r\n\r\nhello");
                        if is_whole {
                            head.clear();
                            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood").await.ok()?;
                            stream.flush().await.ok()?;
                        }
                    }
                    #[allow(unreachable_code)]
                    Some(())
                });
            }
        });
    });
    address
}

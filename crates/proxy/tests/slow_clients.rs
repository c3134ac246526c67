//! A destination with four threads and many clients that send slowly: with buffering others do not notice.
//!
//! Nothing here is timed: slow clients stop in the middle of their bodies until the test lets them go on. 40 of them;
//! `LAZARET_LONG=1`: 200.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use model::id::Slot;
use model::route::Buffering;
use support::{Proxy, setup};
use testkit::client::Client;
use testkit::wait::eventually;

const BOUND: Duration = Duration::from_secs(20);
const THREADS: usize = 4;
const BODY: usize = 60_000;

/// So many requests are worked on at a time, from their heads to their answers; the others wait.
#[derive(Default)]
struct Pool {
    busy: Mutex<usize>,
    freed: Condvar,
    served: AtomicUsize,
}

impl Pool {
    fn start() -> (SocketAddr, Arc<Self>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (addr, pool) = (listener.local_addr().unwrap(), Arc::new(Self::default()));
        let shared = Arc::clone(&pool);
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let pool = Arc::clone(&shared);
                std::thread::spawn(move || while pool.serve(&stream).is_some() {});
            }
        });
        (addr, pool)
    }

    fn serve(&self, stream: &TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if line == "\r\n" {
                break;
            }
        }
        *self.freed.wait_while(self.busy.lock().unwrap(), |busy| *busy == THREADS).unwrap() += 1;
        let read = reader.read_exact(&mut vec![0; length]).ok();
        let mut answer = stream;
        let sent = answer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine").ok();
        self.served.fetch_add(1, Ordering::Relaxed);
        *self.busy.lock().unwrap() -= 1;
        self.freed.notify_one();
        read.and(sent)
    }

    fn busy(&self) -> usize {
        *self.busy.lock().unwrap()
    }
}

/// Clients that have sent the first half of their bodies.
fn half_sent(proxy: &Proxy) -> Vec<Client> {
    let many = if std::env::var_os("LAZARET_LONG").is_some_and(|value| value == "1") { 200 } else { 40 };
    let start = || {
        let mut client = proxy.client();
        client.within(BOUND);
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {BODY}\r\n\r\n"));
        client.send(vec![b'x'; BODY / 2]);
        client
    };
    (0..many).map(|_| start()).collect()
}

fn finish(slow: Vec<Client>) {
    for mut client in slow {
        client.send(vec![b'x'; BODY / 2]);
        assert_eq!(client.response().status(), 200);
    }
}

#[test]
fn slow_uploads_occupy_all_threads_of_a_destination_without_buffering() {
    let (addr, pool) = Pool::start();
    let proxy = setup(&[addr]).start();
    let mut slow = half_sent(&proxy);
    let many = u32::try_from(slow.len()).unwrap();
    eventually("all threads are busy", BOUND, || {
        (pool.busy() == THREADS && proxy.board.in_flight(Slot(0)) == many).then_some(())
    });
    let mut other = proxy.client();
    other.within(BOUND);
    other.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("the other one waits", BOUND, || (proxy.board.in_flight(Slot(0)) == many + 1).then_some(()));
    assert_eq!(pool.served.load(Ordering::Relaxed), 0, "every thread waits for a slow client");
    // Whoever has a thread must go on before anybody else is served.
    slow.iter_mut().for_each(|client| client.send(vec![b'x'; BODY / 2]));
    assert_eq!(other.response().status(), 200);
    slow.iter_mut().for_each(|client| assert_eq!(client.response().status(), 200));
}

#[test]
fn slow_uploads_occupy_no_thread_of_a_destination_with_buffering() {
    let (addr, pool) = Pool::start();
    let mut setup = setup(&[addr]);
    setup.routes[0].policy.buffering = Buffering::ON;
    let proxy = setup.start();
    let slow = half_sent(&proxy);
    // All of them are in the middle of their bodies while others are served, one after the other.
    for _ in 0..50 {
        assert_eq!(proxy.client().get("/").status(), 200);
    }
    assert_eq!(pool.served.load(Ordering::Relaxed), 50);
    eventually("no thread is busy", BOUND, || (pool.busy() == 0).then_some(()));
    let many = slow.len();
    finish(slow);
    assert_eq!(pool.served.load(Ordering::Relaxed), 50 + many);
}

//! A listener that the system does not let listen or accept is a fault for as long as it is so.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::io::real::Real;
use ::io::{Io, Share};
use board::Board;
use model::id::ListenerId;
use model::listener::Listener;
use model::time::Timestamp;
use proxy::{Context, Workers};
use support::setup;
use telemetry::metrics::Metrics;
use upstream::{SystemResolver, Tls};

#[test]
fn a_listener_is_faulty_while_accepting_fails() {
    let io = Starved::default();
    let mut workers = start(&io);
    let (_, address) = workers.addresses().next().unwrap();
    io.accepts_fail.store(true, Ordering::Relaxed);
    let _waits = TcpStream::connect(address).unwrap();
    until(&workers, &["web"]);
    io.accepts_fail.store(false, Ordering::Relaxed);
    until(&workers, &[]);

    io.accepts_fail.store(true, Ordering::Relaxed);
    let _waits = TcpStream::connect(address).unwrap();
    until(&workers, &["web"]);
    let nothing = workers.prepare_listeners(&[]).unwrap();
    workers.take_over(nothing);
    until(&workers, &[]);
    workers.join();
}

#[test]
fn a_listener_is_faulty_where_listening_failed_until_it_is_closed() {
    let io = Starved::default();
    io.listens_fail.store(true, Ordering::Relaxed);
    let mut workers = start(&io);
    until(&workers, &["web"]);
    let kept = workers.prepare_listeners(&[listener()]).unwrap();
    workers.take_over(kept);
    until(&workers, &["web"]);
    let replaced = workers.prepare_listeners(&[Listener { id: ListenerId::from("shop"), ..listener() }]).unwrap();
    io.listens_fail.store(false, Ordering::Relaxed);
    workers.take_over(replaced);
    until(&workers, &[]);
    workers.join();
}

fn until(workers: &Workers<Starved>, faulty: &[&str]) {
    let faulty: Vec<ListenerId> = faulty.iter().map(|id| ListenerId::from(*id)).collect();
    testkit::wait::eventually("the faults as expected", Duration::from_secs(10), || {
        (workers.faults().listeners() == faulty).then_some(())
    });
}

fn listener() -> Listener {
    setup(&[]).listener
}

fn start(io: &Starved) -> Workers<Starved> {
    let context = Context {
        io: io.clone(),
        resolver: SystemResolver::new(),
        tls: Tls::new(),
        server_tls: proxy::ServerTls::new(),
        board: Board::new(1, Arc::new(support::snapshot(setup(&[])))),
        metrics: Metrics::new(),
        access_log: None,
        instance: "test-instance".into(),
        seed: 1,
    };
    Workers::start(context, &[listener()]).unwrap()
}

/// The kernel, short of descriptors when told.
#[derive(Clone)]
struct Starved {
    kernel: Real,
    accepts_fail: Arc<AtomicBool>,
    listens_fail: Arc<AtomicBool>,
}

impl Default for Starved {
    fn default() -> Self {
        Self { kernel: Real::new(), accepts_fail: Arc::default(), listens_fail: Arc::default() }
    }
}

struct StarvedListener {
    kernel: <Real as Io>::Listener,
    fails: Arc<AtomicBool>,
}

impl Io for Starved {
    type Stream = <Real as Io>::Stream;
    type Bound = TcpListener;
    type Listener = StarvedListener;

    fn now(&self) -> Timestamp {
        self.kernel.now()
    }

    fn instant(&self, at: Timestamp) -> tokio::time::Instant {
        self.kernel.instant(at)
    }

    fn connect_from(&self, from: Option<IpAddr>, to: SocketAddr) -> impl Future<Output = io::Result<Self::Stream>> {
        self.kernel.connect_from(from, to)
    }

    fn bind(&self, address: SocketAddr, share: Share) -> io::Result<TcpListener> {
        self.kernel.bind(address, share)
    }

    fn bound_addr(&self, bound: &TcpListener) -> io::Result<SocketAddr> {
        self.kernel.bound_addr(bound)
    }

    fn share_bound(&self, bound: &TcpListener) -> io::Result<TcpListener> {
        self.kernel.share_bound(bound)
    }

    fn listen(&self, bound: TcpListener) -> io::Result<StarvedListener> {
        if self.listens_fail.load(Ordering::Relaxed) {
            return Err(io::Error::other("too many open files"));
        }
        Ok(StarvedListener { kernel: self.kernel.listen(bound)?, fails: Arc::clone(&self.accepts_fail) })
    }
}

impl ::io::Listener for StarvedListener {
    type Stream = <Real as Io>::Stream;

    async fn accept(&self) -> io::Result<(Self::Stream, SocketAddr)> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(io::Error::other("too many open files"));
        }
        let accepted = self.kernel.accept().await?;
        if self.fails.load(Ordering::Relaxed) { Err(io::Error::other("too many open files")) } else { Ok(accepted) }
    }

    fn accept_waiting(&self) -> io::Result<Option<(Self::Stream, SocketAddr)>> {
        self.kernel.accept_waiting()
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.kernel.local_addr()
    }
}

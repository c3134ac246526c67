//! A bad wire: a TCP relay that delays, swallows or cuts what passes, switched while it runs.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::destination::reset_on_close;

/// What happens to bytes, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// They pass.
    Pass,
    /// They pass after this time.
    Delay(Duration),
    /// They vanish, and nobody is told: a host that is cut off.
    Swallow,
    /// The connection is reset by the next of them.
    Cut,
}

/// A relay on 127.0.0.1. Dropping it resets all connections.
pub struct Relay {
    addr: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl Relay {
    /// Relays connections to `target`; starts with [`Wire::Pass`].
    pub fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared {
            target,
            wire: Mutex::new(Wire::Pass),
            streams: Mutex::default(),
            is_stopping: AtomicBool::new(false),
        });
        let accepting = thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Self { addr, shared, accepting: Some(accepting) }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// From now on, also for connections that stand.
    pub fn set(&self, wire: Wire) {
        *self.shared.wire.lock().unwrap_or_else(PoisonError::into_inner) = wire;
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.addr));
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        let mut streams = self.shared.streams.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in streams.drain(..).filter_map(|stream| stream.upgrade()) {
            end(&stream);
        }
    }
}

struct Shared {
    target: SocketAddr,
    wire: Mutex<Wire>,
    streams: Mutex<Vec<Weak<TcpStream>>>,
    is_stopping: AtomicBool,
}

impl Shared {
    fn wire(&self) -> Wire {
        *self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while let Ok((client, _)) = listener.accept() {
        if shared.is_stopping.load(Ordering::SeqCst) {
            return;
        }
        let Ok(target) = TcpStream::connect_timeout(&shared.target, Duration::from_secs(10)) else {
            reset_on_close(&client);
            continue;
        };
        let (client, target) = (Arc::new(client), Arc::new(target));
        let mut streams = shared.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.extend([Arc::downgrade(&client), Arc::downgrade(&target)]);
        drop(streams);
        for (from, to) in [(Arc::clone(&client), Arc::clone(&target)), (target, client)] {
            let _ = to.set_nodelay(true);
            let shared = Arc::clone(shared);
            thread::spawn(move || pump(&from, &to, &shared));
        }
    }
}

/// One direction, until it ends.
fn pump(mut from: &TcpStream, mut to: &TcpStream, shared: &Shared) {
    let mut piece = vec![0; 64 * 1024];
    while let Ok(n) = from.read(&mut piece) {
        match shared.wire() {
            Wire::Pass => {}
            Wire::Delay(time) => thread::sleep(time),
            Wire::Swallow => {
                if n == 0 {
                    return;
                }
                continue;
            }
            Wire::Cut => break,
        }
        if n == 0 {
            let _ = to.shutdown(Shutdown::Write);
            return;
        }
        if to.write_all(&piece[..n]).is_err() {
            break;
        }
    }
    end(from);
    end(to);
}

fn end(stream: &TcpStream) {
    reset_on_close(stream);
    let _ = stream.shutdown(Shutdown::Both);
}

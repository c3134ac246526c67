//! A destination that does exactly what a test's script says, byte by byte.
//!
//! ```no_run
//! use testkit::destination::{Act, Destination, Moment, answer};
//!
//! let destination = Destination::start(|moment| match moment {
//!     Moment::Accepted => vec![],
//!     Moment::Request(request) if request.message.target() == "/health" => answer(200, "fine"),
//!     Moment::Request(request) if request.number == 1 => vec![Act::Reset],
//!     Moment::Request(_) => answer(200, "hello"),
//! });
//! assert_eq!(destination.requests_to("/health").len(), 0);
//! ```

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::gathering::Gathering;
use crate::message::{Expect, Message, Reader};

/// What the destination does next on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Reads the request's body up to its end. Without it the body stays unread.
    ReadBody,
    /// Reads whatever comes until the peer ends its side; the request's body then holds it.
    ReadToEnd,
    /// Sends every piece back as it comes, until the peer ends its side.
    Echo,
    /// Sends bytes as they are, in one piece.
    Send(Vec<u8>),
    /// Waits.
    Pause(Duration),
    /// Waits for the other requests of its group; closes where they do not come.
    Gather(Gathering),
    /// Does nothing more until the peer closes or the destination is dropped.
    Stall,
    /// Sends a FIN and goes on reading.
    HalfClose,
    /// Closes in order.
    Close,
    /// Closes with a RST.
    Reset,
}

/// When the script is asked.
pub enum Moment<'a> {
    /// A connection was accepted, nothing was read.
    Accepted,
    /// A request's head was read.
    Request(&'a Request),
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    /// Which one of this destination, from 1.
    pub number: usize,
    /// On which connection of this destination, from 1.
    pub connection: usize,
    /// Which one of its connection, from 1.
    pub number_on_connection: usize,
    /// Head and, once it was read, body.
    pub message: Message,
}

/// A body read in full, then a response with length.
pub fn answer(status: u16, body: &str) -> Vec<Act> {
    let text = format!("HTTP/1.1 {status} Because\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    vec![Act::ReadBody, Act::Send(text.into_bytes())]
}

/// An address of this host where nobody listens: connections are refused.
///
/// The port stays bound, without anybody listening, as long as the test's process runs: nobody else can get it.
pub fn refusing() -> SocketAddr {
    static HELD: Mutex<Vec<socket2::Socket>> = Mutex::new(Vec::new());
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
    let address = socket.local_addr().ok().and_then(|address| address.as_socket()).expect("a bound socket's address");
    lock(&HELD).push(socket);
    address
}

/// A destination on 127.0.0.1. Dropping it closes the listener and resets all connections.
pub struct Destination {
    addr: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl Destination {
    /// Listens on a free port and does what `script` says. One request after the other on each connection; a connection
    /// goes on until an act ends it or the peer closes.
    pub fn start(script: impl FnMut(Moment<'_>) -> Vec<Act> + Send + 'static) -> Self {
        Self::start_on(SocketAddr::from(([127, 0, 0, 1], 0)), script)
    }

    /// The same on a given address, for one that comes back.
    pub fn start_on(addr: SocketAddr, script: impl FnMut(Moment<'_>) -> Vec<Act> + Send + 'static) -> Self {
        let listener = TcpListener::bind(addr).unwrap_or_else(|error| panic!("{addr}: {error}"));
        let addr = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared {
            script: Mutex::new(Box::new(script)),
            requests: Mutex::default(),
            connections: Mutex::default(),
            is_stopping: AtomicBool::new(false),
        });
        let accepting = thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Self { addr, shared, accepting: Some(accepting) }
    }

    /// Answers every request like this.
    pub fn answering(status: u16, body: &str) -> Self {
        let acts = answer(status, body);
        Self::start(move |moment| match moment {
            Moment::Accepted => Vec::new(),
            Moment::Request(_) => acts.clone(),
        })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://127.0.0.1:port/`.
    pub fn url(&self) -> String {
        format!("http://{}/", self.addr)
    }

    /// All requests so far, in the order of their heads.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.shared.requests).clone()
    }

    /// Those with this target.
    pub fn requests_to(&self, target: &str) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.message.target() == target).collect()
    }

    /// How many connections were accepted.
    pub fn connections(&self) -> usize {
        lock(&self.shared.connections).len()
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        // Wakes the accepting thread.
        drop(TcpStream::connect(self.addr));
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        for stream in lock(&self.shared.connections).drain(..).filter_map(|stream| stream.upgrade()) {
            reset_on_close(&stream);
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

type Script = Box<dyn FnMut(Moment<'_>) -> Vec<Act> + Send>;

struct Shared {
    script: Mutex<Script>,
    requests: Mutex<Vec<Request>>,
    /// Weak, so that a connection is closed by the thread that serves it.
    connections: Mutex<Vec<Weak<TcpStream>>>,
    is_stopping: AtomicBool,
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept() {
        if shared.is_stopping.load(Ordering::SeqCst) {
            return;
        }
        let stream = Arc::new(stream);
        let number = {
            let mut connections = lock(&shared.connections);
            connections.push(Arc::downgrade(&stream));
            connections.len()
        };
        let shared = Arc::clone(shared);
        thread::spawn(move || serve(Socket(stream), number, &shared));
    }
}

/// One connection, until an act or the peer ends it.
fn serve(stream: Socket, connection: usize, shared: &Shared) {
    let _ = stream.0.set_nodelay(true);
    let mut reader = Reader::new(stream);
    let acts = (lock(&shared.script))(Moment::Accepted);
    if perform(&acts, &mut reader, None, shared) == Flow::Over {
        return;
    }
    let mut number_on_connection = 0;
    while let Ok(Some(head)) = reader.head() {
        number_on_connection += 1;
        let message = Message { head, ..Message::default() };
        let request = {
            let mut requests = lock(&shared.requests);
            let request = Request { number: requests.len() + 1, connection, number_on_connection, message };
            requests.push(request.clone());
            request
        };
        let acts = (lock(&shared.script))(Moment::Request(&request));
        if perform(&acts, &mut reader, Some(request), shared) == Flow::Over {
            return;
        }
    }
}

#[derive(PartialEq, Eq)]
enum Flow {
    On,
    Over,
}

fn perform(acts: &[Act], reader: &mut Reader<Socket>, mut request: Option<Request>, shared: &Shared) -> Flow {
    for act in acts {
        match act {
            Act::ReadBody => {
                let Some(request) = &mut request else { continue };
                let result = reader.body(&mut request.message, Expect::Request);
                if let Some(kept) = lock(&shared.requests).get_mut(request.number - 1) {
                    kept.message = request.message.clone();
                }
                if result.is_err() {
                    return Flow::Over;
                }
            }
            Act::ReadToEnd => {
                let mut bytes = Vec::new();
                let result = reader.to_end(&mut bytes);
                let index = request.as_ref().map_or(usize::MAX, |request| request.number - 1);
                if let Some(kept) = lock(&shared.requests).get_mut(index) {
                    kept.message.body.clone_from(&bytes);
                    kept.message.raw_body = bytes;
                }
                if result.is_err() {
                    return Flow::Over;
                }
            }
            Act::Echo => {
                while let Ok(piece @ [_, ..]) = reader.piece().as_deref() {
                    if reader.source().write_all(piece).is_err() {
                        return Flow::Over;
                    }
                }
            }
            Act::Send(bytes) => {
                if reader.source().write_all(bytes).is_err() {
                    return Flow::Over;
                }
            }
            Act::Pause(time) => thread::sleep(*time),
            Act::Gather(gathering) => {
                if !gathering.wait() {
                    return Flow::Over;
                }
            }
            Act::Stall => {
                let _ = reader.to_end(&mut Vec::new());
                return Flow::Over;
            }
            Act::HalfClose => {
                let _ = reader.source().0.shutdown(Shutdown::Write);
            }
            Act::Close => {
                let _ = reader.source().0.shutdown(Shutdown::Both);
                return Flow::Over;
            }
            Act::Reset => {
                // The RST leaves when the caller drops the only strong handle.
                reset_on_close(&reader.source().0);
                return Flow::Over;
            }
        }
    }
    Flow::On
}

/// One end of a connection; the last clone closes it.
struct Socket(Arc<TcpStream>);

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(into)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn reset_on_close(stream: &TcpStream) {
    let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

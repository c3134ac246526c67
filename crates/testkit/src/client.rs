//! A client that sends bytes as they are and reads with a bound.
//!
//! ```no_run
//! use testkit::client::Client;
//!
//! let mut client = Client::connect("127.0.0.1:8080".parse().unwrap());
//! client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
//! let response = client.response();
//! assert_eq!((response.status(), response.text().as_str()), (200, "hello"));
//! ```

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::destination::reset_on_close;
use crate::message::{Expect, Message, Reader};

/// One connection, plain or TLS. Dropping it closes it.
pub struct Client {
    reader: Reader<Box<dyn Stream>>,
    tcp: TcpStream,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By a FIN.
    Closed,
    /// By a RST, or in TLS without a close_notify.
    Reset,
    /// Not within the bound.
    Open,
}

impl Client {
    /// Connects; every later read has a bound of 10 s unless told otherwise.
    pub fn connect(addr: SocketAddr) -> Self {
        let tcp = tcp(addr);
        let second = tcp.try_clone().expect("a second handle");
        Self { reader: Reader::new(Box::new(second)), tcp }
    }

    /// Connects and speaks TLS to `name`; the handshake happens with the first bytes.
    pub fn connect_tls(addr: SocketAddr, name: &str, config: &Arc<ClientConfig>) -> Self {
        let tcp = tcp(addr);
        let second = tcp.try_clone().expect("a second handle");
        let name = ServerName::try_from(name.to_owned()).expect("a host name or an address");
        let tls = ClientConnection::new(Arc::clone(config), name).expect("a client configuration");
        Self { reader: Reader::new(Box::new(StreamOwned::new(tls, second))), tcp }
    }

    /// Bounds every later read.
    pub fn within(&mut self, bound: Duration) -> &mut Self {
        self.tcp.set_read_timeout(Some(bound)).expect("a bound above zero");
        self
    }

    /// Our own end.
    pub fn local_addr(&self) -> SocketAddr {
        self.tcp.local_addr().expect("a connected socket has an address")
    }

    /// Sends bytes in one piece.
    ///
    /// # Panics
    ///
    /// When the peer has closed; see [`Client::try_send`].
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).expect("the peer takes bytes");
    }

    /// Sends bytes in one piece; the peer may be gone.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        let stream = self.reader.source();
        stream.write_all(bytes.as_ref())?;
        stream.flush()
    }

    /// Sends a FIN.
    pub fn finish(&mut self) {
        let _ = self.tcp.shutdown(Shutdown::Write);
    }

    /// Closes with a RST.
    pub fn reset(self) {
        reset_on_close(&self.tcp);
    }

    /// `GET target` on this connection, and its response.
    pub fn get(&mut self, target: &str) -> Message {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: lazaret.test\r\n\r\n"));
        self.response()
    }

    /// The next response, 1xx included.
    ///
    /// # Panics
    ///
    /// When none comes whole; see [`Client::try_response`].
    pub fn response(&mut self) -> Message {
        let (message, result) = self.try_response(Expect::Response);
        result.unwrap_or_else(|error| panic!("no whole response: {error}; so far {message:?}"));
        message
    }

    /// The next response, to HEAD or not, as far as it came, and whether it came whole.
    pub fn try_response(&mut self, expect: Expect) -> (Message, io::Result<()>) {
        let head = match self.reader.head() {
            Ok(Some(head)) => head,
            Ok(None) => return (Message::default(), Err(io::Error::from(io::ErrorKind::UnexpectedEof))),
            Err(error) => {
                return (Message { head: self.reader.rest().to_vec(), ..Message::default() }, Err(error));
            }
        };
        let mut message = Message { head, ..Message::default() };
        let result = self.reader.body(&mut message, expect);
        (message, result)
    }

    /// Exactly this many bytes.
    ///
    /// # Panics
    ///
    /// When they do not come.
    pub fn exactly(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < count {
            let piece = self.reader.piece().unwrap_or_else(|error| panic!("{error}; so far {bytes:?}"));
            assert!(!piece.is_empty(), "the end after {bytes:?}");
            bytes.extend_from_slice(&piece);
        }
        assert_eq!(bytes.len(), count, "more bytes than expected: {bytes:?}");
        bytes
    }

    /// All bytes until the connection ends, and how it ended.
    pub fn rest(&mut self) -> (Vec<u8>, End) {
        let mut bytes = Vec::new();
        let end = match self.reader.to_end(&mut bytes) {
            Ok(()) => End::Closed,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => End::Open,
            Err(_) => End::Reset,
        };
        (bytes, end)
    }
}

/// What a client reads from and writes to.
trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

fn tcp(addr: SocketAddr) -> TcpStream {
    let tcp = TcpStream::connect_timeout(&addr, BOUND).unwrap_or_else(|error| panic!("{addr}: {error}"));
    tcp.set_nodelay(true).expect("a connected socket");
    tcp.set_read_timeout(Some(BOUND)).expect("a bound above zero");
    tcp.set_write_timeout(Some(BOUND)).expect("a bound above zero");
    tcp
}

const BOUND: Duration = Duration::from_secs(10);

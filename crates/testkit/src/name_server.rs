//! A name server that says exactly what a test wants (RFC 1035, over UDP): addresses, their lifetime, "no such name", a
//! failure, nothing at all.
//!
//! ```no_run
//! use testkit::name_server::{NameServer, Says};
//!
//! let server = NameServer::start();
//! server.say("api.test", Says::addresses(&["127.0.0.1", "127.0.0.2"], 1));
//! server.say("gone.test", Says::NoName);
//! assert_eq!(server.asked("api.test"), 0);
//! ```

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What the server says about a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Says {
    /// These addresses, to each question those of its family, good for so many seconds.
    Addresses(Vec<IpAddr>, u32),
    /// There is no such name (NXDOMAIN).
    NoName,
    /// The server failed (SERVFAIL).
    Failure,
    /// Nothing: the question gets no answer.
    Silence,
}

impl Says {
    /// Addresses in words.
    ///
    /// # Panics
    ///
    /// When one of them is none.
    pub fn addresses(all: &[&str], ttl: u32) -> Self {
        Self::Addresses(all.iter().map(|ip| ip.parse().expect("an address")).collect(), ttl)
    }
}

/// A name server on 127.0.0.1. Names that nobody told it about do not exist. Ends when dropped.
pub struct NameServer {
    addr: SocketAddr,
    shared: Arc<Shared>,
    answering: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    names: Mutex<BTreeMap<String, Name>>,
    is_over: AtomicBool,
}

#[derive(Default)]
struct Name {
    says: Option<Says>,
    asked: usize,
}

impl Shared {
    fn names(&self) -> MutexGuard<'_, BTreeMap<String, Name>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NameServer {
    /// Answers on a free port.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let addr = socket.local_addr().expect("a bound socket has an address");
        // The bound of each wait: so long may its end take.
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout can be set");
        let shared = Arc::new(Shared::default());
        let answering = thread::spawn({
            let shared = Arc::clone(&shared);
            move || answer_all(&socket, &shared)
        });
        Self { addr, shared, answering: Some(answering) }
    }

    /// Where it answers.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What it says about a name from now on.
    pub fn say(&self, name: &str, says: Says) {
        self.shared.names().entry(name.to_owned()).or_default().says = Some(says);
    }

    /// How often it was asked for a name so far, for any kind of record.
    pub fn asked(&self, name: &str) -> usize {
        self.shared.names().get(name).map_or(0, |name| name.asked)
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(answering) = self.answering.take() {
            let _ = answering.join();
        }
    }
}

fn answer_all(socket: &UdpSocket, shared: &Shared) {
    let mut buffer = [0; 512];
    while !shared.is_over.load(Ordering::Relaxed) {
        let Ok((length, peer)) = socket.recv_from(&mut buffer) else { continue };
        if let Some(answer) = buffer.get(..length).and_then(|question| answer(question, shared)) {
            let _ = socket.send_to(&answer, peer);
        }
    }
}

/// The answer to a question; `None`: silence, or no question.
fn answer(message: &[u8], shared: &Shared) -> Option<Vec<u8>> {
    let (name, end) = read_name(message, HEADER)?;
    let question = message.get(HEADER..end + 4)?;
    let kind = u16::from_be_bytes([*message.get(end)?, *message.get(end + 1)?]);
    let says = {
        let mut names = shared.names();
        let name = names.entry(name).or_default();
        name.asked += 1;
        name.says.clone().unwrap_or(Says::NoName)
    };
    let (code, records) = match says {
        Says::Silence => return None,
        Says::Failure => (2, Vec::new()),
        Says::NoName => (3, Vec::new()),
        Says::Addresses(all, ttl) => {
            let wanted = all.into_iter().filter(|ip| kind == if ip.is_ipv4() { A } else { AAAA });
            (0, wanted.map(|ip| record(ip, ttl)).collect())
        }
    };
    let mut out = message.get(..2)?.to_vec();
    // An answer, authoritative, recursion desired and available.
    out.extend([0x85, 0x80 | code, 0, 1]);
    out.extend(u16::try_from(records.len()).ok()?.to_be_bytes());
    out.extend([0, 0, 0, 0]);
    out.extend(question);
    records.iter().for_each(|record| out.extend(record));
    Some(out)
}

/// One address record for the name of the question.
fn record(ip: IpAddr, ttl: u32) -> Vec<u8> {
    let (kind, bytes) = match ip {
        IpAddr::V4(ip) => (A, ip.octets().to_vec()),
        IpAddr::V6(ip) => (AAAA, ip.octets().to_vec()),
    };
    // A pointer to the question's name, the kind, class IN.
    let mut out = vec![0xc0, HEADER as u8];
    out.extend(kind.to_be_bytes());
    out.extend([0, 1]);
    out.extend(ttl.to_be_bytes());
    out.extend((bytes.len() as u16).to_be_bytes());
    out.extend(bytes);
    out
}

/// The name at `at` in lower case, and where it ends.
fn read_name(message: &[u8], mut at: usize) -> Option<(String, usize)> {
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*message.get(at)?);
        if length == 0 {
            return Some((labels.join("."), at + 1));
        }
        let label = message.get(at + 1..at + 1 + length)?;
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        at += 1 + length;
    }
}

/// Bytes of a message's head.
const HEADER: usize = 12;
/// Kind of a record: an IPv4 address.
const A: u16 = 1;
/// Kind of a record: an IPv6 address.
const AAAA: u16 = 28;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_answered_with_addresses_of_its_family() {
        let server = NameServer::start();
        server.say("a.test", Says::addresses(&["10.0.0.1", "2001:db8::1"], 7));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut question = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        question.extend(b"\x01A\x04test\x00\x00\x01\x00\x01");
        socket.send_to(&question, server.addr()).unwrap();
        let mut buffer = [0; 512];
        let length = socket.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..12], [0xab, 0xcd, 0x85, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
        assert_eq!(&buffer[length - 16..length], [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 7, 0, 4, 10, 0, 0, 1]);
        assert_eq!(server.asked("a.test"), 1);
    }
}

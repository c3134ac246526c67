//! Destinations that answer `/id/N` with N's content and reset some connections before their answer.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::random::Random;
use testkit::message::{Expect, Message, Reader};

use super::{SHARE, content};

/// One destination; it stops accepting when dropped.
pub struct Echo {
    addr: SocketAddr,
    is_over: Arc<AtomicBool>,
}

impl Echo {
    /// Listens on a free port; a thread for each connection.
    pub fn start(seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("a bound listener has an address");
        let is_over = Arc::new(AtomicBool::new(false));
        std::thread::spawn({
            let is_over = Arc::clone(&is_over);
            move || {
                for (number, stream) in (0..).zip(listener.incoming()) {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    let Ok(stream) = stream else { continue };
                    std::thread::spawn(move || drop(serve(stream, Random::new(seed ^ number))));
                }
            }
        });
        Self { addr, is_over }
    }

    /// `http://127.0.0.1:port/`.
    pub fn url(&self) -> String {
        format!("http://{}/", self.addr)
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.addr);
    }
}

fn serve(mut stream: TcpStream, mut random: Random) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(90)))?;
    let mut reader = Reader::new(stream.try_clone()?);
    while let Some(head) = reader.head()? {
        let mut message = Message { head, ..Message::default() };
        reader.body(&mut message, Expect::Request)?;
        let target = message.target();
        let Some(id) = target.strip_prefix("/id/").and_then(|id| id.parse::<u64>().ok()) else {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
            continue;
        };
        if random.below(100) < SHARE {
            reset_on_close(&stream)?;
            return Ok(());
        }
        // What was sent comes back: a body that was mixed up on the way shows, too.
        let body = if message.body.is_empty() { content(id) } else { message.body };
        if random.below(2) == 0 {
            stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes())?;
            stream.write_all(&body)?;
        } else {
            stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            for part in body.chunks(7_000) {
                stream.write_all(format!("{:x}\r\n", part.len()).as_bytes())?;
                stream.write_all(part)?;
                stream.write_all(b"\r\n")?;
            }
            stream.write_all(b"0\r\n\r\n")?;
        }
    }
    Ok(())
}

/// A close that resets (SO_LINGER of zero).
fn reset_on_close(stream: &TcpStream) -> io::Result<()> {
    let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    nix::sys::socket::setsockopt(stream, nix::sys::socket::sockopt::Linger, &linger).map_err(io::Error::from)
}

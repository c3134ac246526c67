//! A client's end of a connection, plain or TLS: sends a request, counts the answer's bytes, or its frames.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::http2::{self, Frames, Seen};

pub(super) struct Client {
    pub(super) stream: TcpStream,
    tls: Option<Box<ClientConnection>>,
    /// Where it speaks HTTP/2.
    frames: Option<Frames>,
    proxy: SocketAddr,
    /// When its request should have been sent; `None` while it is idle.
    intended: Option<Instant>,
    /// The beginning of the response.
    beginning: Vec<u8>,
    /// Bytes of it so far.
    received: usize,
    /// How long the whole is, once its head is there.
    length: Option<usize>,
}

pub(super) enum Outcome {
    Partial,
    /// With the time when its request should have been sent.
    Whole(Instant),
    /// Whole, but not the destination's.
    Refused,
    Broken,
}

impl Client {
    pub(super) fn connect(proxy: SocketAddr, tls: Option<Arc<ClientConfig>>) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&proxy, Duration::from_secs(2)).context("connecting a client")?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let tls = match tls {
            None => None,
            Some(config) => Some(Box::new(ClientConnection::new(config, ServerName::try_from(SERVER_NAME)?)?)),
        };
        let beginning = Vec::with_capacity(if tls.is_none() { 1024 } else { 0 });
        Ok(Self { stream, tls, frames: None, proxy, intended: None, beginning, received: 0, length: None })
    }

    /// The same, in HTTP/2.
    pub(super) fn in_http2(self) -> Self {
        Self { frames: Some(Frames::default()), ..self }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.intended.is_some()
    }

    pub(super) fn beginning(&self) -> &[u8] {
        &self.beginning
    }

    pub(super) fn proxy(&self) -> SocketAddr {
        self.proxy
    }

    /// Ready for another request.
    pub(super) fn next(&mut self) {
        self.beginning.clear();
        self.received = 0;
        self.length = None;
    }

    pub(super) fn send(&mut self, request: &[u8], intended: Instant) -> io::Result<()> {
        self.intended = Some(intended);
        let Some(tls) = &mut self.tls else { return self.stream.write_all(request) };
        tls.writer().write_all(request)?;
        write_tls(tls, &mut self.stream)
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Outcome {
        let Some(tls) = &mut self.tls else {
            return match self.stream.read(buffer) {
                Ok(0) => Outcome::Broken,
                Ok(n) => self.take(buffer.get(..n).unwrap_or_default()),
                Err(error) => waits(&error),
            };
        };
        match tls.read_tls(&mut self.stream) {
            Ok(0) => return Outcome::Broken,
            Ok(_) => {}
            Err(error) => return waits(&error),
        }
        if tls.process_new_packets().is_err() || write_tls(tls, &mut self.stream).is_err() {
            return Outcome::Broken;
        }
        match tls.reader().read(buffer) {
            Ok(0) => Outcome::Broken,
            Ok(n) if self.frames.is_some() => self.take_frames(buffer.get(..n).unwrap_or_default()),
            Ok(n) => self.take(buffer.get(..n).unwrap_or_default()),
            Err(error) => waits(&error),
        }
    }

    fn take_frames(&mut self, bytes: &[u8]) -> Outcome {
        let (Some(frames), Some(tls)) = (&mut self.frames, &mut self.tls) else { return Outcome::Broken };
        let mut outcome = Outcome::Partial;
        for seen in frames.read(bytes) {
            match seen {
                Seen::More => {}
                Seen::Settings => {
                    let is_sent = tls.writer().write_all(&http2::acknowledgement()).is_ok();
                    if !is_sent || write_tls(tls, &mut self.stream).is_err() {
                        return Outcome::Broken;
                    }
                }
                Seen::End => outcome = self.intended.take().map_or(Outcome::Refused, Outcome::Whole),
                Seen::Over => return Outcome::Broken,
            }
        }
        outcome
    }

    fn take(&mut self, bytes: &[u8]) -> Outcome {
        self.received += bytes.len();
        if self.beginning.len() < KEPT {
            let room = KEPT - self.beginning.len();
            self.beginning.extend_from_slice(bytes.get(..bytes.len().min(room)).unwrap_or_default());
        }
        if self.length.is_none() {
            self.length = length(&self.beginning);
        }
        match self.length {
            Some(length) if self.received >= length => {}
            Some(_) | None => return Outcome::Partial,
        }
        match self.intended.take() {
            Some(intended) if self.beginning.get(9..12) == Some(b"200") && self.length == Some(self.received) => {
                Outcome::Whole(intended)
            }
            Some(_) | None => Outcome::Refused,
        }
    }
}

fn write_tls(tls: &mut ClientConnection, stream: &mut TcpStream) -> io::Result<()> {
    while tls.wants_write() {
        match tls.write_tls(stream) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn waits(error: &io::Error) -> Outcome {
    if error.kind() == ErrorKind::WouldBlock { Outcome::Partial } else { Outcome::Broken }
}

/// Length of the whole response, when its head is there.
fn length(received: &[u8]) -> Option<usize> {
    let head = received.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = received.get(..head)?;
    let at = text.windows(NAME.len()).position(|window| window.eq_ignore_ascii_case(NAME))? + NAME.len();
    let digits: String = text
        .iter()
        .skip(at)
        .map(|&byte| char::from(byte))
        .skip_while(|c| *c == ' ')
        .take_while(char::is_ascii_digit)
        .collect();
    Some(head + digits.parse::<usize>().ok()?)
}

const NAME: &[u8] = b"\r\ncontent-length:";
const KEPT: usize = 1024;
/// In the certificate that every peer shows.
pub(crate) const SERVER_NAME: &str = "www.example.test";

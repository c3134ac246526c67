//! A destination's end of a connection: waits for a whole request, answers it, never blocks.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use anyhow::Result;

use crate::work::Messages;

/// What every destination answers: a head and a body of filler.
pub(super) struct Payload {
    /// The head and the body's beginning.
    beginning: Vec<u8>,
    filler: Vec<u8>,
    /// Bytes of head and body.
    len: usize,
    /// What the load asks for. Probes ask for something else.
    target: Vec<u8>,
}

pub(super) struct Destination {
    pub(super) stream: TcpStream,
    /// Bytes of a request that is not whole yet.
    request: Vec<u8>,
    /// Bytes of the answer that were taken; `None` while none is due.
    sent: Option<usize>,
}

/// What a turn came to.
pub(super) enum Answered {
    Waits,
    /// The answer is longer than what is taken now.
    Blocked,
    /// What was blocked is out.
    Unblocked,
    Over,
}

impl Payload {
    pub(super) fn new(messages: &Messages) -> Self {
        let filler = vec![b'x'; messages.body.min(1 << 20)];
        let first = filler.get(..messages.body.min(64 * 1024)).unwrap_or_default();
        Self {
            beginning: [&messages.head, first].concat(),
            len: messages.head.len() + messages.body,
            filler,
            target: target(&messages.request).to_vec(),
        }
    }

    /// Keeps a request of the load that looks otherwise than the one before.
    fn note(&self, request: &[u8], seen: &mut Vec<u8>) {
        if *seen != request && target(request) == self.target {
            *seen = request.to_vec();
        }
    }

    fn rest(&self, sent: usize) -> &[u8] {
        match self.beginning.get(sent..) {
            Some(rest) if !rest.is_empty() => rest,
            Some(_) | None => self.filler.get(..self.filler.len().min(self.len - sent)).unwrap_or_default(),
        }
    }
}

impl Destination {
    pub(super) fn new(stream: TcpStream) -> Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, request: Vec::new(), sent: None })
    }

    /// Goes on with what is due: the rest of an answer, or the next request.
    pub(super) fn turn(&mut self, buffer: &mut [u8], payload: &Payload, seen: &mut Vec<u8>) -> Answered {
        if self.sent.is_some() {
            return match self.answer(payload) {
                Answered::Waits => Answered::Unblocked,
                // Still the same.
                Answered::Blocked => Answered::Waits,
                other @ (Answered::Unblocked | Answered::Over) => other,
            };
        }
        match self.stream.read(buffer) {
            Ok(0) => Answered::Over,
            Ok(n) => {
                let bytes = buffer.get(..n).unwrap_or_default();
                if self.request.is_empty() && bytes.starts_with(b"GET") && bytes.ends_with(b"\r\n\r\n") {
                    payload.note(bytes, seen);
                    self.sent = Some(0);
                    return self.answer(payload);
                }
                self.request.extend_from_slice(bytes);
                if !is_whole(&self.request) {
                    return Answered::Waits;
                }
                payload.note(&self.request, seen);
                self.request.clear();
                self.sent = Some(0);
                self.answer(payload)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Answered::Waits,
            Err(_) => Answered::Over,
        }
    }

    fn answer(&mut self, payload: &Payload) -> Answered {
        let mut sent = self.sent.take().unwrap_or(payload.len);
        while sent < payload.len {
            match self.stream.write(payload.rest(sent)) {
                Ok(taken) => sent += taken,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.sent = Some(sent);
                    return Answered::Blocked;
                }
                Err(_) => return Answered::Over,
            }
        }
        Answered::Waits
    }
}

/// The target in a request's first line.
fn target(request: &[u8]) -> &[u8] {
    request.split(|byte| *byte == b' ').nth(1).unwrap_or_default()
}

fn is_whole(request: &[u8]) -> bool {
    let Some(head) = request.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let text = String::from_utf8_lossy(request.get(..head).unwrap_or_default()).to_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    request.len() >= head + 4 + length.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::TcpListener;

    use super::*;
    use crate::work::Work;

    #[test]
    fn a_probe_is_answered_and_not_taken_for_the_load() {
        let messages = Work::Post.messages();
        let payload = Payload::new(&messages);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut proxy = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        proxy.set_nonblocking(true).unwrap();
        let mut destination = Destination::new(listener.accept().unwrap().0).unwrap();
        let (mut buffer, mut seen) = (vec![0; 4096], Vec::new());
        let mut answer = vec![0; payload.len];
        let probe = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
        for (request, expected) in
            [(&probe, &Vec::new()), (&messages.request, &messages.request), (&probe, &messages.request)]
        {
            proxy.write_all(request).unwrap();
            // It may come in more than one piece.
            let answered = (0..100_000).any(|_| {
                destination.turn(&mut buffer, &payload, &mut seen);
                proxy.peek(&mut [0]).is_ok()
            });
            assert!(answered);
            proxy.set_nonblocking(false).unwrap();
            proxy.read_exact(&mut answer).unwrap();
            proxy.set_nonblocking(true).unwrap();
            assert_eq!(&seen, expected);
        }
    }
}

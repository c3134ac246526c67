//! A plain TCP copy with epoll: what moving the bytes costs without looking at one of them, the floor of every proxy.
//!
//! `tcp-copy LISTEN DESTINATION...`: one thread; each client connection gets a connection to the next destination, and
//! what one side sends the other side gets. A side that ends ends both.
#![allow(clippy::print_stderr)]

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;

use anyhow::{Context, Result};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// One direction's end: where it reads, whom it gives to, and what that one has not taken yet.
struct End {
    stream: TcpStream,
    other: u64,
    pending: Vec<u8>,
}

fn run() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (listen, destinations) = words.split_first().context("usage: tcp-copy LISTEN DESTINATION...")?;
    let listener = TcpListener::bind(listen.parse::<SocketAddr>()?).context("listening")?;
    listener.set_nonblocking(true)?;
    let destinations: Vec<SocketAddr> = destinations.iter().map(|word| word.parse()).collect::<Result<_, _>>()?;
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
    let mut ends: BTreeMap<u64, End> = BTreeMap::new();
    let mut turns = destinations.iter().cycle();
    let mut next = 2;
    let mut events = vec![EpollEvent::empty(); 256];
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let n = epoll.wait(&mut events, EpollTimeout::NONE)?;
        for event in events.iter().take(n) {
            let id = event.data();
            if id == 0 {
                let Ok((client, _)) = listener.accept() else { continue };
                let destination = turns.next().context("a destination is needed")?;
                let upstream = TcpStream::connect(destination)?;
                for (own, other, stream) in [(next, next + 1, client), (next + 1, next, upstream)] {
                    stream.set_nodelay(true)?;
                    stream.set_nonblocking(true)?;
                    epoll.add(&stream, EpollEvent::new(EpollFlags::EPOLLIN, own))?;
                    ends.insert(own, End { stream, other, pending: Vec::new() });
                }
                next += 2;
                continue;
            }
            if event.events().contains(EpollFlags::EPOLLOUT) && !flush(&epoll, &mut ends, id)? {
                drop_both(&mut ends, id);
                continue;
            }
            if event.events().intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR)
                && !copy(&epoll, &mut ends, id, &mut buffer)?
            {
                drop_both(&mut ends, id);
            }
        }
    }
}

/// Reads once and gives it to the other side; false when the pair is over.
fn copy(epoll: &Epoll, ends: &mut BTreeMap<u64, End>, id: u64, buffer: &mut [u8]) -> Result<bool> {
    let Some(end) = ends.get_mut(&id) else { return Ok(true) };
    let read = match end.stream.read(buffer) {
        Ok(0) => return Ok(false),
        Ok(read) => read,
        Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
        Err(_) => return Ok(false),
    };
    let (from, to) = (id, end.other);
    let Some(other) = ends.get_mut(&to) else { return Ok(false) };
    let bytes = buffer.get(..read).unwrap_or_default();
    let taken = match other.stream.write(bytes) {
        Ok(taken) => taken,
        Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
        Err(_) => return Ok(false),
    };
    if taken < read {
        // Until the other side has taken the rest, nothing more is read from this one.
        other.pending.extend_from_slice(bytes.get(taken..).unwrap_or_default());
        epoll.modify(&other.stream, &mut EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT, to))?;
        if let Some(end) = ends.get(&from) {
            epoll.modify(&end.stream, &mut EpollEvent::new(EpollFlags::empty(), from))?;
        }
    }
    Ok(true)
}

/// Writes what waits for this end; false when the pair is over.
fn flush(epoll: &Epoll, ends: &mut BTreeMap<u64, End>, id: u64) -> Result<bool> {
    let Some(end) = ends.get_mut(&id) else { return Ok(true) };
    match end.stream.write(&end.pending) {
        Ok(taken) => drop(end.pending.drain(..taken)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        Err(_) => return Ok(false),
    }
    if end.pending.is_empty() {
        epoll.modify(&end.stream, &mut EpollEvent::new(EpollFlags::EPOLLIN, id))?;
        let other = end.other;
        if let Some(end) = ends.get(&other) {
            epoll.modify(&end.stream, &mut EpollEvent::new(EpollFlags::EPOLLIN, other))?;
        }
    }
    Ok(true)
}

/// Closing takes both out of epoll.
fn drop_both(ends: &mut BTreeMap<u64, End>, id: u64) {
    if let Some(end) = ends.remove(&id) {
        ends.remove(&end.other);
    }
}

//! Descriptors from one process to another: over a unix socket (SCM_RIGHTS, unix(7)), and those that a process was
//! started with (`LISTEN_FDS`).
//!
//! A descriptor that is passed is the same open socket: what waits in its queue waits in both processes.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use socket2::{Domain, SockRef, Type};

/// Sends descriptors, each with one byte of the stream. They stay open here, too.
pub fn send(stream: &UnixStream, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    descriptors.iter().try_for_each(|descriptor| send_with(stream, &[MARK], *descriptor))
}

/// Sends one message (or bytes of a stream) together with one descriptor.
pub fn send_with(socket: impl AsFd, message: &[u8], descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let one = [descriptor];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    if !rights.push(SendAncillaryMessage::ScmRights(&one)) {
        return Err(io::Error::other("no room for a descriptor"));
    }
    let socket = socket.as_fd();
    let sent = retry(|| Ok(sendmsg(socket, &[IoSlice::new(message)], &mut rights, SendFlags::NOSIGNAL)?))?;
    if sent == message.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receives `count` descriptors that [`send`] sends; closed on exec.
pub fn receive(stream: &UnixStream, count: usize) -> io::Result<Vec<OwnedFd>> {
    let mut descriptors = Vec::new();
    for _ in 0..count {
        let mut byte = [0];
        let (length, received) = receive_with(stream, &mut byte)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match received {
            Some(descriptor) if byte == [MARK] => descriptors.push(descriptor),
            Some(_) | None => return Err(io::Error::new(io::ErrorKind::InvalidData, "a descriptor was expected")),
        }
    }
    Ok(descriptors)
}

/// Receives one message (or bytes of a stream), and the descriptor that came with it.
pub fn receive_with(socket: impl AsFd, into: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let (socket, flags) = (socket.as_fd(), RecvFlags::CMSG_CLOEXEC);
    let length = retry(|| Ok(recvmsg(socket, &mut [IoSliceMut::new(into)], &mut rights, flags)?.bytes))?;
    let received = rights.drain().find_map(|message| {
        if let RecvAncillaryMessage::ScmRights(mut received) = message { received.next() } else { None }
    });
    Ok((length, received))
}

/// Takes descriptors that this process was started with. They are its own from here on, under other numbers; the numbers
/// given are closed. Nobody else may use these.
pub fn adopt(inherited: &[RawFd]) -> io::Result<Vec<OwnedFd>> {
    use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg as send_raw};
    let (near, far) = UnixStream::pair()?;
    let mut own = Vec::new();
    for number in inherited {
        // A number alone owns nothing. The kernel makes an owned descriptor of it on the way through a socket.
        let one = [*number];
        let rights = [ControlMessage::ScmRights(&one)];
        send_raw::<()>(near.as_raw_fd(), &[IoSlice::new(&[MARK])], &rights, MsgFlags::MSG_NOSIGNAL, None)?;
        own.extend(receive(&far, 1)?);
        nix::unistd::close(*number)?;
    }
    Ok(own)
}

/// The descriptor as a listener, when it is a TCP socket that listens; otherwise given back.
pub fn listener(descriptor: OwnedFd) -> Result<TcpListener, OwnedFd> {
    let socket = SockRef::from(&descriptor);
    let is_tcp = socket.r#type().is_ok_and(|kind| kind == Type::STREAM)
        && socket.domain().is_ok_and(|domain| domain == Domain::IPV4 || domain == Domain::IPV6)
        && socket.is_listener().unwrap_or(false);
    if !is_tcp {
        return Err(descriptor);
    }
    // Somebody else may have bound it: accepted connections inherit this. Without it they are only slower.
    let _ = socket.set_tcp_nodelay(true);
    Ok(descriptor.into())
}

/// Sends one message: its length (4 bytes, big endian), then it.
pub fn send_message(mut stream: &UnixStream, message: &[u8]) -> io::Result<()> {
    let length = u32::try_from(message.len()).map_err(io::Error::other)?;
    stream.write_all(&length.to_be_bytes())?;
    stream.write_all(message)
}

/// Receives one message of [`send_message`]. One that is larger than `most` bytes is an error.
pub fn receive_message(mut stream: &UnixStream, most: usize) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too large"));
    }
    let mut message = vec![0; length];
    stream.read_exact(&mut message)?;
    Ok(message)
}

fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// The byte that carries a descriptor.
const MARK: u8 = b'D';

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::fd::IntoRawFd;

    use super::*;

    #[test]
    fn a_passed_listener_has_the_same_queue() {
        let (near, far) = UnixStream::pair().unwrap();
        let sockets: Vec<_> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let address = sockets[1].local_addr().unwrap();
        let _waiting = std::net::TcpStream::connect(address).unwrap();
        let borrowed: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
        send_message(&near, b"three of them").unwrap();
        send(&near, &borrowed).unwrap();
        send_message(&near, b"done").unwrap();
        assert_eq!(receive_message(&far, 20).unwrap(), b"three of them");
        let received = receive(&far, 3).unwrap();
        assert_eq!(receive_message(&far, 20).unwrap(), b"done");
        drop(sockets);
        let second = listener(received.into_iter().nth(1).unwrap()).unwrap();
        assert_eq!(second.local_addr().unwrap(), address);
        assert!(second.accept().is_ok());
    }

    #[test]
    fn an_adopted_descriptor_leaves_its_number() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let number = socket.into_raw_fd();
        let own = adopt(&[number]).unwrap().remove(0);
        assert_eq!(listener(own).unwrap().local_addr().unwrap(), address);
        assert!(adopt(&[-1]).is_err());
    }

    #[test]
    fn what_does_not_listen_is_given_back() {
        let (near, _far) = UnixStream::pair().unwrap();
        assert!(listener(near.into()).is_err());
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(listener(udp.into()).is_err());
    }

    #[test]
    fn an_end_and_a_lie_are_errors() {
        let (near, far) = UnixStream::pair().unwrap();
        send_message(&near, &[0; 9]).unwrap();
        assert_eq!(receive_message(&far, 8).unwrap_err().kind(), io::ErrorKind::InvalidData);
        // The nine bytes that lie there carry no descriptor.
        assert_eq!(receive(&far, 1).unwrap_err().kind(), io::ErrorKind::InvalidData);
        drop(near);
        assert!(receive(&far, 9).is_err());
    }
}

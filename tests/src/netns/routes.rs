//! What a kernel's routing table does, with the time of each change, from its own netlink notifications.

use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::socket::{AddressFamily, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, setsockopt, socket};
use nix::sys::time::{TimeVal, TimeValLike};

use crate::netns::Namespace;

/// One change of a route.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// When the notification was read.
    pub at: Instant,
    /// The same on the wall clock.
    pub wall: SystemTime,
    /// The destination of the route.
    pub destination: IpAddr,
    /// The next hop that the route now has; `None`: the route was deleted.
    pub via: Option<IpAddr>,
}

/// Watches the routes of a namespace until it is dropped.
pub struct RouteWatch {
    changes: Arc<Mutex<Vec<Change>>>,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl RouteWatch {
    /// Starts watching; what happens after this returns is seen.
    pub fn start(namespace: &Namespace) -> Self {
        let socket = namespace.enter(open);
        let changes = Arc::new(Mutex::new(Vec::new()));
        let (stop, stopped) = mpsc::channel::<()>();
        let shared = Arc::clone(&changes);
        let thread = std::thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            while matches!(stopped.try_recv(), Err(mpsc::TryRecvError::Empty)) {
                let Ok(length) = recv(socket.as_raw_fd(), &mut buffer, nix::sys::socket::MsgFlags::empty()) else {
                    continue;
                };
                let (at, wall) = (Instant::now(), SystemTime::now());
                let mut changes = shared.lock().unwrap_or_else(PoisonError::into_inner);
                for (destination, via) in messages(&buffer[..length]) {
                    changes.push(Change { at, wall, destination, via });
                }
            }
        });
        Self { changes, stop: Some(stop), thread: Some(thread) }
    }

    /// The changes of the route to `destination` since `since`, in order.
    pub fn since(&self, destination: IpAddr, since: Instant) -> Vec<Change> {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.iter().filter(|change| change.destination == destination && change.at >= since).copied().collect()
    }

    /// Waits for the route to `destination` to become `via` after `since`, and gives that change.
    pub fn wait(&self, destination: IpAddr, via: Option<IpAddr>, since: Instant, limit: Duration) -> Change {
        let mut found = None;
        crate::process::poll(limit, || {
            found = self.since(destination, since).into_iter().find(|change| change.via == via);
            found.is_some()
        });
        found.unwrap_or_else(|| {
            panic!("the route to {destination} did not become {via:?}: {:?}", self.since(destination, since))
        })
    }
}

impl Drop for RouteWatch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It ends within the receive timeout.
            let _ = thread.join();
        }
    }
}

fn open() -> OwnedFd {
    let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)
        .expect("rtnetlink");
    setsockopt(&socket, ReceiveTimeout, &TimeVal::milliseconds(100)).expect("a timeout");
    // RTMGRP_IPV4_ROUTE and RTMGRP_IPV6_ROUTE.
    bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 0x40 | 0x400)).expect("route groups");
    socket
}

const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTA_DST: u16 = 1;
const RTA_GATEWAY: u16 = 5;

/// The destination and next hop of every route message in a datagram.
fn messages(mut bytes: &[u8]) -> Vec<(IpAddr, Option<IpAddr>)> {
    let mut found = Vec::new();
    while bytes.len() >= 16 {
        let length = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
        let kind = u16::from_ne_bytes([bytes[4], bytes[5]]);
        if length < 16 || length > bytes.len() {
            break;
        }
        // struct rtmsg is 12 bytes; attributes follow.
        if (kind == RTM_NEWROUTE || kind == RTM_DELROUTE) && length >= 28 {
            let (destination, gateway) = attributes(&bytes[28..length]);
            if let Some(destination) = destination {
                found.push((destination, gateway.filter(|_| kind == RTM_NEWROUTE)));
            }
        }
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    }
    found
}

fn attributes(mut bytes: &[u8]) -> (Option<IpAddr>, Option<IpAddr>) {
    let (mut destination, mut gateway) = (None, None);
    while bytes.len() >= 4 {
        let length = u16::from_ne_bytes([bytes[0], bytes[1]]) as usize;
        let kind = u16::from_ne_bytes([bytes[2], bytes[3]]);
        if length < 4 || length > bytes.len() {
            break;
        }
        let value = address(&bytes[4..length]);
        match kind {
            RTA_DST => destination = value,
            RTA_GATEWAY => gateway = value,
            _ => {}
        }
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    }
    (destination, gateway)
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        Some(IpAddr::from(v4))
    } else {
        <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)
    }
}

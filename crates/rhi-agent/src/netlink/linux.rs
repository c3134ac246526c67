//! The real side of [`Addresses`]: rtnetlink, on a socket for commands alone.
//!
//! Addresses are put there with IFA_F_NODAD (an anycast address is meant to be elsewhere, too, and a tentative address
//! is not announced by BIRD) and with our protocol number. A call that the kernel does not answer in time fails, and
//! the socket is opened anew for the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use futures_util::TryStreamExt;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, AddressProtocol,
};
use netlink_packet_route::link::LinkFlags;
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use rhi::kernel::{LinkState, Tag};
use rhi::{AddressKey, Held, Link};
use rtnetlink::{Error, Handle};

use crate::netlink::addresses::{Addresses, OUR_PROTOCOL, Refused};

/// The kernel answers within microseconds; this is for the day it does not.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// The addresses of this network namespace.
#[derive(Debug, Default)]
pub struct Linux {
    handle: Option<Handle>,
}

impl Linux {
    /// Opens the socket now, so that a kernel that refuses stops the start.
    pub fn open() -> io::Result<Self> {
        let mut linux = Self::default();
        linux.handle()?;
        Ok(linux)
    }

    fn handle(&mut self) -> io::Result<Handle> {
        if let Some(handle) = &self.handle {
            return Ok(handle.clone());
        }
        let (connection, handle, _) = rtnetlink::new_connection()?;
        tokio::spawn(connection);
        self.handle = Some(handle.clone());
        Ok(handle)
    }

    /// One call within its time. A socket that failed is not used again.
    async fn call<T, F: Future<Output = Result<T, Error>> + Send>(
        &mut self,
        call: impl FnOnce(Handle) -> F + Send,
    ) -> Result<T, Refused> {
        let handle = self.handle().map_err(|error| Refused::Other(error.to_string()))?;
        match tokio::time::timeout(CALL_TIMEOUT, call(handle)).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(Error::NetlinkError(error))) => Err(refusal(Errno::from_raw(-error.raw_code()))),
            Ok(Err(error)) => {
                self.handle = None;
                Err(Refused::Other(error.to_string()))
            }
            Err(_) => {
                self.handle = None;
                Err(Refused::Other(format!("no answer from the kernel in {} s", CALL_TIMEOUT.as_secs())))
            }
        }
    }

    async fn link(&mut self, name: String) -> Result<Option<(u32, LinkState)>, Refused> {
        let found =
            self.call(|handle| async move { handle.link().get().match_name(name).execute().try_next().await }).await;
        match found {
            Ok(message) => Ok(message.map(|message| {
                let is_up = message.header.flags.contains(LinkFlags::Up);
                (message.header.index, if is_up { LinkState::Up } else { LinkState::Down })
            })),
            Err(Refused::Absent) => Ok(None),
            Err(refused) => Err(refused),
        }
    }
}

impl Addresses for Linux {
    async fn read(&mut self, interfaces: BTreeSet<String>) -> Result<BTreeMap<String, Option<Link>>, Refused> {
        let mut links = BTreeMap::new();
        for name in interfaces {
            let link = self.link(name.clone()).await?;
            links.insert(name, link.map(|(index, state)| Link { index, state, addresses: BTreeSet::new() }));
        }
        let messages: Vec<AddressMessage> =
            self.call(|handle| async move { handle.address().get().execute().try_collect().await }).await?;
        for message in messages {
            let link = links.values_mut().flatten().find(|link| link.index == message.header.index);
            if let (Some(link), Some(held)) = (link, held(&message)) {
                link.addresses.insert(held);
            }
        }
        Ok(links)
    }

    async fn add(&mut self, key: AddressKey) -> Result<(), Refused> {
        let mut message = message_of(&key)?;
        message.header.flags = AddressHeaderFlags::Nodad;
        message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        message.attributes.push(AddressAttribute::Protocol(AddressProtocol::Other(OUR_PROTOCOL)));
        self.call(|handle| async move {
            let mut request = handle.address().add(message.header.index, key.address, key.prefix_len);
            *request.message_mut() = message;
            request.execute().await
        })
        .await
    }

    async fn remove(&mut self, key: AddressKey) -> Result<(), Refused> {
        let message = message_of(&key)?;
        self.call(|handle| async move { handle.address().del(message).execute().await }).await
    }
}

/// The message that names one address on one interface. The index is looked up each time, because an interface that is
/// deleted and made again has another one.
fn message_of(key: &AddressKey) -> Result<AddressMessage, Refused> {
    let mut message = AddressMessage::default();
    message.header.index = if_nametoindex(key.interface.as_str()).map_err(refusal)?;
    message.header.prefix_len = key.prefix_len;
    message.header.family = match key.address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    };
    message.attributes = vec![AddressAttribute::Address(key.address), AddressAttribute::Local(key.address)];
    Ok(message)
}

/// What a message of a dump holds; `None` for one without an address.
fn held(message: &AddressMessage) -> Option<Held> {
    let (mut local, mut address, mut tag) = (None, None, Tag::Foreign);
    for attribute in &message.attributes {
        if let AddressAttribute::Local(ip) = attribute {
            local = Some(*ip);
        } else if let AddressAttribute::Address(ip) = attribute {
            address = Some(*ip);
        } else if *attribute == AddressAttribute::Protocol(AddressProtocol::Other(OUR_PROTOCOL)) {
            tag = Tag::Ours;
        }
    }
    // On a point-to-point link IFA_ADDRESS is the peer's and IFA_LOCAL ours; IPv6 has no IFA_LOCAL elsewhere.
    Some(Held { address: local.or(address)?, prefix_len: message.header.prefix_len, tag })
}

fn refusal(error: Errno) -> Refused {
    if error == Errno::EEXIST {
        Refused::Exists
    } else if error == Errno::EADDRNOTAVAIL || error == Errno::ENODEV || error == Errno::ENXIO {
        Refused::Absent
    } else {
        Refused::Other(error.desc().to_owned())
    }
}

//! What the kernel holds, as far as it is known: the last dump plus the answers to our own commands.
//!
//! Dumps and commands go through one queue in the shell, so their answers come back in the order of their effects: a
//! dump that was asked for before a command never overrules the answer to that command, because an address with a
//! command under way is left alone until that answer is here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// An address as an interface holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Held {
    /// The address.
    pub address: IpAddr,
    /// Its prefix length on the interface.
    pub prefix_len: u8,
    /// Whether it carries our tag.
    pub tag: Tag,
}

/// Who put an address there, by its protocol number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tag {
    /// This program, now or in an earlier life.
    Ours,
    /// Somebody else.
    Foreign,
}

/// One interface as a dump shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The kernel's index; a re-created interface has another one.
    pub index: u32,
    /// Whether it is administratively up.
    pub state: LinkState,
    /// Its addresses.
    pub addresses: BTreeSet<Held>,
}

/// Administrative state of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// Set up.
    Up,
    /// Set down.
    Down,
}

/// The identity of one address on one interface. The kernel holds the same address with different prefix lengths.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AddressKey {
    /// The interface's name.
    pub interface: String,
    /// The address.
    pub address: IpAddr,
    /// The prefix length.
    pub prefix_len: u8,
}

/// The last dump, kept up to date by the answers to our own commands. `None`: there is no such interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    links: BTreeMap<String, Option<Link>>,
}

/// The prefix length of a host route: what a VIP is put up with.
pub fn host_prefix(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

impl Picture {
    /// Takes a dump over.
    pub fn replace(&mut self, links: BTreeMap<String, Option<Link>>) {
        self.links = links;
    }

    /// Whether there has been a look at this interface, be it there or not.
    pub fn knows(&self, interface: &str) -> bool {
        self.links.contains_key(interface)
    }

    /// The interface, when it exists.
    pub fn link(&self, interface: &str) -> Option<&Link> {
        self.links.get(interface).and_then(Option::as_ref)
    }

    /// Whether the address is there with a host prefix.
    pub fn has_host(&self, interface: &str, address: IpAddr) -> bool {
        let host = host_prefix(address);
        self.held(interface).any(|held| held.address == address && held.prefix_len == host)
    }

    /// Whether the address is there with any prefix length.
    pub fn has_any(&self, interface: &str, address: IpAddr) -> bool {
        self.held(interface).any(|held| held.address == address)
    }

    /// The addresses of an interface.
    pub fn held(&self, interface: &str) -> impl Iterator<Item = &Held> {
        self.link(interface).into_iter().flat_map(|link| link.addresses.iter())
    }

    /// Our own command put it there.
    pub fn put(&mut self, key: &AddressKey) {
        if let Some(Some(link)) = self.links.get_mut(&key.interface) {
            link.addresses.retain(|held| !(held.address == key.address && held.prefix_len == key.prefix_len));
            link.addresses.insert(Held { address: key.address, prefix_len: key.prefix_len, tag: Tag::Ours });
        }
    }

    /// Our own command took it off.
    pub fn take_off(&mut self, key: &AddressKey) {
        if let Some(Some(link)) = self.links.get_mut(&key.interface) {
            link.addresses.retain(|held| !(held.address == key.address && held.prefix_len == key.prefix_len));
        }
    }
}

impl fmt::Display for AddressKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} on {}", self.address, self.prefix_len, self.interface)
    }
}

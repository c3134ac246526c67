//! What the daemon needs of an operating system: the addresses of interfaces, and to change them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;

use rhi::{AddressKey, Link};

/// The protocol number that marks an address as ours (IFA_PROTO, Linux 5.18): `R`.
pub const OUR_PROTOCOL: u8 = 0x52;

/// A set of interfaces with addresses.
pub trait Addresses: Send + 'static {
    /// The interfaces of these names, `None` where there is none.
    fn read(
        &mut self,
        interfaces: BTreeSet<String>,
    ) -> impl Future<Output = Result<BTreeMap<String, Option<Link>>, Refused>> + Send;

    /// Puts an address there, marked as ours, usable at once.
    fn add(&mut self, key: AddressKey) -> impl Future<Output = Result<(), Refused>> + Send;

    /// Takes an address off.
    fn remove(&mut self, key: AddressKey) -> impl Future<Output = Result<(), Refused>> + Send;
}

/// Why something could not be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The address was there already.
    Exists,
    /// There was no such address, or no such interface.
    Absent,
    /// Anything else, in the kernel's words.
    Other(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists => f.write_str("the address is there already"),
            Self::Absent => f.write_str("there is no such address"),
            Self::Other(words) => f.write_str(words),
        }
    }
}

impl std::error::Error for Refused {}

//! How often one client may use a route, and how many of its requests may be in flight: the arithmetic and the bounded
//! tables. The driver keeps the tables and shares them between workers, so that a limit holds for the whole process.

mod bucket;

mod buckets;

mod in_flight;

use std::net::IpAddr;
use std::sync::Arc;

use balance::affinity::hash;
use model::id::{ListenerId, RouteId};
use model::request::Fields;

pub use bucket::{Bucket, Pace};
pub use buckets::Buckets;
pub use in_flight::InFlight;

/// Whose limit it is: a route or a listener, by a hash of its id, so that its clients keep their counts over a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule(u64);

impl Rule {
    /// The rule of a route.
    pub fn of(route: &RouteId) -> Self {
        Self(hash::spread(route.as_str().as_bytes()))
    }

    /// The rule of a listener; never that of a route of the same name.
    pub fn of_listener(listener: &ListenerId) -> Self {
        Self(!hash::spread(listener.as_str().as_bytes()))
    }
}

/// What tells clients apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientKey {
    /// An IPv4 address, also one that came mapped into IPv6.
    V4(u32),
    /// The first 64 bits of an IPv6 address: the rest is the client's own to choose.
    V6(u64),
    /// A header's value, its first 256 bytes: what a client sends may not fill the table.
    Value(Arc<[u8]>),
}

impl ClientKey {
    /// By address.
    pub fn of_address(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => Self::V6((address.to_bits() >> 64) as u64),
        }
    }

    /// Where it lies in 64 bits.
    pub fn spread(&self) -> u64 {
        match self {
            Self::V4(bits) => hash::spread(&bits.to_be_bytes()),
            Self::V6(bits) => hash::spread(&bits.to_be_bytes()),
            Self::Value(value) => hash::spread(value),
        }
    }

    /// By the first value of a header; by address where it is absent.
    pub fn of_header(fields: &dyn Fields, name: &str, address: IpAddr) -> Self {
        let mut key = None;
        fields.each(name, &mut |value| {
            key.get_or_insert_with(|| Self::Value(value.get(..LONGEST_VALUE).unwrap_or(value).into()));
        });
        key.unwrap_or_else(|| Self::of_address(address))
    }
}

const LONGEST_VALUE: usize = 256;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use model::request::NoFields;

    #[test]
    fn ipv6_clients_are_one_by_their_64_and_mapped_ones_are_ipv4() {
        let of = |text: &str| ClientKey::of_address(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }

    #[test]
    fn a_long_value_counts_by_its_beginning_and_an_absent_one_by_address() {
        struct Value(Vec<u8>);
        impl Fields for Value {
            fn each(&self, _: &str, visit: &mut dyn FnMut(&[u8])) {
                visit(&self.0);
            }
        }
        let address = "192.0.2.1".parse().unwrap();
        let of = |fields: &dyn Fields| ClientKey::of_header(fields, "x-key", address);
        assert_eq!(of(&Value(vec![b'a'; 300])), of(&Value(vec![b'a'; 256])));
        assert_ne!(of(&Value(vec![b'a'; 200])), of(&Value(vec![b'a'; 201])));
        assert_eq!(of(&NoFields), ClientKey::of_address(address));
    }
}

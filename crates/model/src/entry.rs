//! Who may enter, how often, and how they are named: what is decided before a destination is thought of.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Rules on connections of a listener, judged before a byte of HTTP is read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Whether connections begin with a PROXY header.
    pub proxy_protocol: ProxyProtocol,
    /// Who may connect.
    pub access: AccessList,
    /// How many connections there may be.
    pub limit_connections: Option<ConnectionLimit>,
}

/// Whether connections begin with a PROXY header, version 1 or 2 (haproxy.org, proxy-protocol.txt).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProxyProtocol {
    /// They do not.
    #[default]
    Off,
    /// They must; one without is closed.
    Required {
        /// Peers that may connect: a header can say anything, so only relays should. Empty: anybody.
        from: Vec<IpNet>,
    },
}

/// Who may come, by address. `deny` is looked at first; an empty `allow` admits all others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessList {
    /// Only these, when there are any.
    pub allow: Vec<IpNet>,
    /// Never these.
    pub deny: Vec<IpNet>,
}

impl AccessList {
    /// Whether `address` may come. IPv4 in IPv6 counts as IPv4.
    pub fn admits(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let holds = |networks: &[IpNet]| networks.iter().any(|network| network.contains(&address));
        !holds(&self.deny) && (self.allow.is_empty() || holds(&self.allow))
    }
}

/// How many connections (of a listener) or requests in flight (of a route) one client may have. IPv6 clients count by
/// their /64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionLimit {
    /// At the same time, per client; at least 1.
    pub per_client: u32,
}

/// A token bucket per client: `rate` requests a second on average, `burst` at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestLimit {
    /// Requests a second; above 0.
    pub rate: f64,
    /// Requests that may come at once; at least 1.
    pub burst: u32,
    /// What tells clients apart.
    pub key: LimitKey,
}

/// What tells clients apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKey {
    /// Their address; IPv6 by /64.
    #[default]
    ClientAddress,
    /// The value of this header, lower case; requests without it share one bucket per address.
    Header(String),
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn deny_wins_over_allow_and_an_empty_allow_admits_the_rest() {
        let list = AccessList {
            allow: vec!["10.0.0.0/8".parse().unwrap()],
            deny: vec!["10.1.0.0/16".parse().unwrap(), "2001:db8::/32".parse().unwrap()],
        };
        let admits = |text: &str| list.admits(text.parse().unwrap());
        assert!(admits("10.2.0.1") && admits("::ffff:10.2.0.1"));
        assert!(!admits("10.1.0.1") && !admits("::ffff:10.1.0.1") && !admits("192.0.2.1"));
        let open = AccessList { allow: vec![], ..list };
        assert!(open.admits("192.0.2.1".parse().unwrap()) && !open.admits("2001:db8::1".parse().unwrap()));
    }
}

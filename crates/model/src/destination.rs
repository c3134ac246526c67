//! One configured server of a cluster.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::address::{Located, Url};
use crate::id::DestinationId;
use crate::passive::MaxFails;

/// One configured server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Destination {
    /// Its id, unique in the cluster.
    pub id: DestinationId,
    /// Where requests go; its path is put in front of the request's.
    pub address: Url,
    /// Where probes go instead of `address`, path and all.
    pub health: Option<Url>,
    /// Value of the Host header for requests and probes, in place of the address's authority.
    pub host: Option<String>,
    /// Share of traffic; 0 takes none.
    pub weight: u32,
    /// Its own max_fails and fail_timeout.
    pub max_fails: Option<MaxFails>,
    /// When it serves.
    pub tier: Tier,
    /// Most requests in flight, all workers together; `None`: no limit.
    pub max_connections: Option<NonZeroU32>,
}

/// When a destination serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Always.
    #[default]
    Primary,
    /// While no primary one is good.
    Backup,
}

impl Destination {
    /// The id that the configuration gave: without the address, where a name with several addresses made it
    /// `id[address]`.
    pub fn stem(&self) -> &str {
        let id = self.id.as_str();
        let Located::At(ip) = self.address.located else { return id };
        id.strip_suffix(&format!("[{ip}]")).unwrap_or(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stem_is_the_id_without_the_address_that_it_stands_for() {
        let mut address = Url::parse("http://api.test/").unwrap();
        address.located = Located::At("2001:db8::1".parse().unwrap());
        let mut one = Destination {
            id: "d1[2001:db8::1]".into(),
            address,
            health: None,
            host: None,
            weight: 1,
            max_fails: None,
            tier: Tier::Primary,
            max_connections: None,
        };
        assert_eq!(one.stem(), "d1");
        one.address.located = Located::At("2001:db8::2".parse().unwrap());
        assert_eq!(one.stem(), "d1[2001:db8::1]");
        one.address.located = Located::AsWritten;
        assert_eq!(one.stem(), "d1[2001:db8::1]");
    }
}

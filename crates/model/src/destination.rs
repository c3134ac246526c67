//! One configured server of a cluster.

use serde::{Deserialize, Serialize};

use crate::address::Url;
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
}

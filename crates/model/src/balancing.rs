//! Who of the available destinations serves: the choice of balancing policies.

use serde::{Deserialize, Serialize};

use crate::id::PolicyName;

/// Balancing policies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoadBalancing {
    /// Of two drawn at random the one with fewer requests in flight.
    #[default]
    PowerOfTwoChoices,
    /// In turn, smooth by weight.
    RoundRobin,
    /// The one with the fewest requests in flight.
    LeastRequests,
    /// Uniform (by weight).
    Random,
    /// The smallest id.
    FirstAlphabetical,
    /// The same key to the same destination.
    ConsistentHash(HashKey),
    /// Of two drawn at random the one that is likely to answer sooner.
    PeakEwma,
    /// One registered in code.
    Custom(PolicyName),
}

/// What requests are told apart by. A request without it goes by its client's address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HashKey {
    /// The client's address; IPv6 by its first 64 bits.
    #[default]
    ClientAddress,
    /// The path, without the query.
    Path,
    /// The first value of this header field (lower case).
    Header(String),
    /// The first value of this cookie.
    Cookie(String),
}

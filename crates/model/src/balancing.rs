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
    /// One registered in code.
    Custom(PolicyName),
}

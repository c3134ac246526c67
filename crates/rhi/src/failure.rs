//! What failed polls do: they are counted in a row, per upstream.
//!
//! Signal: a poll without a usable answer. Trip condition: `max_failed_polls` in a row. Below it the last standing is
//! held. At it `control_api_unreachable` acts: under `withdraw` the upstream counts as having no healthy node, under
//! `announce` every VIP that names it is frozen as it is. One answer, whatever it says, resets the count.

use model::vip::{FailurePolicy, Unreachable};
use serde::{Deserialize, Serialize};

use crate::answer::PollFailure;

/// Failed polls of one upstream since its last answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedPolls {
    /// How many in a row.
    pub in_a_row: u32,
    /// What the last one was.
    pub last: Option<PollFailure>,
}

/// What a count of failed polls means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The last poll was answered.
    None,
    /// Below the limit: the last standing is held.
    Hold,
    /// At the limit under `withdraw`: no healthy node.
    NoHealthyNode,
    /// At the limit under `announce`: VIPs that name it stay as they are.
    Freeze,
}

impl FailedPolls {
    /// Counts one more.
    pub fn count(&mut self, failure: PollFailure) {
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.last = Some(failure);
    }

    /// Forgets them after an answer.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// What the count means under a policy.
    pub fn meaning(self, policy: FailurePolicy) -> Meaning {
        match (self.in_a_row, policy.control_api_unreachable) {
            (0, Unreachable::Withdraw | Unreachable::Announce) => Meaning::None,
            (n, Unreachable::Withdraw) if n >= policy.max_failed_polls => Meaning::NoHealthyNode,
            (n, Unreachable::Announce) if n >= policy.max_failed_polls => Meaning::Freeze,
            (_, Unreachable::Withdraw | Unreachable::Announce) => Meaning::Hold,
        }
    }

    /// Whether one more failure would reach the limit.
    pub fn is_at_the_brink(self, policy: FailurePolicy) -> bool {
        self.in_a_row.saturating_add(1) >= policy.max_failed_polls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_acts_when_it_is_reached_and_one_answer_resets_it() {
        for (word, at_limit) in
            [(Unreachable::Withdraw, Meaning::NoHealthyNode), (Unreachable::Announce, Meaning::Freeze)]
        {
            let policy = FailurePolicy { control_api_unreachable: word, max_failed_polls: 3 };
            let mut polls = FailedPolls::default();
            let mut seen = vec![polls.meaning(policy)];
            for _ in 0..4 {
                polls.count(PollFailure::Refused);
                seen.push(polls.meaning(policy));
            }
            assert_eq!(seen, [Meaning::None, Meaning::Hold, Meaning::Hold, at_limit, at_limit]);
            polls.reset();
            assert_eq!(polls.meaning(policy), Meaning::None);
        }
    }
}

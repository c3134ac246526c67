//! What is known about one upstream: its standing by the last answer, and the failed polls since.

use std::collections::BTreeSet;
use std::fmt;

use model::time::Timestamp;
use model::vip::{FailurePolicy, UpstreamRef};
use serde::{Deserialize, Serialize};

use crate::answer::{Answer, Node, PollFailure, is_known_word};
use crate::failure::{FailedPolls, Meaning};
use crate::warming;

/// What the last answer said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// At least one node counts.
    Healthy {
        /// How many count.
        counting: usize,
        /// Of how many.
        of: usize,
    },
    /// No node counts and at least one is not judged yet.
    Warming {
        /// The first such answer in a row.
        since: Timestamp,
    },
    /// No node counts.
    Sick(Cause),
}

/// Why an upstream has no healthy node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The control API knows no such object.
    UnknownObject,
    /// The object has no health check.
    NoChecker,
    /// The object's list of nodes is empty.
    NoNodes,
    /// All nodes are judged and none counts.
    AllUnhealthy {
        /// How many there are.
        nodes: usize,
    },
    /// Nodes stayed unjudged for longer than the hold lasts.
    WarmingTooLong,
    /// The control API did not answer often enough in a row.
    ApiUnreachable {
        /// How often.
        failed_polls: u32,
    },
}

/// What an upstream says to the VIPs that name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opinion {
    /// It has a healthy node.
    Up,
    /// It has none.
    Down(Cause),
    /// It cannot say yet; the last decision stands.
    Hold(HeldFor),
    /// The VIP must stay as it is.
    Freeze {
        /// Failed polls in a row.
        failed_polls: u32,
    },
}

/// Why the last decision stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldFor {
    /// Nodes are not judged yet.
    Warming,
    /// There was no answer yet, and fewer failures than the limit.
    NoAnswer,
}

/// The record of one upstream.
#[derive(Clone, Debug, Default)]
pub struct Upstream {
    standing: Option<Standing>,
    failed: FailedPolls,
    nodes: Vec<Node>,
    polled_at: Option<Timestamp>,
    odd_words: BTreeSet<String>,
    odd_name: bool,
}

/// What is worth a line after an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// A status word that nobody knows; it counts as not healthy.
    UnknownWord(String),
    /// The answer calls itself something else.
    OtherName(String),
}

impl Upstream {
    /// Takes an answer in and returns what is worth a line, once for each word and name.
    pub fn take(
        &mut self,
        now: Timestamp,
        upstream: &UpstreamRef,
        answer: Answer,
        healthy_states: &[String],
    ) -> Vec<Remark> {
        let mut remarks = Vec::new();
        self.polled_at = Some(now);
        let standing = match answer {
            Answer::Failed(failure) => {
                self.failed.count(failure);
                return remarks;
            }
            Answer::UnknownObject => self.without_nodes(Cause::UnknownObject),
            Answer::NoChecker => self.without_nodes(Cause::NoChecker),
            // What is healthy elsewhere says nothing here.
            Answer::Nodes { name: Some(name), .. } if !is_named(&name, upstream) => {
                if !std::mem::replace(&mut self.odd_name, true) {
                    remarks.push(Remark::OtherName(name));
                }
                self.failed.count(PollFailure::OtherObject);
                return remarks;
            }
            Answer::Nodes { name: _, nodes } => {
                self.remark(&nodes, healthy_states, &mut remarks);
                let standing = self.judge(now, &nodes, healthy_states);
                self.nodes = nodes;
                standing
            }
        };
        self.failed.reset();
        self.standing = Some(standing);
        remarks
    }

    /// What it says now.
    pub fn opinion(&self, now: Timestamp, policy: FailurePolicy) -> Opinion {
        match self.failed.meaning(policy) {
            Meaning::NoHealthyNode => Opinion::Down(Cause::ApiUnreachable { failed_polls: self.failed.in_a_row }),
            Meaning::Freeze => Opinion::Freeze { failed_polls: self.failed.in_a_row },
            Meaning::None | Meaning::Hold => match self.standing {
                None => Opinion::Hold(HeldFor::NoAnswer),
                Some(Standing::Healthy { .. }) => Opinion::Up,
                Some(Standing::Sick(cause)) => Opinion::Down(cause),
                Some(Standing::Warming { since }) if warming::is_over(since, now) => {
                    Opinion::Down(Cause::WarmingTooLong)
                }
                Some(Standing::Warming { .. }) => Opinion::Hold(HeldFor::Warming),
            },
        }
    }

    /// What the last answer said; `None` before the first one.
    pub fn standing(&self) -> Option<Standing> {
        self.standing
    }

    /// Failed polls since the last answer.
    pub fn failed_polls(&self) -> FailedPolls {
        self.failed
    }

    /// The nodes of the last answer.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// When the last poll ended, with or without an answer.
    pub fn polled_at(&self) -> Option<Timestamp> {
        self.polled_at
    }

    /// When the hold for unjudged nodes ends, while there is one.
    pub fn warming_ends_at(&self) -> Option<Timestamp> {
        match self.standing {
            Some(Standing::Warming { since }) => Some(warming::ends_at(since)),
            Some(Standing::Healthy { .. } | Standing::Sick(_)) | None => None,
        }
    }

    fn without_nodes(&mut self, cause: Cause) -> Standing {
        self.nodes.clear();
        Standing::Sick(cause)
    }

    fn judge(&self, now: Timestamp, nodes: &[Node], healthy_states: &[String]) -> Standing {
        let counting = nodes.iter().filter(|node| node.counts(healthy_states)).count();
        if counting > 0 {
            Standing::Healthy { counting, of: nodes.len() }
        } else if nodes.is_empty() {
            Standing::Sick(Cause::NoNodes)
        } else if nodes.iter().any(Node::is_unjudged) {
            match self.standing {
                Some(Standing::Warming { since }) => Standing::Warming { since },
                Some(Standing::Healthy { .. } | Standing::Sick(_)) | None => Standing::Warming { since: now },
            }
        } else {
            Standing::Sick(Cause::AllUnhealthy { nodes: nodes.len() })
        }
    }

    fn remark(&mut self, nodes: &[Node], healthy_states: &[String], remarks: &mut Vec<Remark>) {
        for word in nodes.iter().filter_map(|node| node.status.as_ref()) {
            let odd = !is_known_word(word) && !healthy_states.contains(word);
            if odd && self.odd_words.len() < MAX_ODD_WORDS && self.odd_words.insert(word.clone()) {
                remarks.push(Remark::UnknownWord(word.clone()));
            }
        }
    }
}

/// Whether an answer's name is that of what was asked for. A prefix may stand in front (`/apisix`), or none at all; the
/// end is what was asked for. An id may hold slashes.
fn is_named(name: &str, upstream: &UpstreamRef) -> bool {
    let rest = name.strip_suffix(upstream.id.as_str()).and_then(|rest| rest.strip_suffix('/'));
    rest.and_then(|rest| rest.strip_suffix(upstream.kind.as_str()))
        .is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownObject => f.write_str("the control API knows no such object"),
            Self::NoChecker => f.write_str("the object has no health check"),
            Self::NoNodes => f.write_str("the object has no nodes, or no checker has been built yet"),
            Self::AllUnhealthy { nodes } => write!(f, "none of {nodes} nodes is healthy"),
            Self::WarmingTooLong => {
                write!(f, "nodes are still not judged after {} s", warming::WARMING_LIMIT.as_secs())
            }
            Self::ApiUnreachable { failed_polls } => {
                write!(f, "the control API did not answer {failed_polls} polls in a row")
            }
        }
    }
}

impl Cause {
    /// One word for machines.
    pub fn word(self) -> &'static str {
        match self {
            Self::UnknownObject => "unknown_object",
            Self::NoChecker => "no_checker",
            Self::NoNodes => "no_nodes",
            Self::AllUnhealthy { .. } => "all_unhealthy",
            Self::WarmingTooLong => "warming_too_long",
            Self::ApiUnreachable { .. } => "api_unreachable",
        }
    }
}

impl HeldFor {
    /// One word for machines.
    pub fn word(self) -> &'static str {
        match self {
            Self::Warming => "warming",
            Self::NoAnswer => "no_answer",
        }
    }
}

/// At most so many different odd words of one upstream are remembered.
const MAX_ODD_WORDS: usize = 16;

#[cfg(test)]
mod tests;

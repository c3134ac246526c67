//! What one poll of one upstream came to.
//!
//! Three kinds of answer are told apart, because they mean different things: the API listed nodes, the API answered
//! that there is nothing to list, or there was no answer at all. Only the last one is a failed poll.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What one poll came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The object and its nodes; the list is empty while no checker has been built.
    Nodes {
        /// The name that the answer gave itself, to be compared with what was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The nodes, without those that are being removed.
        nodes: Vec<Node>,
    },
    /// 404: no object of this name.
    UnknownObject,
    /// 404: the object exists and has no health check.
    NoChecker,
    /// No usable answer.
    Failed(PollFailure),
}

/// One node of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// `ip:port`, for people.
    pub address: String,
    /// The status word as it was sent; `None` when there was none.
    pub status: Option<String>,
}

/// Why a poll gave nothing usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PollFailure {
    /// Nobody listens there.
    Refused,
    /// No complete answer before the cycle's deadline.
    Timeout,
    /// The connection broke, or could not be made for another reason.
    Transport,
    /// An answer with a status that is neither a success nor 404.
    Status(u16),
    /// A body that is no health document, or too long to be one.
    Unreadable,
    /// A health document about something else than what was asked for.
    OtherObject,
}

impl fmt::Display for PollFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("connection refused"),
            Self::Timeout => f.write_str("timeout"),
            Self::Transport => f.write_str("connection failed"),
            Self::Status(status) => write!(f, "status {status}"),
            Self::Unreadable => f.write_str("unreadable answer"),
            Self::OtherObject => f.write_str("answer about something else"),
        }
    }
}

impl Node {
    /// Whether traffic goes to this node, by the configured list of states.
    pub fn counts(&self, healthy_states: &[String]) -> bool {
        self.status.as_ref().is_some_and(|status| healthy_states.contains(status))
    }

    /// Whether nobody has judged this node yet: the word `unknown`, or no word at all.
    pub fn is_unjudged(&self) -> bool {
        self.status.as_deref().is_none_or(|status| status == "unknown")
    }
}

/// Whether a status word is one that APISIX or Lazaret are known to send.
pub fn is_known_word(word: &str) -> bool {
    matches!(word, "healthy" | "mostly_healthy" | "mostly_unhealthy" | "unhealthy" | "unknown")
}

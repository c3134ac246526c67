//! What is worth a line in the journal: one variant per message, and its text.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use model::vip::{Unreachable, UpstreamRef};
use serde::{Deserialize, Serialize};

use crate::answer::PollFailure;
use crate::kernel::{AddressKey, LinkState};
use crate::reconcile::{Action, Why};
use crate::upstream::{Cause, Standing};
use crate::vip::{Because, Wanted};

/// How loud a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Things go as they should.
    Info,
    /// Something needs a look.
    Warning,
    /// Something does not work.
    Error,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The first complete cycle is over and decisions are made from now on.
    Running {
        /// VIPs that were found on the interface.
        found: Vec<IpAddr>,
    },
    /// A decision was made or turned over.
    Decided {
        /// The VIP.
        address: IpAddr,
        /// Its description.
        description: String,
        /// The decision.
        wanted: Wanted,
        /// Why.
        because: Because,
    },
    /// An upstream changed its standing.
    Standing {
        /// Which.
        upstream: UpstreamRef,
        /// What the answer says now.
        standing: Standing,
    },
    /// The first failed poll after an answer.
    PollFailed {
        /// Of which upstream.
        upstream: UpstreamRef,
        /// How it failed.
        failure: PollFailure,
        /// The policy's limit.
        max_failed_polls: u32,
    },
    /// The limit of failed polls is reached.
    LimitReached {
        /// Of which upstream.
        upstream: UpstreamRef,
        /// How the last one failed.
        failure: PollFailure,
        /// How many in a row.
        failed_polls: u32,
        /// What the policy does now.
        policy: Unreachable,
    },
    /// An answer after failed polls.
    Answering {
        /// Of which upstream.
        upstream: UpstreamRef,
        /// How many failed in between.
        failed_polls: u32,
    },
    /// A status word that nobody knows.
    UnknownWord {
        /// In the answer about which upstream.
        upstream: UpstreamRef,
        /// The word.
        word: String,
    },
    /// The answer is about something else.
    OtherName {
        /// What was asked for.
        upstream: UpstreamRef,
        /// What the answer calls itself.
        name: String,
    },
    /// An address was put there or taken off.
    Changed {
        /// Which.
        key: AddressKey,
        /// What was done.
        action: Action,
        /// Why.
        why: Why,
    },
    /// Putting there or taking off failed; it is tried again.
    ChangeFailed {
        /// Which.
        key: AddressKey,
        /// What was tried.
        action: Action,
        /// The kernel's words.
        error: String,
        /// How often it failed in a row.
        attempts: u32,
        /// When it is tried again.
        retry_in: Duration,
    },
    /// An announced VIP is gone though nobody here took it off.
    Lost {
        /// Which.
        key: AddressKey,
    },
    /// The interface is not there.
    InterfaceMissing {
        /// Its name.
        interface: String,
    },
    /// The interface is there (again).
    InterfaceFound {
        /// Its name.
        interface: String,
        /// Up or down.
        state: LinkState,
    },
    /// The interface was set up or down.
    InterfaceTurned {
        /// Its name.
        interface: String,
        /// Up or down.
        state: LinkState,
    },
    /// The kernel could not be asked for its addresses.
    ReadFailed {
        /// Its words.
        error: String,
    },
    /// A new configuration is in force.
    Reloaded {
        /// VIPs that are new.
        added: Vec<IpAddr>,
        /// VIPs that are gone.
        dropped: Vec<IpAddr>,
    },
    /// A planned stop began.
    Stopping,
    /// The stop took too long; this is left behind.
    LeftBehind {
        /// The addresses.
        keys: Vec<AddressKey>,
    },
}

impl Event {
    /// How loud its line is.
    pub fn level(&self) -> Level {
        match self {
            Self::Running { .. } | Self::Changed { .. } | Self::Answering { .. } | Self::InterfaceFound { .. } => {
                Level::Info
            }
            Self::Reloaded { .. } | Self::Stopping => Level::Info,
            Self::Decided { wanted: Wanted::Announced, .. } => Level::Info,
            Self::Decided { wanted: Wanted::Withdrawn, .. } => Level::Warning,
            Self::InterfaceTurned { state: LinkState::Up, .. } => Level::Info,
            Self::InterfaceTurned { state: LinkState::Down, .. } => Level::Warning,
            Self::Standing { standing: Standing::Healthy { .. } | Standing::Warming { .. }, .. } => Level::Info,
            Self::Standing { standing: Standing::Sick(cause), .. } => match cause {
                Cause::UnknownObject | Cause::NoChecker | Cause::NoNodes => Level::Warning,
                Cause::AllUnhealthy { .. } | Cause::WarmingTooLong | Cause::ApiUnreachable { .. } => Level::Warning,
            },
            Self::PollFailed { .. } | Self::UnknownWord { .. } | Self::OtherName { .. } | Self::Lost { .. } => {
                Level::Warning
            }
            Self::LimitReached { .. } | Self::ChangeFailed { .. } | Self::InterfaceMissing { .. } => Level::Error,
            Self::ReadFailed { .. } | Self::LeftBehind { .. } => Level::Error,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running { found } if found.is_empty() => f.write_str("first cycle complete, no VIP was up"),
            Self::Running { found } => write!(f, "first cycle complete, found up: {}", list(found)),
            Self::Decided { address, description, wanted, because } => {
                // A decision alone puts nothing on the interface; `added` tells when it stands there.
                let verb = match wanted {
                    Wanted::Announced => "is to be",
                    Wanted::Withdrawn => "is",
                };
                write!(f, "VIP {address}{} {verb} {}: {because}", bracketed(description), wanted.word())
            }
            Self::Standing { upstream, standing: Standing::Healthy { counting, of } } => {
                write!(f, "{upstream}: {counting} of {of} nodes are healthy")
            }
            Self::Standing { upstream, standing: Standing::Warming { .. } } => {
                write!(f, "{upstream}: no node is healthy and some are not judged yet")
            }
            Self::Standing { upstream, standing: Standing::Sick(cause) } => write!(f, "{upstream}: {cause}"),
            Self::PollFailed { upstream, failure, max_failed_polls } => {
                write!(f, "{upstream}: poll failed ({failure}), {max_failed_polls} in a row are the limit")
            }
            Self::LimitReached { upstream, failure, failed_polls, policy } => {
                let effect = match policy {
                    Unreachable::Withdraw => "it counts as having no healthy node",
                    Unreachable::Announce => "its VIPs stay as they are",
                };
                write!(f, "{upstream}: {failed_polls} polls failed in a row (last: {failure}), {effect}")
            }
            Self::Answering { upstream, failed_polls } => {
                write!(f, "{upstream}: answered after {failed_polls} failed polls")
            }
            Self::UnknownWord { upstream, word } => {
                write!(f, "{upstream}: unknown node status {word:?} counts as not healthy")
            }
            Self::OtherName { upstream, name } => write!(f, "{upstream}: the answer calls itself {name:?}"),
            Self::Changed { key, action: Action::Add, why } => write!(f, "added {key}: {}", why.text()),
            Self::Changed { key, action: Action::Remove, why } => write!(f, "removed {key}: {}", why.text()),
            Self::ChangeFailed { key, action, error, attempts, retry_in } => {
                let verb = match action {
                    Action::Add => "adding",
                    Action::Remove => "removing",
                };
                write!(f, "{verb} {key} failed: {error} (attempt {attempts}, again in {} ms)", retry_in.as_millis())
            }
            Self::Lost { key } => write!(f, "{key} is gone though it was not withdrawn"),
            Self::InterfaceMissing { interface } => write!(f, "there is no interface {interface}"),
            Self::InterfaceFound { interface, state } => write!(f, "interface {interface} is there, {}", state.word()),
            Self::InterfaceTurned { interface, state } => write!(f, "interface {interface} is {}", state.word()),
            Self::ReadFailed { error } => write!(f, "the addresses cannot be read: {error}"),
            Self::Reloaded { added, dropped } => {
                write!(f, "configuration reloaded, new VIPs: {}, dropped: {}", list(added), list(dropped))
            }
            Self::Stopping => f.write_str("stopping"),
            Self::LeftBehind { keys } => write!(f, "left behind: {}", list(keys)),
        }
    }
}

impl LinkState {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

fn list<T: fmt::Display>(items: &[T]) -> String {
    if items.is_empty() {
        return "none".to_owned();
    }
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn bracketed(description: &str) -> String {
    if description.is_empty() { String::new() } else { format!(" ({description})") }
}

//! Compares what should be on the interface with what is there, and says what to change.
//!
//! Level-triggered: a pure function of the decisions and the last picture, called after every change of either. So it
//! does not matter whether a difference came from a decision, from somebody else's command, from a link that went down
//! or from a call of ours that failed.
//!
//! - A VIP that is wanted is there with a host prefix; once it is, the same address with another prefix length goes.
//! - A managed VIP that is not wanted goes, with whatever prefix length, whoever put it there.
//! - An address with our tag that is no VIP goes. Anything else is left alone.
//! - An interface that the configuration left keeps a wanted VIP until the new one has it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::kernel::{AddressKey, Picture, Tag, host_prefix};
use crate::vip::Wanted;

/// What should be.
#[derive(Clone, Debug, Default)]
pub struct Desired<'a> {
    /// The interface that BIRD watches.
    pub interface: &'a str,
    /// Each VIP about which there is a decision.
    pub vips: BTreeMap<IpAddr, Wanted>,
    /// VIPs without a decision: neither put up nor taken off.
    pub undecided: BTreeSet<IpAddr>,
    /// VIPs that a reload dropped.
    pub dropped: BTreeSet<IpAddr>,
    /// Interfaces that a reload left.
    pub leaving: BTreeSet<String>,
}

/// Put it there or take it off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Put it there.
    Add,
    /// Take it off.
    Remove,
}

/// Why an address is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The VIP is announced.
    Announced,
    /// The VIP is withdrawn.
    Withdrawn,
    /// A planned stop withdraws it.
    Stopping,
    /// It stands there with a host prefix as well.
    WrongPrefix,
    /// It carries our tag and is no VIP.
    Leftover,
    /// A reload dropped it from the configuration.
    Dropped,
    /// A reload named another interface.
    InterfaceLeft,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which address.
    pub key: AddressKey,
    /// Put there or taken off.
    pub action: Action,
    /// Why.
    pub why: Why,
}

/// The changes that lead from the picture to what is desired; additions first.
pub fn changes(desired: &Desired<'_>, picture: &Picture) -> Vec<Change> {
    let mut changes = Vec::new();
    if picture.link(desired.interface).is_some() {
        for (&address, wanted) in &desired.vips {
            if wanted.is_announced() && !picture.has_host(desired.interface, address) {
                let key =
                    AddressKey { interface: desired.interface.to_owned(), address, prefix_len: host_prefix(address) };
                changes.push(Change { key, action: Action::Add, why: Why::Announced });
            }
        }
    }
    for held in picture.held(desired.interface) {
        let why = match desired.vips.get(&held.address) {
            Some(Wanted::Withdrawn) => Some(Why::Withdrawn),
            Some(Wanted::Announced) => (held.prefix_len != host_prefix(held.address)
                && picture.has_host(desired.interface, held.address))
            .then_some(Why::WrongPrefix),
            None if desired.undecided.contains(&held.address) => None,
            None if desired.dropped.contains(&held.address) => Some(Why::Dropped),
            None => match held.tag {
                Tag::Ours => Some(Why::Leftover),
                Tag::Foreign => None,
            },
        };
        changes.extend(why.map(|why| remove(desired.interface, held.address, held.prefix_len, why)));
    }
    for interface in &desired.leaving {
        for held in picture.held(interface) {
            let managed = desired.vips.contains_key(&held.address) || desired.dropped.contains(&held.address);
            let is_ours = managed || matches!(held.tag, Tag::Ours);
            let is_needed = desired.undecided.contains(&held.address)
                || desired.vips.get(&held.address).is_some_and(|wanted| wanted.is_announced())
                    && !picture.has_host(desired.interface, held.address);
            if is_ours && !is_needed {
                changes.push(remove(interface, held.address, held.prefix_len, Why::InterfaceLeft));
            }
        }
    }
    changes
}

fn remove(interface: &str, address: IpAddr, prefix_len: u8, why: Why) -> Change {
    let key = AddressKey { interface: interface.to_owned(), address, prefix_len };
    Change { key, action: Action::Remove, why }
}

impl Why {
    /// Words for the log.
    pub fn text(self) -> &'static str {
        match self {
            Self::Announced => "the VIP is announced",
            Self::Withdrawn => "the VIP is withdrawn",
            Self::Stopping => "a planned stop withdraws it",
            Self::WrongPrefix => "it stands there with a host prefix as well",
            Self::Leftover => "it carries our tag and is no VIP of the configuration",
            Self::Dropped => "the configuration no longer names it",
            Self::InterfaceLeft => "the configuration names another interface",
        }
    }
}

#[cfg(test)]
mod tests;

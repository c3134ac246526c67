//! From decisions to addresses: looking at the kernel, comparing, commanding, and taking the answers in.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use model::time::Timestamp;

use crate::core::{Changed, Core, Output, Phase};
use crate::event::Event;
use crate::kernel::{AddressKey, Link, LinkState, host_prefix};
use crate::reconcile::{Action, Change, Desired, Why, changes};
use crate::timers::Timer;
use crate::vip::Wanted;

/// The state of asking the kernel for its addresses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    is_under_way: bool,
    is_stale: bool,
    has_failed: bool,
    /// Looks that were asked for; the answer to each comes before the next one is asked for.
    pub(crate) asked: u64,
    /// The number of the last one that was answered.
    pub(crate) seen: u64,
    not_before: Timestamp,
}

/// Two looks at the kernel are at least so far apart, so that a storm of notifications costs little.
const READ_SPACING: Duration = Duration::from_millis(20);
/// A look that failed is tried again after this.
const READ_RETRY: Duration = Duration::from_secs(1);

impl Core {
    pub(crate) fn read_addresses(&mut self, now: Timestamp) {
        if self.reading.is_under_way {
            self.reading.is_stale = true;
        } else if now < self.reading.not_before {
            self.timers.set(Timer::Read, Some(self.reading.not_before));
        } else {
            self.reading.is_under_way = true;
            self.reading.asked = self.reading.asked.saturating_add(1);
            self.reading.not_before = now + READ_SPACING;
            self.timers.set(Timer::Read, None);
            self.outputs.push_back(Output::ReadAddresses { interfaces: self.interfaces() });
        }
    }

    pub(crate) fn on_addresses(&mut self, now: Timestamp, interfaces: BTreeMap<String, Option<Link>>) {
        let interface = self.config.interface.clone();
        let known = self.picture.knows(&interface);
        let before = self.picture.link(&interface).map(|link| (link.index, link.state));
        self.picture.replace(interfaces);
        let after = self.picture.link(&interface).map(|link| (link.index, link.state));
        if self.picture.knows(&interface) {
            self.compare_links(&interface, known, before, after);
        }
        self.note_losses();
        self.reading.is_under_way = false;
        self.reading.has_failed = false;
        self.reading.seen = self.reading.asked;
        if std::mem::take(&mut self.reading.is_stale) {
            self.read_addresses(now);
        }
    }

    pub(crate) fn on_read_failed(&mut self, now: Timestamp, error: String) {
        if !std::mem::replace(&mut self.reading.has_failed, true) {
            self.say(Event::ReadFailed { error });
        }
        self.reading.is_under_way = false;
        self.reading.is_stale = false;
        self.timers.set(Timer::Read, Some(now + READ_RETRY));
    }

    fn compare_links(
        &mut self,
        interface: &str,
        known: bool,
        before: Option<(u32, LinkState)>,
        after: Option<(u32, LinkState)>,
    ) {
        let interface = interface.to_owned();
        match (before, after) {
            (None, None) if known => return,
            (None, None) => self.say(Event::InterfaceMissing { interface }),
            (Some(_), None) => {
                self.confirmed.clear();
                self.say(Event::InterfaceMissing { interface });
            }
            (None, Some((_, state))) if known => self.say(Event::InterfaceFound { interface, state }),
            (None, Some(_)) => return,
            (Some(old), Some(new)) if old == new => return,
            (Some((old, _)), Some((new, state))) if old != new => {
                self.confirmed.clear();
                self.say(Event::InterfaceFound { interface, state });
            }
            (Some(_), Some((_, state))) => self.say(Event::InterfaceTurned { interface, state }),
        }
        self.commands.lift_waits();
    }

    /// An announced VIP that was there and is gone was taken off by somebody else.
    fn note_losses(&mut self) {
        let interface = self.config.interface.clone();
        let announced: Vec<IpAddr> = self
            .decisions
            .iter()
            .filter(|(_, decision)| decision.wanted.is_announced())
            .map(|(address, _)| *address)
            .collect();
        for address in announced {
            let key = AddressKey { interface: interface.clone(), address, prefix_len: host_prefix(address) };
            if self.picture.has_host(&interface, address) {
                self.confirmed.insert(address);
            } else if !self.commands.is_under_way(&key) && self.confirmed.remove(&address) {
                self.say(Event::Lost { key });
            }
        }
    }

    pub(crate) fn on_changed(&mut self, now: Timestamp, key: AddressKey, result: Changed) {
        let Some((action, why)) = self.commands.answered(&key) else { return };
        if let Changed::Failed(error) = result {
            let (attempts, retry_in) = self.commands.failed(now, &key, action, &error);
            self.say(Event::ChangeFailed { key, action, error, attempts, retry_in });
            self.read_addresses(now);
            return;
        }
        self.commands.succeeded(&key);
        let is_host = key.interface == self.config.interface && key.prefix_len == host_prefix(key.address);
        match action {
            Action::Add => self.picture.put(&key),
            Action::Remove => self.picture.take_off(&key),
        }
        if is_host {
            match action {
                Action::Add => self.confirmed.insert(key.address),
                Action::Remove => self.confirmed.remove(&key.address),
            };
        }
        if matches!(result, Changed::AlreadySo) {
            self.read_addresses(now);
        }
        self.say(Event::Changed { key, action, why });
    }

    fn desired(&self) -> Desired<'_> {
        let mut desired = Desired {
            interface: &self.config.interface,
            dropped: self.dropped.clone(),
            leaving: self.leaving.clone(),
            ..Desired::default()
        };
        for vip in &self.config.vips {
            match (self.phase, self.decisions.get(&vip.address)) {
                (Phase::Stopping, _) => {
                    desired.vips.insert(vip.address, Wanted::Withdrawn);
                }
                (Phase::Starting | Phase::Running | Phase::Stopped, Some(decision)) => {
                    desired.vips.insert(vip.address, decision.wanted);
                }
                (Phase::Starting | Phase::Running | Phase::Stopped, None) => {
                    desired.undecided.insert(vip.address);
                }
            }
        }
        desired
    }

    pub(crate) fn reconcile(&mut self, now: Timestamp) {
        if !self.may_change() {
            return;
        }
        let changes = self.pending_changes();
        self.forget_what_is_done();
        for change in self.commands.send(now, changes) {
            self.outputs.push_back(match change.action {
                Action::Add => Output::AddAddress(change.key),
                Action::Remove => Output::RemoveAddress(change.key),
            });
        }
        self.timers.set(Timer::Retry, self.commands.next_retry());
    }

    /// Dropped VIPs and interfaces that were left need no memory once nothing of them is there.
    fn forget_what_is_done(&mut self) {
        let (picture, current) = (&self.picture, &self.config.interface);
        let managed = |address: IpAddr| {
            self.dropped.contains(&address) || self.config.vips.iter().any(|vip| vip.address == address)
        };
        self.leaving
            .retain(|interface| !picture.knows(interface) || picture.held(interface).any(|held| managed(held.address)));
        let leaving = &self.leaving;
        self.dropped.retain(|address| {
            !picture.knows(current)
                || picture.has_any(current, *address)
                || leaving.iter().any(|interface| picture.has_any(interface, *address))
        });
    }

    pub(crate) fn pending_changes(&self) -> Vec<Change> {
        let mut changes = changes(&self.desired(), &self.picture);
        if matches!(self.phase, Phase::Stopping) {
            for change in changes.iter_mut().filter(|change| change.why == Why::Withdrawn) {
                change.why = Why::Stopping;
            }
        }
        changes
    }
}

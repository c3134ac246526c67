//! The core: inputs in, effects out, and the walk from a poll to a change on the interface.
//!
//! ```text
//!               first cycle complete and
//!               addresses seen                    Stop
//!   Starting ───────────────────────> Running ───────────> Stopping ───> Stopped
//!   polls, reads, changes nothing      decides, reconciles   withdraws or keeps
//! ```
//!
//! After every input the decisions are compared with the picture of the kernel, so no path can forget to act.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use model::time::Timestamp;
use model::vip::{RhiConfig, UpstreamRef, Vip};
use serde::{Deserialize, Serialize};

use crate::answer::{Answer, PollFailure};
use crate::commands::Commands;
use crate::cycle::Cycle;
use crate::event::Event;
use crate::kernel::{AddressKey, Link, Picture, host_prefix};
use crate::quorum::{self, Seat, distinct};
use crate::reconcile::{Action, Desired, changes};
use crate::timers::{Timer, Timers};
use crate::upstream::{Remark, Upstream};
use crate::vip::{Decision, Wanted, decide};

/// What happened outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// A deadline of [`Core::poll_timeout`] is over.
    TimerDue,
    /// A poll ended.
    PollAnswered {
        /// The number of [`Output::Poll`].
        cycle: u64,
        /// Which upstream.
        upstream: UpstreamRef,
        /// What it came to.
        answer: Answer,
    },
    /// Something about addresses or interfaces changed, or notifications were lost.
    AddressesChanged,
    /// The answer to [`Output::ReadAddresses`]; an interface that does not exist is `None`.
    AddressesSeen {
        /// By name.
        interfaces: BTreeMap<String, Option<Link>>,
    },
    /// [`Output::ReadAddresses`] could not be done.
    ReadFailed {
        /// The kernel's words.
        error: String,
    },
    /// The answer to [`Output::AddAddress`] or [`Output::RemoveAddress`].
    AddressChanged {
        /// Which address.
        key: AddressKey,
        /// What came of it.
        result: Changed,
    },
    /// A new configuration, already checked.
    ConfigChanged(Box<RhiConfig>),
    /// A planned stop.
    Stop,
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Changed {
    /// Done.
    Done,
    /// It was there (or gone) already, which is as good.
    AlreadySo,
    /// The kernel refused.
    Failed(String),
}

/// What is to be done outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// Ask for all of these at once; whatever is still running of an earlier cycle is given up.
    Poll {
        /// To be repeated in the answers.
        cycle: u64,
        /// Whom to ask for.
        upstreams: BTreeSet<UpstreamRef>,
        /// When an answer comes too late.
        deadline: Timestamp,
    },
    /// Read the addresses of these interfaces.
    ReadAddresses {
        /// Their names.
        interfaces: BTreeSet<String>,
    },
    /// Put an address there.
    AddAddress(AddressKey),
    /// Take an address off.
    RemoveAddress(AddressKey),
    /// Write a line.
    Event(Event),
    /// Nothing is left to do; the process may end.
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Starting,
    Running,
    Stopping,
    Stopped,
}

/// The decision core of `lazaret-rhi`.
#[derive(Debug)]
pub struct Core {
    pub(crate) config: RhiConfig,
    pub(crate) phase: Phase,
    pub(crate) upstreams: BTreeMap<UpstreamRef, Upstream>,
    pub(crate) decisions: BTreeMap<IpAddr, Decision>,
    pub(crate) cycle: Cycle,
    pub(crate) picture: Picture,
    pub(crate) confirmed: BTreeSet<IpAddr>,
    pub(crate) commands: Commands,
    pub(crate) dropped: BTreeSet<IpAddr>,
    pub(crate) leaving: BTreeSet<String>,
    pub(crate) reading: Reading,
    pub(crate) confirm_stop_after: u64,
    pub(crate) timers: Timers,
    pub(crate) outputs: VecDeque<Output>,
}

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
    /// A core that polls at once and changes nothing before its first cycle is complete.
    pub fn new(now: Timestamp, config: RhiConfig) -> Self {
        let mut core = Self {
            upstreams: BTreeMap::new(),
            config,
            phase: Phase::Starting,
            decisions: BTreeMap::new(),
            cycle: Cycle::default(),
            picture: Picture::default(),
            confirmed: BTreeSet::new(),
            commands: Commands::default(),
            dropped: BTreeSet::new(),
            leaving: BTreeSet::new(),
            reading: Reading::default(),
            confirm_stop_after: 0,
            timers: Timers::default(),
            outputs: VecDeque::new(),
        };
        core.upstreams = core.named_upstreams().into_iter().map(|name| (name, Upstream::default())).collect();
        core.read_addresses(now);
        core.start_cycle(now);
        core
    }

    /// Takes one input in.
    pub fn handle(&mut self, now: Timestamp, input: Input) {
        match self.phase {
            Phase::Stopped => return,
            Phase::Starting | Phase::Running | Phase::Stopping => {}
        }
        match input {
            Input::TimerDue => self.on_timers(now),
            Input::PollAnswered { cycle, upstream, answer } => self.on_answer(now, cycle, upstream, answer),
            Input::AddressesChanged => self.read_addresses(now),
            Input::AddressesSeen { interfaces } => self.on_addresses(now, interfaces),
            Input::ReadFailed { error } => self.on_read_failed(now, error),
            Input::AddressChanged { key, result } => self.on_changed(now, key, result),
            Input::ConfigChanged(config) => self.reconfigure(now, *config),
            Input::Stop => self.begin_stop(now),
        }
        self.try_to_run(now);
        self.reconcile(now);
        self.try_to_end();
    }

    /// The next effect, in order; `None` when there is none for now.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Input::TimerDue`] is owed next.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Stopped => None,
            Phase::Starting | Phase::Running | Phase::Stopping => self.timers.next(),
        }
    }

    /// The configuration in force.
    pub fn config(&self) -> &RhiConfig {
        &self.config
    }

    /// The interfaces that carry, or may still carry, VIPs: the configured one and those that a reload left.
    pub fn interfaces(&self) -> BTreeSet<String> {
        let mut interfaces = self.leaving.clone();
        interfaces.insert(self.config.interface.clone());
        interfaces
    }

    /// How many VIPs are announced by decision, and of how many.
    pub fn announced(&self) -> (usize, usize) {
        let announced = self.decisions.values().filter(|decision| decision.wanted.is_announced()).count();
        (announced, self.config.vips.len())
    }

    /// Commands to the kernel that have failed so far.
    pub fn failed_changes(&self) -> u64 {
        self.commands.failures()
    }

    pub(crate) fn say(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    pub(crate) fn named_upstreams(&self) -> BTreeSet<UpstreamRef> {
        distinct(self.config.vips.iter().flat_map(|vip| vip.upstreams.iter()))
    }

    fn on_timers(&mut self, now: Timestamp) {
        while let Some(timer) = self.timers.take_due(now) {
            match timer {
                Timer::Cycle => self.start_cycle(now),
                Timer::CycleDeadline => self.on_cycle_deadline(now),
                Timer::Warming => self.decide_all(now),
                Timer::Read => self.read_addresses(now),
                // The reconciliation that follows every input sends what may be sent.
                Timer::Retry => {}
                Timer::Stop => self.give_up_stopping(),
            }
        }
    }

    pub(crate) fn start_cycle(&mut self, now: Timestamp) {
        let upstreams = self.named_upstreams();
        let deadline = now + self.config.timeout;
        let cycle = self.cycle.start(now, upstreams.clone());
        self.timers.set(Timer::Cycle, None);
        self.timers.set(Timer::CycleDeadline, Some(deadline));
        self.outputs.push_back(Output::Poll { cycle, upstreams, deadline });
    }

    fn on_answer(&mut self, now: Timestamp, cycle: u64, name: UpstreamRef, answer: Answer) {
        if !self.cycle.answered(cycle, &name) {
            return;
        }
        self.take_answer(now, &name, answer);
        if self.cycle.is_running() {
            self.decide(now, |vip| vip.upstreams.contains(&name));
        } else {
            self.end_cycle(now);
        }
    }

    fn on_cycle_deadline(&mut self, now: Timestamp) {
        for name in self.cycle.take_outstanding() {
            self.take_answer(now, &name, Answer::Failed(PollFailure::Timeout));
        }
        self.end_cycle(now);
    }

    fn end_cycle(&mut self, now: Timestamp) {
        self.cycle.complete();
        self.timers.set(Timer::CycleDeadline, None);
        self.timers.set(Timer::Cycle, Some(self.cycle.next_start(now, self.config.poll_interval)));
        // Before the next cycle starts, which may be at once: its outstanding answers would make decisions wait.
        self.try_to_run(now);
        self.decide_all(now);
        self.read_addresses(now);
    }

    fn take_answer(&mut self, now: Timestamp, name: &UpstreamRef, answer: Answer) {
        let Some(upstream) = self.upstreams.get_mut(name) else { return };
        let policy = self.config.failure_policy;
        let before = (upstream.standing(), upstream.failed_polls());
        let remarks = upstream.take(now, name, answer, &self.config.healthy_states);
        let after = (upstream.standing(), upstream.failed_polls());
        for remark in remarks {
            let upstream = name.clone();
            self.say(match remark {
                Remark::UnknownWord(word) => Event::UnknownWord { upstream, word },
                Remark::OtherName(name) => Event::OtherName { upstream, name },
            });
        }
        if let Some(failure) = after.1.last {
            let (upstream, failed_polls) = (name.clone(), after.1.in_a_row);
            if failed_polls == policy.max_failed_polls {
                let policy = policy.control_api_unreachable;
                self.say(Event::LimitReached { upstream, failure, failed_polls, policy });
            } else if failed_polls == 1 {
                self.say(Event::PollFailed { upstream, failure, max_failed_polls: policy.max_failed_polls });
            }
        } else if before.1.in_a_row > 0 {
            self.say(Event::Answering { upstream: name.clone(), failed_polls: before.1.in_a_row });
        }
        if let Some(standing) = after.0.filter(|_| before.0 != after.0) {
            self.say(Event::Standing { upstream: name.clone(), standing });
        }
    }

    pub(crate) fn decide_all(&mut self, now: Timestamp) {
        self.decide(now, |_| true);
        let holds = self.upstreams.values().filter_map(Upstream::warming_ends_at);
        self.timers.set(Timer::Warming, holds.filter(|at| *at > now).min());
    }

    fn decide(&mut self, now: Timestamp, concerned: impl Fn(&Vip) -> bool) {
        match self.phase {
            Phase::Running => {}
            Phase::Starting | Phase::Stopping | Phase::Stopped => return,
        }
        let mut events = Vec::new();
        for vip in self.config.vips.iter().filter(|vip| concerned(vip)) {
            let last = self.last_decision(vip.address);
            let Some((wanted, because)) = decide(last, self.join(now, vip), &vip.upstreams) else { continue };
            let old = self.decisions.get(&vip.address);
            let since = old.filter(|old| old.wanted == wanted).map_or(now, |old| old.since);
            if old.is_none_or(|old| old.wanted != wanted) {
                let (address, description) = (vip.address, vip.description.clone());
                events.push(Event::Decided { address, description, wanted, because: because.clone() });
            }
            self.decisions.insert(vip.address, Decision { wanted, because, since });
        }
        events.into_iter().for_each(|event| self.say(event));
    }

    fn join(&self, now: Timestamp, vip: &Vip) -> quorum::Joined {
        let policy = self.config.failure_policy;
        let unseen = Upstream::default();
        let seat = |name: &UpstreamRef| {
            let upstream = self.upstreams.get(name).unwrap_or(&unseen);
            if self.cycle.awaits(name) { Seat::awaited(upstream, policy) } else { Seat::heard(upstream, now, policy) }
        };
        quorum::join(vip.condition, &vip.upstreams.iter().map(seat).collect::<Vec<_>>())
    }

    fn last_decision(&self, address: IpAddr) -> Wanted {
        match self.decisions.get(&address) {
            Some(decision) => decision.wanted,
            None => Wanted::as_found(
                self.picture.has_any(&self.config.interface, address)
                    || self.leaving.iter().any(|interface| self.picture.has_any(interface, address)),
            ),
        }
    }

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

    fn on_addresses(&mut self, now: Timestamp, interfaces: BTreeMap<String, Option<Link>>) {
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

    fn on_read_failed(&mut self, now: Timestamp, error: String) {
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
        before: Option<(u32, crate::kernel::LinkState)>,
        after: Option<(u32, crate::kernel::LinkState)>,
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

    fn on_changed(&mut self, now: Timestamp, key: AddressKey, result: Changed) {
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

    fn reconcile(&mut self, now: Timestamp) {
        if !self.may_change() {
            return;
        }
        let changes = changes(&self.desired(), &self.picture);
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

    pub(crate) fn pending_changes(&self) -> Vec<crate::reconcile::Change> {
        changes(&self.desired(), &self.picture)
    }
}

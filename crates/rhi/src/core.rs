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

use model::time::Timestamp;
use model::vip::{RhiConfig, UpstreamRef};
use serde::{Deserialize, Serialize};

use crate::acting::Reading;
use crate::answer::Answer;
use crate::commands::Commands;
use crate::cycle::Cycle;
use crate::event::Event;
use crate::kernel::{AddressKey, Link, Picture};
use crate::quorum::distinct;
use crate::timers::{Timer, Timers};
use crate::upstream::Upstream;
use crate::vip::Decision;

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

    pub(crate) fn say(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    pub(crate) fn named_upstreams(&self) -> BTreeSet<UpstreamRef> {
        distinct(self.config.vips.iter().flat_map(|vip| vip.upstreams.iter()))
    }

    fn on_timers(&mut self, now: Timestamp) {
        while let Some((timer, due)) = self.timers.take_due(now) {
            match timer {
                Timer::Cycle => self.start_cycle(now),
                Timer::CycleDeadline => self.on_cycle_deadline(now, due),
                Timer::Warming => self.decide_all(now),
                Timer::Read => self.read_addresses(now),
                // The reconciliation that follows every input sends what may be sent.
                Timer::Retry => {}
                Timer::Stop => self.give_up_stopping(),
            }
        }
    }
}

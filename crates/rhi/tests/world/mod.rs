//! A world for the core: a scripted control API, a kernel in memory, and virtual time.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use model::time::Timestamp;
use model::vip::{Condition, FailurePolicy, OnExit, RhiConfig, Unreachable, UpstreamRef, Vip};
use rhi::core::Changed;
use rhi::kernel::{LinkState, Tag};
use rhi::{AddressKey, Answer, Core, Event, Held, Input, Link, Node, Output, PollFailure};

/// How the control API answers about one upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Answer(Answer),
    Silent,
}

pub struct World {
    pub core: Core,
    pub now: Timestamp,
    pub links: BTreeMap<String, Link>,
    pub replies: BTreeMap<UpstreamRef, Reply>,
    /// Every change of an address fails while this is set.
    pub refuses: bool,
    /// Polls are answered at once; else they wait in `outstanding`.
    pub answers_at_once: bool,
    pub outstanding: Vec<(u64, UpstreamRef)>,
    pub events: Vec<Event>,
    /// What happened since the last look, as text.
    pub log: Vec<String>,
    pub adds: BTreeMap<IpAddr, u32>,
    pub removes: BTreeMap<IpAddr, u32>,
    /// Commands that found nothing to do.
    pub idle_commands: u32,
    pub stopped: bool,
    next_index: u32,
}

pub fn upstream(id: &str) -> UpstreamRef {
    UpstreamRef { kind: "upstreams".to_owned(), id: id.to_owned() }
}

pub fn vip(address: &str, condition: Condition, upstreams: &[&str]) -> Vip {
    Vip {
        address: address.parse().expect("an address"),
        description: String::new(),
        upstreams: upstreams.iter().map(|id| upstream(id)).collect(),
        condition,
    }
}

pub fn config(vips: Vec<Vip>) -> RhiConfig {
    RhiConfig {
        poll_interval: Duration::from_secs(3),
        control_url: "http://127.0.0.1:9090".to_owned(),
        timeout: Duration::from_secs(5),
        interface: "rhi0".to_owned(),
        main_log: None,
        error_log: None,
        failure_policy: FailurePolicy { control_api_unreachable: Unreachable::Withdraw, max_failed_polls: 3 },
        healthy_states: vec!["healthy".to_owned(), "mostly_healthy".to_owned()],
        on_exit: OnExit::Withdraw,
        status_socket: "/run/lazaret-rhi/status.sock".into(),
        vips,
    }
}

pub fn nodes(states: &[&str]) -> Answer {
    let node = |state: &&str| Node { address: "10.1.0.1:80".to_owned(), status: Some((*state).to_owned()) };
    Answer::Nodes { name: None, nodes: states.iter().map(node).collect() }
}

pub fn failed() -> Answer {
    Answer::Failed(PollFailure::Refused)
}

impl World {
    pub fn start(config: RhiConfig) -> Self {
        let mut world = Self {
            core: Core::new(Timestamp::ZERO, config),
            now: Timestamp::ZERO,
            links: BTreeMap::new(),
            replies: BTreeMap::new(),
            refuses: false,
            answers_at_once: true,
            outstanding: Vec::new(),
            events: Vec::new(),
            log: Vec::new(),
            adds: BTreeMap::new(),
            removes: BTreeMap::new(),
            idle_commands: 0,
            stopped: false,
            next_index: 1,
        };
        world.make_link("rhi0");
        world
    }

    pub fn make_link(&mut self, name: &str) {
        let link = Link { index: self.next_index, state: LinkState::Up, addresses: BTreeSet::new() };
        self.next_index += 1;
        self.links.insert(name.to_owned(), link);
    }

    pub fn reply(&mut self, id: &str, answer: Answer) {
        self.replies.insert(upstream(id), Reply::Answer(answer));
    }

    /// Somebody else changes an address.
    pub fn meddle(&mut self, interface: &str, change: impl FnOnce(&mut Link)) {
        if let Some(link) = self.links.get_mut(interface) {
            change(link);
        }
        self.feed(Input::AddressesChanged);
    }

    pub fn feed(&mut self, input: Input) {
        self.core.handle(self.now, input);
        self.settle();
    }

    /// Carries out everything that the core wants, in order, until it wants nothing.
    pub fn settle(&mut self) {
        let mut inputs: VecDeque<Input> = VecDeque::new();
        for _ in 0..10_000 {
            while let Some(output) = self.core.poll_output() {
                self.carry_out(output, &mut inputs);
            }
            match inputs.pop_front() {
                Some(input) => self.core.handle(self.now, input),
                None => return,
            }
        }
        panic!("the core never comes to rest: {:?}", self.log);
    }

    fn carry_out(&mut self, output: Output, inputs: &mut VecDeque<Input>) {
        let at = self.now;
        match output {
            Output::Poll { cycle, upstreams, .. } => {
                self.outstanding = upstreams.into_iter().map(|upstream| (cycle, upstream)).collect();
                if self.answers_at_once {
                    for (cycle, upstream) in std::mem::take(&mut self.outstanding) {
                        if let Some(answer) = self.answer_of(&upstream) {
                            inputs.push_back(Input::PollAnswered { cycle, upstream, answer });
                        }
                    }
                }
            }
            Output::ReadAddresses { interfaces } => {
                let interfaces =
                    interfaces.into_iter().map(|name| (name.clone(), self.links.get(&name).cloned())).collect();
                inputs.push_back(Input::AddressesSeen { interfaces });
            }
            Output::AddAddress(key) => {
                self.log.push(format!("{at} add {key}"));
                let result = self.add(&key);
                inputs.push_back(Input::AddressChanged { key, result });
                inputs.push_back(Input::AddressesChanged);
            }
            Output::RemoveAddress(key) => {
                self.log.push(format!("{at} remove {key}"));
                let result = self.remove(&key);
                inputs.push_back(Input::AddressChanged { key, result });
                inputs.push_back(Input::AddressesChanged);
            }
            Output::Event(event) => {
                let is_echo = matches!(event, Event::Changed { .. });
                if !is_echo {
                    self.log.push(format!("{at} {}: {event}", format!("{:?}", event.level()).to_lowercase()));
                }
                self.events.push(event);
            }
            Output::Stopped => {
                self.log.push(format!("{at} stopped"));
                self.stopped = true;
            }
        }
    }

    fn add(&mut self, key: &AddressKey) -> Changed {
        if self.refuses {
            return Changed::Failed("no buffer space".to_owned());
        }
        let Some(link) = self.links.get_mut(&key.interface) else {
            return Changed::Failed("no such interface".to_owned());
        };
        let is_same = |held: &Held| held.address == key.address && held.prefix_len == key.prefix_len;
        if link.addresses.iter().any(is_same) {
            self.idle_commands += 1;
            return Changed::AlreadySo;
        }
        link.addresses.insert(Held { address: key.address, prefix_len: key.prefix_len, tag: Tag::Ours });
        *self.adds.entry(key.address).or_default() += 1;
        Changed::Done
    }

    fn remove(&mut self, key: &AddressKey) -> Changed {
        if self.refuses {
            return Changed::Failed("no buffer space".to_owned());
        }
        let Some(link) = self.links.get_mut(&key.interface) else {
            self.idle_commands += 1;
            return Changed::AlreadySo;
        };
        let before = link.addresses.len();
        link.addresses.retain(|held| !(held.address == key.address && held.prefix_len == key.prefix_len));
        if link.addresses.len() == before {
            self.idle_commands += 1;
            return Changed::AlreadySo;
        }
        *self.removes.entry(key.address).or_default() += 1;
        Changed::Done
    }

    pub fn answer_of(&self, upstream: &UpstreamRef) -> Option<Answer> {
        match self.replies.get(upstream) {
            Some(Reply::Answer(answer)) => Some(answer.clone()),
            Some(Reply::Silent) => None,
            None => Some(Answer::UnknownObject),
        }
    }

    /// Lets the time pass, every deadline on its moment.
    pub fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        self.settle();
        while let Some(at) = self.core.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.feed(Input::TimerDue);
        }
        self.now = end;
    }

    /// The addresses of an interface as `address/prefix`.
    pub fn held(&self, interface: &str) -> Vec<String> {
        let link = self.links.get(interface);
        let held = link.into_iter().flat_map(|link| link.addresses.iter());
        held.map(|held| format!("{}/{}", held.address, held.prefix_len)).collect()
    }

    /// Which of the VIPs are on the interface with a host prefix.
    pub fn up(&self, interface: &str) -> BTreeSet<IpAddr> {
        let held = self.links.get(interface).into_iter().flat_map(|link| link.addresses.iter());
        held.filter(|held| held.prefix_len == rhi::kernel::host_prefix(held.address)).map(|held| held.address).collect()
    }
}

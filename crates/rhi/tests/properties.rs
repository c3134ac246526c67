//! The core against a naive model of the same promise, under random answers in random order.
//!
//! The model is as plain as the text that it comes from: at the end of each cycle every upstream has an opinion, and
//! every VIP is judged from scratch. The core judges as answers come in, keeps timers and talks to a kernel; it must
//! come to the same decisions whatever the order of the answers, and the kernel must hold exactly what was decided.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use model::time::Timestamp;
use model::vip::{Condition, RhiConfig, Unreachable, UpstreamRef, Vip};
use proptest::prelude::*;
use rhi::kernel::{LinkState, Tag};
use rhi::{Answer, Event, Held, Input, Link, Node};

use world::{World, config, failed, nodes, upstream, vip};

const UPSTREAMS: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Word {
    Healthy,
    Sick,
    Warming,
    Empty,
    Missing,
    Failed,
    Silent,
}

#[derive(Clone, Debug)]
struct Round {
    words: [Word; UPSTREAMS],
    /// Sorted by it, answers come in another order each time.
    order: [u8; UPSTREAMS],
    /// Between two answers.
    gap_ms: u64,
    meddles: Option<(u8, bool)>,
}

fn word() -> impl Strategy<Value = Word> {
    prop_oneof![
        4 => Just(Word::Healthy),
        3 => Just(Word::Sick),
        2 => Just(Word::Warming),
        1 => Just(Word::Empty),
        1 => Just(Word::Missing),
        3 => Just(Word::Failed),
        1 => Just(Word::Silent),
    ]
}

fn round() -> impl Strategy<Value = Round> {
    let meddles = proptest::option::weighted(0.2, (0..5_u8, any::<bool>()));
    (proptest::array::uniform4(word()), any::<[u8; UPSTREAMS]>(), 0..700_u64, meddles)
        .prop_map(|(words, order, gap_ms, meddles)| Round { words, order, gap_ms, meddles })
}

fn the_config(announce: bool, max: u32, interval: u64) -> RhiConfig {
    let mut config = config(vec![
        vip("10.0.0.1", Condition::All, &["u0"]),
        vip("10.0.0.2", Condition::All, &["u0", "u1"]),
        vip("10.0.0.3", Condition::Any, &["u1", "u2"]),
        vip("fd00::4", Condition::Any, &["u2", "u3", "u0"]),
        vip("fd00::5", Condition::All, &["u3", "u1", "u2"]),
    ]);
    if announce {
        config.failure_policy.control_api_unreachable = Unreachable::Announce;
    }
    config.failure_policy.max_failed_polls = max;
    config.poll_interval = Duration::from_secs(interval);
    config
}

/// The naive model.
struct Model {
    config: RhiConfig,
    up: BTreeMap<IpAddr, bool>,
    states: BTreeMap<UpstreamRef, State>,
}

#[derive(Clone, Copy, Default)]
struct State {
    last: Option<Last>,
    failures: u32,
}

#[derive(Clone, Copy)]
enum Last {
    Up,
    Down,
    Warming(Timestamp),
}

enum Opinion {
    Up,
    Down,
    Hold,
    Frozen,
}

impl Model {
    fn new(config: RhiConfig, found: &BTreeSet<IpAddr>) -> Self {
        let up = config.vips.iter().map(|vip| (vip.address, found.contains(&vip.address))).collect();
        Self { config, up, states: BTreeMap::new() }
    }

    fn answered(&mut self, at: Timestamp, name: &UpstreamRef, word: Word) {
        let state = self.states.entry(name.clone()).or_default();
        let last = match word {
            Word::Failed | Word::Silent => {
                state.failures += 1;
                return;
            }
            Word::Healthy => Last::Up,
            Word::Sick | Word::Empty | Word::Missing => Last::Down,
            Word::Warming => match state.last {
                Some(Last::Warming(since)) => Last::Warming(since),
                _ => Last::Warming(at),
            },
        };
        *state = State { last: Some(last), failures: 0 };
    }

    fn opinion(&self, at: Timestamp, name: &UpstreamRef) -> Opinion {
        let state = self.states.get(name).copied().unwrap_or_default();
        if state.failures >= self.config.failure_policy.max_failed_polls {
            return match self.config.failure_policy.control_api_unreachable {
                Unreachable::Withdraw => Opinion::Down,
                Unreachable::Announce => Opinion::Frozen,
            };
        }
        match state.last {
            None => Opinion::Hold,
            Some(Last::Up) => Opinion::Up,
            Some(Last::Down) => Opinion::Down,
            Some(Last::Warming(since)) if at >= since + Duration::from_secs(30) => Opinion::Down,
            Some(Last::Warming(_)) => Opinion::Hold,
        }
    }

    fn judge(&mut self, at: Timestamp) {
        for vip in self.config.vips.clone() {
            let was = self.up[&vip.address];
            let now = self.judged(at, &vip, was);
            self.up.insert(vip.address, now);
        }
    }

    fn judged(&self, at: Timestamp, vip: &Vip, was: bool) -> bool {
        let opinions: Vec<Opinion> = vip.upstreams.iter().map(|name| self.opinion(at, name)).collect();
        let any = |wanted: fn(&Opinion) -> bool| opinions.iter().any(wanted);
        if any(|opinion| matches!(opinion, Opinion::Frozen)) {
            return was;
        }
        let has_hold = any(|opinion| matches!(opinion, Opinion::Hold));
        match vip.condition {
            Condition::All if any(|opinion| matches!(opinion, Opinion::Down)) => false,
            Condition::All => !has_hold || was,
            Condition::Any if any(|opinion| matches!(opinion, Opinion::Up)) => true,
            Condition::Any => has_hold && was,
        }
    }

    fn up(&self) -> BTreeSet<IpAddr> {
        self.up.iter().filter(|(_, up)| **up).map(|(address, _)| *address).collect()
    }
}

fn answer(word: Word) -> Option<Answer> {
    match word {
        Word::Healthy => Some(nodes(&["unhealthy", "mostly_healthy"])),
        Word::Sick => Some(nodes(&["unhealthy", "mostly_unhealthy"])),
        Word::Warming => Some(nodes(&["unhealthy", "unknown"])),
        Word::Empty => Some(nodes(&[])),
        Word::Missing => Some(Answer::UnknownObject),
        Word::Failed => Some(failed()),
        Word::Silent => None,
    }
}

/// Passes timers on until a cycle is outstanding; the model looks whenever the core may have.
fn run_to_cycle(world: &mut World, model: &mut Model) {
    world.settle();
    for _ in 0..1000 {
        if !world.outstanding.is_empty() {
            return;
        }
        let at = world.core.poll_timeout().expect("a running core has a deadline");
        world.now = world.now.max(at);
        if world.core.poll_timeout().is_some() && model.states.len() == UPSTREAMS {
            model.judge(world.now);
        }
        world.feed(Input::TimerDue);
    }
    panic!("no cycle starts");
}

fn play(world: &mut World, model: &mut Model, round: &Round) {
    run_to_cycle(world, model);
    let outstanding = std::mem::take(&mut world.outstanding);
    let cycle = outstanding[0].0;
    assert_eq!(outstanding.len(), UPSTREAMS, "each upstream is asked for once");
    let deadline = world.now + Duration::from_secs(5);
    let decided_before = world.events.iter().filter(|event| matches!(event, Event::Decided { .. })).count();
    let mut order: Vec<usize> = (0..UPSTREAMS).collect();
    order.sort_by_key(|index| round.order[*index]);
    let mut silent = Vec::new();
    for index in order {
        let name = upstream(&format!("u{index}"));
        match answer(round.words[index]) {
            Some(answer) => {
                world.now = (world.now + Duration::from_millis(round.gap_ms)).min(deadline);
                let at = world.now;
                model.answered(at, &name, round.words[index]);
                world.feed(Input::PollAnswered { cycle, upstream: name, answer });
            }
            None => silent.push(name),
        }
    }
    for name in &silent {
        model.answered(deadline, name, Word::Silent);
    }
    while !silent.is_empty() && world.now < deadline {
        let at = world.core.poll_timeout().expect("a cycle has a deadline");
        world.now = world.now.max(at);
        world.feed(Input::TimerDue);
    }
    // The last answer may come at the very deadline, so that the next cycle is outstanding already.
    let at = world.now;
    model.judge(at);
    let decided = world.events.iter().filter(|event| matches!(event, Event::Decided { .. })).count();
    assert!(decided - decided_before <= 2 * model.config.vips.len(), "VIPs change again and again in one cycle");
}

fn meddle(world: &mut World, config: &RhiConfig, (which, puts): (u8, bool)) {
    let address = config.vips[usize::from(which) % config.vips.len()].address;
    world.meddle("rhi0", |link| {
        if puts {
            link.addresses.insert(Held { address, prefix_len: 24, tag: Tag::Foreign });
        } else {
            link.addresses.retain(|held| held.address != address);
        }
    });
}

/// The kernel is looked at within this time after it has told of a change.
const LOOK: Duration = Duration::from_millis(20);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_interface_holds_what_a_naive_model_decides(
        announce in any::<bool>(),
        max in 1..4_u32,
        interval in 1..12_u64,
        found in 0..32_u8,
        rounds in proptest::collection::vec(round(), 1..25),
    ) {
        let config = the_config(announce, max, interval);
        let mut world = World::start(config.clone());
        world.answers_at_once = false;
        let mut up = BTreeSet::new();
        for (index, vip) in config.vips.iter().enumerate().filter(|(index, _)| found & (1 << index) != 0) {
            let prefix_len = if index % 2 == 0 { 24 } else { rhi::kernel::host_prefix(vip.address) };
            let held = Held { address: vip.address, prefix_len, tag: Tag::Foreign };
            world.links.get_mut("rhi0").unwrap().addresses.insert(held);
            up.insert(vip.address);
        }
        let foreign = Held { address: "10.9.9.9".parse().unwrap(), prefix_len: 32, tag: Tag::Foreign };
        world.links.get_mut("rhi0").unwrap().addresses.insert(foreign);
        let mut model = Model::new(config.clone(), &up);
        let mut meddled_at = None;
        for round in &rounds {
            play(&mut world, &mut model, round);
            // What was meddled with is healed by the next look at the kernel, which is due in a moment: a round that came
            // to its end in no time must wait for it.
            if meddled_at.is_some_and(|at| world.now < at + LOOK) {
                world.run_for(LOOK);
                model.judge(world.now);
            }
            if let Some(change) = round.meddles {
                meddle(&mut world, &config, change);
                meddled_at = Some(world.now);
            }
            let mut held = world.up("rhi0");
            held.remove(&foreign.address);
            if round.meddles.is_none() {
                prop_assert_eq!(&held, &model.up(), "after {:?}\n{}", round, world.log.join("\n"));
            }
            prop_assert!(world.links["rhi0"].addresses.contains(&foreign));
        }
        if meddled_at.is_none() {
            prop_assert_eq!(world.idle_commands, 0, "a command that found nothing to do");
        }
        world.feed(Input::Stop);
        world.run_for(Duration::from_secs(3));
        prop_assert!(world.stopped);
        prop_assert_eq!(world.held("rhi0"), vec!["10.9.9.9/32"]);
    }

    #[test]
    fn no_sequence_of_inputs_panics_or_keeps_the_core_busy(
        inputs in proptest::collection::vec((0..12_u8, 0..6_u8, any::<u16>()), 0..120),
    ) {
        let mut world = World::start(the_config(false, 2, 1));
        world.answers_at_once = false;
        for (kind, which, wait) in inputs {
            world.now = world.now + Duration::from_millis(u64::from(wait) % 4000);
            let name = upstream(&format!("u{which}"));
            let input = match kind {
                0 | 1 => Input::TimerDue,
                2..=4 => Input::PollAnswered { cycle: u64::from(wait % 7), upstream: name, answer: nodes(&["healthy"]) },
                5 => Input::PollAnswered { cycle: u64::from(wait % 7), upstream: name, answer: failed() },
                6 => Input::AddressesChanged,
                7 => Input::ReadFailed { error: "busy".to_owned() },
                8 => Input::AddressesSeen { interfaces: BTreeMap::from([("rhi0".to_owned(), strange_link(which))]) },
                9 => Input::AddressesSeen { interfaces: BTreeMap::new() },
                10 => {
                    let mut config = the_config(wait % 2 == 0, 1, 2);
                    config.interface = format!("rhi{}", wait % 3);
                    config.vips.truncate(usize::from(which));
                    Input::ConfigChanged(Box::new(config))
                }
                _ => Input::PollAnswered {
                    cycle: u64::from(wait % 7),
                    upstream: name,
                    answer: Answer::Nodes {
                        name: Some(String::new()),
                        nodes: vec![Node { address: String::new(), status: None }],
                    },
                },
            };
            world.feed(input);
            prop_assert!(world.core.poll_timeout().is_some() || !world.outstanding.is_empty());
        }
    }
}

fn strange_link(which: u8) -> Option<Link> {
    let held = Held { address: "10.0.0.1".parse().unwrap(), prefix_len: which, tag: Tag::Ours };
    (which > 1).then(|| Link {
        index: u32::from(which),
        state: if which > 3 { LinkState::Up } else { LinkState::Down },
        addresses: BTreeSet::from([held]),
    })
}

//! Runs the transcripts: what the daemon does from poll to poll, in virtual time.
//!
//! | command | meaning |
//! |---|---|
//! | `start [key=value …]` and lines `vip ADDRESS all\|any UPSTREAM,…`, `found [INTERFACE] ADDRESS/PREFIX ours\|foreign` | a core over a kernel that holds this |
//! | `reload …` | the same keys and lines as a new configuration |
//! | `reply UPSTREAM STATE,…` (or `404`, `no_checker`, `no_nodes`, `fail`, `silent`) | how the control API answers from now on |
//! | `wait 3s` | time passes |
//! | `delete ADDRESS/PREFIX`, `put ADDRESS/PREFIX`, `link down\|up\|gone\|made` | somebody meddles with rhi0 |
//! | `make NAME` | another interface |
//! | `refuse yes\|no` | the kernel refuses changes |
//! | `stop`, `show`, `show NAME` | |
//!
//! Answers are the effects and lines since the last command, each with its time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use std::time::Duration;

use model::vip::{Condition, OnExit, RhiConfig, Unreachable};
use rhi::kernel::{LinkState, Tag};
use rhi::{Answer, Held, Input};

use world::{Reply, World, config, failed, nodes, upstream, vip};

#[test]
fn transcripts_hold() {
    testkit::transcript::check("tests/transcripts", |_| {
        let mut world: Option<World> = None;
        move |command: &str| run(&mut world, command)
    });
}

fn run(slot: &mut Option<World>, command: &str) -> String {
    let (first, rest) = command.split_once('\n').unwrap_or((command, ""));
    let (verb, arguments) = first.split_once(' ').unwrap_or((first, ""));
    if verb == "start" {
        *slot = Some(start(arguments, rest));
    }
    let world = slot.as_mut().expect("a transcript begins with `start`");
    match verb {
        // The first poll waits for the replies that the next commands set.
        "start" => {}
        "reload" => world.feed(Input::ConfigChanged(Box::new(configuration(arguments, rest)))),
        "reply" => reply(world, arguments),
        "wait" => world.run_for(span(arguments)),
        "delete" => {
            let wanted = held(arguments, Tag::Foreign);
            world.meddle("rhi0", |link| {
                link.addresses.retain(|h| (h.address, h.prefix_len) != (wanted.address, wanted.prefix_len));
            });
        }
        "put" => {
            let wanted = held(arguments, Tag::Foreign);
            world.meddle("rhi0", |link| {
                link.addresses.insert(wanted);
            });
        }
        "link" => link(world, arguments),
        "make" => world.make_link(arguments),
        "refuse" => world.refuses = arguments == "yes",
        "stop" => world.feed(Input::Stop),
        "show" => {
            let interface = if arguments.is_empty() { "rhi0" } else { arguments };
            return format!("{interface}: {}", world.held(interface).join(" "));
        }
        other => panic!("unknown command {other}"),
    }
    std::mem::take(&mut world.log).join("\n")
}

fn start(arguments: &str, lines: &str) -> World {
    let mut world = World::start(configuration(arguments, lines));
    for line in lines.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if words[0] == "found" {
            let (interface, words) = if words.len() == 4 { (words[1], &words[2..]) } else { ("rhi0", &words[1..]) };
            let tag = if words[1] == "ours" { Tag::Ours } else { Tag::Foreign };
            if !world.links.contains_key(interface) {
                world.make_link(interface);
            }
            world.links.get_mut(interface).unwrap().addresses.insert(held(words[0], tag));
        }
    }
    world
}

fn configuration(arguments: &str, lines: &str) -> RhiConfig {
    let mut vips = Vec::new();
    for line in lines.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if words[0] == "vip" {
            let condition = if words[2] == "any" { Condition::Any } else { Condition::All };
            vips.push(vip(words[1], condition, &words[3].split(',').collect::<Vec<_>>()));
        }
    }
    let mut config = config(vips);
    for pair in arguments.split(' ').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').expect("key=value");
        match key {
            "policy" if value == "announce" => config.failure_policy.control_api_unreachable = Unreachable::Announce,
            "policy" if value == "withdraw" => config.failure_policy.control_api_unreachable = Unreachable::Withdraw,
            "max" => config.failure_policy.max_failed_polls = value.parse().unwrap(),
            "interval" => config.poll_interval = span(value),
            "timeout" => config.timeout = span(value),
            "interface" => config.interface = value.to_owned(),
            "on_exit" if value == "keep" => config.on_exit = OnExit::Keep,
            other => panic!("unknown key {other}={value}"),
        }
    }
    config
}

fn reply(world: &mut World, arguments: &str) {
    let (id, words) = arguments.split_once(' ').unwrap();
    let reply = match words {
        "404" => Reply::Answer(Answer::UnknownObject),
        "no_checker" => Reply::Answer(Answer::NoChecker),
        "no_nodes" => Reply::Answer(nodes(&[])),
        "fail" => Reply::Answer(failed()),
        "silent" => Reply::Silent,
        states => Reply::Answer(nodes(&states.split(',').collect::<Vec<_>>())),
    };
    world.replies.insert(upstream(id), reply);
}

fn link(world: &mut World, word: &str) {
    match word {
        "gone" => {
            world.links.remove("rhi0");
            world.feed(Input::AddressesChanged);
        }
        "made" => {
            world.make_link("rhi0");
            world.feed(Input::AddressesChanged);
        }
        // The kernel drops IPv6 addresses with the link, and keeps IPv4.
        "down" => world.meddle("rhi0", |link| {
            link.state = LinkState::Down;
            link.addresses.retain(|held| held.address.is_ipv4());
        }),
        "up" => world.meddle("rhi0", |link| link.state = LinkState::Up),
        other => panic!("unknown state {other}"),
    }
}

fn held(text: &str, tag: Tag) -> Held {
    let (address, prefix_len) = text.split_once('/').expect("address/prefix");
    Held { address: address.parse().unwrap(), prefix_len: prefix_len.parse().unwrap(), tag }
}

fn span(text: &str) -> Duration {
    match text.strip_suffix("ms") {
        Some(millis) => Duration::from_millis(millis.parse().unwrap()),
        None => Duration::from_secs_f64(text.trim_end_matches('s').parse().unwrap()),
    }
}

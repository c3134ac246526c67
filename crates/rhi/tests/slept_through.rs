//! A daemon that stands still while its polls run: stopped, its machine paused, no CPU.
//!
//! Promise: what was answered meanwhile is heard before a poll counts as failed; a control API that says nothing is found
//! silent all the same.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use std::time::Duration;

use model::time::Timestamp;
use model::vip::Condition;
use rhi::{Event, Input};

use world::{World, config, nodes, vip};

/// A world whose VIP is up and whose polls are under way, after a pause of 20 s; the first poll counts.
fn slept() -> World {
    let mut config = config(vec![vip("10.0.0.1", Condition::All, &["api"])]);
    config.failure_policy.max_failed_polls = 1;
    let mut world = World::start(config);
    world.reply("api", nodes(&["healthy"]));
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.up("rhi0").len(), 1);
    world.answers_at_once = false;
    // The next cycle starts at 3 s and has until 8 s.
    world.run_for(Duration::from_secs(3));
    assert_eq!(world.outstanding.len(), 1);
    world.now = Timestamp::from_secs(24);
    world.feed(Input::TimerDue);
    world
}

fn has_failed(world: &World) -> bool {
    world.events.iter().any(|event| matches!(event, Event::PollFailed { .. } | Event::LimitReached { .. }))
}

#[test]
fn an_answer_that_came_while_the_daemon_stood_still_is_heard() {
    let mut world = slept();
    assert_eq!(world.core.poll_timeout(), Some(Timestamp::from_secs(25)), "a second more");
    let (cycle, upstream) = world.outstanding.remove(0);
    world.feed(Input::PollAnswered { cycle, upstream, answer: nodes(&["healthy"]) });
    world.run_for(Duration::from_secs(2));
    assert!(!has_failed(&world), "{:?}", world.log);
    assert_eq!(world.up("rhi0").len(), 1);
}

#[test]
fn a_control_api_that_says_nothing_has_a_second_more_and_no_longer() {
    let mut world = slept();
    world.now = Timestamp::from_secs(60);
    world.feed(Input::TimerDue);
    assert!(has_failed(&world), "once: {:?}", world.log);
    assert_eq!(world.up("rhi0").len(), 0);
}

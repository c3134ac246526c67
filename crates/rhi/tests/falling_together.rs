//! Twelve VIPs, v4 and v6, each with an upstream of its own, that fall and rise together fifty times.
//!
//! Promise: the addresses on the interface always come to equal the healthy set within one poll interval, no VIP is left
//! behind or missing, and each change is made once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use std::time::Duration;

use model::vip::Condition;

use world::{World, config, nodes, vip};

const ROUNDS: u32 = 50;

#[test]
fn twelve_vips_fall_and_rise_together_and_each_change_is_made_once() {
    let addresses: Vec<String> = (1..=6).flat_map(|n| [format!("10.0.0.{n}"), format!("fd00:0:0:64::{n}")]).collect();
    let ids: Vec<String> = (0..addresses.len()).map(|n| format!("u{n}")).collect();
    let vips = addresses.iter().zip(&ids).map(|(address, id)| vip(address, Condition::All, &[id])).collect();
    let config = config(vips);
    let interval = config.poll_interval;
    let mut world = World::start(config);
    for id in &ids {
        world.reply(id, nodes(&["unhealthy"]));
    }
    world.run_for(Duration::from_secs(1));
    for round in 0..ROUNDS {
        for (state, count) in [("healthy", addresses.len()), ("unhealthy", 0)] {
            // All within 50 ms, at another place of the interval each time.
            world.run_for(Duration::from_millis(u64::from(round) * 61 % 3000));
            for (number, id) in ids.iter().enumerate() {
                world.reply(id, nodes(&[state]));
                world.run_for(Duration::from_millis(if number % 3 == 0 { 12 } else { 0 }));
            }
            world.run_for(interval);
            assert_eq!(world.up("rhi0").len(), count, "round {round}, all {state}");
        }
    }
    for address in &addresses {
        let address = address.parse().unwrap();
        assert_eq!((world.adds[&address], world.removes[&address]), (ROUNDS, ROUNDS), "{address}");
    }
    assert_eq!(world.idle_commands, 0);
}

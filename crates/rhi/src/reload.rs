//! A new configuration: what it keeps, drops and moves.
//!
//! Decisions and standings stay for the VIPs and upstreams that stay. A VIP that is dropped is taken off the interface.
//! A new interface is filled before the old one is emptied. When whom or how to ask changed, the running cycle is given
//! up without a result and the next one starts at once.

use std::net::IpAddr;

use model::time::Timestamp;
use model::vip::RhiConfig;

use crate::core::{Core, Phase};
use crate::event::Event;
use crate::timers::Timer;

impl Core {
    pub(crate) fn reconfigure(&mut self, now: Timestamp, config: RhiConfig) {
        match self.phase {
            Phase::Starting | Phase::Running => {}
            Phase::Stopping | Phase::Stopped => return,
        }
        let old = std::mem::replace(&mut self.config, config);
        let old_upstreams: Vec<_> = self.upstreams.keys().cloned().collect();
        self.take_vips_over(&old);
        self.take_upstreams_over();
        if old.interface != self.config.interface {
            self.leaving.insert(old.interface.clone());
            self.leaving.remove(&self.config.interface);
            self.confirmed.clear();
            self.read_addresses(now);
        }
        let asks_otherwise = old.control_url != self.config.control_url
            || old.timeout != self.config.timeout
            || old.healthy_states != self.config.healthy_states
            || !old_upstreams.iter().eq(self.upstreams.keys());
        if asks_otherwise {
            self.cycle.abandon();
            self.start_cycle(now);
        } else if !self.cycle.is_running() {
            self.timers.set(Timer::Cycle, Some(self.cycle.next_start(now, self.config.poll_interval)));
        }
        self.decide_all(now);
    }

    fn take_vips_over(&mut self, old: &RhiConfig) {
        let has = |config: &RhiConfig, address: IpAddr| config.vips.iter().any(|vip| vip.address == address);
        let missing = |from: &RhiConfig, to: &RhiConfig| -> Vec<IpAddr> {
            from.vips.iter().map(|vip| vip.address).filter(|address| !has(to, *address)).collect()
        };
        let added = missing(&self.config, old);
        let dropped = missing(old, &self.config);
        for address in &dropped {
            self.decisions.remove(address);
            self.confirmed.remove(address);
            self.dropped.insert(*address);
        }
        for address in &added {
            self.dropped.remove(address);
        }
        self.say(Event::Reloaded { added, dropped });
    }

    fn take_upstreams_over(&mut self) {
        let named = self.named_upstreams();
        self.upstreams.retain(|name, _| named.contains(name));
        for name in named {
            self.upstreams.entry(name).or_default();
        }
    }
}

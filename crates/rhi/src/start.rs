//! The start: nothing is put up or taken off before a whole cycle has been heard and the interface has been looked at.
//!
//! A daemon that is restarted must not take a site out while it has no facts. Configured VIPs that are found on the
//! interface count as the last decision, whoever put them there.

use model::time::Timestamp;

use crate::core::{Core, Phase};
use crate::event::Event;

impl Core {
    /// Starting becomes Running once both facts are there.
    pub(crate) fn try_to_run(&mut self, now: Timestamp) {
        let is_starting = match self.phase {
            Phase::Starting => true,
            Phase::Running | Phase::Stopping | Phase::Stopped => false,
        };
        let has_facts = self.cycle.completed() > 0 && self.picture.knows(&self.config.interface);
        if is_starting && has_facts {
            self.phase = Phase::Running;
            let interface = &self.config.interface;
            let addresses = self.config.vips.iter().map(|vip| vip.address);
            let found = addresses.filter(|address| self.picture.has_any(interface, *address)).collect();
            self.say(Event::Running { found });
            self.decide_all(now);
        }
    }
}

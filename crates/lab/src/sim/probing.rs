//! Probes of health cores and of models: they stand in the same queues as requests.

use std::time::Duration;

use health::Probed;
use model::outcome::FailureKind;

use super::destination::{Arrival, Job, Who};
use super::event::{Event, ProbeEnd};
use super::proxy::Probing;
use super::world::World;
use crate::chance::Draw;
use crate::models::ProbeResult;
use crate::scenario::{OnFull, Reply};

impl World<'_> {
    /// Sends what a proxy's core wants sent.
    pub(super) fn send_probes(&mut self, proxy: u32) {
        let Some(one) = self.proxies.get_mut(proxy as usize) else { return };
        if one.due.is_empty() {
            return;
        }
        for order in std::mem::take(&mut one.due) {
            let id = order.destination.destination.as_str();
            let Some(destination) = self.scenario.destinations.iter().position(|server| server.id == id) else {
                continue;
            };
            self.send(proxy, destination, order.timeout, Probing::Core(order.ticket));
        }
    }

    /// Sends what a proxy's model wants sent.
    pub(super) fn send_model_probes(&mut self, proxy: u32) {
        let timeout = self.scenario.checks.map_or(Duration::ZERO, |checks| checks.timeout);
        // A model has at most one probe of each destination due.
        for _ in 0..self.scenario.destinations.len() {
            let one = self.proxies.get_mut(proxy as usize).and_then(|one| one.model.as_mut());
            let Some(destination) = one.and_then(|model| model.poll_probe()) else { return };
            self.send(proxy, destination, timeout, Probing::Model(destination));
        }
    }

    /// A probe of a proxy is over without a job's reply.
    pub(super) fn probe_end(&mut self, proxy: u32, probe: u32, end: ProbeEnd) {
        let (failure, status) = match end {
            ProbeEnd::Timeout => (Some(FailureKind::HeadTimeout), None),
            ProbeEnd::Refused => (Some(FailureKind::Refused), None),
            ProbeEnd::Failed => (Some(FailureKind::Status), Some(503)),
            ProbeEnd::Passed => (None, Some(200)),
        };
        self.probe_over(proxy, probe, failure, status);
    }

    /// A destination has replied to a probe.
    pub(super) fn probe_replied(&mut self, proxy: u32, probe: u32, destination: u32, reply: Reply) {
        let is_lost =
            self.destinations.get(destination as usize).is_some_and(|one| one.is_cut_off(self.scenario, proxy));
        if is_lost {
            return;
        }
        let (failure, status) = match reply {
            Reply::Response { status, .. } if (200..300).contains(&status) => (None, Some(status)),
            Reply::Response { status, .. } => (Some(FailureKind::Status), Some(status)),
            Reply::Reset => (Some(FailureKind::Reset), None),
            Reply::Cut => (Some(FailureKind::BodyCut), Some(200)),
        };
        self.probe_over(proxy, probe, failure, status);
    }

    fn send(&mut self, proxy: u32, destination: usize, timeout: Duration, probing: Probing) {
        let Some(one) = self.proxies.get_mut(proxy as usize) else { return };
        let Some(target) = self.destinations.get_mut(destination) else { return };
        let probe = one.open_probe(probing);
        let luck = self.chance.unit(Draw::Fault, self.now.as_nanos(), u64::from(proxy) << 32 | destination as u64);
        let job = Job::new(Who::Probe { proxy, probe }, 0.5, luck, None);
        let soon = self.now + self.scenario.proxies.round_trip;
        let end = match target.probed(self.scenario, self.now, proxy, job) {
            None => Some(ProbeEnd::Failed),
            Some(Arrival::Refused | Arrival::Full(OnFull::Refuse)) => Some(ProbeEnd::Refused),
            Some(Arrival::Full(OnFull::Status { .. })) => Some(ProbeEnd::Failed),
            Some(Arrival::NoWay | Arrival::Swallowed | Arrival::Waits) => None,
            Some(Arrival::Served(planned)) => {
                self.plan_completion(destination as u32, planned);
                None
            }
        };
        match end {
            Some(end) => self.queue.plan(soon, Event::ProbeEnd { proxy, probe, end }),
            None => self.queue.plan(self.now + timeout, Event::ProbeEnd { proxy, probe, end: ProbeEnd::Timeout }),
        }
    }

    fn probe_over(&mut self, proxy: u32, probe: u32, failure: Option<FailureKind>, status: Option<u16>) {
        let now = self.now;
        let Some(one) = self.proxies.get_mut(proxy as usize) else { return };
        match one.close_probe(probe) {
            None => {}
            Some(Probing::Core(ticket)) => self.turn(proxy, |one| one.probed(now, Probed { ticket, failure, status })),
            Some(Probing::Model(destination)) => {
                let end = if failure.is_none() { ProbeResult::Passed } else { ProbeResult::Failed };
                if let Some(model) = &mut one.model {
                    model.on_probe(now, destination, end);
                }
                self.after_model(proxy);
            }
        }
    }
}

//! From answers to decisions: the cycle's walk through upstreams and VIPs.
//!
//! An answer gives its upstream a standing; the VIPs that name it are judged as soon as the answers at hand settle them,
//! and all of them at the end of the cycle.

use model::time::{Timestamp, made_good};
use model::vip::{UpstreamRef, Vip};

use std::net::IpAddr;

use crate::answer::{Answer, PollFailure};
use crate::core::{Core, Output, Phase};
use crate::event::Event;
use crate::quorum::{self, Seat};
use crate::timers::Timer;
use crate::upstream::{Remark, Upstream};
use crate::vip::{Decision, Wanted, decide};

impl Core {
    pub(crate) fn start_cycle(&mut self, now: Timestamp) {
        let upstreams = self.named_upstreams();
        let deadline = now + self.config.timeout;
        let cycle = self.cycle.start(now, upstreams.clone());
        self.timers.set(Timer::Cycle, None);
        self.timers.set(Timer::CycleDeadline, Some(deadline));
        self.outputs.push_back(Output::Poll { cycle, upstreams, deadline });
    }

    pub(crate) fn on_answer(&mut self, now: Timestamp, cycle: u64, name: UpstreamRef, answer: Answer) {
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

    /// A deadline that is noticed late is put off once: the process stood still, and what was answered meanwhile is not read.
    pub(crate) fn on_cycle_deadline(&mut self, now: Timestamp, due: Timestamp) {
        if let Some(more) = made_good(due, now)
            && self.cycle.put_off()
        {
            self.timers.set(Timer::CycleDeadline, Some(now + more));
            return;
        }
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
}

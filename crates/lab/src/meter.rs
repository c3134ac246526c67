//! What a run cost: counted as it goes, from the end of the warm-up on.

use model::time::Timestamp;
use std::time::Duration;

use crate::histogram::Histogram;
use crate::scenario::{Scenario, Truth};
use crate::sim::proxy::Standing;

/// How a request ended for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// With an answer that holds what was asked for.
    Served,
    /// With a bad status, the destination's or our own.
    Status(u16),
    /// With half a body.
    Cut,
    /// The client went away.
    GaveUp,
}

/// What a request counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One that somebody can serve.
    Good,
    /// One that fails wherever it goes: nobody's failure. Its attempts count as load.
    Bad,
}

/// One run's figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Requests that were counted, those that fail everywhere apart.
    pub requests: u64,
    /// Of them, those whose client was not served.
    pub failures: u64,
    /// Mean time of those served, milliseconds.
    pub mean: f64,
    /// Median of those served, milliseconds.
    pub p50: f64,
    /// 99th percentile of those served, milliseconds.
    pub p99: f64,
    /// Attempts per request with at least one, less one.
    pub extra_load: f64,
    /// Seconds of destinations out of service while they were well, per proxy.
    pub lost: f64,
    /// The same as a share of all time that destinations were well.
    pub lost_share: f64,
    /// Seconds from the beginning of a sickness until the destination was judged or lost a part of its share, on average;
    /// `None`: none did.
    pub detection: Option<f64>,
    /// Sicknesses that ended before anybody acted on them, per proxy.
    pub undetected: f64,
    /// Seconds from the end of a sickness until the destination had its full share again, on average; `None`: none was
    /// out.
    pub recovery: Option<f64>,
    /// Times a destination went out of service, per proxy.
    pub ejections: f64,
}

/// What one run looked like, for charts: the first proxy's view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Film {
    /// Seconds of one bin.
    pub bin: f64,
    /// Requests, per bin.
    pub requests: Vec<u32>,
    /// Failures, per bin.
    pub failures: Vec<u32>,
    /// Attempts, per bin.
    pub attempts: Vec<u32>,
    /// 99th percentile of those served, milliseconds, per bin.
    pub p99: Vec<f64>,
    /// Per destination: since when (seconds) it had which share.
    pub shares: Vec<Vec<(f64, f64)>>,
    /// Per destination: since when (seconds) it should be out (1) or not (0).
    pub truths: Vec<Vec<(f64, f64)>>,
}

/// All that happened in a run, one by one, for a comparison with the same thing done for real.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Requests, in the order of their ends; what was on its way at the end of the run is not among them.
    pub requests: Vec<Traced>,
    /// Per destination: when a request came to it. An attempt whose connection was refused came to nobody.
    pub arrivals: Vec<Vec<Timestamp>>,
    /// Per destination: when those of them came whose answer the share of a fault has spoilt.
    pub spoilt: Vec<Vec<Timestamp>>,
    /// Per destination: when a connection for a request was refused; those of probes are not among them.
    pub refusals: Vec<Vec<Timestamp>>,
}

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// When it began.
    pub at: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// How it ended.
    pub fate: Fate,
    /// It fails everywhere.
    pub is_bad: bool,
}

/// Counts.
#[derive(Debug)]
pub struct Meter {
    from: Timestamp,
    end: Timestamp,
    n_proxies: u32,
    requests: u64,
    failures: u64,
    attempted: u64,
    attempts: u64,
    served: Histogram,
    /// Per proxy, then per destination.
    places: Vec<Place>,
    n: usize,
    film: Film,
    bins: Vec<Histogram>,
    trace: Option<Trace>,
}

#[derive(Clone, Debug)]
struct Place {
    truth: Truth,
    standing: Standing,
    since: Timestamp,
    lost: f64,
    well: f64,
    /// Sick since, and nobody has acted on it.
    sick_since: Option<Timestamp>,
    /// Well again since, and not fully back.
    well_since: Option<Timestamp>,
    detections: (f64, u32),
    undetected: u32,
    recoveries: (f64, u32),
    ejections: u32,
}

impl Meter {
    /// Nothing counted.
    pub fn new(scenario: &Scenario) -> Self {
        let n = scenario.destinations.len();
        let place = Place {
            truth: Truth::Healthy,
            standing: Standing { share: 1.0, is_judged: false },
            since: Timestamp::ZERO,
            lost: 0.0,
            well: 0.0,
            sick_since: None,
            well_since: None,
            detections: (0.0, 0),
            undetected: 0,
            recoveries: (0.0, 0),
            ejections: 0,
        };
        let bin = libm::ceil(scenario.duration.as_secs_f64() / BINS).max(1.0);
        let n_bins = libm::ceil(scenario.duration.as_secs_f64() / bin) as usize;
        let film = Film {
            bin,
            requests: vec![0; n_bins],
            failures: vec![0; n_bins],
            attempts: vec![0; n_bins],
            p99: Vec::new(),
            shares: vec![vec![(0.0, 1.0)]; n],
            truths: vec![vec![(0.0, 0.0)]; n],
        };
        Self {
            from: Timestamp::ZERO + scenario.warm_up,
            end: Timestamp::ZERO + scenario.duration,
            n_proxies: scenario.proxies.count,
            requests: 0,
            failures: 0,
            attempted: 0,
            attempts: 0,
            served: Histogram::default(),
            places: vec![place; n * scenario.proxies.count as usize],
            n,
            film,
            bins: vec![Histogram::default(); n_bins],
            trace: None,
        }
    }

    /// Keeps everything one by one, too.
    pub fn keep_trace(&mut self) {
        self.trace = Some(Trace {
            requests: Vec::new(),
            arrivals: vec![Vec::new(); self.n],
            spoilt: vec![Vec::new(); self.n],
            refusals: vec![Vec::new(); self.n],
        });
    }

    /// What was kept.
    pub fn take_trace(&mut self) -> Option<Trace> {
        self.trace.take()
    }

    /// A request has come to a destination.
    pub fn came(&mut self, now: Timestamp, destination: usize) {
        if let Some(trace) = &mut self.trace
            && let Some(arrivals) = trace.arrivals.get_mut(destination)
        {
            arrivals.push(now);
        }
    }

    /// The answer of one that has just come is spoilt.
    pub fn spoilt(&mut self, now: Timestamp, destination: usize) {
        if let Some(trace) = &mut self.trace
            && let Some(spoilt) = trace.spoilt.get_mut(destination)
        {
            spoilt.push(now);
        }
    }

    /// A destination has refused the connection for a request.
    pub fn refused(&mut self, now: Timestamp, destination: usize) {
        if let Some(trace) = &mut self.trace
            && let Some(refusals) = trace.refusals.get_mut(destination)
        {
            refusals.push(now);
        }
    }

    /// A request that began at `began` is over, after `attempts`.
    pub fn ended(&mut self, began: Timestamp, took: Duration, fate: Fate, attempts: u32, kind: Kind) {
        if let Some(trace) = &mut self.trace {
            trace.requests.push(Traced { at: began, took, fate, is_bad: kind == Kind::Bad });
        }
        let bin = (began.as_secs_f64() / self.film.bin) as usize;
        if let Some(sum) = self.film.attempts.get_mut(bin) {
            *sum += attempts;
        }
        let is_counted = began >= self.from;
        if is_counted {
            self.attempted += u64::from(attempts > 0);
            self.attempts += u64::from(attempts);
        }
        match kind {
            Kind::Good => {}
            Kind::Bad => return,
        }
        let is_failure = fate != Fate::Served;
        if let (Some(requests), Some(failures)) = (self.film.requests.get_mut(bin), self.film.failures.get_mut(bin)) {
            *requests += 1;
            *failures += u32::from(is_failure);
        }
        if !is_failure && let Some(times) = self.bins.get_mut(bin) {
            times.add(took);
        }
        if is_counted {
            self.requests += 1;
            self.failures += u64::from(is_failure);
            if !is_failure {
                self.served.add(took);
            }
        }
    }

    /// A destination stands so in a proxy's eyes from now on.
    pub fn stands(&mut self, now: Timestamp, proxy: u32, destination: usize, standing: Standing) {
        let (from, n) = (self.from, self.n);
        let Some(place) = self.places.get_mut(proxy as usize * n + destination) else { return };
        if place.standing == standing {
            return;
        }
        place.settle(now, from);
        if place.standing.share > 0.0 && standing.share == 0.0 && now >= from {
            place.ejections += 1;
        }
        place.standing = standing;
        place.look(now);
        if proxy == 0
            && let Some(lane) = self.film.shares.get_mut(destination)
        {
            lane.push((now.as_secs_f64(), standing.share));
        }
    }

    /// The truth of a destination, as a proxy may see it, is this from now on.
    pub fn is_true(&mut self, now: Timestamp, proxy: u32, destination: usize, truth: Truth) {
        let (from, n) = (self.from, self.n);
        let Some(place) = self.places.get_mut(proxy as usize * n + destination) else { return };
        if place.truth == truth {
            return;
        }
        place.settle(now, from);
        place.truth = truth;
        match truth {
            Truth::Sick => {
                place.sick_since = Some(now);
                place.well_since = None;
            }
            Truth::Healthy => {
                place.undetected += u32::from(place.sick_since.take().is_some());
                let is_back = place.standing.share >= 1.0 && !place.standing.is_judged;
                place.well_since = (!is_back).then_some(now);
            }
        }
        place.look(now);
        if proxy == 0
            && let Some(lane) = self.film.truths.get_mut(destination)
        {
            lane.push((now.as_secs_f64(), f64::from(u8::from(truth == Truth::Sick))));
        }
    }

    /// The run is over.
    pub fn figures(mut self) -> (Figures, Film) {
        let (end, from) = (self.end, self.from);
        for place in &mut self.places {
            place.settle(end, from);
        }
        let proxies = f64::from(self.n_proxies);
        let sum = |of: fn(&Place) -> f64| self.places.iter().map(of).sum::<f64>();
        let mean = |of: fn(&Place) -> (f64, u32)| {
            let (sum, n) = self.places.iter().map(of).fold((0.0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
            (n > 0).then(|| sum / f64::from(n))
        };
        let (lost, well) = (sum(|place| place.lost), sum(|place| place.well));
        let figures = Figures {
            requests: self.requests,
            failures: self.failures,
            mean: self.served.mean(),
            p50: self.served.quantile(0.5),
            p99: self.served.quantile(0.99),
            extra_load: if self.attempted > 0 { self.attempts as f64 / self.attempted as f64 - 1.0 } else { 0.0 },
            lost: lost / proxies,
            lost_share: if well > 0.0 { lost / well } else { 0.0 },
            detection: mean(|place| place.detections),
            undetected: sum(|place| f64::from(place.undetected)) / proxies,
            recovery: mean(|place| place.recoveries),
            ejections: sum(|place| f64::from(place.ejections)) / proxies,
        };
        let mut film = self.film;
        film.p99 = self.bins.iter().map(|bin| bin.quantile(0.99)).collect();
        (figures, film)
    }
}

impl Place {
    /// Accounts for the time up to now.
    fn settle(&mut self, now: Timestamp, from: Timestamp) {
        let seconds = now.since(self.since.max(from)).as_secs_f64();
        if self.truth == Truth::Healthy {
            self.well += seconds;
            self.lost += seconds * (1.0 - self.standing.share);
        }
        self.since = now;
    }

    /// Whether somebody has acted on the sickness, or all is as before.
    fn look(&mut self, now: Timestamp) {
        let is_acted_on = self.standing.is_judged || self.standing.share < 1.0;
        if is_acted_on && let Some(since) = self.sick_since.take() {
            self.detections.0 += now.since(since).as_secs_f64();
            self.detections.1 += 1;
        }
        let is_back = self.standing.share >= 1.0 && !self.standing.is_judged;
        if is_back && let Some(since) = self.well_since.take() {
            self.recoveries.0 += now.since(since).as_secs_f64();
            self.recoveries.1 += 1;
        }
    }
}

/// Of a film, at most.
const BINS: f64 = 300.0;

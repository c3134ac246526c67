//! A scenario: what happens to whom, resolved and without mistakes. docs/lab.md describes the file.
//!
//! Read in this order: this file (the meaning), [`units`] (spans, rates), [`raw`] (the file), [`resolve`] (from one to the
//! other), [`service`] (how long a request takes).

pub mod units;

pub mod raw;

pub mod resolve;

pub mod service;

use std::time::Duration;

use model::request::Method;
use model::time::Timestamp;

use self::service::Service;

pub use resolve::{ScenarioError, read};

/// A scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// One line.
    pub title: String,
    /// Simulated time.
    pub duration: Duration,
    /// Requests that arrive before it are not counted.
    pub warm_up: Duration,
    /// Who carries the traffic.
    pub proxies: Proxies,
    /// Active checks, where there are any.
    pub checks: Option<Checks>,
    /// Time to connect.
    pub connect: Duration,
    /// Time of one attempt up to the head of its response.
    pub response: Duration,
    /// All tries of a request; 1 is no retry.
    pub attempts: u8,
    /// For all tries together.
    pub total: Option<Duration>,
    /// Who serves; never empty.
    pub destinations: Vec<Server>,
    /// Who asks; never empty.
    pub traffic: Vec<Traffic>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

/// Proxies, all alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proxies {
    /// 1 or more.
    pub count: u32,
    /// Traffic threads of each; 1 or more.
    pub workers: u32,
    /// From one taking of sums to the next.
    pub tick: Duration,
    /// From what is seen to the moment when traffic follows it.
    pub publish: Duration,
    /// Between a proxy and a destination, there and back.
    pub round_trip: Duration,
}

/// When active checks come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// From one to the next.
    pub interval: Duration,
    /// How long one may take.
    pub timeout: Duration,
}

/// One destination.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Its name.
    pub id: String,
    /// How long a request is served.
    pub service: Service,
    /// Served at the same time.
    pub concurrency: u32,
    /// Waiting.
    pub backlog: u32,
    /// What one more meets.
    pub on_full: OnFull,
    /// Share of traffic.
    pub weight: u32,
}

/// What a request meets when the backlog is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFull {
    /// The connection is refused.
    Refuse,
    /// An answer.
    Status {
        /// Its status.
        status: u16,
        /// Whether it has a Retry-After.
        retry_after: bool,
    },
}

/// One stream of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// When they come.
    pub arrivals: Arrivals,
    /// Methods with the upper ends of their shares, the last one 1.
    pub methods: Vec<(Method, f64)>,
    /// After this the client goes away.
    pub patience: Duration,
}

/// When requests come.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// By chance.
    Poisson {
        /// In a second.
        rate: f64,
        /// Times of more.
        bursts: Option<Bursts>,
        /// Slow waves.
        diurnal: Option<Diurnal>,
    },
    /// Clients that wait for their answers.
    Closed(Clients),
    /// As they came once: the time since the first, the method.
    Recorded(Vec<(Duration, Method)>),
}

/// Times of more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// From one to the next; the first comes after one of it.
    pub every: Duration,
    /// How long.
    pub lasts: Duration,
    /// How much more.
    pub factor: f64,
}

/// A wave between one and `low`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Diurnal {
    /// From hill to hill.
    pub period: Duration,
    /// The valley, in shares of the hill.
    pub low: f64,
}

/// Clients in a closed loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clients {
    /// How many.
    pub count: u32,
    /// Between two requests, on average.
    pub think: Duration,
    /// Tries after a failed one.
    pub again: u32,
    /// Before each of them.
    pub pause: Duration,
    /// How long one stays away that gave up.
    pub away: Duration,
}

/// One fault, with all its times.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// To whom: places in `destinations`. Empty for what concerns all.
    pub on: Vec<usize>,
    /// From which proxies; `None`: all.
    pub proxies: Option<Vec<u32>>,
    /// When: in order, none over another, none empty.
    pub windows: Vec<(Timestamp, Timestamp)>,
    /// What probes see of it.
    pub probes: ProbesSee,
    /// Whether whom it befalls is to be taken out.
    pub truth: Truth,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// The process dies.
    Crash,
    /// Connections are refused.
    Refuse,
    /// Nothing comes through.
    Blackhole,
    /// Requests are taken and never answered.
    Hang,
    /// Nothing moves.
    Pause,
    /// All takes so many times as long.
    Slow(f64),
    /// As slow, falling back to 1.
    Cold(f64),
    /// The knee and the backlog, times this.
    Capacity(f64),
    /// A share is answered with this.
    Errors {
        /// Of the attempts.
        share: f64,
        /// The answer.
        status: u16,
        /// Whether it has a Retry-After.
        retry_after: bool,
    },
    /// A share is reset before its response.
    Resets(f64),
    /// A share of the bodies is cut.
    Cuts(f64),
    /// A share of the requests fails everywhere.
    ClientErrors {
        /// Of the requests.
        share: f64,
        /// The answer.
        status: u16,
    },
}

/// What an attempt comes to at a destination that takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A response.
    Response {
        /// Its status.
        status: u16,
        /// Whether it has a Retry-After.
        retry_after: bool,
    },
    /// The connection breaks before a response.
    Reset,
    /// The body breaks off.
    Cut,
}

/// What probes see of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbesSee {
    /// What a request would.
    Same,
    /// Nothing.
    Pass,
    /// They fail.
    Fail,
}

/// Whether a destination is one that should be out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Truth {
    /// It should not.
    Healthy,
    /// It should.
    Sick,
}

impl FaultKind {
    /// What it makes of a share of the attempts that are answered; `None`: it does not touch them there.
    pub fn reply(self) -> Option<(f64, Reply)> {
        match self {
            Self::Errors { share, status, retry_after } => Some((share, Reply::Response { status, retry_after })),
            Self::Resets(share) => Some((share, Reply::Reset)),
            Self::Cuts(share) => Some((share, Reply::Cut)),
            Self::Crash
            | Self::Refuse
            | Self::Blackhole
            | Self::Hang
            | Self::Pause
            | Self::Slow(_)
            | Self::Cold(_)
            | Self::Capacity(_)
            | Self::ClientErrors { .. } => None,
        }
    }

    /// How many times as long service takes after a share of the fault's time.
    pub fn slowness(self, gone: f64) -> f64 {
        match self {
            Self::Slow(factor) => factor,
            Self::Cold(factor) => 1.0 + (factor - 1.0) * (1.0 - gone).clamp(0.0, 1.0),
            Self::Crash
            | Self::Refuse
            | Self::Blackhole
            | Self::Hang
            | Self::Pause
            | Self::Capacity(_)
            | Self::Errors { .. }
            | Self::Resets(_)
            | Self::Cuts(_)
            | Self::ClientErrors { .. } => 1.0,
        }
    }

    /// What is left of the knee and the backlog.
    pub fn capacity(self) -> f64 {
        if let Self::Capacity(factor) = self { factor } else { 1.0 }
    }

    /// The word of the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Refuse => "refuse",
            Self::Blackhole => "blackhole",
            Self::Hang => "hang",
            Self::Pause => "pause",
            Self::Slow(_) => "slow",
            Self::Cold(_) => "cold",
            Self::Capacity(_) => "capacity",
            Self::Errors { .. } => "errors",
            Self::Resets(_) => "resets",
            Self::Cuts(_) => "cuts",
            Self::ClientErrors { .. } => "client_errors",
        }
    }
}

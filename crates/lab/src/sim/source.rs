//! Where requests come from: one stream of traffic, and what each of its requests is.

use std::time::Duration;

use model::request::Method;
use model::time::Timestamp;

use crate::chance::{Chance, Draw, exponential};
use crate::meter::Fate;
use crate::scenario::{Arrivals, Bursts, Clients, Diurnal, Traffic};

/// One stream.
#[derive(Debug)]
pub struct Source {
    traffic: Traffic,
    chance: Chance,
    number: u64,
    /// Arrivals drawn so far, those that were thinned out included.
    drawn: u64,
    /// The next arrival; [`Timestamp::MAX`] when none comes by itself.
    pub next_at: Timestamp,
    /// Per client of a closed loop: requests so far, tries left.
    clients: Vec<Client>,
}

#[derive(Clone, Copy, Debug)]
struct Client {
    asked: u64,
    again: u32,
}

/// One request, as it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Names its streams of chance.
    pub number: u64,
    /// Its method.
    pub method: Method,
    /// Who asks, in a closed loop.
    pub client: Option<u32>,
}

impl Source {
    /// The stream with this place in the scenario, before its first request.
    pub fn new(traffic: &Traffic, number: u32, chance: Chance) -> Self {
        let clients = match traffic.arrivals {
            Arrivals::Closed(Clients { count, again, .. }) => vec![Client { asked: 0, again }; count as usize],
            Arrivals::Poisson { .. } | Arrivals::Recorded(_) => Vec::new(),
        };
        let mut source = Self {
            traffic: traffic.clone(),
            chance,
            number: u64::from(number) << 48,
            drawn: 0,
            next_at: Timestamp::ZERO,
            clients,
        };
        source.next_at = source.after(Timestamp::ZERO);
        source
    }

    /// How long its clients wait.
    pub fn patience(&self) -> Duration {
        self.traffic.patience
    }

    /// When each client of a closed loop asks for the first time.
    pub fn first_asks(&self) -> Vec<Timestamp> {
        let Arrivals::Closed(clients) = &self.traffic.arrivals else { return Vec::new() };
        (0..clients.count).map(|client| Timestamp::ZERO + self.think(client, clients)).collect()
    }

    /// The request that arrives by itself at [`Self::next_at`]; plans the one after it.
    pub fn take(&mut self) -> Request {
        let number = self.number | self.drawn;
        let method = match &self.traffic.arrivals {
            Arrivals::Recorded(requests) => {
                requests.get(self.drawn.saturating_sub(1) as usize).map_or(Method::Get, |(_, method)| *method)
            }
            Arrivals::Poisson { .. } | Arrivals::Closed(_) => self.method(number),
        };
        self.next_at = self.after(self.next_at);
        Request { number, method, client: None }
    }

    /// A client of a closed loop asks.
    pub fn ask(&mut self, client: u32) -> Request {
        let mut number = self.number | u64::from(client) << 24;
        if let Some(state) = self.clients.get_mut(client as usize) {
            number |= state.asked & 0xff_ffff;
            state.asked += 1;
        }
        Request { number, method: self.method(number), client: Some(client) }
    }

    /// A client of a closed loop has its answer, or none: when it asks again.
    pub fn answered(&mut self, client: u32, now: Timestamp, fate: Fate) -> Timestamp {
        let Arrivals::Closed(clients) = self.traffic.arrivals else { return Timestamp::MAX };
        let think = self.think(client, &clients);
        let Some(state) = self.clients.get_mut(client as usize) else { return Timestamp::MAX };
        if fate == Fate::Served {
            state.again = clients.again;
            return now + think;
        }
        if let Some(left) = state.again.checked_sub(1) {
            state.again = left;
            return now + clients.pause;
        }
        state.again = clients.again;
        now + clients.away + think
    }

    fn think(&self, client: u32, clients: &Clients) -> Duration {
        let asked = self.clients.get(client as usize).map_or(0, |state| state.asked);
        clients.think.mul_f64(exponential(self.chance.unit(Draw::Think, self.number | u64::from(client), asked)))
    }

    fn method(&self, number: u64) -> Method {
        if let [(only, _)] = self.traffic.methods[..] {
            return only;
        }
        let draw = self.chance.unit(Draw::Method, number, 0);
        let drawn = self.traffic.methods.iter().find(|(_, upper)| draw < *upper).or(self.traffic.methods.last());
        drawn.map_or(Method::Get, |(method, _)| *method)
    }

    /// The next arrival after `at`. Poisson: candidates at the highest rate there ever is, each of which happens with the
    /// share that the rate of its moment has in that.
    fn after(&mut self, mut at: Timestamp) -> Timestamp {
        match &self.traffic.arrivals {
            Arrivals::Closed(_) => Timestamp::MAX,
            Arrivals::Recorded(requests) => {
                let next = requests.get(self.drawn as usize).map(|(since, _)| Timestamp::ZERO + *since);
                self.drawn += 1;
                next.unwrap_or(Timestamp::MAX)
            }
            Arrivals::Poisson { rate, bursts, diurnal } => {
                let highest = rate * bursts.map_or(1.0, |bursts| bursts.factor);
                loop {
                    let number = self.number | self.drawn;
                    self.drawn += 1;
                    let gap = exponential(self.chance.unit(Draw::Gap, number, 0)) / highest;
                    at = at + Duration::from_nanos((gap * 1e9) as u64);
                    let now = factor(at, bursts.as_ref(), diurnal.as_ref()) * rate;
                    if now >= highest || self.chance.unit(Draw::Thinning, number, 0) * highest < now {
                        return at;
                    }
                }
            }
        }
    }
}

fn factor(at: Timestamp, bursts: Option<&Bursts>, diurnal: Option<&Diurnal>) -> f64 {
    let wave = diurnal.map_or(1.0, |diurnal| {
        let turn = at.as_secs_f64() / diurnal.period.as_secs_f64();
        let height = (1.0 + libm::cos(turn * std::f64::consts::TAU)) / 2.0;
        diurnal.low + (1.0 - diurnal.low) * height
    });
    let burst = bursts.map_or(1.0, |bursts| {
        let every = bursts.every.as_nanos().max(1) as u64;
        let is_on = at.as_nanos() >= every && u128::from(at.as_nanos() % every) < bursts.lasts.as_nanos();
        if is_on { bursts.factor } else { 1.0 }
    });
    wave * burst
}

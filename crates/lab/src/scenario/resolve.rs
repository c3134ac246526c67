//! From the file to the scenario. A mistake names its place and what mends it; the first one ends the reading.

mod faults;

use std::fmt;
use std::time::Duration;

use model::request::Method;
use model::time::Timestamp;
use serde_saphyr::Spanned;

use self::faults::Ground;
use super::raw;
use super::service::{Quantiles, Service};
use super::units::Span;
use super::{Arrivals, Bursts, Checks, Clients, Diurnal, OnFull, Proxies, Scenario, Server, Traffic};
use crate::recorded;

/// Why a text is no scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// Where: a key; empty where `what` tells line and column.
    pub place: String,
    /// The line of that key's value; for keys of lists, the one where the entry begins.
    pub line: Option<u64>,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.place.as_str(), self.line) {
            ("", _) => f.write_str(&self.what),
            (place, Some(line)) => write!(f, "line {line}, {place}: {}", self.what),
            (place, None) => write!(f, "{place}: {}", self.what),
        }
    }
}

impl std::error::Error for ScenarioError {}

/// Reads a scenario. `open` gives the text of a file that it names, or says why there is none.
pub fn read(text: &str, open: &dyn Fn(&str) -> Result<String, String>) -> Result<Scenario, ScenarioError> {
    let file: raw::File = serde_saphyr::from_str(text).map_err(|error| wrong("", error.to_string()))?;
    at(&file.version, |version| if *version == 1 { Ok(()) } else { Err(wrong("version", "1 is the only one")) })?;
    let destinations = at(&file.destinations, |entries| destinations(entries))?;
    let duration = span("duration", Some(&file.duration), Duration::ZERO)?;
    let end = Timestamp::ZERO + duration;
    let proxies = proxies(&file.proxies)?;
    Ok(Scenario {
        title: file.title,
        duration,
        warm_up: match &file.warm_up {
            None => Duration::ZERO,
            Some(warm_up) => at(warm_up, |span| {
                if span.0 < duration { Ok(span.0) } else { Err(wrong("warm_up", "it ends before `duration`")) }
            })?,
        },
        checks: match &file.checks {
            Some(checks) => Some(Checks {
                interval: span("checks.interval", Some(&checks.interval), Duration::ZERO)?,
                timeout: span("checks.timeout", Some(&checks.timeout), Duration::ZERO)?,
            }),
            None => None,
        },
        connect: span("timeouts.connect", file.timeouts.connect.as_ref(), Duration::from_secs(1))?,
        response: span("timeouts.response", file.timeouts.response.as_ref(), Duration::from_secs(60))?,
        attempts: match &file.retry.attempts {
            None => 3,
            Some(attempts) => at(attempts, |attempts| at_least_one("retry.attempts", *attempts))?,
        },
        total: match &file.total {
            None => None,
            total => Some(span("total", total.as_ref(), Duration::ZERO)?),
        },
        traffic: at(&file.traffic, |entries| {
            if entries.is_empty() {
                return Err(wrong("traffic", "there is none; an entry names its `arrivals`: poisson, closed or log"));
            }
            each("traffic", entries, |place, entry| traffic(place, entry, open))
        })?,
        faults: each("faults", &file.faults, |place, entry| {
            faults::read(place, entry, &Ground { destinations: &destinations, proxies: proxies.count, end })
        })?,
        proxies,
        destinations,
    })
}

fn proxies(raw: &raw::Proxies) -> Result<Proxies, ScenarioError> {
    let number = |place, number: Option<&Spanned<u32>>| match number {
        None => Ok(1),
        Some(number) => at(number, |number| match number {
            1..=MOST_PROXIES => Ok(*number),
            _ => Err(wrong(place, format!("it lies between 1 and {MOST_PROXIES}"))),
        }),
    };
    Ok(Proxies {
        count: number("proxies.count", raw.count.as_ref())?,
        workers: number("proxies.workers", raw.workers.as_ref())?,
        tick: span("proxies.tick", raw.tick.as_ref(), Duration::from_millis(100))?,
        publish: raw.publish.as_ref().map_or(Duration::from_millis(1), |span| span.value.0),
        round_trip: raw.round_trip.as_ref().map_or(Duration::from_micros(500), |span| span.value.0),
    })
}

fn destinations(entries: &[Spanned<raw::Destinations>]) -> Result<Vec<Server>, ScenarioError> {
    let mut servers: Vec<Server> = Vec::new();
    each("destinations", entries, |place, entry| add(place, entry, &mut servers))?;
    if !(1..=MOST_DESTINATIONS).contains(&servers.len()) {
        return Err(wrong("destinations", format!("there are between 1 and {MOST_DESTINATIONS}")));
    }
    Ok(servers)
}

fn add(place: &str, entry: &raw::Destinations, servers: &mut Vec<Server>) -> Result<(), ScenarioError> {
    let service = service(place, &entry.service)?;
    let on_full = match &entry.on_full {
        None => OnFull::Refuse,
        Some(raw::OnFull::Word(word)) if word == "refuse" => OnFull::Refuse,
        Some(raw::OnFull::Word(_)) => {
            return Err(wrong(&format!("{place}.on_full"), "it is `refuse` or {status: 503, retry_after: 1s}"));
        }
        Some(raw::OnFull::Answer(answer)) => {
            OnFull::Status { status: answer.status, retry_after: answer.retry_after.is_some() }
        }
    };
    for id in &entry.ids {
        if servers.iter().any(|server| server.id == *id) {
            return Err(wrong(place, format!("{id} is there twice")));
        }
        let is_word = !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if !is_word {
            return Err(wrong(place, format!("{id:?}: names are letters, digits, - and _")));
        }
        servers.push(Server {
            id: id.clone(),
            service: service.clone(),
            concurrency: at_least_one(&format!("{place}.concurrency"), entry.concurrency.unwrap_or(64))?,
            backlog: entry.backlog.unwrap_or(256),
            on_full,
            weight: entry.weight.unwrap_or(1),
        });
    }
    Ok(())
}

fn service(place: &str, raw: &raw::ServiceTime) -> Result<Service, ScenarioError> {
    let place = format!("{place}.service");
    let points = [(0.5, raw.p50), (0.9, raw.p90), (0.99, raw.p99), (0.999, raw.p999)];
    let pairs: Vec<(f64, Duration)> = points.iter().filter_map(|(share, span)| Some((*share, (*span)?.0))).collect();
    match (raw.exponential, raw.constant, raw.p50) {
        (Some(mean), None, None) if pairs.is_empty() => Ok(Service::Exponential(positive(&place, mean.0)?)),
        (None, Some(span), None) if pairs.is_empty() => Ok(Service::Constant(positive(&place, span.0)?)),
        (None, None, Some(_)) => Quantiles::new(&pairs)
            .map(Service::Quantiles)
            .ok_or_else(|| wrong(&place, "quantiles rise from p50 to p999, and none is zero")),
        _ => Err(wrong(&place, "it has p50 (and p90, p99, p999), or exponential, or constant")),
    }
}

fn traffic(
    place: &str,
    raw: &raw::Traffic,
    open: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Traffic, ScenarioError> {
    let poisson = [("rate", raw.rate.is_some()), ("bursts", raw.bursts.is_some()), ("diurnal", raw.diurnal.is_some())];
    let closed = [
        ("clients", raw.clients.is_some()),
        ("think", raw.think.is_some()),
        ("again", raw.again.is_some()),
        ("pause", raw.pause.is_some()),
        ("away", raw.away.is_some()),
    ];
    let log = [("file", raw.file.is_some())];
    let foreign: Vec<(&str, bool)> = match raw.arrivals.as_str() {
        "poisson" => closed.into_iter().chain(log).collect(),
        "closed" => poisson.into_iter().chain(log).collect(),
        "log" => poisson.into_iter().chain(closed).collect(),
        _ => return Err(wrong(&format!("{place}.arrivals"), "it is poisson, closed or log")),
    };
    if let Some((key, _)) = foreign.iter().find(|(_, is_there)| *is_there) {
        return Err(wrong(&format!("{place}.{key}"), format!("arrivals: {} have no such key", raw.arrivals)));
    }
    let needed = |key: &str| wrong(&format!("{place}.{key}"), format!("arrivals: {} need it", raw.arrivals));
    let arrivals = match raw.arrivals.as_str() {
        "poisson" => Arrivals::Poisson {
            rate: raw.rate.ok_or_else(|| needed("rate"))?.0,
            bursts: raw.bursts.as_ref().map(|bursts| bursts_of(place, bursts)).transpose()?,
            diurnal: raw.diurnal.as_ref().map(|diurnal| diurnal_of(place, diurnal)).transpose()?,
        },
        "closed" => Arrivals::Closed(Clients {
            count: raw.clients.filter(|count| (1..=MOST_CLIENTS).contains(count)).ok_or_else(|| needed("clients"))?,
            think: positive(&format!("{place}.think"), raw.think.ok_or_else(|| needed("think"))?.0)?,
            again: raw.again.unwrap_or(0),
            pause: positive(&format!("{place}.pause"), raw.pause.map_or(Duration::from_secs(1), |span| span.0))?,
            away: raw.away.map_or(Duration::ZERO, |span| span.0),
        }),
        _ => {
            let name = raw.file.as_ref().ok_or_else(|| needed("file"))?;
            let text = open(name).map_err(|why| wrong(&format!("{place}.file"), format!("{name}: {why}")))?;
            let requests = recorded::read(&text).map_err(|why| wrong(&format!("{place}.file"), why))?;
            Arrivals::Recorded(requests)
        }
    };
    Ok(Traffic {
        arrivals,
        methods: methods(place, raw)?,
        patience: positive(&format!("{place}.patience"), raw.patience.map_or(Duration::from_secs(30), |s| s.0))?,
    })
}

fn bursts_of(place: &str, raw: &raw::Bursts) -> Result<Bursts, ScenarioError> {
    if raw.lasts.0 >= raw.every.0 || raw.factor < 1.0 {
        return Err(wrong(&format!("{place}.bursts"), "`lasts` is less than `every`, and `factor` 1 or more"));
    }
    Ok(Bursts { every: raw.every.0, lasts: raw.lasts.0, factor: raw.factor })
}

fn diurnal_of(place: &str, raw: &raw::Diurnal) -> Result<Diurnal, ScenarioError> {
    let place = format!("{place}.diurnal");
    Ok(Diurnal { period: positive(&place, raw.period.0)?, low: share(&place, Some(raw.low))? })
}

fn methods(place: &str, raw: &raw::Traffic) -> Result<Vec<(Method, f64)>, ScenarioError> {
    if raw.methods.is_empty() {
        return Ok(vec![(Method::Get, 1.0)]);
    }
    let sum: f64 = raw.methods.values().sum();
    if raw.methods.values().any(|share| *share <= 0.0) || (sum - 1.0).abs() > 1e-6 {
        return Err(wrong(&format!("{place}.methods"), "shares are above 0 and their sum is 1"));
    }
    let mut upper = 0.0;
    let ends = raw.methods.iter().map(|(name, share)| {
        upper += share;
        (Method::from_bytes(name.as_bytes()), upper)
    });
    Ok(ends.collect())
}

fn share(place: &str, share: Option<f64>) -> Result<f64, ScenarioError> {
    match share {
        Some(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(wrong(place, "a share is needed, from 0 to 1")),
    }
}

fn positive(place: &str, span: Duration) -> Result<Duration, ScenarioError> {
    if span.is_zero() { Err(wrong(place, "it is longer than nothing")) } else { Ok(span) }
}

/// A span outside of lists; `otherwise` where it is not said.
fn span(place: &str, span: Option<&Spanned<Span>>, otherwise: Duration) -> Result<Duration, ScenarioError> {
    span.map_or(Ok(otherwise), |span| at(span, |span| positive(place, span.0)))
}

fn at_least_one<N: PartialOrd + From<u8>>(place: &str, number: N) -> Result<N, ScenarioError> {
    if number < N::from(1) { Err(wrong(place, "it is 1 or more")) } else { Ok(number) }
}

fn each<R, T>(
    key: &str,
    entries: &[Spanned<R>],
    mut read: impl FnMut(&str, &R) -> Result<T, ScenarioError>,
) -> Result<Vec<T>, ScenarioError> {
    let read = |(number, entry): (usize, &Spanned<R>)| at(entry, |entry| read(&format!("{key}[{number}]"), entry));
    entries.iter().enumerate().map(read).collect()
}

/// What is read of a value, its mistakes with the line where it begins, unless a part of it has told its own.
fn at<R, T>(value: &Spanned<R>, read: impl FnOnce(&R) -> Result<T, ScenarioError>) -> Result<T, ScenarioError> {
    let line = Some(value.referenced.line()).filter(|line| *line > 0);
    read(&value.value).map_err(|error| ScenarioError { line: error.line.or(line), ..error })
}

fn wrong(place: &str, what: impl Into<String>) -> ScenarioError {
    ScenarioError { place: place.to_owned(), line: None, what: what.into() }
}

const MOST_PROXIES: u32 = 256;
const MOST_DESTINATIONS: usize = 1000;
const MOST_CLIENTS: u32 = 1_000_000;

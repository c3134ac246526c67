//! What goes wrong: a fault's kind, whom it strikes, and when.

use config::report::suggest;
use model::time::Timestamp;

use super::{ScenarioError, positive, share, wrong};
use crate::scenario::raw;
use crate::scenario::{Fault, FaultKind, ProbesSee, Server, Truth};

/// What a fault is placed on.
pub(super) struct Ground<'a> {
    pub(super) destinations: &'a [Server],
    pub(super) proxies: u32,
    pub(super) end: Timestamp,
}

pub(super) fn read(place: &str, raw: &raw::Fault, ground: &Ground<'_>) -> Result<Fault, ScenarioError> {
    let kind = kind(place, raw)?;
    let mut on = Vec::new();
    for id in &raw.on {
        let found = ground.destinations.iter().position(|server| server.id == *id);
        on.push(found.ok_or_else(|| wrong(&format!("{place}.on"), unknown(id, ground.destinations)))?);
    }
    if on.is_empty() != matches!(kind, FaultKind::ClientErrors { .. }) {
        return Err(wrong(&format!("{place}.on"), "client_errors have none, all others need it"));
    }
    if raw.proxies.as_ref().is_some_and(|list| list.iter().any(|proxy| *proxy >= ground.proxies)) {
        return Err(wrong(&format!("{place}.proxies"), "proxies are counted from 0"));
    }
    let (probes, truth) = usual(kind);
    Ok(Fault {
        kind,
        on,
        proxies: raw.proxies.clone(),
        windows: windows(place, raw, kind, ground.end)?,
        probes: match raw.probes.as_deref() {
            None => probes,
            Some("pass") => ProbesSee::Pass,
            Some("fail") => ProbesSee::Fail,
            Some(_) => return Err(wrong(&format!("{place}.probes"), "it is pass or fail")),
        },
        truth: match raw.truth.as_deref() {
            None => truth,
            Some("healthy") => Truth::Healthy,
            Some("sick") => Truth::Sick,
            Some(_) => return Err(wrong(&format!("{place}.truth"), "it is healthy or sick")),
        },
    })
}

/// A destination that is not there, and what may have been meant.
fn unknown(id: &str, destinations: &[Server]) -> String {
    let ids: Vec<&str> = destinations.iter().map(|server| server.id.as_str()).collect();
    let more = if ids.len() > MOST_LISTED { ", ..." } else { "" };
    let listed = ids.iter().take(MOST_LISTED).copied().collect::<Vec<_>>().join(", ");
    let meant = suggest::did_you_mean(id, ids).map(|meant| format!("; {meant}")).unwrap_or_default();
    format!("there is no destination {id}, there are {listed}{more}{meant}")
}

fn kind(place: &str, raw: &raw::Fault) -> Result<FaultKind, ScenarioError> {
    let (takes_factor, takes_share, takes_status, takes_retry_after) = match raw.kind.as_str() {
        "crash" | "refuse" | "blackhole" | "hang" | "pause" => (false, false, false, false),
        "slow" | "cold" | "capacity" => (true, false, false, false),
        "resets" | "cuts" => (false, true, false, false),
        "errors" => (false, true, true, true),
        "client_errors" => (false, true, true, false),
        word => {
            let meant = suggest::did_you_mean(word, KINDS).map(|meant| format!("; {meant}")).unwrap_or_default();
            return Err(wrong(&format!("{place}.kind"), format!("it is one of {}{meant}", KINDS.join(", "))));
        }
    };
    let keys = [
        ("factor", raw.factor.is_some(), takes_factor),
        ("share", raw.share.is_some(), takes_share),
        ("status", raw.status.is_some(), takes_status),
        ("retry_after", raw.retry_after.is_some(), takes_retry_after),
    ];
    if let Some((key, ..)) = keys.iter().find(|(_, is_there, is_taken)| *is_there && !is_taken) {
        return Err(wrong(&format!("{place}.{key}"), format!("kind: {} has no such key", raw.kind)));
    }
    let factor = || match raw.factor {
        Some(factor) if factor > 0.0 && factor.is_finite() => Ok(factor),
        _ => Err(wrong(&format!("{place}.factor"), "it is needed, and above 0")),
    };
    let status = || match raw.status {
        Some(status) if (200..600).contains(&status) => Ok(status),
        _ => Err(wrong(&format!("{place}.status"), "it is needed, from 200 to 599")),
    };
    Ok(match raw.kind.as_str() {
        "crash" => FaultKind::Crash,
        "refuse" => FaultKind::Refuse,
        "blackhole" => FaultKind::Blackhole,
        "hang" => FaultKind::Hang,
        "pause" => FaultKind::Pause,
        "slow" => FaultKind::Slow(factor()?),
        "cold" => FaultKind::Cold(factor()?),
        "capacity" => FaultKind::Capacity(factor()?),
        "errors" => FaultKind::Errors {
            share: share(place, raw.share)?,
            status: status()?,
            retry_after: raw.retry_after.is_some(),
        },
        "resets" => FaultKind::Resets(share(place, raw.share)?),
        "cuts" => FaultKind::Cuts(share(place, raw.share)?),
        _ => FaultKind::ClientErrors { share: share(place, raw.share)?, status: status()? },
    })
}

/// What probes see of a fault, and the truth, where the scenario says nothing.
fn usual(kind: FaultKind) -> (ProbesSee, Truth) {
    match kind {
        FaultKind::Crash | FaultKind::Refuse | FaultKind::Blackhole | FaultKind::Hang | FaultKind::Slow(_) => {
            (ProbesSee::Same, Truth::Sick)
        }
        FaultKind::Pause | FaultKind::Cold(_) => (ProbesSee::Same, Truth::Healthy),
        FaultKind::Capacity(_) => (ProbesSee::Same, Truth::Sick),
        FaultKind::Errors { .. } | FaultKind::Resets(_) | FaultKind::Cuts(_) => (ProbesSee::Pass, Truth::Sick),
        FaultKind::ClientErrors { .. } => (ProbesSee::Pass, Truth::Healthy),
    }
}

fn windows(
    place: &str,
    raw: &raw::Fault,
    kind: FaultKind,
    end: Timestamp,
) -> Result<Vec<(Timestamp, Timestamp)>, ScenarioError> {
    let from = Timestamp::ZERO + raw.at.0;
    let Some(lasts) = raw.lasts.map(|span| span.0) else {
        let has_end = matches!(kind, FaultKind::Pause | FaultKind::Cold(_)) || raw.every.is_some();
        return if has_end {
            Err(wrong(&format!("{place}.lasts"), "it is needed here"))
        } else {
            Ok(vec![(from, Timestamp::MAX)])
        };
    };
    let lasts = positive(&format!("{place}.lasts"), lasts)?;
    let Some(every) = raw.every.map(|span| span.0) else {
        return Ok(vec![(from, from + lasts)]);
    };
    if every <= lasts {
        return Err(wrong(&format!("{place}.every"), "it is longer than `lasts`"));
    }
    let until = raw.until.map_or(end, |span| Timestamp::ZERO + span.0).min(end);
    let starts = std::iter::successors(Some(from), |at| Some(*at + every)).take_while(|at| *at < until);
    let windows: Vec<_> = starts.take(MOST_WINDOWS).map(|at| (at, at + lasts)).collect();
    if windows.len() == MOST_WINDOWS {
        return Err(wrong(&format!("{place}.every"), format!("it comes more than {MOST_WINDOWS} times")));
    }
    Ok(windows)
}

const KINDS: [&str; 12] = [
    "crash",
    "refuse",
    "blackhole",
    "hang",
    "pause",
    "slow",
    "cold",
    "capacity",
    "errors",
    "resets",
    "cuts",
    "client_errors",
];
/// Destinations that an error lists.
const MOST_LISTED: usize = 20;
const MOST_WINDOWS: usize = 100_000;

//! What is told of an exchange when it is over: metrics, and a line in the access log where there is one.

mod kept;

use std::net::IpAddr;

use exchange::step::Part;
use exchange::{Exchange, Report, Snapshot};
use http1::request::Request;
use io::Io;
use model::outcome::{FailureKind, OutcomeClass};
use model::time::Timestamp;

use crate::access_log::{Attempts, Line, Protocol, Tries};
use crate::leg::Origin;
use crate::local::Local;

pub(crate) use self::kept::Kept;

/// Collects the facts of one exchange.
pub(crate) struct Record {
    started: Timestamp,
    /// [`crate::client::Client::sent`] at the start.
    sent_before: u64,
    /// Collected only where there is a log.
    attempts: Tries,
    tries: u32,
}

/// Whose exchange it was.
#[derive(Clone, Copy)]
pub(crate) struct Told<'a> {
    pub(crate) listener: &'a str,
    pub(crate) client: IpAddr,
    pub(crate) protocol: Protocol,
    /// [`crate::client::Client::sent`] at the end.
    pub(crate) sent: u64,
    /// `None`: its head was refused.
    pub(crate) request: Option<Request<'a>>,
    /// `None`: it never came to the machine.
    pub(crate) walked: Option<(&'a Exchange, &'a Snapshot)>,
    /// The request's id, where it has one.
    pub(crate) id: Option<&'a str>,
}

/// How it ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// What the client saw; 499 when it was gone.
    pub(crate) status: u16,
    /// Why the answer was our own or broke off; empty when all went well.
    pub(crate) reason: &'static str,
    /// Content of the request.
    pub(crate) bytes_in: u64,
}

impl Record {
    /// An exchange begins.
    pub(crate) fn begin(now: Timestamp, sent_before: u64) -> Self {
        Self { started: now, sent_before, attempts: Tries::default(), tries: 0 }
    }

    /// An attempt ended, or something is known of its end.
    pub(crate) fn attempt<I: Io, R>(
        &mut self,
        local: &Local<I, R>,
        snapshot: &Snapshot,
        report: &Report,
        now: Timestamp,
        origin: Origin,
    ) {
        let is_new = match report.part {
            Part::Whole | Part::Begun => true,
            Part::Broken => false,
        };
        if let Some(cluster) = snapshot.clusters.get(report.cluster.index())
            && let Some(destination) = cluster.destinations.get(report.destination.index())
        {
            if is_new && self.tries > 0 {
                local.metrics.retry(&cluster.id);
            }
            let outcome = &report.outcome;
            local.sums.attempt(&local.metrics, cluster, destination, outcome.class);
            if outcome.failure == Some(FailureKind::Local) {
                local.metrics.local_failure(&cluster.id);
            }
            if let (Origin::Reused, OutcomeClass::Neutral, Some(how @ (FailureKind::Closed | FailureKind::Reset))) =
                (origin, outcome.class, outcome.failure)
            {
                local.metrics.stale_connection(&cluster.id, &destination.id, how);
            }
        }
        self.tries += u32::from(is_new);
        if local.access_log.is_some() {
            self.attempts.push(report, now, origin);
        }
    }

    /// The exchange is over.
    pub(crate) fn end<I: Io, R>(&self, local: &Local<I, R>, told: Told<'_>, outcome: Outcome, now: Timestamp) {
        let placement = told.walked.map(|(exchange, _)| exchange.placement()).unwrap_or_default();
        let snapshot = told.walked.map(|(_, snapshot)| snapshot);
        let cluster = placement.cluster.and_then(|index| snapshot?.clusters.get(index.index()));
        match placement.cluster.zip(cluster) {
            Some((index, cluster)) if outcome.reason.is_empty() => {
                local.sums.request(&local.metrics, index, cluster, outcome.status);
            }
            Some(_) | None => {
                local.metrics.request(cluster.map(|cluster| &cluster.id), outcome.status, outcome.reason);
            }
        }
        let denied = told.walked.and_then(|(exchange, _)| exchange.retry_denied());
        if let (Some(cluster), Some(denied)) = (cluster, denied) {
            local.metrics.retry_denied(&cluster.id, denied.as_str());
        }
        let Some(log) = &local.access_log else { return };
        let route = placement.route.and_then(|index| snapshot?.routes.get(index.index()));
        let request = told.request.as_ref();
        let line = Line {
            listener: told.listener,
            request_id: told.id,
            client: told.client,
            route: route.map(|route| route.id.as_str()),
            cluster: cluster.map(|cluster| cluster.id.as_str()),
            method: request.map(Request::method_name).unwrap_or_default(),
            host: request.map(Request::host).unwrap_or_default(),
            path: request.map(Request::path).unwrap_or_default(),
            protocol: told.protocol,
            status: outcome.status,
            reason: outcome.reason,
            bytes_in: outcome.bytes_in,
            bytes_out: told.sent - self.sent_before,
            took: now.since(self.started),
            attempts: Attempts::Collected(&self.attempts, snapshot),
            retry_denied: denied.map(|denied| denied.as_str()),
        };
        log.line(&line, now);
    }
}

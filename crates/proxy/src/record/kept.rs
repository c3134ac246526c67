//! What is to be told of an exchange that became a tunnel: its facts, cut loose from the buffers and the snapshot that
//! they lay in, so that a tunnel of hours holds neither.

use std::net::IpAddr;

use io::Io;
use model::id::ClusterId;
use model::time::Timestamp;

use super::{Outcome, Record, Told};
use crate::access_log::{Attempts, Line, Protocol};
use crate::local::Local;

/// The facts.
pub(crate) struct Kept {
    started: Timestamp,
    cluster: Option<ClusterId>,
    line: Option<Box<LineFacts>>,
}

/// Those that only the access log wants.
struct LineFacts {
    listener: String,
    id: Option<String>,
    client: IpAddr,
    route: Option<String>,
    method: String,
    host: String,
    path: String,
    protocol: Protocol,
    /// As they stand in the line: what names them is not kept.
    attempts: Vec<u8>,
    retry_denied: Option<&'static str>,
}

impl Record {
    /// Keeps what is to be told at the end.
    pub(crate) fn keep<I: Io, R>(&self, local: &Local<I, R>, told: Told<'_>) -> Kept {
        let placement = told.walked.map(|(exchange, _)| exchange.placement()).unwrap_or_default();
        let snapshot = told.walked.map(|(_, snapshot)| snapshot);
        let cluster = placement.cluster.and_then(|index| snapshot?.clusters.get(index.index()));
        let cluster = cluster.map(|cluster| cluster.id.clone());
        let denied = told.walked.and_then(|(exchange, _)| exchange.retry_denied());
        if let (Some(cluster), Some(denied)) = (&cluster, denied) {
            local.metrics.retry_denied(cluster, denied.as_str());
        }
        let line = local.access_log.is_some().then(|| {
            let route = placement.route.and_then(|index| snapshot?.routes.get(index.index()));
            let request = told.request.as_ref();
            let mut attempts = Vec::new();
            self.attempts.write(&mut attempts, snapshot);
            Box::new(LineFacts {
                listener: told.listener.to_owned(),
                id: told.id.map(str::to_owned),
                client: told.client,
                route: route.map(|route| route.id.as_str().to_owned()),
                method: request.map(|request| request.method_name().to_owned()).unwrap_or_default(),
                host: request.map(|request| request.host().to_owned()).unwrap_or_default(),
                path: request.map(|request| request.path().to_owned()).unwrap_or_default(),
                protocol: told.protocol,
                attempts,
                retry_denied: denied.map(|denied| denied.as_str()),
            })
        });
        Kept { started: self.started, cluster, line }
    }
}

impl Kept {
    /// The exchange is over. `bytes_out`: everything that the client was sent for it.
    pub(crate) fn end<I: Io, R>(&self, local: &Local<I, R>, outcome: Outcome, bytes_out: u64, now: Timestamp) {
        local.metrics.request(self.cluster.as_ref(), outcome.status, outcome.reason);
        let (Some(log), Some(facts)) = (&local.access_log, &self.line) else { return };
        let line = Line {
            listener: &facts.listener,
            request_id: facts.id.as_deref(),
            client: facts.client,
            route: facts.route.as_deref(),
            cluster: self.cluster.as_ref().map(ClusterId::as_str),
            method: &facts.method,
            host: &facts.host,
            path: &facts.path,
            protocol: facts.protocol,
            status: outcome.status,
            reason: outcome.reason,
            bytes_in: outcome.bytes_in,
            bytes_out,
            took: now.since(self.started),
            attempts: Attempts::Written(&facts.attempts),
            retry_denied: facts.retry_denied,
        };
        log.line(&line, now);
    }
}

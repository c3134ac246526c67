//! Who may use a route and how often: judged after the route is found and before any destination is thought of, so
//! that nothing of it is ever charged to one.

use std::time::Duration;

use model::entry::{AccessList, ConnectionLimit, LimitKey, RequestLimit};
use model::id::RouteId;
use model::page::Maintenance;
use model::request::RequestFacts;
use model::route::RoutePolicy;

use crate::limit::{ClientKey, Pace, Rule};
use crate::reason::Reason;
use crate::step::{Answer, Shared};

/// A route under maintenance.
#[derive(Debug)]
struct Closed {
    rules: Maintenance,
    answer: Answer,
}

/// The rules of one route.
#[derive(Debug)]
pub struct AccessRules {
    list: AccessList,
    closed: Option<Closed>,
    in_flight: Option<ConnectionLimit>,
    requests: Option<(Pace, LimitKey)>,
    rule: Rule,
}

impl AccessRules {
    /// The rules of a route; `None` when it has none.
    pub fn of(route: &RouteId, policy: &RoutePolicy) -> Option<Self> {
        let has_some = policy.access != AccessList::default()
            || policy.limit_requests.is_some()
            || policy.limit_connections.is_some()
            || policy.maintenance.is_some();
        let closed = |rules: &Maintenance| Closed {
            rules: rules.clone(),
            answer: Answer {
                status: rules.status,
                body: rules.body.as_deref().map(Into::into),
                retry_after: rules.retry_after,
                ..Answer::of(Reason::Maintenance)
            },
        };
        let pace = |limit: &RequestLimit| (Pace::new(limit.rate, limit.burst), limit.key.clone());
        has_some.then(|| Self {
            list: policy.access.clone(),
            closed: policy.maintenance.as_ref().map(closed),
            in_flight: policy.limit_connections,
            requests: policy.limit_requests.as_ref().map(pace),
            rule: Rule::of(route),
        })
    }

    /// Whether the request may go on; else its answer. What it takes in flight is given back by the driver when the
    /// exchange is over.
    pub(crate) fn judge(&self, facts: &RequestFacts<'_>, shared: &impl Shared) -> Result<(), Answer> {
        if !self.list.admits(facts.client) {
            return Err(Answer::of(Reason::AccessDenied));
        }
        if let Some(closed) = &self.closed
            && !closed.rules.lets_pass(facts.client)
        {
            return Err(closed.answer.clone());
        }
        if let Some(limit) = self.in_flight
            && !shared.enter(self.rule, ClientKey::of_address(facts.client), limit.per_client)
        {
            return Err(Answer { retry_after: Some(1), ..Answer::of(Reason::TooManyInFlight) });
        }
        let Some((pace, key)) = &self.requests else { return Ok(()) };
        let client = match key {
            LimitKey::ClientAddress => ClientKey::of_address(facts.client),
            LimitKey::Header(name) => ClientKey::of_header(facts.fields, name, facts.client),
        };
        shared.take(self.rule, client, *pace).map_err(|wait| {
            let retry_after = Some(seconds(wait));
            Answer { retry_after, ..Answer::of(Reason::TooManyRequests) }
        })
    }
}

/// Whole seconds, rounded up, at least one (RFC 9110 10.2.3).
fn seconds(wait: Duration) -> u32 {
    let rest = u64::from(wait.subsec_nanos() > 0);
    u32::try_from(wait.as_secs().saturating_add(rest).max(1)).unwrap_or(u32::MAX)
}

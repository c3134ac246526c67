//! When a failed attempt is repeated on the next destination: the rules of a cluster (or a route).

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Retry rules. `attempts: 1` turns retry off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryRules {
    /// What may be repeated.
    pub conditions: RetryConditions,
    /// All tries together, the first included; 1 or more.
    pub attempts: u8,
    /// Time for one try up to its response head; `None`: no limit of its own.
    pub per_try_timeout: Option<Duration>,
    /// Whether a try's time is learnt besides, below `per_try_timeout`.
    pub pace: TryPace,
    /// Whether POST, PATCH and unknown methods are repeated after bytes went out.
    pub non_idempotent: NonIdempotent,
    /// Bytes of a request body that are kept for a second try.
    pub replay: u64,
    /// The client's own patience; the total deadline is this less `network_margin`.
    pub client_timeout: Option<Duration>,
    /// Share of `client_timeout` kept for the network; 0 to 1, in percent.
    pub network_margin_percent: u8,
    /// How many retries the cluster's traffic pays for.
    pub budget: RetryBudget,
}

impl RetryRules {
    /// Retry switched off: one attempt.
    pub fn off() -> Self {
        Self { attempts: 1, ..Self::native() }
    }

    /// Defaults of the native format.
    pub fn native() -> Self {
        Self {
            conditions: RetryConditions {
                error: true,
                timeout: true,
                invalid_header: false,
                statuses: vec![502, 503, 504],
            },
            attempts: 3,
            per_try_timeout: None,
            pace: TryPace::Given,
            non_idempotent: NonIdempotent::Never,
            replay: 64 * 1024,
            client_timeout: None,
            network_margin_percent: 10,
            budget: RetryBudget::NATIVE,
        }
    }
}

/// How many retries a cluster's traffic pays for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryBudget {
    /// Retries of ten seconds per hundred attempts that ended well in ten seconds; 0 to 100.
    pub percent: u8,
    /// Where this is more, so many retries a second, so that a quiet cluster may retry at all.
    pub per_second: u16,
}

impl RetryBudget {
    /// Defaults of the native format.
    pub const NATIVE: Self = Self { percent: 20, per_second: 3 };
}

/// Where a try's time comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TryPace {
    /// From the configuration alone.
    #[default]
    Given,
    /// Learnt from the times of the route's own responses as well.
    Adaptive,
}

/// What a route has in place of its cluster's rules; `None`: as the cluster has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteRetry {
    /// What may be repeated.
    pub conditions: Option<RetryConditions>,
    /// All tries together.
    pub attempts: Option<u8>,
    /// Time for one try; `Some(None)`: no limit.
    pub per_try_timeout: Option<Option<Duration>>,
    /// Where it comes from.
    pub pace: TryPace,
    /// Whether methods that are not idempotent may be sent twice.
    pub non_idempotent: Option<NonIdempotent>,
}

impl RouteRetry {
    /// The cluster's rules as they hold on the route.
    pub fn over(&self, rules: &RetryRules) -> RetryRules {
        RetryRules {
            conditions: self.conditions.clone().unwrap_or_else(|| rules.conditions.clone()),
            attempts: self.attempts.unwrap_or(rules.attempts),
            per_try_timeout: self.per_try_timeout.unwrap_or(rules.per_try_timeout),
            pace: self.pace,
            non_idempotent: self.non_idempotent.unwrap_or(rules.non_idempotent),
            ..rules.clone()
        }
    }
}

/// What may be repeated, in nginx's words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryConditions {
    /// Refused, reset, closed, broken off before a head.
    pub error: bool,
    /// Connect or head timeout.
    pub timeout: bool,
    /// An answer that is not HTTP.
    pub invalid_header: bool,
    /// Statuses of complete heads.
    pub statuses: Vec<u16>,
}

/// Whether methods that are not idempotent may be sent twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NonIdempotent {
    /// Only when provably nothing was sent.
    Never,
    /// When the request carries an `Idempotency-Key`.
    WithKey,
    /// Like idempotent ones.
    Always,
}

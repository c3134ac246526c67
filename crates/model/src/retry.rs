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
    /// Whether POST, PATCH and unknown methods are repeated after bytes went out.
    pub non_idempotent: NonIdempotent,
    /// Bytes of a request body that are kept for a second try.
    pub replay: u64,
    /// The client's own patience; the total deadline is this less `network_margin`.
    pub client_timeout: Option<Duration>,
    /// Share of `client_timeout` kept for the network; 0 to 1, in percent.
    pub network_margin_percent: u8,
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
            non_idempotent: NonIdempotent::Never,
            replay: 64 * 1024,
            client_timeout: None,
            network_margin_percent: 10,
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

//! What nginx, HAProxy, Envoy and YARP call what policies do here, so that a name that is known there is answered with ours.
//!
//! Each row is a policy of ours and the words for what comes nearest to it elsewhere; words compare without case, blanks,
//! `_` and `-`.

use crate::report::suggest;

/// Names of other products, by ours.
pub type Table = &'static [(&'static str, &'static [&'static str])];

/// Our name for what is called `word` elsewhere.
pub fn ours(table: Table, word: &str) -> Option<&'static str> {
    let fold = |word: &str| suggest::fold(&word.replace(' ', ""));
    let word = fold(word);
    table.iter().find(|(_, theirs)| theirs.iter().any(|name| fold(name) == word)).map(|(ours, _)| *ours)
}

/// Who serves a request.
pub const BALANCING: Table = &[
    ("PowerOfTwoChoices", &["random two", "random two least_conn", "random(2)", "p2c", "power_of_two"]),
    ("RoundRobin", &["rr", "static-rr", "weighted_round_robin", "wrr", "smooth_weighted_round_robin"]),
    ("LeastRequests", &["least_conn", "leastconn", "least_connections", "least_request"]),
    ("FirstAlphabetical", &["first", "failover"]),
    ("ConsistentHash", &["ip_hash", "source", "hash", "uri", "url_param", "hdr", "ring_hash", "maglev", "chash"]),
    ("PeakEwma", &["least_time", "random two least_time", "ewma"]),
];

/// Who judges traffic.
pub const PASSIVE: Table = &[
    ("MaxFails", &["fail_timeout", "proxy_next_upstream"]),
    ("Outlier", &["outlier_detection", "success_rate", "split_external_local_origin_errors"]),
    (
        "ConsecutiveErrors",
        &["consecutive_5xx", "consecutive_gateway_failure", "consecutive_errors", "observe", "error-limit"],
    ),
    ("ConnectFailures", &["consecutive_local_origin_failure", "observe layer4"]),
    ("FailureRate", &["failure_percentage", "error_rate", "circuit_breaker"]),
];

/// Who judges probes.
pub const ACTIVE: Table = &[("ConsecutiveFailures", &["fall", "fails", "unhealthy_threshold"])];

/// Who may be used.
pub const AVAILABLE: Table =
    &[("PanicThreshold", &["healthy_panic_threshold"]), ("HealthyOrPanic", &["allbackups", "any"])];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_other_products_lead_to_ours() {
        assert_eq!(ours(BALANCING, "leastconn"), Some("LeastRequests"));
        assert_eq!(ours(BALANCING, "LEAST_REQUEST"), Some("LeastRequests"));
        assert_eq!(ours(BALANCING, "random two least_conn"), Some("PowerOfTwoChoices"));
        assert_eq!(ours(PASSIVE, "observe layer4"), Some("ConnectFailures"));
        assert_eq!(ours(BALANCING, "banana"), None);
    }
}

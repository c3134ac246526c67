//! Names of the built-in policies, for configurations in code.

/// Active: so many failed probes in a row.
pub const CONSECUTIVE_FAILURES: &str = "ConsecutiveFailures";
/// Balancing: the same key to the same destination.
pub const CONSISTENT_HASH: &str = "ConsistentHash";
/// Balancing: of two the one that is likely to answer sooner.
pub const PEAK_EWMA: &str = "PeakEwma";
/// Passive: share of failed transports in a window.
pub const TRANSPORT_FAILURE_RATE: &str = "TransportFailureRate";
/// Passive: nginx's max_fails and fail_timeout.
pub const MAX_FAILS: &str = "MaxFails";
/// Passive: failures that come in a burst and last.
pub const BURST: &str = "Burst";
/// Passive: no connection, in a row.
pub const CONNECT_FAILURES: &str = "ConnectFailures";
/// Passive: failed attempts in a row.
pub const CONSECUTIVE_ERRORS: &str = "ConsecutiveErrors";
/// Passive: share of failed attempts in a window.
pub const FAILURE_RATE: &str = "FailureRate";
/// Passive: slower than the rest of the cluster; suspects only.
pub const LATENCY: &str = "Latency";
/// Passive: more failures than the rest of the cluster.
pub const OUTLIER: &str = "Outlier";
/// Passive: asks for less more often than the rest of the cluster; suspects only.
pub const OVERLOAD: &str = "Overload";
/// Passive: requests wait and nothing comes; suspects only.
pub const STALL: &str = "Stall";
/// Availability: all that no check calls Unhealthy.
pub const HEALTHY_AND_UNKNOWN: &str = "HealthyAndUnknown";
/// Availability: the same, or all when none is left.
pub const HEALTHY_OR_PANIC: &str = "HealthyOrPanic";
/// Availability: all when too few are left.
pub const PANIC_THRESHOLD: &str = "PanicThreshold";
/// Balancing: the less loaded of two drawn at random.
pub const POWER_OF_TWO_CHOICES: &str = "PowerOfTwoChoices";
/// Balancing: in turn.
pub const ROUND_ROBIN: &str = "RoundRobin";
/// Balancing: the least loaded.
pub const LEAST_REQUESTS: &str = "LeastRequests";
/// Balancing: by chance.
pub const RANDOM: &str = "Random";
/// Balancing: the smallest id.
pub const FIRST_ALPHABETICAL: &str = "FirstAlphabetical";

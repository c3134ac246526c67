//! Every metric's name and help text, in one place.
//!
//! Names are `lazaret_<noun>_<unit>`. Counters stand here without `_total`: the encoder adds it (and refuses names that
//! have it already).

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name, without `_total`.
    pub name: &'static str,
    /// What it means, without a full stop.
    pub help: &'static str,
}

const fn name(name: &'static str, help: &'static str) -> Name {
    Name { name, help }
}

/// Always 1; labels say which build runs.
pub const BUILD_INFO: Name = name("lazaret_build_info", "Which version runs");

/// Counter. Labels: cluster, status (1xx to 5xx, or `none`), reason.
pub const REQUESTS: Name = name(
    "lazaret_requests",
    "Finished exchanges by class of the status the client saw, and by reason when the answer was our own",
);
/// Counter. Labels: cluster, destination, outcome.
pub const ATTEMPTS: Name = name("lazaret_attempts", "Attempts at destinations by outcome class");
/// Counter. Labels: cluster, destination, reason (`closed`, `reset`).
pub const STALE_CONNECTIONS: Name =
    name("lazaret_stale_connections", "Pooled connections that ended before any byte of an answer, by how they ended");
/// Counter. Labels: cluster.
pub const LOCAL_FAILURES: Name = name(
    "lazaret_local_failures",
    "Attempts that failed for want of a descriptor, a port, an address or memory of our own",
);
/// Counter. Labels: cluster.
pub const RETRIES: Name = name("lazaret_retries", "Attempts beyond the first of an exchange");
/// Counter. Labels: cluster, reason.
pub const RETRY_DENIED: Name =
    name("lazaret_retry_denied", "Failed attempts that were not repeated, by what forbade it");

/// Counter. Labels: cluster, result (`served`, `queue-full`, `queue-timeout`, …).
pub const QUEUED: Name = name(
    "lazaret_queued",
    "Requests that waited for a place at a destination, or for a destination, by what came of it",
);

/// Gauge. Labels: cluster.
pub const QUEUE_WAITING: Name = name("lazaret_queue_waiting", "Requests that wait now");

/// Gauge. Labels: cluster.
pub const TUNNELS_OPEN: Name = name("lazaret_tunnels_open", "Upgraded connections that are open");
/// Counter.
pub const UNBUFFERED: Name = name(
    "lazaret_unbuffered",
    "Exchanges whose body was to be taken ahead and streamed for want of memory set aside for that",
);

/// Counter. Labels: listener, result (`full`, `resumed`, or why it failed).
pub const TLS_HANDSHAKES: Name = name("lazaret_tls_handshakes", "TLS handshakes with clients by result");
/// Counter. Labels: listener, reason.
pub const CONNECTIONS_REFUSED: Name = name(
    "lazaret_connections_refused",
    "Connections of clients that were closed before their first byte of HTTP, by reason",
);

/// Counter. Labels: cluster, destination, result (`passed` or the kind of failure).
pub const PROBES: Name = name("lazaret_probes", "Judged probes by result");
/// Counter. Labels: cluster, destination, check, to.
pub const TRANSITIONS: Name = name("lazaret_transitions", "Changes of a health value");

/// Gauge. Labels: cluster, destination, check, health; 1 at the value that holds, 0 at the two others.
pub const DESTINATION_HEALTH: Name = name("lazaret_destination_health", "Health values of destinations");
/// Gauge, 0 or 1. Labels: cluster, destination.
pub const DESTINATION_AVAILABLE: Name =
    name("lazaret_destination_available", "Whether traffic may use the destination");
/// Gauge, 0 to 1. Labels: cluster, destination.
pub const DESTINATION_SHARE: Name =
    name("lazaret_destination_share", "Part of its weight that the destination gets while it is suspect or comes back");
/// Gauge, 1 while it holds. Labels: cluster, destination, because (`cap`, `guard`, `panic`).
pub const DESTINATION_KEPT: Name =
    name("lazaret_destination_kept", "Destinations that traffic uses although they are judged unhealthy");
/// Gauge, 1 while it holds. Labels: cluster, destination, policy.
pub const WOULD_EJECT: Name =
    name("lazaret_would_eject", "Destinations that a policy which is not enforced would have out");
/// Gauge. Labels: cluster, destination.
pub const DESTINATION_IN_FLIGHT: Name = name("lazaret_destination_in_flight", "Requests in flight at the destination");
/// Gauge. Labels: cluster.
pub const CLUSTER_AVAILABLE: Name = name("lazaret_cluster_available_destinations", "Destinations that traffic may use");
/// Gauge, 0 or 1. Labels: cluster.
pub const CLUSTER_PANIC: Name =
    name("lazaret_cluster_panic", "Whether all destinations are used because too few are healthy");

/// Counter. Labels: result (`found`, `empty`, `no_name`, `failed`).
pub const NAME_LOOKUPS: Name =
    name("lazaret_name_lookups", "Ended lookups of destinations' names by what they came to");

/// Counter. Labels: result (`applied`, `refused`).
pub const CONFIG_RELOADS: Name = name("lazaret_config_reloads", "Configurations taken over or refused");
/// Gauge, 0 or 1.
pub const CONFIG_STALE: Name =
    name("lazaret_config_stale", "Whether the running configuration is older than the one that was refused last");
/// Counter. Labels: result (`applied`, `refused`).
pub const CERTIFICATE_RELOADS: Name =
    name("lazaret_certificate_reloads", "Changes of listeners' certificate and key files that were taken or refused");
/// Gauge, 0 or 1.
pub const CERTIFICATES_STALE: Name =
    name("lazaret_certificates_stale", "Whether a listener goes on with certificates or keys older than their files");
/// Gauge, seconds.
pub const CORE_AGE: Name = name("lazaret_core_age_seconds", "Time since the health core last ran its timers");
/// Gauge, 0 or 1.
pub const DRAINING: Name = name("lazaret_draining", "Whether a planned stop is under way");

/// Counter.
pub const JOURNAL_LOST: Name =
    name("lazaret_journal_lost", "Times a reader of events had fallen behind the journal's end and had to start over");
/// Gauge.
pub const RECORDER_BYTES: Name = name("lazaret_recorder_bytes", "Memory that the flight recorder's ring holds");
/// Gauge.
pub const RECORDER_SPAN: Name = name("lazaret_recorder_span_seconds", "How far back the flight recorder's ring goes");
/// Gauge, bytes.
pub const RECORDER_FOLDER: Name = name("lazaret_recorder_folder_bytes", "Bytes of all segments in recorder.folder");
/// Counter. Labels: reason (`queue`, `disk`).
pub const RECORDER_LOST: Name =
    name("lazaret_recorder_lost", "Pieces of the recording that did not get into recorder.folder");
/// Counter. Labels: log.
pub const LOG_LINES_DROPPED: Name =
    name("lazaret_log_lines_dropped", "Log lines dropped because the file could not be written fast enough");
/// Counter. Labels: log.
pub const LOG_REOPEN_FAILURES: Name =
    name("lazaret_log_reopen_failures", "Failed attempts to reopen a log file; the old one was kept");
/// Counter. Labels: log.
pub const LOG_WRITE_FAILURES: Name = name("lazaret_log_write_failures", "Failed writes to a log file");

/// Counter, seconds.
pub const PROCESS_CPU: Name = name("process_cpu_seconds", "Time on the CPU, user and system");
/// Gauge, seconds since 1970.
pub const PROCESS_START: Name = name("process_start_time_seconds", "When the process started");
/// Gauge, bytes.
pub const PROCESS_RESIDENT: Name = name("process_resident_memory_bytes", "Resident memory");
/// Gauge, bytes.
pub const PROCESS_VIRTUAL: Name = name("process_virtual_memory_bytes", "Virtual memory");
/// Gauge.
pub const PROCESS_FDS: Name = name("process_open_fds", "Open file descriptors");
/// Gauge.
pub const PROCESS_MAX_FDS: Name = name("process_max_fds", "Limit of open file descriptors");
/// Gauge.
pub const PROCESS_THREADS: Name = name("process_threads", "Threads");

/// All of them, for the documentation and the tests.
pub const ALL: &[Name] = &[
    BUILD_INFO,
    REQUESTS,
    ATTEMPTS,
    STALE_CONNECTIONS,
    LOCAL_FAILURES,
    RETRIES,
    RETRY_DENIED,
    QUEUED,
    QUEUE_WAITING,
    TUNNELS_OPEN,
    UNBUFFERED,
    TLS_HANDSHAKES,
    CONNECTIONS_REFUSED,
    PROBES,
    TRANSITIONS,
    DESTINATION_HEALTH,
    DESTINATION_AVAILABLE,
    DESTINATION_SHARE,
    DESTINATION_KEPT,
    WOULD_EJECT,
    DESTINATION_IN_FLIGHT,
    CLUSTER_AVAILABLE,
    CLUSTER_PANIC,
    NAME_LOOKUPS,
    CONFIG_RELOADS,
    CONFIG_STALE,
    CERTIFICATE_RELOADS,
    CERTIFICATES_STALE,
    CORE_AGE,
    DRAINING,
    JOURNAL_LOST,
    RECORDER_BYTES,
    RECORDER_SPAN,
    RECORDER_FOLDER,
    RECORDER_LOST,
    LOG_LINES_DROPPED,
    LOG_REOPEN_FAILURES,
    LOG_WRITE_FAILURES,
    PROCESS_CPU,
    PROCESS_START,
    PROCESS_RESIDENT,
    PROCESS_VIRTUAL,
    PROCESS_FDS,
    PROCESS_MAX_FDS,
    PROCESS_THREADS,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_leave_the_suffix_to_the_encoder() {
        for (index, one) in ALL.iter().enumerate() {
            assert!(!one.name.ends_with("_total"), "{}", one.name);
            assert!(one.name.starts_with("lazaret_") || one.name.starts_with("process_"), "{}", one.name);
            assert!(!one.help.ends_with('.'), "{}", one.name);
            assert!(ALL.iter().skip(index + 1).all(|other| other.name != one.name), "{}", one.name);
        }
    }
}

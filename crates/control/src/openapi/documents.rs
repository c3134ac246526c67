//! The table of documents.

/// One JSON object.
pub(super) struct Document {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    /// Key, type (a JSON type, a document, or either in brackets for a list), meaning.
    pub(super) keys: &'static [(&'static str, &'static str, &'static str)],
}

/// All of them.
pub(super) const DOCUMENTS: &[Document] = &[
    Document { name: "Error", summary: "An error", keys: &[("error_msg", "string", "Words for people")] },
    Document { name: "Condition", summary: "A yes", keys: &[("status", "string", "live or ready")] },
    Document {
        name: "Checker",
        summary: "One cluster in APISIX's shape",
        keys: &[
            ("name", "string", "/apisix/upstreams/<id>"),
            ("type", "string", "http or tcp"),
            ("nodes", "[Node]", "Its destinations; {} when there is none"),
        ],
    },
    Document {
        name: "Node",
        summary: "One destination in APISIX's shape",
        keys: &[
            ("ip", "string", "Host of its address, IPv6 in brackets"),
            ("port", "integer", "Port of its address"),
            ("hostname", "string", "The probed host"),
            ("status", "string", "healthy, mostly_healthy, mostly_unhealthy, unhealthy or unknown"),
            ("counter", "Counter", "Consecutive counts"),
        ],
    },
    Document {
        name: "Counter",
        summary: "Consecutive counts; each stops at 255",
        keys: &[
            ("success", "integer", "Successes"),
            ("http_failure", "integer", "Failures by status or content"),
            ("tcp_failure", "integer", "Failures to connect"),
            ("timeout_failure", "integer", "Timeouts"),
        ],
    },
    Document {
        name: "Health",
        summary: "The health document",
        keys: &[
            ("instance", "string", "Random per process"),
            ("revision", "integer", "Number of the last event that is part of it"),
            ("core_age_ms", "integer", "Since the health core last ran its timers"),
            ("draining", "boolean", "A planned stop is under way: every node is unhealthy"),
            ("clusters", "[HealthCluster]", "Every cluster"),
        ],
    },
    Document {
        name: "HealthCluster",
        summary: "One cluster of the health document",
        keys: &[("id", "string", "Its id"), ("nodes", "[HealthNode]", "Its destinations")],
    },
    Document {
        name: "HealthNode",
        summary: "One destination of the health document",
        keys: &[
            ("id", "string", "Its id"),
            ("ip", "string", "Host of its address, IPv6 in brackets"),
            ("port", "integer", "Port of its address"),
            ("status", "string", "As in Node"),
            ("probed", "string", "active, passive-only or none"),
            ("verdict_age_ms", "integer", "Since the last verdict; null: there was none"),
        ],
    },
    Document {
        name: "Clusters",
        summary: "Everything at one moment",
        keys: &[
            ("instance", "string", "Random per process"),
            ("revision", "integer", "Number of the last event that is part of it"),
            ("at", "string", "When it was written, RFC 3339"),
            ("core_age_ms", "integer", "Since the health core last ran its timers"),
            ("draining", "boolean", "A planned stop is under way"),
            ("config_stale", "boolean", "The configuration read last was refused"),
            ("troubles", "[string]", "What keeps the process from carrying traffic"),
            ("clusters", "[Cluster]", "Every cluster"),
        ],
    },
    Document {
        name: "Cluster",
        summary: "One cluster",
        keys: &[
            ("id", "string", "Its id"),
            ("available_policy", "string", "The policy that joins both values"),
            ("active", "object", "Its active check: kind, policy, interval_ms, timeout_ms; absent: off"),
            ("passive", "object", "Its passive check: policies, reactivation_ms; absent: off"),
            ("panic", "boolean", "All are used because too few are healthy"),
            ("total", "integer", "Destinations in all"),
            ("healthy", "integer", "Destinations that are healthy or mostly_healthy"),
            ("available", "integer", "Destinations that traffic may use"),
            ("destinations", "[Destination]", "Every destination"),
        ],
    },
    Document {
        name: "Destination",
        summary: "One destination",
        keys: &[
            ("id", "string", "Its id"),
            ("address", "string", "Where requests go"),
            ("weight", "integer", "Its share"),
            ("active", "string", "Health by probes: unknown, healthy or unhealthy"),
            ("passive", "string", "Health by traffic: unknown, healthy or unhealthy"),
            ("status", "string", "As in Node"),
            ("available", "boolean", "Whether traffic may use it"),
            (
                "because",
                "string",
                "Why: health, panic, guard, cap, unhealthy, probe_first, weight, no_address, drained or policy",
            ),
            ("gated", "boolean", "One request at a time"),
            ("in_flight", "integer", "Requests in flight"),
            ("counter", "Counter", "Consecutive counts"),
            ("last_probe", "object", "The last judged probe: at, age_ms, failure (absent: passed), status"),
            ("next_probe", "object", "When the next probe starts: at, in_ms"),
            ("reactivation", "object", "When its ejection ends: at, in_ms"),
            ("changed_at", "string", "When one of its values last changed"),
            ("last_transition", "object", "That change: check, from, to, cause, policy, evidence"),
        ],
    },
    Document {
        name: "DestinationPage",
        summary: "One destination with its past",
        keys: &[
            ("instance", "string", "Random per process"),
            ("revision", "integer", "Number of the last event that is part of it"),
            ("cluster", "Cluster", "Its cluster with this destination alone"),
            ("recent", "[Event]", "Its last events, oldest first"),
        ],
    },
    Document {
        name: "EventPage",
        summary: "Events of the past",
        keys: &[
            ("instance", "string", "Random per process"),
            ("revision", "integer", "Number of the last event there is"),
            ("lost", "boolean", "Events after `after` are gone"),
            ("events", "[Event]", "Oldest first"),
        ],
    },
    Document {
        name: "Event",
        summary: "One event, with its destination as it stood right after it",
        keys: &[
            ("event", "string", "transition, availability, config, draining or lost"),
            ("revision", "integer", "Its number"),
            ("at", "string", "When it happened, RFC 3339"),
            ("cluster", "string", "Whose"),
            ("destination", "string", "Whose"),
            ("active", "string", "Health by probes"),
            ("passive", "string", "Health by traffic"),
            ("status", "string", "As in Node"),
            ("available", "boolean", "Whether traffic may use it"),
            ("because", "string", "Why"),
            ("check", "string", "Which value changed: active or passive"),
            ("from", "string", "Before"),
            ("to", "string", "After"),
            ("cause", "string", "probe, traffic, reactivation, check_off, address_changed or external"),
            ("policy", "string", "The policy that judged"),
            (
                "evidence",
                "object",
                "failed, total, limit, window_ms, reactivation_ms, last [at, class, failure, status]",
            ),
            ("applied", "boolean", "A configuration: whether it is in force"),
            ("summary", "string", "A configuration: what changed, or why not"),
        ],
    },
    Document {
        name: "Reload",
        summary: "What a reload came to",
        keys: &[
            ("applied", "boolean", "Whether the configuration is in force"),
            ("summary", "string", "What changed"),
            ("error_msg", "string", "Why it was not taken over, in one line"),
            ("report", "string", "The whole report"),
        ],
    },
];

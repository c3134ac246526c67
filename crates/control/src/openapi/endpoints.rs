//! The table of endpoints.

/// One path and method.
pub(super) struct Endpoint {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    /// Query parameters: name, type, meaning.
    pub(super) query: &'static [(&'static str, &'static str, &'static str)],
    /// Name of the document, or a media type.
    pub(super) answer: &'static str,
    /// Other statuses and when they come.
    pub(super) failures: &'static [(&'static str, &'static str)],
}

const UNFIT: (&str, &str) = ("503", "A listener does not accept or a worker stands still; never during a planned stop");
const BAD: (&str, &str) = ("400", "A parameter is unknown or unreadable");
const MISSING: (&str, &str) = ("404", "There is no such object");

const EVENT_QUERY: &[(&str, &str, &str)] = &[
    ("after", "integer", "Events after this revision; without it the last ones"),
    ("limit", "integer", "So many at most: 1 to 1000, 100 unless set"),
    ("cluster", "string", "Events of this cluster only"),
    ("destination", "string", "Events of this destination only"),
];

/// All of them.
pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: "GET",
        path: "/v1/healthcheck",
        summary: "Every cluster as an APISIX checker; {} when there is none",
        query: &[],
        answer: "[Checker]",
        failures: &[UNFIT],
    },
    Endpoint {
        method: "GET",
        path: "/v1/healthcheck/{kind}",
        summary: "Always 404: the id is missing (or 400: no such kind)",
        query: &[],
        answer: "Error",
        failures: &[("400", "No such kind"), ("404", "The id is missing")],
    },
    Endpoint {
        method: "GET",
        path: "/v1/healthcheck/{kind}/{id}",
        summary: "One cluster as an APISIX checker; kind is upstreams",
        query: &[],
        answer: "Checker",
        failures: &[("400", "No such kind"), MISSING, UNFIT],
    },
    Endpoint {
        method: "GET",
        path: "/api/health",
        summary: "The health document, at once or as soon as it is newer than `after`; blank bytes while it waits",
        query: &[
            ("after", "integer", "Revision of the document that the reader has"),
            ("wait", "string", "How long to wait for a newer one: 20s, 500ms; 60s at most"),
        ],
        answer: "Health",
        failures: &[BAD, UNFIT],
    },
    Endpoint {
        method: "GET",
        path: "/api/clusters",
        summary: "Everything that is known of every cluster",
        query: &[],
        answer: "Clusters",
        failures: &[],
    },
    Endpoint {
        method: "GET",
        path: "/api/destinations/{cluster}/{id}",
        summary: "Everything that is known of one destination, with its last events",
        query: &[],
        answer: "DestinationPage",
        failures: &[BAD, MISSING],
    },
    Endpoint {
        method: "GET",
        path: "/api/transitions",
        summary: "Changes of health, oldest first",
        query: EVENT_QUERY,
        answer: "EventPage",
        failures: &[BAD],
    },
    Endpoint {
        method: "GET",
        path: "/api/journal",
        summary: "All events, oldest first",
        query: EVENT_QUERY,
        answer: "EventPage",
        failures: &[BAD],
    },
    Endpoint {
        method: "GET",
        path: "/api/events",
        summary: "Events as they happen: server-sent events with id <instance>-<revision>, event \
                  transition|availability|config|draining|lost and one Event as data; a comment every 5 s. Last-Event-ID \
                  goes before `after`; without both it begins now. After `lost` take /api/clusters and go on",
        query: &[("after", "integer", "Events after this revision")],
        answer: "text/event-stream",
        failures: &[BAD],
    },
    Endpoint {
        method: "GET",
        path: "/api/process",
        summary: "Which process answers; `lazaret upgrade` waits for another one",
        query: &[],
        answer: "Process",
        failures: &[],
    },
    Endpoint {
        method: "POST",
        path: "/api/reload",
        summary: "Read the configuration anew and take it over, all or nothing",
        query: &[],
        answer: "Reload",
        failures: &[
            ("401", "The token is missing or wrong"),
            ("403", "The caller is not admitted"),
            ("409", "Another reload, or a planned stop, is under way"),
            ("422", "The configuration is refused, the one before stays"),
            ("504", "It has not ended yet"),
        ],
    },
    Endpoint {
        method: "POST",
        path: "/api/recording",
        summary: "What the health core was told of late, as a file for `lazaret lab replay`",
        query: &[],
        answer: "application/octet-stream",
        failures: &[
            ("401", "The token is missing or wrong"),
            ("403", "The caller is not admitted"),
            ("409", "Nothing is recorded, or a reload or a planned stop is under way"),
            ("504", "It has not come yet"),
        ],
    },
    Endpoint {
        method: "GET",
        path: "/metrics",
        summary: "Prometheus text; OpenMetrics when asked for",
        query: &[],
        answer: "text/plain",
        failures: &[],
    },
    Endpoint {
        method: "GET",
        path: "/livez",
        summary: "200 while the process answers",
        query: &[],
        answer: "Condition",
        failures: &[],
    },
    Endpoint {
        method: "GET",
        path: "/readyz",
        summary: "200 once each destination under an active check has had one judged probe; reloads do not take it back",
        query: &[],
        answer: "Condition",
        failures: &[("503", "Not yet, or a planned stop is under way")],
    },
];

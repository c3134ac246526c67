//! A configuration that sets every key, in code and as a file.

use std::time::Duration;

use lazaret::config::{
    ActiveHealthCheckConfig, AffinityCookieConfig, AvailablePolicyConfig, BufferingConfig, CertificateConfig,
    ClientAuthConfig, ClusterConfig, DestinationConfig, DnsConfig, DrainConfig, ErrorPageConfig, ExpectConfig,
    ForceConfig, GuardsConfig, HashConfig, HealthCheckConfig, Http2Config, LimitKeyConfig, LimitsConfig,
    ListenerConfig, ListenerTlsConfig, MaintenanceConfig, PassiveHealthCheckConfig, PassivePolicyConfig, QueueConfig,
    ReadmissionConfig, RecorderConfig, RequestLimitConfig, RetryBudgetConfig, RetryConfig, RouteConfig, RouteMatch,
    RouteRetryConfig, SessionAffinityConfig, StickyConfig, TimeoutsConfig, TlsConfig, TransformConfig,
    TransportFailureRateOptions, ValueRuleConfig, WeightedClusterConfig,
};
use lazaret::{Builder, Lazaret};

/// As a file.
pub const FULL: &str = include_str!("full.yaml");

/// In code.
pub fn full() -> Builder {
    let second = Duration::from_secs(1);
    Lazaret::builder()
        .workers(2)
        .control("127.0.0.1:9091")
        .control_socket("/tmp/lazaret.sock")
        .access_log("stdout")
        .request_id("x-request-id")
        .error_page(ErrorPageConfig {
            content_type: Some("text/html".to_owned()),
            ..ErrorPageConfig::html("503", "soon")
        })
        .dns(DnsConfig { servers: vec!["10.0.0.53".to_owned()], min_ttl: Some(second), max_ttl: Some(5 * second) })
        .recorder(RecorderConfig::On {
            keep: Some(600 * second),
            size: Some(4 << 20),
            folder: Some("/var/lib/lazaret/recorder".into()),
        })
        .drain(DrainConfig { lead: Some(second), grace: Some(5 * second), upgrade_grace: Some(60 * second) })
        .transport_failure_rate(TransportFailureRateOptions {
            detection_window_size: Some(30 * second),
            minimal_total_count_threshold: Some(5),
            default_failure_rate_limit: Some(0.4),
        })
        .listener_config(ListenerConfig {
            listener_id: "web".to_owned(),
            address: "127.0.0.1:8080".to_owned(),
            tls: Some(ListenerTlsConfig {
                certificates: vec![CertificateConfig {
                    certificate: "site.pem".to_owned(),
                    key: "site.key".to_owned(),
                }],
                min_version: Some("1.3".to_owned()),
                client_auth: Some(ClientAuthConfig { mode: "required".to_owned(), ca: "clients.pem".to_owned() }),
                ticket_keys: Some("tickets.keys".to_owned()),
                protocols: vec!["http/1.1".to_owned()],
            }),
            proxy_protocol: vec!["10.1.0.0/16".to_owned()],
            allow: vec!["10.0.0.0/8".to_owned()],
            deny: vec!["10.6.6.6/32".to_owned()],
            limit_connections: Some(20),
            limits: Some(LimitsConfig {
                header_timeout: Some(5 * second),
                keepalive: Some(20 * second),
                tls_handshake: Some(3 * second),
                request_line: Some("4KiB".to_owned()),
                header_bytes: Some("16KiB".to_owned()),
                header_fields: Some(50),
                body: Some("1MiB".to_owned()),
            }),
            trusted_proxies: vec!["10.0.0.0/8".to_owned()],
            self_check: Some(true),
            http2: Some(Http2Config { streams: Some(50) }),
        })
        .route_config(RouteConfig {
            route_id: "all".to_owned(),
            matcher: Some(matcher()),
            order: Some(3),
            cluster_id: Some("app".to_owned()),
            timeout: Some(9 * second),
            max_request_body: Some("2MiB".to_owned()),
            ..policies(second)
        })
        .route_config(split())
        .cluster(cluster(second))
}

fn matcher() -> RouteMatch {
    RouteMatch {
        hosts: vec!["a.test".to_owned()],
        path: Some("/{**rest}".to_owned()),
        methods: vec!["GET".to_owned()],
        headers: vec![rule("x-v")],
        query: vec![rule("v")],
    }
}

/// What a route may ask of its clients and do to messages.
fn policies(second: Duration) -> RouteConfig {
    RouteConfig {
        allow: vec!["10.0.0.0/8".to_owned()],
        deny_networks: vec!["10.6.6.6".to_owned()],
        limit_requests: Some(RequestLimitConfig {
            rate: "600/m".to_owned(),
            burst: Some(20),
            key: Some(LimitKeyConfig::Header("x-key".to_owned())),
        }),
        limit_connections: Some(5),
        transforms: vec![
            TransformConfig::new("request_headers_copy", "false"),
            TransformConfig::new("response_header", "x-a").and("set", "1").and("when", "always"),
        ],
        buffering: Some(BufferingConfig { request: Some("1KiB".to_owned()), response: Some("1MiB".to_owned()) }),
        error_pages: vec![ErrorPageConfig {
            status: "4xx".to_owned(),
            content_type: Some("text/plain".to_owned()),
            body: Some("no".to_owned()),
            file: None,
        }],
        maintenance: Some(MaintenanceConfig {
            enabled: Some(true),
            status: Some(500),
            body: Some("closed".to_owned()),
            retry_after: Some(60 * second),
            allow: vec!["10.1.0.0/16".to_owned()],
        }),
        retry: Some(RouteRetryConfig {
            conditions: Some(vec!["timeout".to_owned()]),
            attempts: Some(5),
            per_try_timeout: Some("adaptive".to_owned()),
            non_idempotent: Some(true),
            idempotency_key: Some("ignored".to_owned()),
        }),
        ..RouteConfig::default()
    }
}

fn split() -> RouteConfig {
    RouteConfig {
        route_id: "split".to_owned(),
        matcher: Some(matcher()),
        order: Some(4),
        timeout: Some(Duration::from_secs(8)),
        max_request_body: Some("none".to_owned()),
        clusters: vec![WeightedClusterConfig::new("app", 90)],
        sticky: Some(StickyConfig::Cookie("side".to_owned())),
        force: Some(ForceConfig { header: Some("x-side".to_owned()), cookie: Some("force".to_owned()) }),
        ..RouteConfig::default()
    }
}

fn rule(name: &str) -> ValueRuleConfig {
    ValueRuleConfig {
        name: name.to_owned(),
        values: vec!["2".to_owned()],
        mode: Some("prefix".to_owned()),
        case: Some("sensitive".to_owned()),
    }
}

fn cluster(second: Duration) -> ClusterConfig {
    ClusterConfig {
        cluster_id: "app".to_owned(),
        compat: Some("none".to_owned()),
        load_balancing: Some("ConsistentHash".to_owned()),
        hash: Some(HashConfig::Header("x-user".to_owned())),
        session_affinity: Some(SessionAffinityConfig {
            enabled: Some(true),
            policy: Some("HashCookie".to_owned()),
            failure_policy: Some("Return503Error".to_owned()),
            key_name: "lz".to_owned(),
            cookie: Some(AffinityCookieConfig {
                path: Some("/a".to_owned()),
                domain: Some("a.test".to_owned()),
                http_only: Some(false),
                secure: Some(true),
                same_site: Some("Lax".to_owned()),
                max_age: Some(60 * second),
            }),
        }),
        health_check: Some(HealthCheckConfig {
            available_destinations_policy: Some(AvailablePolicyConfig::panic_threshold(40)),
            active: Some(ActiveHealthCheckConfig {
                enabled: Some(true),
                kind: Some("http".to_owned()),
                interval: Some(3 * second),
                unhealthy_interval: Some(2 * second),
                timeout: Some(second),
                policy: Some("ConsecutiveFailures".to_owned()),
                threshold: Some(4),
                healthy_threshold: Some(2),
                confirm_interval: Some(second / 2),
                start: Some("eligible".to_owned()),
                round: Some("cluster".to_owned()),
                http: Some("2".to_owned()),
                service: None,
                method: Some("HEAD".to_owned()),
                path: Some("/health".to_owned()),
                query: Some("?deep=1".to_owned()),
                host: Some("h.test".to_owned()),
                headers: [("x-probe".to_owned(), "1".to_owned())].into(),
                expect: Some(ExpectConfig { status: vec!["200-204".to_owned()], body: Some("ok".to_owned()) }),
            }),
            passive: Some(PassiveHealthCheckConfig {
                enabled: Some(true),
                policies: vec![
                    PassivePolicyConfig {
                        rate_limit: Some(0.5),
                        window: Some(20 * second),
                        minimum: Some(7),
                        ..PassivePolicyConfig::named("TransportFailureRate")
                    },
                    PassivePolicyConfig {
                        max_fails: Some(4),
                        fail_timeout: Some(8 * second),
                        ..PassivePolicyConfig::named("MaxFails")
                    },
                ],
                shadow: shadow(),
                reactivation_period: Some(30 * second),
                readmission: Some(ReadmissionConfig {
                    first: Some(3 * second),
                    longest: Some(90 * second),
                    jitter: Some(0.2),
                    canaries: Some(2),
                    patience: Some(4 * second),
                    quiet: Some(50 * second),
                    ramp: Some(9 * second),
                    least_share: Some(0.2),
                }),
            }),
            guards: Some(GuardsConfig {
                max_ejected: Some(0.4),
                spacing: Some(7 * second),
                last: Some("stays".to_owned()),
                answering: Some("stays".to_owned()),
            }),
        }),
        retry: Some(RetryConfig {
            enabled: Some(true),
            conditions: Some(vec!["error".to_owned(), "http_500".to_owned()]),
            attempts: Some(2),
            per_try_timeout: Some(2 * second),
            non_idempotent: Some(false),
            replay: Some("32KiB".to_owned()),
            client_timeout: Some(20 * second),
            network_margin: Some("20%".to_owned()),
            idempotency_key: Some("trusted".to_owned()),
            budget: Some(RetryBudgetConfig { share: Some("30%".to_owned()), per_second: Some(5) }),
        }),
        queue: Some(QueueConfig {
            length: Some(7),
            busy_timeout: Some(3 * second),
            unavailable_timeout: Some(2 * second),
        }),
        timeouts: Some(TimeoutsConfig {
            connect: Some(2 * second),
            idle: Some(40 * second),
            tunnel_idle: Some(600 * second),
            pool_idle: Some(10 * second),
            pool_size: Some(8),
            http2_ping: Some(15 * second),
        }),
        tls: Some(TlsConfig {
            ca: Some("/etc/ca.pem".to_owned()),
            server_name: Some("s.test".to_owned()),
            verify: Some("full".to_owned()),
            certificate: Some("/etc/c.pem".to_owned()),
            key: Some("/etc/c.key".to_owned()),
        }),
        host: Some("original".to_owned()),
        family: Some("both".to_owned()),
        source_addresses: vec!["10.0.0.7".to_owned()],
        close_on_unhealthy: Some(true),
        proxy_protocol: Some("v2".to_owned()),
        http: Some("1.1".to_owned()),
        metadata: [("team".to_owned(), "blue".to_owned())].into(),
        destinations: vec![DestinationConfig {
            health: Some("http://10.0.0.11:8001/".to_owned()),
            host: Some("d.test".to_owned()),
            weight: Some(3),
            backup: Some(false),
            max_connections: Some(30),
            max_fails: Some(6),
            fail_timeout: Some(12 * second),
            ..DestinationConfig::new("app1", "http://10.0.0.11:8000/")
        }],
    }
}

/// One of each policy that weighs, with all of its options.
fn shadow() -> Vec<PassivePolicyConfig> {
    let second = Duration::from_secs(1);
    vec![
        PassivePolicyConfig {
            threshold: Some(6),
            count_500: Some(false),
            ..PassivePolicyConfig::named("ConsecutiveErrors")
        },
        PassivePolicyConfig {
            rate_limit: Some(0.4),
            window: Some(5 * second),
            minimum: Some(9),
            ..PassivePolicyConfig::named("FailureRate")
        },
        PassivePolicyConfig {
            z: Some(4.5),
            difference: Some(0.2),
            rest_limit: Some(0.25),
            minimum: Some(30),
            count_500: Some(true),
            ..PassivePolicyConfig::named("Outlier")
        },
        PassivePolicyConfig {
            good: Some(0.1),
            bad: Some(0.6),
            limit: Some(8.5),
            persist: Some(2 * second),
            suspect_share: Some(0.3),
            count_500: Some(true),
            ..PassivePolicyConfig::named("Burst")
        },
        PassivePolicyConfig {
            threshold: Some(4),
            persist: Some(second * 4 / 5),
            suspect_share: Some(0.2),
            ..PassivePolicyConfig::named("ConnectFailures")
        },
        PassivePolicyConfig {
            minimum: Some(6),
            at_least: Some(2 * second),
            factor: Some(3.5),
            ..PassivePolicyConfig::named("Stall")
        },
        PassivePolicyConfig {
            factor: Some(2.5),
            slower_by: Some(second / 10),
            persist: Some(4 * second),
            least_share: Some(0.15),
            ..PassivePolicyConfig::named("Latency")
        },
        PassivePolicyConfig {
            z: Some(3.5),
            difference: Some(0.15),
            minimum: Some(25),
            least_share: Some(0.2),
            ..PassivePolicyConfig::named("Overload")
        },
    ]
}

//! The native format: what its files come down to.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::wildcard_enum_match_arm)]

use std::time::Duration;

use config::{FileKind, Loaded, PolicyNames, load};
use model::active::{ActivePolicy, ProbeKind, ProbeStart, StatusRange};
use model::available::AvailablePolicy;
use model::balancing::{HashKey, LoadBalancing};
use model::cluster::{Compat, Queue, UpstreamHost};
use model::config::{AccessLog, ControlSocket, RequestId};
use model::destination::Tier;
use model::entry::{ConnectionLimit, LimitKey, RequestLimit};
use model::guards::{Guards, LastDestination};
use model::page::PageStatus;
use model::passive::{
    Burst, Comparison, Latency, MaxFails, Overload, PassiveCheck, PassivePolicy, Plain500, Stall, TransportFailureRate,
};
use model::ratio::Ratio;
use model::readmission::Readmission;
use model::retry::{NonIdempotent, RetryRules};
use model::route::{Buffering, RouteAction, Sticky};
use model::tls::{Alpn, ClientAuth, TlsVersion};
use model::upstream::UpstreamHttp;

fn text(text: &str) -> Loaded {
    load("t.yaml", text.as_bytes(), FileKind::Native, &PolicyNames::default(), None).unwrap_or_else(|r| panic!("{r}"))
}

#[test]
fn every_served_key_is_read() {
    let loaded = text(include_str!("fixtures/reference.yaml"));
    let config = &loaded.config;
    assert_eq!(config.workers.map(|n| n.get()), Some(4));
    assert_eq!(config.control.users, ["lazaret-rhi"]);
    assert_eq!(config.control.names, ["lb1.example.org"]);
    assert_eq!(config.access_log, AccessLog::Stdout);
    assert_eq!(config.drain.lead, Duration::from_secs(3));
    assert_eq!(config.listeners[0].trusted_proxies.len(), 2);
    assert!(config.listeners[1].trusted_proxies.is_empty());
    let tls = config.listeners[0].tls.as_ref().unwrap();
    assert_eq!((tls.certificates.len(), tls.min_version), (2, TlsVersion::Tls13));
    assert_eq!(tls.client_auth, ClientAuth::Optional("clients.pem".into()));
    assert_eq!(tls.protocols, [Alpn::Http11, Alpn::Http2]);
    assert_eq!(tls.ticket_keys.as_deref(), Some(std::path::Path::new("tickets.keys")));
    assert_eq!(config.listeners[0].limits.tls_handshake, Duration::from_secs(5));
    let entry = &config.listeners[0].entry;
    assert_eq!((entry.access.allow.len(), entry.access.deny.len()), (2, 1));
    assert_eq!(
        config.routes.iter().map(|r| r.id.to_string()).collect::<Vec<_>>(),
        ["api", "hello", "old", "no", "some", "rest"]
    );
    assert_eq!(config.routes[0].matcher.hosts[2].name, "::1");
    assert_eq!(config.routes[0].max_request_body, Some(Some(10 << 20)));
    assert_eq!(config.routes[2].action, RouteAction::Redirect { to: "/new".to_owned(), status: 308 });
    let some = &config.routes[4];
    let RouteAction::Clusters(split) = &some.action else { panic!("{:?}", some.action) };
    assert_eq!(split.sides.iter().map(|side| side.weight).collect::<Vec<_>>(), [90, 10]);
    assert_eq!(split.sticky, Sticky::Cookie("side".to_owned()));
    assert_eq!((split.force_header.as_deref(), split.force_cookie.as_deref()), (Some("x-side"), Some("force-side")));
    assert_eq!((some.policy.access.allow.len(), some.policy.access.deny.len()), (2, 1));
    let limit = RequestLimit { rate: 10.0, burst: 20, key: LimitKey::Header("x-key".to_owned()) };
    assert_eq!(some.policy.limit_requests, Some(limit));
    assert_eq!(some.policy.limit_connections, Some(ConnectionLimit { per_client: 20 }));
    assert_eq!(some.policy.buffering, Buffering::On { request: 128 << 10, response: 1 << 20 });
    assert_eq!(config.routes[0].policy.buffering, Buffering::Off);
    assert_eq!(some.policy.transforms.len(), 21);
    assert_eq!(some.policy.error_pages[0].status, PageStatus::One(404));
    let closed = some.policy.maintenance.as_ref().unwrap();
    assert_eq!((closed.status, closed.retry_after, closed.allow.len()), (503, Some(600), 1));
    assert_eq!(config.answers.request_id, RequestId::Header("x-request-id".to_owned()));
    assert_eq!(config.answers.error_pages[1].status, PageStatus::Class(5));
    let api = &config.clusters[0];
    assert_eq!(api.host, UpstreamHost::Original);
    assert_eq!(api.session_affinity.as_ref().unwrap().cookie.max_age, Some(Duration::from_secs(3600)));
    assert!(matches!(api.health_check.available_destinations_policy, AvailablePolicy::PanicThreshold(_)));
    let active = api.health_check.active.as_ref().unwrap();
    assert_eq!(active.request.expect_statuses, [StatusRange::SUCCESS, StatusRange { low: 304, high: 304 }]);
    assert_eq!(active.request.method, "HEAD");
    assert_eq!(active.unhealthy_interval, Duration::from_secs(2));
    let policies = &api.health_check.passive.as_ref().unwrap().policies;
    assert_eq!(policies[2], PassivePolicy::MaxFails(MaxFails { max_fails: 3, fail_timeout: Duration::from_secs(10) }));
    assert_eq!(api.retry.non_idempotent, NonIdempotent::WithKey);
    assert_eq!(api.retry.conditions.statuses, [500, 502, 503, 504, 429, 403, 404]);
    assert_eq!(api.destinations[0].max_fails.unwrap().max_fails, 5);
    let most: Vec<_> = api.destinations.iter().map(|one| one.max_connections.map(|most| most.get())).collect();
    assert_eq!(most, [None, None, Some(40)]);
    let (busy_timeout, unavailable_timeout) = (Duration::from_secs(2), Duration::from_millis(500));
    assert_eq!(api.queue, Queue { length: 50, busy_timeout, unavailable_timeout });
    let second = &config.clusters[1];
    assert!(second.health_check.active.is_some(), "an empty block turns the check on");
    assert!(second.health_check.passive.is_none());
    assert_eq!(second.retry, RetryRules::off());
}

#[test]
fn the_defaults_are_those_of_the_documentation() {
    let config =
        text("clusters: {a: {health_check: {active: {}, passive: {}}, destinations: {d: {address: 'http://h/'}}}}")
            .config;
    assert_eq!(config.workers, None);
    assert_eq!(config.control.address.to_string(), "127.0.0.1:9090");
    assert_eq!(config.control.socket, ControlSocket::Default("/run/lazaret/control.sock".into()));
    assert_eq!(config.drain.grace, Duration::from_secs(30));
    assert_eq!(config.drain.upgrade_grace, Duration::from_secs(600));
    let cluster = &config.clusters[0];
    assert_eq!(cluster.compat, Compat::None);
    assert_eq!(cluster.retry, RetryRules::native());
    assert_eq!(cluster.timeouts.connect, Duration::from_secs(1));
    assert_eq!((cluster.queue.length, cluster.queue.busy_timeout), (100, Duration::from_secs(1)));
    assert!(cluster.queue.unavailable_timeout.is_zero(), "where nobody is available nobody waits");
    let active = cluster.health_check.active.as_ref().unwrap();
    assert_eq!((active.interval, active.timeout), (Duration::from_secs(5), Duration::from_secs(2)));
    assert_eq!(active.confirm_interval, Duration::from_secs(1));
    assert_eq!((active.kind, active.start), (ProbeKind::Http, ProbeStart::ProbeFirst));
    assert_eq!(active.policy, ActivePolicy::ConsecutiveFailures { threshold: 2 });
    let passive = cluster.health_check.passive.as_ref().unwrap();
    assert_eq!(*passive, PassiveCheck::native());
    assert_eq!(cluster.health_check.guards, Guards::native());
}

#[test]
fn way_back_and_guards_come_with_the_default_set_alone_and_go_when_they_are_switched_off() {
    let check = |health_check: &str| {
        text(&format!("clusters: {{a: {{health_check: {{{health_check}}}}}}}")).config.clusters[0].health_check.clone()
    };
    let named = check("passive: {policies: [Burst]}");
    assert_eq!((named.passive.unwrap().readmission, named.guards), (None, Guards::default()));
    let bare = check("passive: {readmission: false}, guards: false");
    assert_eq!((bare.passive.unwrap().readmission, bare.guards), (None, Guards::default()));
    assert_eq!(check("passive: {enabled: false}").guards, Guards::default());
    assert_eq!(check("active: {}").guards, Guards::default());
    let strict = check("passive: {}, available_destinations_policy: HealthyAndUnknown").guards;
    assert_eq!(strict, Guards { last: LastDestination::Leaves, ..Guards::native() });
    for (compat, policy) in [
        ("yarp", PassivePolicy::TransportFailureRate(TransportFailureRate::default())),
        ("nginx", PassivePolicy::MaxFails(MaxFails::default())),
    ] {
        let written = format!("clusters: {{a: {{compat: {compat}, health_check: {{passive: {{}}}}}}}}");
        let check = text(&written).config.clusters[0].health_check.clone();
        assert_eq!((check.passive, check.guards), (Some(PassiveCheck::of(vec![policy])), Guards::default()));
    }
}

#[test]
fn where_clients_stick_to_a_destination_the_default_set_does_not_weigh_what_it_refuses() {
    let names = |cluster: &str| {
        let config = text(&format!("clusters: {{a: {{{cluster}}}}}")).config;
        let passive = config.clusters[0].health_check.passive.clone().unwrap();
        passive.policies.iter().map(|policy| policy.name().to_owned()).collect::<Vec<_>>()
    };
    let all = ["ConnectFailures", "Burst", "Outlier", "Stall", "Latency", "Overload"];
    assert_eq!(names("health_check: {passive: {}}"), all);
    let affinity = "session_affinity: {policy: HashCookie, key_name: lz}";
    for sticky in [affinity, "load_balancing: ConsistentHash"] {
        assert_eq!(names(&format!("{sticky}, health_check: {{passive: {{}}}}")), all[..5]);
        assert_eq!(names(&format!("{sticky}, health_check: {{passive: {{policies: [Overload]}}}}")), ["Overload"]);
    }
}

#[test]
fn the_nginx_article_reads_as_its_authors_meant_it() {
    let loaded = text(include_str!("fixtures/nginx-article.yaml"));
    let cluster = &loaded.config.clusters[0];
    assert_eq!(cluster.compat, Compat::Nginx);
    let rule = MaxFails { max_fails: 5, fail_timeout: Duration::from_secs(100) };
    assert!(cluster.destinations.iter().all(|d| d.max_fails == Some(rule)));
    assert_eq!(cluster.retry.attempts, 1);
    assert_eq!(cluster.retry.conditions.statuses, [500]);
    assert!(cluster.retry.conditions.timeout && !cluster.retry.conditions.error);
}

#[test]
fn health_defaults_reach_policies_that_set_nothing_themselves() {
    let config = text(
        "health_defaults: {transport_failure_rate: {rate_limit: 0.5, minimum: 20}}
clusters:
  a: {health_check: {passive: {policies: [{name: TransportFailureRate, window: 30s}]}}}
  b: {health_check: {passive: {policies: [TransportFailureRate]}}}",
    )
    .config;
    let of = |index: usize| match config.clusters[index].health_check.passive.as_ref().unwrap().policies[0] {
        PassivePolicy::TransportFailureRate(options) => (options.rate_limit, options.window.as_secs(), options.minimum),
        ref other => panic!("{other:?}"),
    };
    assert_eq!(of(0), (0.5, 30, 20));
    assert_eq!(of(1), (0.5, 60, 20));
}

#[test]
fn policies_that_weigh_have_options_of_their_own_and_a_way_back() {
    let config = text(
        "clusters:
  a:
    health_check:
      passive:
        policies: [Burst, {name: Outlier, z: 4, count_500: true}, {name: Stall, factor: 2.5}, {name: Latency, slower_by: 9ms},
          {name: Overload, least_share: 0.3}]
        shadow: [{name: ConsecutiveErrors, threshold: 7}, ConnectFailures, FailureRate]
        readmission: {first: 3s, canaries: 0, ramp: 0s}
      guards: {max_ejected: 0.3, last: stays}
    destinations: {d: {address: 'http://h/', backup: true}}
  b: {health_check: {passive: {readmission: true}, guards: true}}",
    )
    .config;
    let check = &config.clusters[0].health_check;
    let passive = check.passive.as_ref().unwrap();
    let count = |plain_500| Comparison { z: 4.0, plain_500, ..Comparison::default() };
    assert_eq!(
        passive.policies,
        [
            PassivePolicy::Burst(Burst::default()),
            PassivePolicy::Outlier(count(Plain500::Counts)),
            PassivePolicy::Stall(Stall { factor: 2.5, ..Stall::default() }),
            PassivePolicy::Latency(Latency { difference: Duration::from_millis(9), ..Latency::default() }),
            PassivePolicy::Overload(Overload { least_share: Ratio::percent(30), ..Overload::default() }),
        ]
    );
    let names: Vec<_> = passive.shadow.iter().map(PassivePolicy::name).collect();
    assert_eq!(names, ["ConsecutiveErrors", "ConnectFailures", "FailureRate"]);
    let rule = passive.readmission.unwrap();
    assert_eq!((rule.first, rule.canaries, rule.ramp), (Duration::from_secs(3), 0, Duration::ZERO));
    assert_eq!(rule.longest, Readmission::default().longest);
    let (max_ejected, last) = (check.guards.max_ejected.unwrap().get(), check.guards.last);
    assert_eq!((max_ejected, check.guards.spacing, last), (0.3, None, LastDestination::Stays));
    assert_eq!(config.clusters[0].destinations[0].tier, Tier::Backup);
    let recommended = &config.clusters[1].health_check;
    assert_eq!(recommended.guards, Guards::native());
    assert_eq!(recommended.passive.as_ref().unwrap().readmission, Some(Readmission::default()));
}

#[test]
fn a_hash_belongs_to_consistent_hash() {
    let policy =
        |cluster: &str| text(&format!("clusters: {{a: {{{cluster}}}}}")).config.clusters[0].load_balancing.clone();
    assert_eq!(policy("load_balancing: ConsistentHash"), LoadBalancing::ConsistentHash(HashKey::ClientAddress));
    let keyed = [
        ("path", HashKey::Path),
        ("{header: X-User}", HashKey::Header("x-user".to_owned())),
        ("{cookie: Sid}", HashKey::Cookie("Sid".to_owned())),
    ];
    for (written, key) in keyed {
        assert_eq!(
            policy(&format!("load_balancing: consistent_hash, hash: {written}")),
            LoadBalancing::ConsistentHash(key)
        );
    }
    for wrong in [
        "hash: path",
        "load_balancing: ConsistentHash, hash: {header: a, cookie: b}",
        "load_balancing: ConsistentHash, hash: {header: 'a b'}",
    ] {
        let text = format!("clusters: {{a: {{{wrong}}}}}");
        assert!(load("t.yaml", text.as_bytes(), FileKind::Native, &PolicyNames::default(), None).is_err(), "{wrong}");
    }
}

#[test]
fn custom_policies_are_found_by_their_registered_names() {
    let names = PolicyNames { active: ["First_Unsuccessful".to_owned()].into(), ..PolicyNames::default() };
    let text = "clusters: {a: {health_check: {active: {policy: firstunsuccessful}}}}";
    let loaded = load("t", text.as_bytes(), FileKind::Auto, &names, Some(Compat::Yarp)).unwrap();
    let cluster = &loaded.config.clusters[0];
    assert_eq!(cluster.health_check.active.as_ref().unwrap().policy, ActivePolicy::Custom("First_Unsuccessful".into()));
    assert_eq!(cluster.compat, Compat::Yarp, "the command line overrides the file");
}

#[test]
fn under_nginx_the_default_passive_policy_is_nginxs() {
    let file = "clusters: {a: {health_check: {passive: }}}";
    let of = |text: &str, compat| {
        let loaded = load("t", text.as_bytes(), FileKind::Auto, &PolicyNames::default(), compat).unwrap();
        loaded.config.clusters[0].health_check.passive.clone().unwrap().policies
    };
    let nginx = [PassivePolicy::MaxFails(MaxFails::default())];
    assert_eq!(of(file, Some(Compat::Nginx)), nginx);
    assert_eq!(of(&file.replace("health_check", "compat: nginx, health_check"), None), nginx);
    assert_ne!(of(file, None), nginx);
}

#[test]
fn versions_of_http_and_client_certificates_are_read() {
    let one = |keys: &str| {
        let text_of = format!("clusters: {{a: {{{keys}, destinations: {{d: {{address: 'https://h/'}}}}}}}}");
        text(&text_of).config.clusters[0].clone()
    };
    for (written, http) in
        [("1.1", UpstreamHttp::Http1), ("2", UpstreamHttp::Http2), ("2-or-1.1", UpstreamHttp::Http2OrHttp1)]
    {
        assert_eq!(one(&format!("http: {written}")).http, http);
        let check = one(&format!("health_check: {{active: {{http: '{written}'}}}}")).health_check.active.unwrap();
        assert_eq!(check.request.http, Some(http));
    }
    let files = one("tls: {certificate: c.pem, key: c.key}").tls.client_certificate.unwrap();
    assert_eq!((files.certificate, files.key), ("c.pem".into(), "c.key".into()));
    let check = one("health_check: {active: {kind: grpc, service: a.B}}").health_check.active.unwrap();
    assert_eq!((check.kind, check.request.service.as_deref()), (ProbeKind::Grpc, Some("a.B")));
    assert_eq!(one("timeouts: {http2_ping: 20s}").timeouts.http2_ping, Some(Duration::from_secs(20)));
}

#[test]
fn byte_order_mark_crlf_and_json_are_no_obstacle() {
    let yaml = "\u{feff}version: 1\r\nclusters:\r\n  a:\r\n    retry: off\r\n";
    assert_eq!(text(yaml).config.clusters[0].retry, RetryRules::off());
    let json = "{\n\t\"version\": 1,\n\t\"clusters\": {\"a\": {\"retry\": {\"attempts\": 2}}}\n}";
    assert_eq!(text(json).config.clusters[0].retry.attempts, 2);
}

#[test]
fn anchors_and_merge_keys_work() {
    let config = text(
        "clusters:
  a: &base {retry: {attempts: 2}, timeouts: &t {connect: 3s}}
  b: *base
  c: {<<: *base, retry: {attempts: 5}}
  d: {timeouts: {<<: *t, idle: 7s}}",
    )
    .config;
    let attempts: Vec<_> = config.clusters.iter().map(|c| c.retry.attempts).collect();
    assert_eq!(attempts, [2, 2, 5, 3]);
    assert_eq!(config.clusters[3].timeouts.connect, Duration::from_secs(3));
}

//! YARP's JSON: the documented samples as they are printed, and the roots, spellings and effects of real files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::wildcard_enum_match_arm)]

use std::time::Duration;

use config::{FileKind, Loaded, Origin, PolicyNames, Severity, load};
use model::active::{ActivePolicy, ProbeStart};
use model::affinity::{AffinityFailurePolicy, AffinityPolicy};
use model::available::AvailablePolicy;
use model::cluster::{Cluster, Compat, Verify};
use model::passive::PassivePolicy;
use model::retry::RetryRules;
use model::route::{CaseRule, RouteAction, ValueMode};
use model::timeouts::{ClientLimits, Timeouts};
use model::tls::{Alpn, CertificateFiles, ClientAuth, ListenerTls, TlsVersion};
use model::transform::{Copying, ForwardAction, RequestTransform, Transform};
use model::upstream::UpstreamHttp;

fn read(text: &str) -> Loaded {
    load("appsettings.json", text.as_bytes(), FileKind::Auto, &PolicyNames::default(), None)
        .unwrap_or_else(|report| panic!("{report}"))
}

fn cluster(body: &str) -> (Cluster, Vec<String>) {
    let loaded = read(&format!("{{\"Clusters\": {{\"c\": {body}}}}}"));
    let warnings = loaded.warnings.iter().map(ToString::to_string).collect();
    (loaded.config.clusters.into_iter().next().unwrap(), warnings)
}

fn rate_limit(cluster: &Cluster) -> f64 {
    match cluster.health_check.passive.as_ref().unwrap().policies.as_slice() {
        [PassivePolicy::TransportFailureRate(options)] => options.rate_limit,
        other => panic!("{other:?}"),
    }
}

fn threshold(cluster: &Cluster) -> u32 {
    match cluster.health_check.active.as_ref().unwrap().policy {
        ActivePolicy::ConsecutiveFailures { threshold } => threshold,
        ActivePolicy::Custom(_) => panic!("custom"),
    }
}

#[test]
fn the_sample_of_active_checks_reads_as_printed() {
    let loaded = read(include_str!("fixtures/yarp/active.json"));
    let cluster = &loaded.config.clusters[0];
    let active = cluster.health_check.active.as_ref().unwrap();
    assert_eq!((active.interval, active.timeout), (Duration::from_secs(10), Duration::from_secs(10)));
    assert_eq!(active.request.path.as_deref(), Some("/api/health"));
    assert_eq!(active.request.query.as_deref(), Some("?foo=bar"));
    assert_eq!(active.start, ProbeStart::Eligible);
    assert_eq!(threshold(cluster), 3);
    let probed: Vec<_> = cluster
        .destinations
        .iter()
        .map(|d| model::probe_uri::url(d.health.as_ref().unwrap_or(&d.address), &active.request))
        .collect();
    assert_eq!(probed, ["https://localhost:10000/api/health?foo=bar", "http://localhost:10020/api/health?foo=bar"]);
    assert_eq!(cluster.destinations[0].id.as_str(), "cluster1/destination1");
    assert!(cluster.health_check.passive.is_none());
    assert_eq!(loaded.config.listeners[0].address.to_string(), "127.0.0.1:5000");
    assert!(loaded.warnings.iter().any(|w| w.message.contains("no route")), "{:?}", loaded.warnings);
}

#[test]
fn the_sample_of_passive_checks_reads_as_printed() {
    let loaded = read(include_str!("fixtures/yarp/passive.json"));
    let cluster = &loaded.config.clusters[0];
    let passive = cluster.health_check.passive.as_ref().unwrap();
    assert_eq!(passive.reactivation_period, Some(Duration::from_secs(120)));
    assert_eq!(rate_limit(cluster), 0.5);
    assert!(cluster.health_check.active.is_none());
}

#[test]
fn the_sample_of_availability_reads_as_printed_without_a_policy() {
    let loaded = read(include_str!("fixtures/yarp/available.json"));
    let cluster = &loaded.config.clusters[0];
    assert_eq!(cluster.health_check.available_destinations_policy, AvailablePolicy::HealthyOrPanic);
    assert_eq!(rate_limit(cluster), 0.3);
}

#[test]
fn defaults_are_those_of_a_yarp_file() {
    let (cluster, _) = cluster(r#"{"HealthCheck": {"Active": {"Enabled": true}}}"#);
    let active = cluster.health_check.active.as_ref().unwrap();
    assert_eq!((active.interval, active.timeout), (Duration::from_secs(15), Duration::from_secs(10)));
    assert_eq!((active.request.path.as_ref(), active.request.query.as_ref()), (None, None));
    assert_eq!(threshold(&cluster), 2);
    assert_eq!(cluster.retry, RetryRules::off());
    assert_eq!(cluster.timeouts, Timeouts::YARP);
    assert_eq!(cluster.compat, Compat::None);
    assert_eq!(read(r#"{"Clusters": {"c": {}}}"#).config.listeners[0].limits, ClientLimits::YARP);
}

#[test]
fn a_whole_settings_file_is_a_root_and_its_other_sections_are_passed_over() {
    let text = r#"{
  // as a template has it
  "Logging": {"LogLevel": {"Default": "Information"}},
  "AllowedHosts": "*",
  "Kestrel": {"Endpoints": {"Web": {"Url": "http://*:8080"}, "Local": {"Url": "http://localhost:8081"}}},
  "ReverseProxy": {
    "Routes": {
      "route1": {
        "ClusterId": "CLUSTER1",
        "Order": "5",
        "MaxRequestBodySize": -1,
        "Timeout": "00:01:00",
        "Match": {
          "Path": "{**catch-all}",
          "Hosts": ["www.example.com"],
          "Methods": ["get"],
          "Headers": [{"Name": "X-A", "Values": ["1"], "Mode": "headerprefix", "IsCaseSensitive": true}],
          "QueryParameters": [{"Name": "q", "Mode": "Exists"}],
        },
      },
    },
    /* keys without case */
    "clusters": {"cluster1": {"destinations": {"d": {"address": "http://10.0.0.1"}}}},
  },
}"#;
    let loaded = read(text);
    let config = &loaded.config;
    let addresses: Vec<_> = config.listeners.iter().map(|l| (l.id.to_string(), l.address.to_string())).collect();
    assert_eq!(addresses, [("Web".into(), "[::]:8080".into()), ("Local".into(), "127.0.0.1:8081".into())]);
    let route = &config.routes[0];
    assert_eq!(route.action, RouteAction::Cluster(Some("cluster1".into())));
    assert_eq!((route.order, route.max_request_body), (5, Some(None)));
    assert_eq!(route.timeout, Some(Duration::from_secs(60)));
    assert_eq!(route.matcher.path.as_ref().unwrap().to_string(), "/{**catch-all}");
    assert_eq!(route.matcher.methods, ["GET"]);
    assert_eq!(route.matcher.headers[0].mode, ValueMode::Prefix);
    assert_eq!(route.matcher.headers[0].case, CaseRule::Sensitive);
    assert_eq!(route.matcher.query[0].mode, ValueMode::Exists);
}

#[test]
fn urls_give_the_listeners_where_no_endpoint_does() {
    let loaded =
        read(r#"{"Urls": "http://localhost:5000;https://localhost:5001", "ReverseProxy": {"Clusters": {"c": {}}}}"#);
    let addresses: Vec<_> = loaded.config.listeners.iter().map(|l| l.address.to_string()).collect();
    assert_eq!(addresses, ["127.0.0.1:5000"]);
    assert!(loaded.warnings.iter().any(|w| w.message.contains("https://localhost:5001")), "{:?}", loaded.warnings);
}

#[test]
fn https_endpoints_have_their_certificates_or_the_default_one() {
    let loaded = read(
        r#"{"Kestrel": {"Endpoints": {
            "Own": {"Url": "https://*:443", "Protocols": "Http1", "SslProtocols": ["Tls13"],
                    "ClientCertificateMode": "RequireCertificate", "ClientCertificateCa": "ca.pem",
                    "Certificate": {"Path": "own.pem", "KeyPath": "own.key"},
                    "Sni": {"b.test": {"Certificate": {"Path": "b.pem", "KeyPath": "b.key"}}}},
            "Other": {"Url": "https://*:444"}},
            "Certificates": {"Default": {"Path": "default.pem", "KeyPath": "default.key"}}},
            "ReverseProxy": {"Clusters": {"c": {}}}}"#,
    );
    let tls = |at: usize| loaded.config.listeners[at].tls.clone().unwrap();
    let files =
        |name: &str| CertificateFiles { certificate: format!("{name}.pem").into(), key: format!("{name}.key").into() };
    let own = ListenerTls {
        certificates: vec![files("own"), files("b")],
        min_version: TlsVersion::Tls13,
        client_auth: ClientAuth::Required("ca.pem".into()),
        ticket_keys: None,
        protocols: vec![Alpn::Http11],
    };
    assert_eq!(tls(0), own);
    let other = ListenerTls {
        certificates: vec![files("default")],
        min_version: TlsVersion::Tls12,
        client_auth: ClientAuth::Off,
        ticket_keys: None,
        protocols: vec![Alpn::Http2, Alpn::Http11],
    };
    assert_eq!(tls(1), other);
}

#[test]
fn metadata_numbers_act_as_they_do_in_yarp() {
    for (text, acts_as, warns) in [
        ("3", 3, false),
        ("3.0", 3, false),
        (" 4 ", 4, false),
        ("1.5", 2, true),
        ("0", 1, true),
        ("-5", 1, true),
        ("NaN", 1, true),
        ("many", 2, true),
        ("", 2, true),
        ("1e12", u32::MAX, true),
    ] {
        let (cluster, warnings) = cluster(&format!(
            r#"{{"HealthCheck": {{"Active": {{"Enabled": true}}}}, "Metadata": {{"consecutivefailureshealthpolicy.threshold": "{text}"}}}}"#
        ));
        assert_eq!(threshold(&cluster), acts_as, "{text}");
        assert_eq!(warnings.iter().any(|w| w.contains("the threshold is")), warns, "{text}: {warnings:?}");
    }
    for (text, acts_as, warns) in [
        ("0.5", 0.5, false),
        ("0", 0.0, true),
        ("NaN", 0.0, true),
        ("-1", 0.0, true),
        ("2", 2.0, true),
        ("1", 1.0, true),
        ("x", 0.3, true),
    ] {
        let (cluster, warnings) = cluster(&format!(
            r#"{{"HealthCheck": {{"Passive": {{"Enabled": true}}}}, "Metadata": {{"TransportFailureRateHealthPolicy.RateLimit": "{text}"}}}}"#
        ));
        assert_eq!(rate_limit(&cluster), acts_as, "{text}");
        assert_eq!(warnings.iter().any(|w| w.contains("the rate limit is")), warns, "{text}: {warnings:?}");
    }
}

#[test]
fn the_policys_global_options_stand_in_the_file() {
    let loaded = read(
        r#"{"ReverseProxy": {
            "HealthDefaults": {"TransportFailureRate":
                {"DetectionWindowSize": "00:00:30", "MinimalTotalCountThreshold": 5, "DefaultFailureRateLimit": 0.5}},
            "Clusters": {"c": {"HealthCheck": {"Passive": {"Enabled": "True"}}}}}}"#,
    );
    match loaded.config.clusters[0].health_check.passive.as_ref().unwrap().policies[0] {
        PassivePolicy::TransportFailureRate(o) => {
            assert_eq!((o.rate_limit, o.window.as_secs(), o.minimum), (0.5, 30, 5))
        }
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_not_honoured_is_named_and_loudly_where_it_lets_someone_in() {
    let loaded = read(
        r#"{"Routes": {"r": {"ClusterId": "c", "Match": {"Path": "/"}, "AuthorizationPolicy": "admins",
              "CorsPolicy": "x", "RateLimiterPolicy": "y", "Transforms": [{"ClientCert": "X-Cert"}], "Metdata": {}}},
            "Clusters": {"c": {"HttpClient": {"DangerousAcceptAnyServerCertificate": "true", "MaxConnectionsPerServer": 10,
              "WebProxy": {"Address": "http://p"}, "SslProtocols": ["Tls12"]}, "HttpRequest": {"Version": "2", "ActivityTimeout": "00:00:30"}}}}"#,
    );
    let named = |severity: Severity| -> Vec<&str> {
        loaded.warnings.iter().filter(|w| w.severity == severity).map(|w| w.message.as_str()).collect()
    };
    let loud = named(Severity::Alarm);
    for key in ["AuthorizationPolicy", "CorsPolicy", "RateLimiterPolicy", "MaxConnectionsPerServer", "WebProxy"] {
        assert!(loud.iter().any(|message| message.contains(key)), "{key}: {loud:?}");
    }
    let quiet = named(Severity::Warning);
    for key in ["ClientCert", "SslProtocols", "unknown key `Metdata`"] {
        assert!(quiet.iter().any(|message| message.contains(key)), "{key}: {quiet:?}");
    }
    let cluster = &loaded.config.clusters[0];
    assert_eq!(cluster.tls.verify, Verify::DangerousNone);
    assert_eq!(cluster.timeouts.idle, Duration::from_secs(30));
}

#[test]
fn policies_that_ask_for_nothing_are_no_alarm() {
    let loaded = read(
        r#"{"Routes": {"r": {"ClusterId": "c", "Match": {"Path": "/"}, "AuthorizationPolicy": "anonymous",
              "CorsPolicy": "Disable", "RateLimiterPolicy": "Disable", "TimeoutPolicy": "Disable", "Transforms": []}},
            "Clusters": {"c": {}}}"#,
    );
    assert!(loaded.warnings.iter().all(|w| !w.message.contains("honoured")), "{:?}", loaded.warnings);
}

#[test]
fn affinity_reads_with_its_cookie() {
    let (cluster, _) = cluster(
        r#"{"SessionAffinity": {"Enabled": true, "Policy": "hashcookie", "FailurePolicy": "return503error", "AffinityKeyName": "k",
            "Cookie": {"Path": "/a", "Domain": "d", "HttpOnly": false, "SecurePolicy": "Always", "SameSite": "Lax", "MaxAge": "01:00:00"}}}"#,
    );
    let affinity = cluster.session_affinity.unwrap();
    assert_eq!(affinity.policy, AffinityPolicy::HashCookie);
    assert_eq!(affinity.failure_policy, AffinityFailurePolicy::Return503Error);
    let cookie = affinity.cookie;
    assert_eq!((cookie.path.as_str(), cookie.domain.as_deref()), ("/a", Some("d")));
    assert_eq!((cookie.http_only, cookie.secure, cookie.same_site.as_deref()), (false, true, Some("Lax")));
    assert_eq!(cookie.max_age, Some(Duration::from_secs(3600)));
}

#[test]
fn values_know_their_origin() {
    let loaded = read(include_str!("fixtures/yarp/active.json"));
    let path = |names: &[&str]| config::raw::path::Path::of(names.iter().copied());
    let active = ["clusters", "cluster1", "health_check", "active"];
    let of = |name: &str| loaded.origins.of(&path(&[&active[..], &[name]].concat()));
    assert_eq!(of("interval"), Origin::File { line: 6 });
    assert_eq!(of("threshold"), Origin::Metadata { line: 14 });
    assert_eq!(of("start").clone(), Origin::Default(config::origin::DefaultsOf::Yarp));
}

#[test]
fn yaml_is_not_taken_for_yarp_and_yarp_not_for_yaml() {
    let native = r#"{"clusters": {"c": {"destinations": {"d": {"address": "http://h/"}}}}}"#;
    assert_eq!(read(native).config.clusters[0].retry, RetryRules::native());
    assert_eq!(read(&native.replace("clusters", "Clusters")).config.clusters[0].retry, RetryRules::off());
    let forced = load("x", native.as_bytes(), FileKind::Yarp, &PolicyNames::default(), None).unwrap();
    assert_eq!(forced.config.clusters[0].retry, RetryRules::off());
}

/// Rows P11 and P12: YARP probes with the request version and policy of the cluster; P11 differs here, HTTP/1.0 is not
/// spoken towards destinations.
#[test]
fn request_version_and_policy_say_what_requests_and_probes_speak() {
    let of = |request: &str| {
        let text = format!(
            r#"{{"Clusters": {{"c": {{"HttpRequest": {request}, "HealthCheck": {{"Active": {{"Enabled": true}}}}}}}}}}"#
        );
        let loaded = read(&text);
        let cluster = &loaded.config.clusters[0];
        let probes = cluster.health_check.active.as_ref().unwrap().http(cluster.http);
        assert_eq!(probes, cluster.http, "probes speak what requests do");
        (cluster.http, loaded.warnings.iter().any(|w| w.message.contains("is used towards destinations")))
    };
    use UpstreamHttp::{Http1, Http2, Http2OrHttp1};
    for (version, lower, higher, exact, warns) in [
        (r#""1.0""#, Http1, Http2OrHttp1, Http1, [true, true, true]),
        (r#""1.1""#, Http1, Http2OrHttp1, Http1, [false; 3]),
        (r#""2""#, Http2OrHttp1, Http2, Http2, [false; 3]),
        ("2", Http2OrHttp1, Http2, Http2, [false; 3]),
        ("null", Http2OrHttp1, Http2, Http2, [false; 3]),
        (r#""3.0""#, Http2OrHttp1, Http2, Http2, [false, true, true]),
    ] {
        let policies = ["RequestVersionOrLower", "RequestVersionOrHigher", "RequestVersionExact"];
        for ((policy, http), warns) in policies.into_iter().zip([lower, higher, exact]).zip(warns) {
            let found = of(&format!(r#"{{"Version": {version}, "VersionPolicy": "{policy}"}}"#));
            assert_eq!(found, (http, warns), "{version} {policy}");
        }
    }
    assert_eq!(of("{}"), (Http2OrHttp1, false));
}

#[test]
fn transforms_read_as_yarp_writes_them_and_what_cannot_be_done_is_named() {
    let text = r#"{"Clusters": {"c": {"Destinations": {"d": {"Address": "http://h/"}}}}, "Routes": {"r": {"ClusterId": "c",
        "Match": {"Path": "/api/{id}/{**rest}"}, "Transforms": [
        {"RequestHeadersCopy": "false"}, {"RequestHeader": "X-A", "Append": "1"}, {"requestheader": "Host", "Set": "x"},
        {"RequestHeadersAllowed": "A;b;"}, {"PathPattern": "v2/{id}"}, {"PathRemovePrefix": "/api"},
        {"QueryValueParameter": "q", "Set": ""}, {"HttpMethodChange": "put", "Set": "post"},
        {"X-Forwarded": "Append", "Prefix": "Remove", "HeaderPrefix": "X-My-"},
        {"Forwarded": "For, proto", "ForFormat": "IpAndPort", "Action": "Append"},
        {"ResponseHeader": "X-R", "Set": "1", "When": "Always"},
        {"ClientCert": "X-Cert"}, {"ResponseTrailer": "X-T", "Set": "1", "When": "Always"}, {"ResponseTrailersCopy": true},
        {"HttpMethodChange": "HEAD", "Set": "GET"}, {"RequestHeader": "Connection", "Set": "x"}]}}}"#;
    let loaded = load("a.json", text.as_bytes(), FileKind::Auto, &PolicyNames::default(), None)
        .unwrap_or_else(|report| panic!("{report}"));
    let transforms = &loaded.config.routes[0].policy.transforms;
    assert_eq!(transforms.len(), 11, "{transforms:?}");
    assert_eq!(transforms[0], Transform::Request(RequestTransform::Copy(Copying::Nothing)));
    assert_eq!(transforms[3], Transform::Request(RequestTransform::Allowed(vec!["a".to_owned(), "b".to_owned()])));
    let Transform::XForwarded(rules) = &transforms[8] else { panic!("{transforms:?}") };
    assert_eq!((rules.address, rules.prefix), (ForwardAction::Append, ForwardAction::Remove));
    assert_eq!(rules.header_prefix, "X-My-");
    let messages: Vec<_> = loaded.warnings.iter().map(|warning| warning.message.as_str()).collect();
    for word in ["`ClientCert`", "`ResponseTrailer`", "`HEAD`", "`connection`"] {
        assert!(messages.iter().any(|message| message.contains(word)), "{word}: {messages:?}");
    }
}

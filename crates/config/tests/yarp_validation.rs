//! Validation, equality and reload, row by row: what YARP does with a configuration, and what is done here.
//!
//! The rows are those of YARP's own tests (health check validators, configuration equality, the configuration manager).
//! Where both columns agree the row says so by its words; where they differ, ours is stricter or later rows say why.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use config::{FileKind, PolicyNames, Severity, load};
use model::config::Config;

/// What becomes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Taken, and nothing is said about what the row is about.
    Taken,
    /// Taken with a warning whose text holds this.
    Warned(&'static str),
    /// Refused with exactly one error, whose text holds this.
    Refused(&'static str),
}

use Fate::{Refused, Taken, Warned};

fn whole(body: &str) -> String {
    format!("{{\"ReverseProxy\": {body}}}")
}

/// A file with one cluster, whose content is `body`.
fn cluster(body: &str) -> String {
    whole(&format!(r#"{{"Clusters": {{"c": {body}}}}}"#))
}

/// A file with one cluster and these checks.
fn health(body: &str) -> String {
    cluster(&format!(r#"{{"HealthCheck": {body}}}"#))
}

/// A file with one cluster and one route, whose content is `body`.
fn route(body: &str) -> String {
    whole(&format!(
        r#"{{"Routes": {{"r": {{"ClusterId": "c", "Match": {{"Path": "/"}}, {body}}}}}, "Clusters": {{"c": {{}}}}}}"#
    ))
}

fn read(text: &str) -> Result<config::Loaded, Box<config::Report>> {
    load("yarp.json", text.as_bytes(), FileKind::Yarp, &PolicyNames::default(), None)
}

fn taken(text: &str) -> Config {
    read(text).unwrap_or_else(|report| panic!("{report}\n{text}")).config
}

/// Warnings that every file of this shape gets and no row is about.
const USUAL: [&str; 3] = ["no route leads to", "has no check", "has no destinations"];

fn happens(text: &str) -> Result<Vec<String>, Vec<String>> {
    match read(text) {
        Ok(loaded) => {
            let said = loaded.warnings.iter().map(ToString::to_string);
            Ok(said.filter(|text| !USUAL.iter().any(|usual| text.contains(usual))).collect())
        }
        Err(report) => {
            let errors = report.diagnostics.iter().filter(|d| d.severity == Severity::Error);
            Err(errors.map(ToString::to_string).collect())
        }
    }
}

#[test]
fn validation_rows_hold_side_by_side() {
    let rows: Vec<(&str, String, &str, Fate)> = vec![
        (
            "V1",
            health(
                r#"{"Active": {"Enabled": true, "Policy": null, "Interval": "00:00:25", "Timeout": "00:00:10", "Path": "/a"}}"#,
            ),
            "no error",
            Taken,
        ),
        ("V1", health(r#"{"Active": {"Enabled": true, "Policy": "", "Interval": "00:00:25"}}"#), "no error", Taken),
        ("V1", health(r#"{"Active": {"Enabled": true, "Policy": "ConsecutiveFailures"}}"#), "no error", Taken),
        (
            "V2",
            health(r#"{"Active": {"Enabled": true, "Interval": "-00:00:01"}}"#),
            "one error about the interval",
            Refused("`Interval`"),
        ),
        (
            "V3",
            health(r#"{"Active": {"Enabled": true, "Timeout": "-00:00:01"}}"#),
            "one error about the timeout",
            Refused("`Timeout`"),
        ),
        (
            "V4",
            health(r#"{"Active": {"Enabled": true, "Policy": "Unknown"}}"#),
            "one error",
            Refused("unknown policy `Unknown`"),
        ),
        (
            "V5",
            health(r#"{"Passive": {"Enabled": true, "Policy": null, "ReactivationPeriod": null}}"#),
            "no error",
            Taken,
        ),
        (
            "V5",
            health(r#"{"Passive": {"Enabled": true, "Policy": "", "ReactivationPeriod": "00:00:25"}}"#),
            "no error",
            Taken,
        ),
        ("V5", health(r#"{"Passive": {"Enabled": true, "Policy": "TransportFailureRate"}}"#), "no error", Taken),
        (
            "V6",
            health(r#"{"Passive": {"Enabled": true, "ReactivationPeriod": "-00:00:01"}}"#),
            "one error",
            Refused("`ReactivationPeriod`"),
        ),
        (
            "V7",
            health(r#"{"Passive": {"Enabled": true, "Policy": "TransportFailureRateHealthPolicy"}}"#),
            "one error",
            Refused("unknown policy"),
        ),
        ("V8", health(r#"{"AvailableDestinationsPolicy": null}"#), "no error", Taken),
        ("V8", health(r#"{"AvailableDestinationsPolicy": ""}"#), "no error", Taken),
        ("V8", health(r#"{"AvailableDestinationsPolicy": "HealthyAndUnknown"}"#), "no error", Taken),
        (
            "V9",
            health(r#"{"AvailableDestinationsPolicy": "Unknown"}"#),
            "one error, checks on or off",
            Refused("unknown policy"),
        ),
        (
            "V10",
            health(r#"{"Active": {"Enabled": false, "Interval": "-00:00:01", "Policy": "Unknown"}}"#),
            "no error",
            Taken,
        ),
        ("V10", health(r#"{"Passive": {"ReactivationPeriod": "-00:00:01", "Policy": "Unknown"}}"#), "no error", Taken),
        (
            "V11",
            health(r#"{"Active": {"Enabled": true, "Interval": "00:00:00"}}"#),
            "error",
            Refused("`Interval` is zero"),
        ),
        ("V12", cluster(r#"{"Destinations": {"d": {"Address": null}}}"#), "one error", Refused("no address")),
        ("V12", cluster(r#"{"Destinations": {"d": {"Address": ""}}}"#), "one error", Refused("no address")),
        (
            "V12",
            cluster(r#"{"Destinations": {"d": {"Address": "localhost:5000"}}}"#),
            "no error, every request fails",
            Refused("is no URL"),
        ),
        ("V13", cluster(r#"{"Destinations": {}}"#), "no error", Taken),
        ("V14", cluster(r#"{"SessionAffinity": {"Enabled": true}}"#), "error", Refused("no key name")),
        (
            "V14",
            cluster(r#"{"SessionAffinity": {"Enabled": true, "AffinityKeyName": ""}}"#),
            "error",
            Refused("no key name"),
        ),
        ("V14", cluster(r#"{"SessionAffinity": {"Enabled": false}}"#), "no error", Taken),
        ("V15", cluster(r#"{"HttpRequest": {"Version": "1.9"}}"#), "error", Refused("`Version` cannot be `1.9`")),
        ("V15", cluster(r#"{"HttpRequest": {"Version": "2.5"}}"#), "error", Refused("`Version`")),
        ("V15", cluster(r#"{"HttpRequest": {"Version": "3.1"}}"#), "error", Refused("`Version`")),
        ("V16", route(r#""Timeout": "00:00:00""#), "error", Refused("`Timeout` is zero")),
        ("V16", route(r#""Timeout": "-00:00:01""#), "error", Refused("`Timeout`")),
        ("V16", route(r#""Timeout": "00:00:01", "TimeoutPolicy": "p""#), "error", Refused("exclude each other")),
        ("V19", whole(r#"{"Clusters": {"c": {}, "C": {}}}"#), "the load fails", Refused("stands here twice")),
        (
            "V19",
            whole(r#"{"Routes": {"r": {"Match": {"Path": "/"}}, "R": {"Match": {"Path": "/"}}}}"#),
            "the load fails",
            Refused("stands here twice"),
        ),
        (
            "V27",
            health(r#"{"Active": {"Enabled": true, "Interval": "10"}}"#),
            "ten days",
            Warned("`Interval` is 10 days"),
        ),
        ("V27", health(r#"{"Active": {"Enabled": true, "Interval": "00:10"}}"#), "ten minutes", Taken),
        ("V27", health(r#"{"Active": {"Enabled": true, "Interval": "00:00:10"}}"#), "ten seconds", Taken),
        (
            "V27",
            health(r#"{"Active": {"Enabled": true, "Interval": "24:00:00"}}"#),
            "error",
            Refused("`Interval` is no duration"),
        ),
        (
            "P13",
            health(r#"{"Active": {"Enabled": true, "Path": "health"}}"#),
            "every probe fails",
            Warned("every probe fails"),
        ),
        (
            "P14",
            health(r#"{"Active": {"Enabled": true, "Query": "a=b"}}"#),
            "every probe fails",
            Warned("every probe fails"),
        ),
        (
            "P16",
            cluster(r#"{"Destinations": {"d": {"Address": "http://h", "Health": "localhost:5000"}}}"#),
            "every probe fails",
            Refused("`Health` is no URL"),
        ),
        (
            "missing cluster",
            whole(r#"{"Routes": {"r": {"ClusterId": "x", "Match": {"Path": "/"}}}}"#),
            "503 at request time",
            Warned("answered with 503"),
        ),
        ("unknown key", health(r#"{"Actve": {}}"#), "passed over in silence", Warned("unknown key `Actve`")),
    ];
    for (row, text, yarp, ours) in rows {
        let said = happens(&text);
        let holds = match (ours, &said) {
            (Taken, Ok(warnings)) => warnings.is_empty(),
            (Warned(part), Ok(warnings)) => warnings.iter().any(|text| text.contains(part)),
            (Refused(part), Err(errors)) => errors.len() == 1 && errors[0].contains(part),
            (Taken | Warned(_), Err(_)) | (Refused(_), Ok(_)) => false,
        };
        assert!(holds, "{row}: YARP: {yarp}; here it should be {ours:?} and is {said:?}\n{text}");
    }
}

#[test]
fn several_errors_are_all_collected_as_in_yarp() {
    let text =
        health(r#"{"AvailableDestinationsPolicy": "A", "Active": {"Enabled": true, "Policy": "B", "Interval": "x"}}"#);
    assert_eq!(happens(&text).unwrap_err().len(), 3);
}

#[test]
fn v17_names_that_differ_only_in_case_make_equal_configurations() {
    let of = |policy: &str| taken(&health(&format!(r#"{{"Active": {{"Enabled": true, "Policy": "{policy}"}}}}"#)));
    assert_eq!(of("ConsecutiveFailures"), of("consecutivefailures"));
}

#[test]
fn v18_queries_that_differ_make_different_configurations() {
    let of = |query: &str| taken(&health(&format!(r#"{{"Active": {{"Enabled": true, "Query": "{query}"}}}}"#)));
    assert_ne!(of("?a=1"), of("?a=2"));
}

/// YARP keeps the state object when an address changes (V20), with a passive Unhealthy still on it (V21), and takes no
/// notice when only the case of the path differs (V22). Here each of them is another address, so the destination starts
/// at Unknown; whether an address changed is read from the resolved configuration.
#[test]
fn v20_to_v22_another_address_is_another_configuration() {
    let of = |address: &str| taken(&cluster(&format!(r#"{{"Destinations": {{"d": {{"Address": "{address}"}}}}}}"#)));
    assert_ne!(of("http://h/"), of("http://other/"));
    assert_ne!(of("http://h/API"), of("http://h/api"));
    assert_eq!(of("http://H/"), of("http://h:80"), "case of the host and the scheme's own port say nothing");
}

/// YARP has several providers: one that cannot be read keeps its old part (V23), an invalid one holds all of them up
/// (V24). Here there is one file, and it is taken or refused as a whole.
#[test]
fn v23_and_v24_a_file_is_taken_or_refused_as_a_whole() {
    let text = whole(r#"{"Routes": {"r": {"ClusterId": "c", "Match": {"Path": "{"}}}, "Clusters": {"c": {}}}"#);
    assert!(happens(&text).is_err());
    assert!(happens(&text[..text.len() - 3]).is_err());
}

//! Probes of gRPC services over the network: each verdict and each failure has its own reason, and a probe may speak another
//! version of HTTP than its cluster's traffic, at another port. (gRPC health checking protocol; dotnet/yarp #1153)

use std::net::SocketAddr;

use end_to_end::grpc::{self, Says, Tonic};
use end_to_end::process::Lazaret;
use testkit::destination::{Act, Destination, Moment, answer};
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;

const CHECK: &str = "interval: 200ms, timeout: 1s, threshold: 2";

fn start(check: &str, destinations: &[(&str, String)]) -> Lazaret {
    Lazaret::start(&config(check, destinations))
}

fn config(check: &str, destinations: &[(&str, String)]) -> String {
    let list: Vec<_> = destinations.iter().map(|(id, of)| format!("      {id}: {{{of}}}\n")).collect();
    format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    http: \"2\"\n    \
         health_check: {{active: {{{CHECK}{check}}}}}\n    destinations:\n{}",
        list.concat()
    )
}

fn at(address: SocketAddr) -> String {
    format!("address: \"http://{address}/\"")
}

/// The value and, where it failed, the reason of the last probe.
fn judged(lazaret: &Lazaret, destination: &str) -> (String, String) {
    let document = lazaret.destination("app", destination);
    let word = |value: &serde_json::Value| value.as_str().unwrap_or("").to_owned();
    (word(&document["active"]), word(&document["last_probe"]["failure"]))
}

/// HEALTH-01
#[test]
fn each_answer_of_a_grpc_health_service_has_its_own_verdict_and_reason() {
    let serving = Tonic::start("serving", Says::Verdict(ServingStatus::Serving));
    let not_serving = Tonic::start("not", Says::Verdict(ServingStatus::NotServing));
    let unknown = Tonic::start("unknown", Says::Verdict(ServingStatus::ServiceUnknown));
    let not_found = Tonic::start("absent", Says::Status(Code::NotFound));
    let unimplemented = Tonic::start("without", Says::Status(Code::Unimplemented));
    let hanging = Tonic::start("hanging", Says::Nothing);
    let old = Destination::answering(200, "I speak HTTP/1.1");
    let gone = testkit::destination::refusing();
    let lazaret = start(
        ", kind: grpc",
        &[
            ("serving", at(serving.address)),
            ("not_serving", at(not_serving.address)),
            ("service_unknown", at(unknown.address)),
            ("not_found", at(not_found.address)),
            ("unimplemented", at(unimplemented.address)),
            ("hanging", at(hanging.address)),
            ("old", at(old.addr())),
            ("gone", at(gone)),
        ],
    );
    let expected = [
        ("not_serving", "body"),
        ("service_unknown", "body"),
        ("not_found", "status"),
        ("unimplemented", "status"),
        ("hanging", "timeout"),
        ("old", "protocol"),
        ("gone", "refused"),
    ];
    for (destination, reason) in expected {
        lazaret.wait_until(&format!("{destination} is Unhealthy for its own reason"), || {
            judged(&lazaret, destination) == ("unhealthy".to_owned(), reason.to_owned())
        });
    }
    assert_eq!(judged(&lazaret, "serving"), ("healthy".to_owned(), String::new()));
}

/// HEALTH-01
#[test]
fn a_probe_of_http1_at_a_port_of_its_own_keeps_a_grpc_destination_in_traffic_until_its_version_is_taken_away() {
    let grpc = Tonic::start("grpc", Says::Verdict(ServingStatus::Serving));
    let health = Destination::start(|moment| match moment {
        Moment::Accepted => Vec::new(),
        Moment::Request(request) if request.message.target() == "/health" => answer(200, "fine"),
        // The preface of HTTP/2 is a request of an unknown method to it.
        Moment::Request(_) => vec![Act::Send(b"HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n".to_vec()), Act::Close],
    });
    let destination = [("one", format!("{}, health: \"http://{}/\"", at(grpc.address), health.addr()))];
    let with = ", path: /health, http: \"1.1\"";
    let lazaret = start(with, &destination);
    lazaret.wait_until("three probes passed", || health.requests_to("/health").len() >= 3);
    assert_eq!(judged(&lazaret, "one"), ("healthy".to_owned(), String::new()));
    call(&lazaret).expect("the call is served");

    lazaret.apply(&config(", path: /health", &destination));
    lazaret.wait_until("it is Unhealthy, and not for a timeout", || {
        judged(&lazaret, "one") == ("unhealthy".to_owned(), "protocol".to_owned())
    });
    let labels = ["cluster=\"app\"", "destination=\"one\"", "result=\"protocol\""];
    assert!(lazaret.metric("lazaret_probes_total", &labels) >= 2.0, "the metric tells the reason");

    lazaret.apply(&config(with, &destination));
    lazaret.wait_until("it is back", || judged(&lazaret, "one").0 == "healthy");
    call(&lazaret).expect("the call is served");
}

/// HTTP probes over HTTP/2 by prior knowledge, as the cluster speaks.
#[test]
fn an_http_probe_speaks_the_http2_of_its_cluster() {
    let grpc = Tonic::start("grpc", Says::Verdict(ServingStatus::Serving));
    let lazaret = start(", path: /nothing, expect: {status: [200]}", &[("one", at(grpc.address))]);
    // tonic answers a path that it does not have with a 200 and a status in gRPC's words.
    lazaret.wait_until("it is Healthy", || judged(&lazaret, "one").0 == "healthy");
    call(&lazaret).expect("the call is served");
}

fn call(lazaret: &Lazaret) -> Result<ServingStatus, tonic::Status> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    runtime.block_on(async {
        let mut client = grpc::client(lazaret.proxy).await;
        Ok(client.check(HealthCheckRequest { service: String::new() }).await?.into_inner().status())
    })
}

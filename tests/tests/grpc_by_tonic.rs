//! gRPC between a client and servers of tonic, through TLS on the one side and HTTP/2 by prior knowledge on the other: what
//! a call ends with is what it ends with directly, also when it ends badly (gRPC over HTTP/2; RFC 9113 8.1).

use std::time::{Duration, Instant};

use end_to_end::clients::site::Site;
use end_to_end::grpc::{self, ENDLESS, MESSAGES, SERVED_BY, Says, Tonic};
use tokio::runtime::Runtime;
use tonic::transport::{Certificate, Channel, ClientTlsConfig};
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// A site whose route for the health service leads to these servers.
fn site(servers: &[&Tonic], of_route: &str) -> Site {
    let list: Vec<_> =
        (0..).zip(servers).map(|(n, one)| format!("d{n}: {{address: \"http://{}/\"}}", one.address)).collect();
    Site::start(
        &format!("  grpc: {{match: {{path: \"/grpc.health.v1.Health/{{**rest}}\"}}, cluster: grpc{of_route}}}\n"),
        &format!(
            "  grpc:\n    http: \"2\"\n    load_balancing: FirstAlphabetical\n    health_check: {{passive: {{policies: \
             [{{name: MaxFails, max_fails: 1, fail_timeout: 1m}}]}}}}\n    destinations: {{{}}}\n",
            list.join(", ")
        ),
    )
}

async fn client(site: &Site) -> HealthClient<Channel> {
    let roots = Certificate::from_pem(std::fs::read(&site.roots).unwrap());
    let tls = ClientTlsConfig::new().ca_certificate(roots).domain_name("site.test");
    let endpoint = Channel::from_shared(format!("https://{}", site.tls)).unwrap().tls_config(tls).unwrap();
    HealthClient::new(endpoint.connect().await.unwrap())
}

fn of(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

/// A call of many messages to its end: how many came, in order, and with what it ended.
async fn watch(client: &mut HealthClient<Channel>, request: Request<HealthCheckRequest>) -> (usize, Status) {
    let mut messages = match client.watch(request).await {
        Ok(response) => response.into_inner(),
        Err(status) => return (0, status),
    };
    let mut count = 0;
    loop {
        match messages.message().await {
            Ok(Some(message)) => {
                assert_eq!(message.status, i32::try_from(count % 3).unwrap());
                count += 1;
            }
            Ok(None) => return (count, Status::ok("")),
            Err(status) => return (count, status),
        }
    }
}

/// GRPC-01
#[test]
fn calls_end_with_the_same_messages_status_and_fields_as_without_a_proxy() {
    let good = Tonic::start("good", Says::Verdict(ServingStatus::NotServing));
    let bad = Tonic::start("bad", Says::Status(Code::FailedPrecondition));
    let (site_of_good, site_of_bad) = (site(&[&good], ""), site(&[&bad], ""));
    runtime().block_on(async {
        for mut client in [grpc::client(good.address).await, client(&site_of_good).await] {
            let response = client.check(of("any")).await.unwrap();
            assert_eq!(response.metadata().get(SERVED_BY).unwrap(), "good");
            assert_eq!(response.into_inner().status(), ServingStatus::NotServing);
            // Many messages, and a status in the trailers that stands behind them.
            let (count, status) = watch(&mut client, Request::new(of("many"))).await;
            assert_eq!((count, status.code(), status.message()), (MESSAGES, Code::Aborted, "enough"));
        }
        for mut client in [grpc::client(bad.address).await, client(&site_of_bad).await] {
            // The head is all there is (Trailers-Only).
            let status = client.check(of("any")).await.unwrap_err();
            assert_eq!((status.code(), status.message()), (Code::FailedPrecondition, "it is 50 % so, says \u{e4}"));
            assert_eq!(status.metadata().get(SERVED_BY).unwrap(), "bad");
        }
    });
}

#[test]
fn a_call_whose_server_ends_in_the_middle_is_an_error_and_the_next_one_is_served_by_another() {
    let says = Says::Verdict(ServingStatus::Serving);
    let (mut first, second) = (Tonic::start("first", says), Tonic::start("second", says));
    let site = site(&[&first, &second], "");
    runtime().block_on(async {
        let mut client = client(&site).await;
        let mut messages = client.watch(of(ENDLESS)).await.unwrap();
        assert_eq!(messages.metadata().get(SERVED_BY).unwrap(), "first");
        let messages = messages.get_mut();
        for _ in 0..3 {
            assert!(messages.message().await.unwrap().is_some());
        }
        first.kill();
        let end = loop {
            match messages.message().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("a call that broke off looks whole"),
                Err(status) => break status,
            }
        };
        assert!([Code::Internal, Code::Unavailable, Code::Unknown, Code::Cancelled].contains(&end.code()), "{end:?}");
        for _ in 0..10 {
            let response = client.check(of("any")).await.unwrap();
            assert_eq!(response.metadata().get(SERVED_BY).unwrap(), "second");
        }
    });
}

#[test]
fn the_time_of_a_call_ends_it_with_deadline_exceeded_before_its_first_message_and_between_two() {
    let (silent, busy) = (Tonic::start("silent", Says::Nothing), Tonic::start("busy", Says::Nothing));
    let (site_of_silent, site_of_busy) = (site(&[&silent], ", timeout: 500ms"), site(&[&busy], ", timeout: 500ms"));
    runtime().block_on(async {
        let started = Instant::now();
        let status = client(&site_of_silent).await.check(of("any")).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::DeadlineExceeded, "deadline"));
        assert!(started.elapsed() >= Duration::from_millis(500));

        let (count, status) = watch(&mut client(&site_of_busy).await, Request::new(of(ENDLESS))).await;
        assert!(count > 0, "nothing came");
        assert_eq!((status.code(), status.message()), (Code::DeadlineExceeded, "deadline"));
    });
    let line = site_of_busy.lazaret.log_line("/grpc.health.v1.Health/Watch");
    assert_eq!((&line["status"], &line["reason"]), (&200.into(), &"deadline".into()), "{line}");
}

#[test]
fn the_time_that_a_client_names_holds_for_its_call() {
    let silent = Tonic::start("silent", Says::Nothing);
    let site = site(&[&silent], "");
    runtime().block_on(async {
        let mut request = Request::new(of("any"));
        request.set_timeout(Duration::from_millis(400));
        let started = Instant::now();
        let status = client(&site).await.check(request).await.unwrap_err();
        // The client's own clock and the proxy's run out together; both say the same.
        assert!([Code::DeadlineExceeded, Code::Cancelled].contains(&status.code()), "{status:?}");
        assert!(started.elapsed() < Duration::from_secs(5));
    });
    let line = site.lazaret.log_line("/grpc.health.v1.Health/Check");
    assert!(["deadline", "client-gone"].contains(&line["reason"].as_str().unwrap_or("")), "{line}");
}

#[test]
fn what_nobody_serves_is_unimplemented_or_unavailable() {
    let site = Site::start(
        "  denied: {match: {path: \"/grpc.health.v1.Health/Check\"}, deny: 404}\n  gone: {match: {path: \
         \"/grpc.health.v1.Health/Watch\"}, cluster: gone}\n",
        &format!(
            "  gone:\n    http: \"2\"\n    destinations: {{d: {{address: \"http://{}/\"}}}}\n",
            testkit::destination::refusing()
        ),
    );
    runtime().block_on(async {
        let mut client = client(&site).await;
        assert_eq!(client.check(of("any")).await.unwrap_err().code(), Code::Unimplemented);
        assert_eq!(watch(&mut client, Request::new(of("any"))).await.1.code(), Code::Unavailable);
    });
}

//! gRPC calls whose answer is our own: told by a gRPC status in a head alone, whatever the client's version; and the time
//! that a call's client has, which nothing exceeds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::{Duration, Instant};

use http::Request;
use model::outcome::OutcomeClass;
use model::page::{ErrorPage, PageStatus};
use model::retry::NonIdempotent;
use model::route::RouteAction;
use model::upstream::UpstreamHttp;
use support::http2::{Answer, H2, run};
use support::{Proxy, refusing_setup, route, setup};
use testkit::destination::{Act, Destination, Moment};
use testkit::frames::{Frames, OK};

/// A call with a message of no bytes, and these fields beside its content type.
async fn call(client: &H2, fields: &[(&str, &str)]) -> Answer {
    let mut request = Request::post("http://a.test/a.B/C").header("content-type", "application/grpc+proto");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let (response, mut send) = client.start(request.body(()).unwrap(), false).await;
    // An early answer may have ended the stream.
    let _ = send.send_data(bytes::Bytes::from_static(b"\0\0\0\0\0"), true);
    support::http2::answer(response).await.unwrap()
}

fn told(answer: &Answer) -> (u16, Option<&str>, Option<&str>) {
    assert!(answer.is_head_alone && answer.body.is_empty(), "{answer:?}");
    assert_eq!(answer.value("content-type"), Some("application/grpc"));
    (answer.status.as_u16(), answer.value("grpc-status"), answer.value("grpc-message"))
}

fn logged(proxy: &Proxy, status: u16, reason: &str) {
    let line = proxy.log(1).remove(0);
    assert!(line.contains(&format!("\"status\":{status},")), "{line}");
    assert!(line.contains(&format!("\"reason\":\"{reason}\"")), "{line}");
}

#[test]
fn a_call_that_nobody_serves_is_unavailable_and_the_log_has_the_status_of_http() {
    let mut setup = refusing_setup();
    let page = ErrorPage {
        status: PageStatus::One(502),
        body: "<h1>sorry</h1>".into(),
        content_type: "text/html".into(),
        file: None,
    };
    setup.answers.error_pages = vec![page];
    let proxy = setup.start();
    run(async {
        let answer = call(&H2::connect(proxy.addr).await, &[]).await;
        assert_eq!(told(&answer), (200, Some("14"), Some("connection-refused")));
        let expected = "lazaret; error=connection_refused; details=\"connection-refused\"";
        assert_eq!(answer.value("proxy-status"), Some(expected));
    });
    logged(&proxy, 502, "connection-refused");
}

#[test]
fn an_http1_client_of_grpc_is_told_in_the_same_words_and_keeps_its_connection() {
    let proxy = refusing_setup().start();
    let mut client = proxy.client();
    for _ in 0..2 {
        client.send("POST /a.B/C HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\nContent-Length: 0\r\n\r\n");
        let response = client.response();
        assert_eq!((response.status(), response.text()), (200, String::new()));
        assert_eq!(response.value("grpc-status").as_deref(), Some("14"));
    }
    logged(&proxy, 502, "connection-refused");
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc-web\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(client.response().status(), 502, "others get the status of HTTP");
}

#[test]
fn a_call_that_a_route_denies_or_that_is_no_good_request_is_told_so() {
    let mut setup = refusing_setup();
    setup.routes = vec![route("all", RouteAction::Deny(403))];
    let proxy = setup.start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        assert_eq!(told(&call(&client, &[]).await), (200, Some("7"), Some("denied")));
        // Refused before it comes to a route.
        assert_eq!(told(&call(&client, &[("host", "b.test")]).await), (200, Some("13"), Some("authority")));
    });
}

/// RETRY-05
#[test]
fn grpc_timeout_is_not_exceeded_by_any_number_of_attempts() {
    let silent = || {
        Frames::start(|mut connection| {
            connection.greet(&[]);
            connection.stall();
        })
    };
    let (one, two) = (silent(), silent());
    let proxy = setup(&[one.address, two.address])
        .retrying()
        .with(|cluster| {
            cluster.http = UpstreamHttp::Http2;
            cluster.retry.per_try_timeout = Some(Duration::from_secs(10));
        })
        .start();
    let started = Instant::now();
    run(async {
        let answer = call(&H2::connect(proxy.addr).await, &[("grpc-timeout", "300m")]).await;
        assert_eq!(told(&answer), (200, Some("4"), Some("deadline")));
    });
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(5), "{took:?}");
    logged(&proxy, 504, "deadline");
}

#[test]
fn a_repeated_call_says_what_is_left_of_its_time() {
    let pause = Duration::from_millis(60);
    let late = Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => {
            vec![Act::ReadBody, Act::Pause(pause), Act::Send(b"HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n".to_vec())]
        }
    });
    let next = Destination::answering(200, "");
    let proxy = setup(&[late.addr(), next.addr()])
        .retrying()
        .with(|cluster| cluster.retry.non_idempotent = NonIdempotent::Always)
        .start();
    let mut client = proxy.client();
    client.send(
        "POST /a.B/C HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\ngrpc-timeout: 50S\r\n\
         Content-Length: 0\r\n\r\n",
    );
    assert_eq!(client.response().status(), 200);
    let said = |destination: &Destination| destination.requests()[0].message.value("grpc-timeout").unwrap();
    assert_eq!(said(&late), "50S", "the first attempt's goes on as it came");
    let left: u64 = said(&next).strip_suffix('m').unwrap().parse().unwrap();
    let most = 50_000 - u64::try_from(pause.as_millis()).unwrap();
    assert!((1..=most).contains(&left), "{left} of {most}");
}

#[test]
fn a_grpc_timeout_in_another_form_and_one_of_another_request_are_no_limit() {
    let destination = Frames::start(|mut connection| {
        connection.greet(&[]);
        while let Some(request) = connection.request() {
            connection.headers(request.stream, OK, &[("grpc-status", "0")], true);
        }
    });
    let proxy = setup(&[destination.address]).with(|cluster| cluster.http = UpstreamHttp::Http2).start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        for value in ["0", "0s", "000000000n", "-1S", ""] {
            assert_eq!(call(&client, &[("grpc-timeout", value)]).await.value("grpc-status"), Some("0"), "{value}");
        }
        assert_eq!(told(&call(&client, &[("grpc-timeout", "0n")]).await), (200, Some("4"), Some("deadline")));
    });
    let slow = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => {
            vec![Act::Pause(Duration::from_millis(50)), Act::Send(b"HTTP/1.1 204 No\r\n\r\n".to_vec())]
        }
    });
    let proxy = setup(&[slow.addr()]).start();
    let mut client = proxy.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\ngrpc-timeout: 1m\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(client.response().status(), 204);
    assert_eq!(proxy.count(0, OutcomeClass::Timeout), 0);
}

#[test]
fn what_a_call_came_to_is_counted_by_its_own_status() {
    let statuses = ["0", "5", "8", "13", "14", "15", "4"];
    for form in ["head alone", "trailers"] {
        let destination = Frames::start(move |mut connection| {
            connection.greet(&[]);
            let mut statuses = statuses.iter();
            while let Some(request) = connection.request() {
                let status = [("grpc-status", *statuses.next().unwrap())];
                let kind = [("content-type", "application/grpc")];
                if form == "head alone" {
                    connection.headers(request.stream, OK, &[kind[0], status[0]], true);
                } else {
                    connection.headers(request.stream, OK, &kind, false);
                    connection.data(request.stream, b"\0\0\0\0\0", false);
                    connection.headers(request.stream, &[], &status, true);
                }
            }
        });
        let proxy = setup(&[destination.address]).with(|cluster| cluster.http = UpstreamHttp::Http2).start();
        run(async {
            let client = H2::connect(proxy.addr).await;
            for _ in statuses {
                assert_eq!(call(&client, &[]).await.status, 200);
            }
        });
        let count = |class| proxy.count(0, class);
        let counts = [OutcomeClass::Ok, OutcomeClass::Overload, OutcomeClass::AppFail, OutcomeClass::Timeout];
        assert_eq!(counts.map(count), [2, 1, 3, 1], "{form}");
    }
}

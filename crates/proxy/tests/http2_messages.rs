//! What HTTP/2 messages become for an HTTP/1.1 destination, and its answers for an HTTP/2 client (RFC 9113 8).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use model::affinity::{AffinityFailurePolicy, AffinityPolicy, SessionAffinity};
use model::outcome::OutcomeClass;
use support::http2::{H2, answer, get, run};
use support::setup;
use testkit::destination::{Act, Destination, Moment};

fn sending(text: &str) -> Destination {
    let bytes = text.as_bytes().to_vec();
    Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => vec![Act::ReadBody, Act::Send(bytes.clone())],
    })
}

#[test]
fn cookie_crumbs_are_one_line_and_bind_wherever_the_affinity_cookie_stands() {
    let destinations = [Destination::answering(200, "1"), Destination::answering(200, "2")];
    let affinity = SessionAffinity {
        policy: AffinityPolicy::HashCookie,
        failure_policy: AffinityFailurePolicy::Redistribute,
        key_name: "lz".to_owned(),
        cookie: Default::default(),
    };
    let proxy = setup(&[destinations[0].addr(), destinations[1].addr()])
        .with(|cluster| cluster.session_affinity = Some(affinity))
        .start();
    let key = balance::affinity::key("d2");
    run(async {
        let client = H2::connect(proxy.addr).await;
        let pin = client.get("/").await;
        assert!(pin.value("set-cookie").unwrap().starts_with("lz="), "the first answer pins");
        let request = get("/").header("cookie", "a=1").header("cookie", "b=2").header("cookie", format!("lz={key}"));
        let bound = client.call(request.body(()).unwrap()).await;
        assert_eq!((bound.text().as_str(), bound.value("set-cookie")), ("2", None));
    });
    let seen = destinations[1].requests();
    assert_eq!(seen[0].message.values("cookie"), [format!("a=1; b=2; lz={key}")]);
}

#[test]
fn answers_without_a_body_end_with_their_head_and_surplus_bytes_reach_nobody() {
    let destination = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) => {
            let text = match request.message.target().as_str() {
                "/head" => "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n",
                "/204" => "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
                "/204te" => "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
                "/304" => "HTTP/1.1 304 Not Modified\r\nContent-Length: 1234\r\n\r\n",
                "/empty" => "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                "/surplus" => "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
                _ => "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood",
            };
            vec![Act::Send(text.as_bytes().to_vec())]
        }
    });
    let proxy = setup(&[destination.addr()]).start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        for (method, target, status, length) in [
            ("HEAD", "/head", 200, Some("1234")),
            ("GET", "/204", 204, None),
            ("GET", "/204te", 204, None),
            ("GET", "/304", 304, Some("1234")),
            ("GET", "/empty", 200, Some("0")),
        ] {
            let found = client.call(get(target).method(method).body(()).unwrap()).await;
            assert_eq!((found.status.as_u16(), found.value("content-length")), (status, length), "{target}");
            assert!(found.is_head_alone && found.reset.is_none(), "{target}: {found:?}");
        }
        assert_eq!(destination.connections(), 1);
        assert_eq!(client.get("/surplus").await.status, 204);
        assert_eq!(client.get("/x").await.text(), "good");
        assert_eq!(H2::connect(proxy.addr).await.get("/y").await.text(), "good");
    });
    assert_eq!(destination.connections(), 2);
}

#[test]
fn trailers_reach_the_client_unannounced_and_behind_no_body() {
    let destination = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) => {
            let text = match request.message.target().as_str() {
                "/body" => {
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nGrpc-Status: 0\r\nx-a: 1\r\nx-a: 2\r\n\r\n"
                }
                "/none" => {
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\ngrpc-status: 10\r\ngrpc-message: no\r\n\r\n"
                }
                _ => "HTTP/1.1 200 OK\r\nContent-Length: 0\r\ngrpc-status: 12\r\n\r\n",
            };
            vec![Act::ReadBody, Act::Send(text.as_bytes().to_vec())]
        }
    });
    let proxy = setup(&[destination.addr()]).start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        let body = client.post("/body", "m").await;
        assert_eq!((body.text().as_str(), &body.trailers["grpc-status"]), ("ok", &HeaderValue::from_static("0")));
        assert_eq!(body.trailers.get_all("x-a").iter().count(), 2);
        let none = client.post("/none", "m").await;
        assert_eq!((none.body.len(), &none.trailers["grpc-status"]), (0, &HeaderValue::from_static("10")));
        assert_eq!(&none.trailers["grpc-message"], "no");
        let only = client.post("/only", "m").await;
        assert_eq!((only.value("grpc-status"), only.is_head_alone), (Some("12"), true));
    });
    assert_eq!(destination.connections(), 1, "the connection is whole after trailers");
}

/// A POST with these trailers behind `x`.
async fn with_trailers(client: &H2, trailers: HeaderMap) -> Result<support::http2::Answer, h2::Error> {
    let request = Request::post("http://a.test/").body(()).unwrap();
    let (response, mut send) = client.start(request, false).await;
    send.send_data(Bytes::from_static(b"x"), false).unwrap();
    send.send_trailers(trailers).unwrap();
    answer(response).await
}

#[test]
fn trailers_of_a_request_go_on_and_bad_ones_are_refused() {
    let destination = sending("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = setup(&[destination.addr()]).start();
    let map = |name: &'static str, value: &str| {
        HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())])
    };
    run(async {
        let client = H2::connect(proxy.addr).await;
        assert_eq!(with_trailers(&client, map("x-sum", "7")).await.unwrap().status, 200);
        for name in ["content-length", "host", "authorization", "x-forwarded-for", "transfer_encoding"] {
            let refused = with_trailers(&client, map(name, "1")).await.unwrap();
            assert_eq!(refused.status, 400, "{name}");
            assert!(refused.value("proxy-status").unwrap().contains("forbidden-trailer"), "{name}");
        }
        let long = with_trailers(&client, map("x-long", &"y".repeat(17_000))).await.unwrap();
        assert_eq!(long.status, 400);
        assert_eq!(client.get("/").await.status, 200, "the connection serves on");
    });
    let first = &destination.requests()[0].message;
    assert!(String::from_utf8_lossy(&first.raw_body).ends_with("0\r\nx-sum: 7\r\n\r\n"));
    proxy.log(8);
    assert_eq!(proxy.count(0, OutcomeClass::AppFail) + proxy.count(0, OutcomeClass::ConnFail), 0);
}

#[test]
fn heads_that_contradict_themselves_are_answered_with_400() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()]).start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        for (request, word) in [
            (get("/").header("host", "b.test"), "authority"),
            (get("/").header("x", HeaderValue::from_bytes(b"a ").unwrap()), "field-value"),
            (get("/").header("expect", "magic"), "expectation"),
            (get("/a/../b"), "ambiguous-path"),
        ] {
            let refused = client.call(request.body(()).unwrap()).await;
            let status = if word == "expectation" { 417 } else { 400 };
            assert_eq!(refused.status, status, "{word}");
            assert!(refused.value("proxy-status").unwrap().contains(word), "{refused:?}");
        }
        let connect = Request::connect("a.test:443").body(()).unwrap();
        assert_eq!(client.call(connect).await.status, 501);
        assert_eq!(client.get("/").await.status, 200);
    });
    assert_eq!(destination.requests().len(), 1, "none of them went on");
    assert!(proxy.log(6)[0].contains("\"reason\":\"authority\""));
}

#[test]
fn interim_responses_reach_the_client_and_100_only_who_waits() {
    let destination = sending(
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    );
    let proxy = setup(&[destination.addr()]).start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        let (mut response, _) = client.start(get("/").body(()).unwrap(), true).await;
        let hints = std::future::poll_fn(|context| response.poll_informational(context)).await.unwrap().unwrap();
        assert_eq!((hints.status().as_u16(), &hints.headers()["link"]), (103, &HeaderValue::from_static("x")));
        assert_eq!(answer(response).await.unwrap().text(), "ok");
    });
}

#[test]
fn an_expectation_is_met_by_the_destination_or_after_a_second_by_us() {
    for acts in [
        vec![Act::Send(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()), Act::ReadBody],
        // It knows no expectations: it waits for the body.
        vec![Act::ReadBody],
    ] {
        let destination = Destination::start(move |moment| match moment {
            Moment::Accepted => vec![],
            Moment::Request(_) => {
                let end = Act::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec());
                acts.iter().cloned().chain([end]).collect()
            }
        });
        let proxy = setup(&[destination.addr()]).start();
        run(async {
            let client = H2::connect(proxy.addr).await;
            let request = Request::post("http://a.test/").header("expect", "100-continue").body(()).unwrap();
            let (mut response, mut send) = client.start(request, false).await;
            let interim = std::future::poll_fn(|context| response.poll_informational(context)).await;
            assert_eq!(interim.unwrap().unwrap().status(), 100);
            send.send_data(Bytes::from_static(b"body"), true).unwrap();
            assert_eq!(answer(response).await.unwrap().text(), "ok");
        });
        let request = &destination.requests()[0].message;
        assert_eq!((request.text().as_str(), request.value("expect").as_deref()), ("body", Some("100-continue")));
    }
}

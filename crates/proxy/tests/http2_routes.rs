//! What routes say holds over HTTP/2 as it does over HTTP/1.1: lists, limits, splits, changes of messages, pages, ids.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use http::Request;
use model::config::RequestId;
use model::entry::{ConnectionLimit, RequestLimit};
use model::outcome::OutcomeClass;
use model::page::{ErrorPage, Maintenance, PageStatus};
use model::pattern::PathPattern;
use model::route::{RouteAction, Side, Split, Sticky};
use model::transform::{
    ForwardAction, Forwarded, ForwardedPart, Mode, NodeFormat, NodeName, NodePort, PathText, RequestTransform,
    ResponseTransform, TargetTransform, Transform, When,
};
use support::http2::{Answer, H2, get, run};
use support::{cluster, refusing_setup, route, setup};
use testkit::destination::{Act, Destination, Moment};

/// One GET with these fields, on a connection of its own.
async fn ask(proxy: &support::Proxy, path: &str, fields: &[(&str, &str)]) -> Answer {
    let request = fields.iter().fold(get(path), |request, (name, value)| request.header(*name, *value));
    H2::connect(proxy.addr).await.call(request.body(()).unwrap()).await
}

fn trusting(setup: support::Setup) -> support::Setup {
    setup.listening(|listener| listener.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()])
}

#[test]
fn lists_and_rates_of_a_route_hold_for_the_client_that_a_trusted_proxy_names() {
    let destination = Destination::answering(200, "ok");
    let mut setup = trusting(setup(&[destination.addr()]));
    setup.routes[0].policy.limit_requests = Some(RequestLimit { rate: 0.01, burst: 2, key: Default::default() });
    setup.routes[0].policy.access.deny = vec!["192.0.2.66".parse::<std::net::IpAddr>().unwrap().into()];
    let proxy = setup.start();
    run(async {
        let from = |address: &'static str| [("x-forwarded-for", address)];
        for _ in 0..2 {
            assert_eq!(ask(&proxy, "/", &from("192.0.2.1")).await.status, 200);
        }
        let refused = ask(&proxy, "/", &from("192.0.2.1")).await;
        assert_eq!(refused.status, 429);
        assert!(refused.value("retry-after").unwrap().parse::<u32>().unwrap() > 90);
        let status = refused.value("proxy-status");
        assert_eq!(status, Some("lazaret; error=http_request_denied; details=\"too-many-requests\""));
        assert_eq!(ask(&proxy, "/", &from("192.0.2.2")).await.status, 200);
        assert_eq!(ask(&proxy, "/", &from("192.0.2.66")).await.status, 403);
    });
    assert_eq!(destination.requests().len(), 3);
    assert_eq!(proxy.count(0, OutcomeClass::Ok), 3, "what was refused is charged to nobody");
    assert!(proxy.log(5)[2].contains("\"reason\":\"too-many-requests\""));
}

#[test]
fn streams_count_as_requests_in_flight_until_they_are_over() {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let destination = Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) => {
            if request.message.target() == "/slow" {
                // Bounded: the sender is dropped with the test.
                let _ = released.recv();
            }
            vec![Act::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec())]
        }
    });
    let mut setup = setup(&[destination.addr()]);
    setup.routes[0].policy.limit_connections = Some(ConnectionLimit { per_client: 1 });
    let proxy = setup.start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        let (slow, _send) = client.start(get("/slow").body(()).unwrap(), true).await;
        while destination.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        let refused = client.get("/").await;
        assert_eq!((refused.status.as_u16(), refused.value("retry-after")), (429, Some("1")));
        drop(release);
        assert_eq!(slow.await.unwrap().status(), 200);
        while client.get("/").await.status != 200 {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_cookie_crumb_keeps_a_client_on_its_side_of_a_split() {
    let (blue, green) = (Destination::answering(200, "blue"), Destination::answering(200, "green"));
    let mut setup = setup(&[blue.addr()]);
    setup.clusters.push(cluster("g", &[green.addr()]));
    setup.routes[0].action = RouteAction::Clusters(Split {
        sides: ["c", "g"].map(|id| Side { cluster: id.into(), weight: 1 }).to_vec(),
        sticky: Sticky::Cookie("side".to_owned()),
        force_header: Some("x-side".to_owned()),
        force_cookie: None,
    });
    let proxy = setup.start();
    run(async {
        for _ in 0..6 {
            let first = ask(&proxy, "/", &[]).await;
            let cookie = first.value("set-cookie").unwrap().split(';').next().unwrap();
            for _ in 0..4 {
                let next = ask(&proxy, "/", &[("cookie", "a=1"), ("cookie", cookie)]).await;
                assert_eq!((next.text(), next.value("set-cookie")), (first.text(), None));
            }
        }
        for (side, expected) in [("c", "blue"), ("g", "green")] {
            assert_eq!(ask(&proxy, "/", &[("x-side", side)]).await.text(), expected);
        }
    });
}

#[test]
fn heads_change_both_ways_and_bodies_stay() {
    let destination = Destination::answering(200, "ok");
    let mut setup = setup(&[destination.addr()]);
    setup.routes[0].matcher.path = Some(PathPattern::parse("/items/{id}").unwrap());
    setup.routes[0].policy.transforms = vec![
        Transform::Request(RequestTransform::RouteValue {
            name: "x-item".to_owned(),
            parameter: "id".to_owned(),
            mode: Mode::Set,
        }),
        Transform::Request(RequestTransform::Value {
            name: "host".to_owned(),
            value: "inner.test".to_owned(),
            mode: Mode::Set,
        }),
        Transform::Target(TargetTransform::PathPrefix(PathText::parse("/v2").unwrap())),
        Transform::Target(TargetTransform::Method { from: "PUT".to_owned(), to: "POST".to_owned() }),
        Transform::Target(TargetTransform::QueryRemove("debug".to_owned())),
        Transform::Response(ResponseTransform::Value {
            name: "x-via".to_owned(),
            value: "here".to_owned(),
            mode: Mode::Set,
            when: When::Success,
        }),
    ];
    let proxy = setup.start();
    run(async {
        let request = Request::put("http://a.test/items/a%20b?debug=1&x=1").header("x-item", "forged");
        let client = H2::connect(proxy.addr).await;
        let (response, mut send) = client.start(request.body(()).unwrap(), false).await;
        send.send_data("hello".into(), true).unwrap();
        let answer = support::http2::answer(response).await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.value("x-via"), answer.text().as_str()), (200, Some("here"), "ok"));
    });
    let seen = destination.requests().pop().unwrap().message;
    assert_eq!((seen.method().as_str(), seen.target().as_str()), ("POST", "/v2/items/a%20b?x=1"));
    assert_eq!(seen.values("host"), ["inner.test"]);
    assert_eq!((seen.values("x-item"), seen.text().as_str()), (vec!["a b".to_owned()], "hello"));
}

#[test]
fn no_form_of_a_path_passes_a_denied_route_by_way_of_a_stripped_prefix() {
    let destination = Destination::answering(200, "ok");
    let mut setup = setup(&[destination.addr()]);
    let pattern = |text: &str| Some(PathPattern::parse(text).unwrap());
    setup.routes[0].matcher.path = pattern("/api/{**rest}");
    let strip = TargetTransform::PathRemovePrefix(PathText::parse("/api").unwrap());
    setup.routes[0].policy.transforms = vec![Transform::Target(strip)];
    let mut deny = route("admin", RouteAction::Deny(403));
    deny.matcher.path = pattern("/admin/{**rest}");
    setup.routes.push(deny);
    setup.routes.push(route("rest", RouteAction::Cluster(Some("c".into()))));
    let proxy = setup.start();
    run(async {
        for (target, status) in [
            ("/api/..%2fadmin", 400),
            ("/api/%2e%2e/admin", 400),
            ("/api//../admin", 400),
            ("/api%00", 400),
            ("/%61dmin", 403),
            ("/ADMIN/x", 403),
        ] {
            assert_eq!(ask(&proxy, target, &[]).await.status, status, "{target}");
        }
        assert!(destination.requests().is_empty());
        for (target, seen) in [("/api/x%2Fy?", "/x%2Fy?"), ("/%41PI/a//b", "/a//b"), ("/api", "/")] {
            assert_eq!(ask(&proxy, target, &[]).await.status, 200, "{target}");
            assert_eq!(destination.requests().pop().unwrap().message.target(), seen);
        }
    });
}

#[test]
fn forwarded_names_the_client_and_what_it_asked_for() {
    let destination = Destination::answering(200, "ok");
    let mut setup = setup(&[destination.addr()]);
    let node = NodeFormat { name: NodeName::Ip, port: NodePort::Port };
    setup.routes[0].policy.transforms = vec![Transform::Forwarded(Forwarded {
        parts: vec![ForwardedPart::For(node), ForwardedPart::By(node), ForwardedPart::Proto, ForwardedPart::Host],
        action: ForwardAction::Append,
    })];
    let proxy = setup.start();
    let client_port = run(async {
        let stream = tokio::net::TcpStream::connect(proxy.addr).await.unwrap();
        let port = stream.local_addr().unwrap().port();
        let (send, connection) = h2::client::handshake(stream).await.unwrap();
        let client = H2 { send, driver: tokio::spawn(connection) };
        let request = get("/").header("forwarded", "for=6.6.6.6").header("x-forwarded-for", "6.6.6.6");
        assert_eq!(client.call(request.body(()).unwrap()).await.status, 200);
        port
    });
    let seen = destination.requests().pop().unwrap().message;
    let by = proxy.addr.port();
    let expected = format!("for=\"127.0.0.1:{client_port}\";by=\"127.0.0.1:{by}\";proto=http;host=a.test");
    assert_eq!(seen.values("forwarded"), [expected]);
    assert!(seen.values("x-forwarded-for").is_empty());
}

#[test]
fn an_id_goes_to_both_sides_and_into_the_log() {
    let destination = Destination::answering(200, "ok");
    let mut setup = setup(&[destination.addr()]);
    setup.answers.request_id = RequestId::Header("x-request-id".to_owned());
    let mut closed = route("closed", RouteAction::Deny(403));
    closed.matcher.path = Some(PathPattern::parse("/closed").unwrap());
    setup.routes.push(closed);
    let proxy = setup.start();
    let (id, other) = run(async {
        let passed = ask(&proxy, "/", &[("x-request-id", "mine")]).await;
        let refused = ask(&proxy, "/closed", &[]).await;
        assert_eq!((passed.status.as_u16(), refused.status.as_u16()), (200, 403));
        [passed, refused].map(|answer| answer.value("x-request-id").unwrap().to_owned()).into()
    });
    assert!(id.len() == 32 && other.len() == 32 && id != other, "{id} {other}");
    assert_eq!(destination.requests().pop().unwrap().message.values("x-request-id"), std::slice::from_ref(&id));
    let log = proxy.log(2);
    assert!(log[0].contains(&format!("\"request_id\":\"{id}\"")) && log[1].contains(&other), "{log:?}");
}

#[test]
fn our_own_answers_have_pages_and_those_of_destinations_stay() {
    let page =
        |status, body: &str| ErrorPage { status, content_type: "text/html".to_owned(), body: body.into(), file: None };
    let mut ours = refusing_setup();
    ours.answers.error_pages = vec![page(PageStatus::One(404), "<b>404</b>")];
    ours.routes[0].matcher.path = Some(PathPattern::parse("/x").unwrap());
    ours.routes[0].policy.error_pages = vec![page(PageStatus::One(502), "<b>route</b>")];
    let ours = ours.start();
    let destination = Destination::answering(502, "theirs");
    let mut theirs = setup(&[destination.addr()]);
    theirs.answers.error_pages = vec![page(PageStatus::Class(5), "<b>five</b>")];
    let theirs = theirs.start();
    run(async {
        let answer = ask(&ours, "/x", &[]).await;
        assert_eq!((answer.status.as_u16(), answer.text().as_str()), (502, "<b>route</b>"));
        assert_eq!((answer.value("content-type"), answer.value("content-length")), (Some("text/html"), Some("12")));
        assert!(answer.value("proxy-status").unwrap().contains("connection-refused"));
        assert_eq!(ask(&ours, "/y", &[]).await.text(), "<b>404</b>");
        let head = H2::connect(ours.addr).await.call(get("/y").method("HEAD").body(()).unwrap()).await;
        assert!(head.is_head_alone && head.value("content-length") == Some("10"), "{head:?}");
        assert_eq!(ask(&theirs, "/", &[]).await.text(), "theirs");
    });
}

#[test]
fn a_route_under_maintenance_lets_only_the_named_pass() {
    let destination = Destination::answering(200, "ok");
    let mut setup = trusting(setup(&[destination.addr()]));
    setup.routes[0].policy.maintenance = Some(Maintenance {
        status: 503,
        body: Some("back soon\n".to_owned()),
        retry_after: Some(600),
        allow: vec!["192.0.2.0/24".parse().unwrap()],
    });
    let proxy = setup.start();
    run(async {
        let closed = ask(&proxy, "/", &[]).await;
        assert_eq!((closed.status.as_u16(), closed.text().as_str()), (503, "back soon\n"));
        assert_eq!(closed.value("retry-after"), Some("600"));
        assert!(closed.value("proxy-status").unwrap().contains("details=\"maintenance\""));
        assert_eq!(ask(&proxy, "/", &[("x-forwarded-for", "192.0.2.9")]).await.status, 200);
    });
}

#[test]
fn a_redirect_keeps_scheme_host_path_and_query() {
    let to = "{scheme}://{host}{path}{query}".to_owned();
    let mut setup = setup(&[]);
    setup.routes[0].action = RouteAction::Redirect { to, status: 308 };
    let proxy = setup.start();
    run(async {
        let answer = ask(&proxy, "/a%20b//c?d=e", &[]).await;
        assert_eq!((answer.status.as_u16(), answer.value("location")), (308, Some("http://a.test/a%20b//c?d=e")));
    });
}

//! What a route changes on the wire: transforms, request ids, error pages, maintenance, redirects.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use model::config::RequestId;
use model::page::{ErrorPage, Maintenance, PageStatus};
use model::pattern::PathPattern;
use model::route::RouteAction;
use model::transform::{
    ForwardAction, Forwarded, ForwardedPart, Mode, NodeFormat, NodeName, NodePort, PathText, RequestTransform,
    ResponseTransform, TargetTransform, Transform, When,
};
use support::{refusing_setup, route, setup};
use testkit::destination::Destination;

fn strip(prefix: &str) -> Transform {
    Transform::Target(TargetTransform::PathRemovePrefix(PathText::parse(prefix).unwrap()))
}

#[test]
fn no_form_of_a_path_passes_a_denied_route_by_way_of_a_stripped_prefix() {
    let destination = Destination::answering(200, "ok");
    let mut setup = setup(&[destination.addr()]);
    let pattern = |text: &str| Some(PathPattern::parse(text).unwrap());
    setup.routes[0].matcher.path = pattern("/api/{**rest}");
    setup.routes[0].policy.transforms = vec![strip("/api")];
    let mut deny = route("admin", RouteAction::Deny(403));
    deny.matcher.path = pattern("/admin/{**rest}");
    setup.routes.push(deny);
    setup.routes.push(route("rest", RouteAction::Cluster(Some("c".into()))));
    let proxy = setup.start();
    let ask = |target: &str| {
        let before = destination.requests().len();
        let status = proxy.client().get(target).status();
        (status, destination.requests().get(before).map(|request| request.message.target()))
    };
    for (target, status) in [
        ("/api/..%2fadmin", 400),
        ("/api/%2e%2e/admin", 400),
        ("/api//../admin", 400),
        ("/api\\..\\admin", 400),
        ("/api%00", 400),
        ("/%zz", 400),
        ("/%61dmin", 403),
        ("/ADMIN/x", 403),
    ] {
        assert_eq!(ask(target), (status, None), "{target}");
    }
    for (target, seen) in [
        ("/api/x%2Fy%20z?", "/x%2Fy%20z?"),
        ("/%41PI/a//b", "/a//b"),
        ("/api", "/"),
        ("/api//admin", "//admin"),
        ("/other%2F..x", "/other%2F..x"),
    ] {
        assert_eq!(ask(target), (200, Some(seen.to_owned())), "{target}");
    }
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
    let mut client = proxy.client();
    client.send("PUT /items/a%20b?debug=1&x=1 HTTP/1.1\r\nHost: a\r\nX-Item: forged\r\nContent-Length: 5\r\n\r\nhello");
    let response = client.response();
    assert_eq!(
        (response.status(), response.value("x-via").as_deref(), response.text().as_str()),
        (200, Some("here"), "ok")
    );
    let seen = destination.requests().pop().unwrap().message;
    assert_eq!((seen.method().as_str(), seen.target().as_str()), ("POST", "/items/a%20b?x=1"));
    assert_eq!((seen.values("x-item"), seen.text().as_str()), (vec!["a b".to_owned()], "hello"));
}

#[test]
fn forwarded_names_the_client_in_brackets_and_quotes() {
    let destination = Destination::answering(200, "ok");
    let mut setup = setup(&[destination.addr()]).listening(|listener| listener.address = "[::1]:0".parse().unwrap());
    let node = NodeFormat { name: NodeName::Ip, port: NodePort::Port };
    setup.routes[0].policy.transforms = vec![Transform::Forwarded(Forwarded {
        parts: vec![ForwardedPart::For(node), ForwardedPart::Proto],
        action: ForwardAction::Append,
    })];
    let proxy = setup.start();
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nForwarded: for=6.6.6.6\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n");
    assert_eq!(client.response().status(), 200);
    let seen = destination.requests().pop().unwrap().message;
    let port = client.local_addr().port();
    assert_eq!(seen.values("forwarded"), [format!("for=\"[::1]:{port}\";proto=http")]);
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
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\n\r\n");
    let id = client.response().value("x-request-id").unwrap();
    assert_eq!(id.len(), 32);
    assert_eq!(destination.requests().pop().unwrap().message.values("x-request-id"), std::slice::from_ref(&id));
    let refused = client.get("/closed");
    let other = refused.value("x-request-id").unwrap();
    assert!(refused.status() == 403 && other != id && other.len() == 32);
    let log = proxy.log(2);
    assert!(log[0].contains(&format!("\"request_id\":\"{id}\"")) && log[1].contains(&other), "{log:?}");
}

#[test]
fn our_own_answers_have_pages_and_those_of_destinations_stay() {
    let destination = Destination::answering(502, "theirs");
    let page =
        |status, body: &str| ErrorPage { status, content_type: "text/html".to_owned(), body: body.into(), file: None };
    let mut ours = refusing_setup();
    ours.answers.error_pages =
        vec![page(PageStatus::Class(5), "<b>five</b>"), page(PageStatus::One(404), "<b>404</b>")];
    ours.routes[0].matcher.path = Some(PathPattern::parse("/x").unwrap());
    ours.routes[0].policy.error_pages = vec![page(PageStatus::One(502), "<b>route</b>")];
    let pages = ours.answers.error_pages.clone();
    let proxy = ours.start();
    let answer = proxy.client().get("/x");
    assert_eq!((answer.status(), answer.text().as_str()), (502, "<b>route</b>"));
    assert_eq!(answer.value("content-type").as_deref(), Some("text/html"));
    assert!(answer.value("proxy-status").unwrap().contains("connection-refused"));
    assert_eq!(proxy.client().get("/y").text(), "<b>404</b>");
    let mut theirs = setup(&[destination.addr()]);
    theirs.answers.error_pages = pages;
    assert_eq!(theirs.start().client().get("/").text(), "theirs");
}

#[test]
fn a_route_under_maintenance_lets_only_the_named_pass() {
    let destination = Destination::answering(200, "ok");
    let mut setup = setup(&[destination.addr()])
        .listening(|listener| listener.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()]);
    setup.routes[0].policy.maintenance = Some(Maintenance {
        status: 503,
        body: Some("back soon\n".to_owned()),
        retry_after: Some(600),
        allow: vec!["192.0.2.0/24".parse().unwrap()],
    });
    let proxy = setup.start();
    let closed = proxy.client().get("/");
    assert_eq!((closed.status(), closed.text().as_str()), (503, "back soon\n"));
    assert_eq!(closed.value("retry-after").as_deref(), Some("600"));
    assert!(closed.value("proxy-status").unwrap().contains("details=\"maintenance\""));
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.9\r\n\r\n");
    assert_eq!(client.response().status(), 200);
}

#[test]
fn a_redirect_keeps_host_path_and_query() {
    let to = "https://{host}{path}{query}".to_owned();
    let mut setup = setup(&[]);
    setup.routes[0].action = RouteAction::Redirect { to, status: 308 };
    let proxy = setup.start();
    let mut client = proxy.client();
    client.send("GET /a%20b//c?d=e HTTP/1.1\r\nHost: A.test:8080\r\n\r\n");
    let response = client.response();
    assert_eq!((response.status(), response.value("location").as_deref()), (308, Some("https://a.test/a%20b//c?d=e")));
}

#[test]
fn a_request_whose_head_is_refused_has_an_id_and_a_page_too() {
    let mut setup = setup(&[]);
    setup.answers.request_id = RequestId::Header("x-request-id".to_owned());
    let page = ErrorPage {
        status: PageStatus::Class(4),
        content_type: "text/html".to_owned(),
        body: "<b>4</b>".into(),
        file: None,
    };
    setup.answers.error_pages = vec![page];
    let proxy = setup.start();
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    let refused = client.response();
    let id = refused.value("x-request-id").unwrap();
    assert_eq!((refused.status(), refused.text().as_str(), id.len()), (400, "<b>4</b>", 32));
    let other = support::http2::run(async {
        let client = support::http2::H2::connect(proxy.addr).await;
        let request = support::http2::get("/").header("host", "b.test").body(()).unwrap();
        let refused = client.call(request).await;
        assert_eq!((refused.status.as_u16(), refused.text().as_str()), (400, "<b>4</b>"));
        refused.value("x-request-id").unwrap().to_owned()
    });
    let log = proxy.log(2);
    assert!(log[0].contains(&format!("\"request_id\":\"{id}\"")) && log[1].contains(&other), "{log:?}");
}

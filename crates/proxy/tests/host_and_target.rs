//! Routing and forwarding look at one and the same host: the target's, else Host (RFC 9112 3.2.2).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use model::cluster::UpstreamHost;
use model::listener::SelfCheck;
use model::route::RouteAction;
use support::{cluster, host_route, route, setup};
use testkit::destination::Destination;

#[test]
fn an_absolute_target_is_routed_and_forwarded_by_its_own_host() {
    let (a, b) = (Destination::answering(200, "a"), Destination::answering(200, "b"));
    let mut setup = setup(&[a.addr()]);
    setup.clusters = vec![cluster("a", &[a.addr()]), cluster("b", &[b.addr()])];
    setup.clusters.iter_mut().for_each(|cluster| cluster.host = UpstreamHost::Original);
    setup.routes = vec![host_route("a.test", "a"), host_route("b.test", "b")];
    let proxy = setup.start();
    for target in ["http://b.test/x", "http://B.TEST/x", "http://b.test:80/x"] {
        let mut client = proxy.client();
        client.send(format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n"));
        assert_eq!(client.response().text(), "b", "{target}");
        let authority = target.trim_start_matches("http://").trim_end_matches("/x");
        let seen = &b.requests().pop().unwrap().message;
        assert_eq!(seen.target(), "/x");
        assert_eq!(seen.values("host"), [authority]);
        assert_eq!(seen.values("x-forwarded-host"), [authority]);
    }
    for (head, status) in [
        ("GET https://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
        ("GET http://u@b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
        ("GET http:///x HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n", 400),
        ("CONNECT b.test:80 HTTP/1.1\r\nHost: b.test:80\r\n\r\n", 501),
        ("GET / HTTP/1.1\r\nHost: c.test\r\n\r\n", 404),
    ] {
        let mut client = proxy.client();
        client.send(head);
        let response = client.response();
        assert_eq!(response.status(), status, "{head}");
        assert!(response.value("proxy-status").unwrap().starts_with("lazaret; error="), "{head}");
    }
    assert_eq!((a.requests().len(), b.requests().len()), (0, 3));
}

#[test]
fn options_without_a_path_is_forwarded_as_an_asterisk() {
    let destination = Destination::answering(204, "");
    let proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    client.send("OPTIONS http://a.test HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(client.response().status(), 204);
    assert_eq!(destination.requests().pop().unwrap().message.first_line(), "OPTIONS * HTTP/1.1");
}

#[test]
fn the_destinations_own_host_and_path_are_used_by_default() {
    let destination = Destination::answering(200, "");
    let proxy =
        setup(&[destination.addr()]).with(|cluster| cluster.destinations[0].address.path = "/base/".to_owned()).start();
    assert_eq!(proxy.client().get("/x?y=1").status(), 200);
    let seen = destination.requests().pop().unwrap().message;
    assert_eq!(seen.target(), "/base/x?y=1");
    assert_eq!(seen.values("host"), [destination.addr().to_string()]);
    assert_eq!(seen.values("x-forwarded-host"), ["lazaret.test"]);
    assert_eq!(seen.values("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(seen.values("x-forwarded-proto"), ["http"]);
}

#[test]
fn routes_answer_redirect_and_deny_by_themselves() {
    let mut setup = setup(&[testkit::destination::refusing()]);
    let path = |text: &str| Some(model::pattern::PathPattern::parse(text).unwrap());
    let mut hello = route("hello", RouteAction::Respond { status: 200, body: "hello\n".to_owned() });
    hello.matcher.path = path("/hello");
    let mut away = route("away", RouteAction::Redirect { to: "https://b.test/".to_owned(), status: 308 });
    away.matcher.path = path("/away");
    let mut no = route("no", RouteAction::Deny(403));
    no.matcher.path = path("/no");
    let mut post = route("post", RouteAction::Respond { status: 200, body: String::new() });
    post.matcher.path = path("/post");
    post.matcher.methods = vec!["POST".to_owned()];
    setup.routes = vec![hello, away, no, post];
    let proxy = setup.start();
    let mut client = proxy.client();
    assert_eq!(client.get("/hello").text(), "hello\n");
    let response = client.get("/away");
    assert_eq!((response.status(), response.value("location").as_deref()), (308, Some("https://b.test/")));
    assert_eq!(client.get("/no").status(), 403);
    let response = client.get("/post");
    assert_eq!((response.status(), response.value("allow").as_deref()), (405, Some("POST")));
    assert_eq!(client.get("/none").status(), 404);
    assert_eq!(client.get("/a/../b").status(), 400);
}

#[test]
fn the_self_check_is_answered_where_it_is_on_and_nowhere_else() {
    let destination = Destination::answering(200, "forwarded");
    let on = setup(&[destination.addr()]).listening(|listener| listener.self_check = SelfCheck::On).start();
    let mut client = on.client();
    assert_eq!(client.get("/.lazaret/self").text(), "{\"instance\":\"test-instance\"}\n");
    assert_eq!(client.get("/other").text(), "forwarded");
    let off = setup(&[destination.addr()]).start();
    assert_eq!(off.client().get("/.lazaret/self").text(), "forwarded");
}

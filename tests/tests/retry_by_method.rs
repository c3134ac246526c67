//! A request that a destination has read and then reset is repeated elsewhere only when its method allows it; one that
//! was never sent is repeated whatever its method; and the access log lists every attempt. (openresty/openresty #200)

use std::net::SocketAddr;

use end_to_end::control::attempts;
use end_to_end::process::Lazaret;
use testkit::client::Client;
use testkit::destination::{Act, Destination, Moment, refusing};
use testkit::message::Message;

const METHODS: [&str; 5] = ["GET", "PUT", "DELETE", "POST", "PATCH"];

#[test]
fn a_request_that_was_read_and_reset_is_repeated_only_when_its_method_allows() {
    let (resetting, good) = (resetting(), Destination::answering(200, "b"));
    let lazaret = start(resetting.addr(), good.addr());
    for method in METHODS {
        let path = format!("/plain/{method}");
        let response = send(&lazaret, method, &path);
        let line = lazaret.log_line(&path);
        let got = good.requests_to(&path);
        if matches!(method, "POST" | "PATCH") {
            assert_eq!(response.status(), 502, "{method}: {line}");
            let proxy_status = response.value("proxy-status").unwrap_or_default();
            assert!(proxy_status.contains("error=connection_terminated"), "{method}: {proxy_status}");
            assert_eq!(got.len(), 0, "{method} came to a second destination");
            assert_eq!(attempts(&line), ["a:reset"], "{line}");
            assert_eq!(line["retry_denied"], "method", "{line}");
        } else {
            assert_eq!((response.status(), response.text().as_str()), (200, "b"), "{method}: {line}");
            assert_eq!(got.len(), 1, "{method}");
            assert_eq!(got[0].message.text(), body(method), "{method}: the body came whole the second time, too");
            assert_eq!(attempts(&line), ["a:reset", "b:ok"], "{line}");
            assert_eq!(line["retry_denied"], serde_json::Value::Null, "{line}");
        }
        let first = &line["attempts"][0];
        assert!(first["status"].is_null() && first["ms"].as_f64().is_some_and(|ms| ms >= 0.0), "{line}");
        assert_eq!(resetting.requests_to(&path).len(), 1, "{method} was sent twice to the one that resets");
    }
}

#[test]
fn every_method_is_repeated_where_the_configuration_says_so() {
    let (resetting, good) = (resetting(), Destination::answering(200, "b"));
    let lazaret = start(resetting.addr(), good.addr());
    for method in METHODS {
        let path = format!("/open/{method}");
        let response = send(&lazaret, method, &path);
        let line = lazaret.log_line(&path);
        assert_eq!((response.status(), response.text().as_str()), (200, "b"), "{method}: {line}");
        assert_eq!(good.requests_to(&path)[0].message.text(), body(method), "{method}");
        assert_eq!(attempts(&line), ["a:reset", "b:ok"], "{line}");
    }
}

#[test]
fn a_request_that_was_never_sent_is_repeated_whatever_its_method() {
    let good = Destination::answering(200, "b");
    let lazaret = start(refusing(), good.addr());
    for method in METHODS {
        let path = format!("/plain/{method}");
        let response = send(&lazaret, method, &path);
        let line = lazaret.log_line(&path);
        assert_eq!((response.status(), response.text().as_str()), (200, "b"), "{method}: {line}");
        assert_eq!(good.requests_to(&path)[0].message.text(), body(method), "{method}");
        assert_eq!(attempts(&line), ["a:refused", "b:ok"], "{line}");
        let statuses: Vec<_> = line["attempts"]
            .as_array()
            .map(|all| all.iter().map(|a| a["status"].as_u64()).collect())
            .unwrap_or_default();
        assert_eq!(statuses, [None, Some(200)], "{line}");
    }
}

/// Reads the whole request, then resets.
fn resetting() -> Destination {
    Destination::start(|moment| match moment {
        Moment::Accepted => Vec::new(),
        Moment::Request(_) => vec![Act::ReadBody, Act::Reset],
    })
}

/// A cluster for each method, so that no method uses up another's retry budget; `a` is always the first.
fn start(a: SocketAddr, b: SocketAddr) -> Lazaret {
    let (mut routes, mut clusters) = (String::new(), String::new());
    for (variant, open) in [("plain", false), ("open", true)] {
        for method in METHODS {
            let id = format!("{variant}-{method}");
            routes += &format!("  {id}: {{match: {{path: \"/{variant}/{method}\"}}, cluster: {id}}}\n");
            clusters += &format!(
                "  {id}:\n    load_balancing: FirstAlphabetical\n    retry: {{conditions: [error, timeout, http_502], attempts: 2, \
                 non_idempotent: {open}}}\n    destinations: {{a: {{address: \"http://{a}/\"}}, b: {{address: \
                 \"http://{b}/\"}}}}\n"
            );
        }
    }
    Lazaret::start(&format!("routes:\n{routes}clusters:\n{clusters}"))
}

fn send(lazaret: &Lazaret, method: &str, path: &str) -> Message {
    let body = body(method);
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let mut client = Client::connect(lazaret.proxy);
    client.send(format!("{method} {path} HTTP/1.1\r\nHost: a.test\r\n{length}\r\n{body}"));
    client.response()
}

fn body(method: &str) -> &'static str {
    match method {
        "POST" | "PUT" | "PATCH" => "hello",
        _ => "",
    }
}

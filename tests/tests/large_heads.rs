//! Heads of every size, of requests and of responses, over HTTP/1.1 and HTTP/2: up to the documented limits they pass
//! unchanged, beyond them each is refused by its own name and nobody is blamed. (GSA/api.data.gov #461, phusion/passenger
//! #702, authelia/authelia #2331, sozu-proxy/sozu #35; RFC 6585 5, RFC 9110 15.5.15, RFC 9113 10.5.1)

use end_to_end::clients::http2;
use end_to_end::process::Lazaret;
use testkit::client::{Client, End};
use testkit::destination::{Act, Destination, Moment, answer};

const REQUEST_LINE: usize = 8 << 10;
const REQUEST_HEADER: usize = 32 << 10;
const REQUEST_FIELDS: usize = 100;
const RESPONSE_HEADER: usize = 64 << 10;
const RESPONSE_FIELDS: usize = 256;

fn start(destination: &Destination) -> Lazaret {
    Lazaret::start(&format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    health_check: {{passive: \
         {{policies: [{{name: MaxFails, max_fails: 1, fail_timeout: 1m}}]}}}}\n    destinations: {{one: {{address: \
         \"{}\"}}}}\n",
        destination.url()
    ))
}

/// HEADER-05
#[test]
fn request_heads_of_every_size_pass_unchanged_or_are_refused_by_name_and_closed_in_order() {
    let destination = Destination::answering(200, "ok");
    let lazaret = start(&destination);
    let ask = |head: String| {
        let before = destination.requests().len();
        let mut client = Client::connect(lazaret.proxy);
        // Who is refused in the middle may find the connection closed for writing.
        let _ = client.try_send(&head);
        let response = client.response();
        let why = response.value("proxy-status").unwrap_or_default();
        if response.status() != 200 {
            assert_eq!(client.rest().1, End::Closed, "{why}");
            assert_eq!(destination.requests().len(), before, "{why}");
        }
        (response.status(), why)
    };
    let line = |length: usize| format!("GET /{} HTTP/1.1\r\nHost: a.test\r\n\r\n", "x".repeat(length - 14));
    let of_line = [1 << 10, REQUEST_LINE, REQUEST_LINE + 1, 64 << 10, 1 << 20];
    for length in of_line {
        let (status, why) = ask(line(length));
        assert_eq!(status, if length <= REQUEST_LINE { 200 } else { 414 }, "{length}: {why}");
        assert!(status == 200 || why.contains("request-line-too-long"), "{length}: {why}");
    }
    let field = |length: usize| {
        let rest = "Host: a.test\r\nCookie: \r\n\r\n".len();
        format!("GET / HTTP/1.1\r\nHost: a.test\r\nCookie: {}\r\n\r\n", "c".repeat(length - rest))
    };
    for length in [1 << 10, REQUEST_HEADER - 1, REQUEST_HEADER, REQUEST_HEADER + 1, 64 << 10, 256 << 10, 1 << 20] {
        let (status, why) = ask(field(length));
        assert_eq!(status, if length <= REQUEST_HEADER { 200 } else { 431 }, "{length}: {why}");
        assert!(status == 200 || why.contains("header-too-large"), "{length}: {why}");
        if status == 200 {
            let cookie = destination.requests().pop().expect("it came").message.value("cookie").unwrap_or_default();
            assert_eq!(cookie.len(), length - "Host: a.test\r\nCookie: \r\n\r\n".len(), "it passes unchanged");
        }
    }
    let fields = |count: usize| {
        let lines: String = (1..count).map(|number| format!("X-{number}: 1\r\n")).collect();
        format!("GET / HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n")
    };
    for count in [10, REQUEST_FIELDS, REQUEST_FIELDS + 1, 500, 2_000] {
        let (status, why) = ask(fields(count));
        assert_eq!(status, if count <= REQUEST_FIELDS { 200 } else { 431 }, "{count}: {why}");
        assert!(status == 200 || why.contains("too-many-fields"), "{count}: {why}");
        if status == 200 {
            let message = destination.requests().pop().expect("it came").message;
            assert!((1..count).all(|number| message.value(&format!("x-{number}")).is_some()), "{count} fields pass");
        }
    }
    let refused = |reason: &str| lazaret.access_log().iter().filter(|line| line["reason"] == reason).count();
    for (reason, count) in [("request-line-too-long", 3), ("header-too-large", 4), ("too-many-fields", 3)] {
        lazaret.wait_until(&format!("the log says {reason}"), || refused(reason) == count);
    }
}

/// HEADER-05
#[test]
fn request_heads_over_http2_cost_their_stream_or_at_the_worst_their_connection() {
    let destination = Destination::answering(200, "ok");
    let lazaret = start(&destination);
    http2::run(async {
        let client = http2::connect(lazaret.proxy).await;
        let cookie = |length: usize| vec![("cookie".to_owned(), "c".repeat(length))];
        let many = |count: usize| (0..count).map(|n| (format!("x-{n}"), "1".to_owned())).collect::<Vec<_>>();
        let fits = REQUEST_HEADER - "Host: a.test\r\ncookie: \r\n\r\n".len();
        for (fields, status) in [
            (cookie(1 << 10), 200),
            (cookie(fits), 200),
            (cookie(fits + 1), 431),
            (many(10), 200),
            (many(REQUEST_FIELDS - 1), 200),
            (many(REQUEST_FIELDS), 431),
            (many(500), 431),
        ] {
            let size: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
            let found = http2::get(&client.requests, "/", &fields).await.expect("the connection serves on");
            assert_eq!(found.status, status, "{} fields, {size} bytes: {}", fields.len(), found.why);
        }
        // Far beyond what SETTINGS_MAX_HEADER_LIST_SIZE says.
        for fields in [cookie(256 << 10), cookie(1 << 20), many(2_000)] {
            let client = http2::connect(lazaret.proxy).await;
            match http2::get(&client.requests, "/", &fields).await {
                Ok(found) => assert_eq!(found.status, 431, "{}", found.why),
                Err(error) => assert!(error.is_go_away() || error.is_reset() || error.is_io(), "{error}"),
            }
        }
        assert_eq!(http2::get(&client.requests, "/", &[]).await.expect("it serves on").status, 200);
    });
    assert_eq!(destination.requests().len(), 5, "nothing that was refused came through");
}

/// HEADER-05
#[test]
fn response_heads_of_every_size_pass_unchanged_or_are_a_502_of_their_own_that_is_held_against_nobody() {
    let destination = Destination::start(|moment| match moment {
        Moment::Accepted => Vec::new(),
        Moment::Request(request) => {
            let target = request.message.target();
            let number = |prefix: &str| target.strip_prefix(prefix).and_then(|rest| rest.parse::<usize>().ok());
            let head = if let Some(length) = number("/bytes/") {
                let rest = "Content-Length: 0\r\nSet-Cookie: \r\n\r\n".len();
                format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nSet-Cookie: {}\r\n\r\n", "s".repeat(length - rest))
            } else if let Some(count) = number("/fields/") {
                let lines: String = (1..count).map(|number| format!("X-{number}: 1\r\n")).collect();
                format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{lines}\r\n")
            } else {
                return answer(404, "");
            };
            vec![Act::Send(head.into_bytes())]
        }
    });
    let lazaret = start(&destination);
    let sizes = [1 << 10, RESPONSE_HEADER - 1, RESPONSE_HEADER, RESPONSE_HEADER + 1, 256 << 10, 1 << 20];
    let sizes = sizes.map(|length| (format!("/bytes/{length}"), length <= RESPONSE_HEADER));
    let counts = [10, RESPONSE_FIELDS, RESPONSE_FIELDS + 1, 2_000];
    let counts = counts.map(|count| (format!("/fields/{count}"), count <= RESPONSE_FIELDS));
    let mut refused = 0;
    for (path, passes) in sizes.into_iter().chain(counts) {
        let response = Client::connect(lazaret.proxy).get(&path);
        assert_eq!(response.status(), if passes { 200 } else { 502 }, "{path}");
        if passes && path.starts_with("/bytes/") {
            let cookie = response.value("set-cookie").unwrap_or_default();
            assert!(path.ends_with(&(cookie.len() + "Content-Length: 0\r\nSet-Cookie: \r\n\r\n".len()).to_string()));
        }
        let over_http2 = http2::run(async {
            let client = http2::connect(lazaret.proxy).await;
            http2::get(&client.requests, &path, &[]).await.expect("an answer")
        });
        assert_eq!(over_http2.status, if passes { 200 } else { 502 }, "{path}: {}", over_http2.why);
        if !passes {
            refused += 2;
            assert!(over_http2.why.contains("response-head-too-large"), "{path}: {}", over_http2.why);
            assert_eq!(lazaret.log_line(&path)["reason"], "response-head-too-large", "{path}");
        }
    }
    assert_eq!(lazaret.metric("lazaret_attempts_total", &["outcome=\"neutral\""]), f64::from(refused));
    assert_ne!(lazaret.health("app", "one").split('/').next_back(), Some("unhealthy"), "it is held against nobody");
}

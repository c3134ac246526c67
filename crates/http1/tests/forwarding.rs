//! What goes on to the next hop, byte for byte.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use http1::connection::{Persistence, Version};
use http1::forward::{self, Expectation, RequestRewrite, ResponseRewrite, Trust};
use http1::limits::HeadLimits;
use http1::request::{Parsed, RequestHead};
use http1::response::{RequestKind, ResponseHead};

const LIMITS: HeadLimits = HeadLimits { line: 8192, bytes: 32768, fields: 100 };

const REWRITE: RequestRewrite<'_> = RequestRewrite {
    prefix: "/",
    host: "d1:81",
    peer: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)),
    client: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)),
    proto: "http",
    trust: Trust::Untrusted,
    expectation: Expectation::Drop,
    attempt: None,
    time_left: None,
    changes: None,
};

fn forwarded(text: &str, rewrite: RequestRewrite<'_>) -> String {
    let mut head = RequestHead::default();
    assert_eq!(head.parse(text.as_bytes(), &LIMITS), Ok(Parsed::Complete));
    let mut out = Vec::new();
    forward::request(&mut out, &head.view(text.as_bytes()), &rewrite);
    String::from_utf8(out).unwrap()
}

fn answered(text: &str, kind: RequestKind, version: Version, persistence: Persistence) -> String {
    let mut head = ResponseHead::default();
    assert_eq!(head.parse(text.as_bytes(), &HeadLimits::RESPONSE, kind), Ok(Parsed::Complete));
    let mut out = Vec::new();
    let rewrite = ResponseRewrite { version, persistence, cookies: &[], date: "now", changes: None };
    forward::response(&mut out, &head.view(text.as_bytes()), &rewrite);
    String::from_utf8(out).unwrap()
}

#[test]
fn hop_by_hop_and_nominated_fields_end_here() {
    let text = "GET http://b.test/x?y HTTP/1.1\r\nHost: a.test\r\n\
        Connection: close, X-Foo, X-Forwarded-For, Host, Content-Length, keep-alive\r\nX-Foo: 1\r\nx-foo: 2\r\n\
        X-Bar: 3\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\nTE: gzip\r\nProxy-Authorization: x\r\nProxy: x\r\n\
        Upgrade: h2c\r\nHTTP2-Settings: x\r\nForwarded: for=x\r\nX-Forwarded-For: 1.1.1.1\r\n\
        X-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(
        forwarded(text, REWRITE),
        "GET /x?y HTTP/1.1\r\nHost: d1:81\r\nX-Bar: 3\r\nContent-Length: 0\r\nX-Forwarded-For: 192.0.2.7\r\n\
         X-Forwarded-Proto: http\r\nX-Forwarded-Host: b.test\r\n\r\n"
    );
}

#[test]
fn a_trusted_proxy_is_believed_and_extended() {
    let text = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.1.1.1, 2.2.2.2\r\nX-Forwarded-For: 3.3.3.3\r\n\
        X-Forwarded-Proto: https\r\nX-Forwarded-Host: c.test\r\n\r\n";
    let out = forwarded(text, RequestRewrite { trust: Trust::Trusted, ..REWRITE });
    assert!(out.contains("X-Forwarded-For: 1.1.1.1, 2.2.2.2, 3.3.3.3, 192.0.2.7\r\n"), "{out}");
    assert!(out.contains("X-Forwarded-Proto: https\r\n") && !out.contains("X-Forwarded-Proto: http\r\n"), "{out}");
    assert!(out.contains("X-Forwarded-Host: c.test\r\n") && !out.contains("X-Forwarded-Host: a\r\n"), "{out}");
}

#[test]
fn the_client_that_a_trusted_proxy_names_by_forwarded_is_not_lost() {
    let text = "GET / HTTP/1.1\r\nHost: a\r\nForwarded: for=1.1.1.1;proto=https\r\n\r\n";
    let rewrite = RequestRewrite { client: IpAddr::V4(Ipv4Addr::new(1, 1, 1, 1)), ..REWRITE };
    for (trust, expected) in [
        (Trust::Trusted, "X-Forwarded-For: 1.1.1.1, 192.0.2.7\r\n"),
        (Trust::Untrusted, "X-Forwarded-For: 192.0.2.7\r\n"),
    ] {
        let out = forwarded(text, RequestRewrite { trust, ..rewrite });
        assert!(out.contains(expected) && !out.contains("Forwarded: for"), "{out}");
    }
}

#[test]
fn the_path_prefix_of_the_destination_comes_first() {
    for (prefix, target, sent) in [
        ("/", "/x", "/x"),
        ("/base", "/x?q=1", "/base/x?q=1"),
        ("/base/", "/x", "/base/x"),
        ("/base/", "//x", "/base//x"),
        ("/", "http://a.test", "/"),
    ] {
        let out = forwarded(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"), RequestRewrite { prefix, ..REWRITE });
        assert!(out.starts_with(&format!("GET {sent} HTTP/1.1\r\n")), "{out}");
    }
    let out = forwarded("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", RequestRewrite { prefix: "/base", ..REWRITE });
    assert!(out.starts_with("OPTIONS * HTTP/1.1\r\n"), "{out}");
}

#[test]
fn exactly_one_clean_framing_goes_out() {
    for (fields, sent) in [
        ("Content-Length: 005\r\nContent-Length: 5\r\n", "Content-Length: 5\r\n"),
        ("Transfer-Encoding:  CHUNKED \r\n", "Transfer-Encoding: chunked\r\n"),
    ] {
        let out = forwarded(&format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"), REWRITE);
        assert_eq!(out.matches(sent).count(), 1, "{out}");
        assert_eq!(out.to_lowercase().matches("content-length").count() + out.matches("chunked").count(), 1, "{out}");
    }
}

#[test]
fn expectations_and_trailers_are_said_anew() {
    let text = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\nTE: trailers, gzip\r\n\r\n";
    assert!(!forwarded(text, REWRITE).contains("Expect"));
    let out = forwarded(text, RequestRewrite { expectation: Expectation::Forward, ..REWRITE });
    assert!(out.contains("Expect: 100-continue\r\n") && out.contains("TE: trailers\r\nConnection: TE\r\n"), "{out}");
}

#[test]
fn answers_lose_what_belongs_to_the_other_connection() {
    let text = "HTTP/1.1 200 Fein\r\nConnection: X-Bar, keep-alive\r\nX-Bar: 1\r\nKeep-Alive: timeout=5\r\nAlt-Svc: h3\r\n\
        Upgrade: h2c\r\nProxy-Authenticate: x\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nDate: now\r\nContent-Length: 3\r\n\r\n";
    assert_eq!(
        answered(text, RequestKind::Other, Version::Http11, Persistence::KeepAlive),
        "HTTP/1.1 200 Fein\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nDate: now\r\nContent-Length: 3\r\n\r\n"
    );
}

#[test]
fn answers_say_what_becomes_of_the_connection() {
    let text = "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n";
    for (version, persistence, line) in [
        (Version::Http11, Persistence::KeepAlive, ""),
        (Version::Http11, Persistence::Close, "Connection: close\r\n"),
        (Version::Http10, Persistence::KeepAlive, "Connection: keep-alive\r\n"),
        (Version::Http10, Persistence::Close, "Connection: close\r\n"),
    ] {
        assert_eq!(
            answered(text, RequestKind::Other, version, persistence),
            format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nDate: now\r\n{line}\r\n")
        );
    }
}

#[test]
fn bodyless_answers_keep_or_lose_their_length() {
    let framing = |head: &str, kind| {
        let out = answered(head, kind, Version::Http11, Persistence::KeepAlive);
        out.split_once("Date: now\r\n").unwrap().1.to_owned()
    };
    assert_eq!(framing("HTTP/1.1 200\r\nContent-Length: 9\r\n\r\n", RequestKind::Head), "Content-Length: 9\r\n\r\n");
    assert_eq!(framing("HTTP/1.1 304\r\nContent-Length: 9\r\n\r\n", RequestKind::Other), "Content-Length: 9\r\n\r\n");
    assert_eq!(framing("HTTP/1.1 204\r\nContent-Length: 9\r\n\r\n", RequestKind::Other), "\r\n");
    assert_eq!(framing("HTTP/1.1 204\r\nTransfer-Encoding: chunked\r\n\r\n", RequestKind::Other), "\r\n");
}

#[test]
fn chunks_are_announced_to_http_1_1_only() {
    let text = "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n";
    let out = |version| answered(text, RequestKind::Other, version, Persistence::Close);
    assert!(out(Version::Http11).contains("Transfer-Encoding: chunked\r\n"));
    assert!(!out(Version::Http10).contains("Transfer-Encoding"));
}

#[test]
fn a_name_with_underscores_does_not_pass_for_one_that_means_something() {
    let text = "GET / HTTP/1.1\r\nHost: a\r\nX_Forwarded_For: 1.1.1.1\r\nx-forwarded_proto: https\r\n\
        Content_Length: 9\r\nTransfer_Encoding: chunked\r\nX_Other: kept\r\n\r\n";
    assert_eq!(
        forwarded(text, REWRITE),
        "GET / HTTP/1.1\r\nHost: d1:81\r\nX_Other: kept\r\nX-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\n\
         X-Forwarded-Host: a\r\n\r\n"
    );
}

#[test]
fn a_response_without_a_date_gets_one_and_an_interim_one_does_not() {
    let out = |text| answered(text, RequestKind::Other, Version::Http11, Persistence::KeepAlive);
    assert_eq!(out("HTTP/1.1 304 X\r\n\r\n"), "HTTP/1.1 304 X\r\nDate: now\r\n\r\n");
    assert_eq!(out("HTTP/1.1 304 X\r\ndate: then\r\n\r\n"), "HTTP/1.1 304 X\r\ndate: then\r\n\r\n");
    assert_eq!(out("HTTP/1.1 304 X\r\nConnection: date\r\nDate: then\r\n\r\n"), "HTTP/1.1 304 X\r\nDate: now\r\n\r\n");
    assert_eq!(out("HTTP/1.1 103 X\r\n\r\n"), "HTTP/1.1 103 X\r\n\r\n");
}

/// Lines that are spelled as they would be written are copied together; that must not show.
#[test]
fn lines_that_are_copied_together_read_as_if_each_had_been_written_anew() {
    let spellings =
        ["A: 1", "B:2", "C:  3", "D: 4 ", "E:", "F: ", "G:\t7", "Connection: H", "H: 8", "Keep-Alive: 9", "I: j, k"];
    for kept in 0..1u32 << spellings.len() {
        let lines: Vec<&str> =
            (0..).zip(spellings).filter(|(at, _)| kept >> at & 1 == 1).map(|(_, line)| line).collect();
        let ends_here = |line: &str| {
            line.starts_with("Connection")
                || line.starts_with("Keep-Alive")
                || line.starts_with('H') && lines.contains(&"Connection: H")
        };
        let text: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        let out = forwarded(&format!("GET / HTTP/1.1\r\nHost: a\r\n{text}\r\n"), REWRITE);
        let anew = |line: &&str| {
            let (name, value) = line.split_once(':').unwrap();
            format!("{name}: {}\r\n", value.trim())
        };
        let expected: String = lines.iter().filter(|line| !ends_here(line)).map(anew).collect();
        let written = out.split_once("X-Forwarded-For").unwrap().0.split_once("Host: d1:81\r\n").unwrap().1;
        assert_eq!(written, expected, "{lines:?}");
    }
}

#[test]
fn a_length_is_kept_where_it_stands_only_as_it_would_be_written() {
    let out = |head: &str| answered(head, RequestKind::Other, Version::Http11, Persistence::KeepAlive);
    let usual = "HTTP/1.1 200 Fein\r\ncontent-length: 12\r\nA: b\r\nDate: then\r\n\r\n";
    assert_eq!(out(usual), usual);
    for (text, kept) in [("012", "12"), ("12, 12", "12"), ("00", "0")] {
        let head = format!("HTTP/1.1 200 Fein\r\nContent-Length: {text}\r\nDate: then\r\n\r\n");
        assert_eq!(out(&head), format!("HTTP/1.1 200 Fein\r\nDate: then\r\nContent-Length: {kept}\r\n\r\n"));
    }
    let twice = "HTTP/1.1 200 Fein\r\nContent-Length: 12\r\nContent-Length: 12\r\nDate: then\r\n\r\n";
    assert_eq!(out(twice), "HTTP/1.1 200 Fein\r\nDate: then\r\nContent-Length: 12\r\n\r\n");
}

#[test]
fn a_head_that_says_already_what_is_to_be_said_goes_on_as_it_came() {
    let rewrite = RequestRewrite { host: "a.test", ..REWRITE };
    let head = "GET /x?y HTTP/1.1\r\nHost: a.test\r\nA: b\r\n";
    let text = format!("{head}\r\n");
    assert!(forwarded(&text, rewrite).starts_with(&format!("{head}X-Forwarded-For: ")));
    for (line, host, first) in [
        ("GET /x?y HTTP/1.0", "Host: a.test", "GET /x?y HTTP/1.1\r\nHost: a.test\r\nA: b\r\n"),
        ("GET http://a.test/x HTTP/1.1", "Host: b", "GET /x HTTP/1.1\r\nHost: a.test\r\nA: b\r\n"),
        ("GET /x HTTP/1.1", "HOST: a.test", "GET /x HTTP/1.1\r\nHost: a.test\r\nA: b\r\n"),
        ("GET /x HTTP/1.1", "Host:a.test", "GET /x HTTP/1.1\r\nHost: a.test\r\nA: b\r\n"),
        ("GET /x HTTP/1.1", "Host: A.test", "GET /x HTTP/1.1\r\nHost: a.test\r\nA: b\r\n"),
        ("GET /x HTTP/1.1", "A: b\r\nHost: a.test", "GET /x HTTP/1.1\r\nHost: a.test\r\nA: b\r\nA: b\r\n"),
    ] {
        let out = forwarded(&format!("{line}\r\n{host}\r\nA: b\r\n\r\n"), rewrite);
        assert!(out.starts_with(first), "{line} {host}: {out}");
    }
    let prefixed = forwarded(&text, RequestRewrite { prefix: "/p", ..rewrite });
    assert!(prefixed.starts_with("GET /p/x?y HTTP/1.1\r\nHost: a.test\r\nA: b\r\n"), "{prefixed}");
}

#[test]
fn what_is_left_of_a_calls_time_is_said_in_place_of_what_came() {
    let text = "POST /a.B/C HTTP/1.1\r\nHost: a.test\r\nA: b\r\nGRPC-Timeout: 5S\r\nTE: trailers\r\n\r\n";
    let timeouts = |time_left| {
        let out = forwarded(text, RequestRewrite { attempt: Some(2), time_left, ..REWRITE }).to_ascii_lowercase();
        out.lines().filter(|line| line.starts_with("grpc-timeout")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(timeouts(None), ["grpc-timeout: 5s"], "a call without a deadline of its own goes on as it came");
    let hours = 3600 * 1000;
    for (left, said) in [
        (Duration::from_millis(4_321), "4321m"),
        (Duration::from_micros(1_999), "1m"),
        (Duration::from_micros(999), "1m"),
        (Duration::ZERO, "1m"),
        (Duration::from_millis(99_999_999), "99999999m"),
        (Duration::from_millis(100_000_999), "100000s"),
        (Duration::from_secs(hours), "3600000s"),
        (Duration::MAX, "99999999s"),
    ] {
        assert_eq!(timeouts(Some(left)), [format!("grpc-timeout: {said}")], "{left:?}");
    }
}

/// A field of every kind that means something, and two that mean nothing.
const FIELDS: [&str; 23] = [
    "Accept: */*",
    "Connection: x-named",
    "Connection: keep-alive",
    "X-Named: 1",
    "TE: trailers",
    "Upgrade: websocket",
    "Expect: 100-continue",
    "Keep-Alive: timeout=5",
    "Proxy-Connection: x",
    "Proxy: x",
    "X_Forwarded_For: 1.1.1.1",
    "Forwarded: for=1.1.1.1",
    "X-Forwarded-For: 1.1.1.1",
    "X-Forwarded-Proto: https",
    "X-Forwarded-Host: c.test",
    "X-Forwarded-Prefix: /p",
    "Alt-Svc: h3=\":443\"",
    "Retry-After: 1",
    "Lazaret-Attempt: 2",
    "grpc-timeout: 5S",
    "Date: today",
    "Content-Length: 7",
    "Transfer-Encoding: chunked",
];

#[test]
fn lines_that_are_copied_together_are_those_that_go_on_one_by_one() {
    // A line with odd blanks has each line asked by itself.
    let odd = "X-Odd:  1\r\n";
    let written = "X-Odd: 1\r\n";
    let requests = [
        REWRITE,
        RequestRewrite { host: "a.test", ..REWRITE },
        RequestRewrite { host: "a.test", trust: Trust::Trusted, ..REWRITE },
        RequestRewrite { host: "a.test", expectation: Expectation::Forward, ..REWRITE },
        RequestRewrite { host: "a.test", attempt: Some(3), ..REWRITE },
        RequestRewrite { host: "a.test", attempt: Some(3), time_left: Some(Duration::from_secs(3)), ..REWRITE },
    ];
    let mut compared = 0;
    for first in FIELDS {
        for second in FIELDS {
            let fields = format!("{first}\r\nX-Between: 1\r\n{second}\r\n");
            let text = format!("POST /x HTTP/1.1\r\nHost: a.test\r\n{fields}");
            let mut head = RequestHead::default();
            if head.parse(format!("{text}\r\n").as_bytes(), &LIMITS) == Ok(Parsed::Complete) {
                for rewrite in requests {
                    let alone = forwarded(&format!("{text}{odd}\r\n"), rewrite);
                    assert_eq!(forwarded(&format!("{text}\r\n"), rewrite), alone.replace(written, ""), "{text}");
                    compared += 1;
                }
            }
            let text = format!("HTTP/1.1 200 Fine\r\n{fields}");
            let mut head = ResponseHead::default();
            if head.parse(format!("{text}\r\n").as_bytes(), &HeadLimits::RESPONSE, RequestKind::Other)
                == Ok(Parsed::Complete)
            {
                for kind in [RequestKind::Other, RequestKind::Head] {
                    let of = |text: &str| answered(text, kind, Version::Http11, Persistence::KeepAlive);
                    assert_eq!(
                        of(&format!("{text}\r\n")),
                        of(&format!("{text}{odd}\r\n")).replace(written, ""),
                        "{text}"
                    );
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 2_000, "{compared}");
}

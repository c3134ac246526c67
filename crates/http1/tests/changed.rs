//! Heads that a route changes: transforms, `Forwarded`, a request's id.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use http1::changed::{Ends, NewTarget, RequestChanges, ResponseChanges};
use http1::connection::{Persistence, Version};
use http1::forward::{self, Expectation, RequestRewrite, ResponseRewrite, Trust};
use http1::limits::HeadLimits;
use http1::request::{Parsed, RequestHead};
use http1::response::{RequestKind, ResponseHead};
use model::transform::{
    Copying, ForwardAction, Forwarded, ForwardedPart, Mode, NodeFormat, NodeName, NodePort, Plan, RequestTransform,
    ResponseTransform, Transform, When, XForwarded,
};

const LIMITS: HeadLimits = HeadLimits { line: 8192, bytes: 32768, fields: 100 };

const NOTHING: RequestChanges<'_> = RequestChanges {
    target: None,
    plan: None,
    values: &[],
    id: None,
    ends: Ends { peer_port: None, local: None, random: 0 },
};

/// The lines behind the request line and Host.
fn sent(fields: &str, peer: &str, trust: Trust, changes: &RequestChanges<'_>) -> Vec<String> {
    let text = format!("POST /a?b HTTP/1.1\r\nHost: h:80\r\nContent-Length: 2\r\n{fields}\r\n");
    let mut head = RequestHead::default();
    assert_eq!(head.parse(text.as_bytes(), &LIMITS), Ok(Parsed::Complete));
    let peer = peer.parse().unwrap();
    let rewrite = RequestRewrite {
        prefix: "/",
        host: "d1",
        peer,
        client: peer,
        proto: "http",
        trust,
        expectation: Expectation::Drop,
        attempt: None,
        time_left: None,
        changes: Some(changes),
    };
    let mut out = Vec::new();
    forward::request(&mut out, &head.view(text.as_bytes()), &rewrite);
    let out = String::from_utf8(out).unwrap();
    out.strip_suffix("\r\n\r\n").unwrap().split("\r\n").map(str::to_owned).collect()
}

fn with(transforms: Vec<Transform>) -> Plan {
    Plan::of(&transforms)
}

fn value(name: &str, value: &str, mode: Mode) -> Transform {
    Transform::Request(RequestTransform::Value { name: name.to_owned(), value: value.to_owned(), mode })
}

const DEFAULTS: [&str; 3] = ["X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: http", "X-Forwarded-Host: h:80"];

#[test]
fn fields_are_set_appended_and_removed_in_order() {
    let plan = with(vec![
        value("x-a", "2", Mode::Append),
        value("x-b", "3", Mode::Set),
        Transform::Request(RequestTransform::Remove("x-c".to_owned())),
        Transform::Request(RequestTransform::RouteValue {
            name: "x-id".to_owned(),
            parameter: "ID".to_owned(),
            mode: Mode::Set,
        }),
        value("host", "other:81", Mode::Set),
    ]);
    let values = [("id".to_owned(), "7".to_owned())];
    let changes = RequestChanges { plan: Some(&plan), values: &values, ..NOTHING };
    let lines = sent("X-A: 1\r\nX-B: 1\r\nX-C: 1\r\nx-b: 2\r\n", "192.0.2.1", Trust::Untrusted, &changes);
    let expected =
        ["POST /a?b HTTP/1.1", "Host: other:81", "Content-Length: 2", "X-A: 1", "x-a: 2", "x-b: 3", "x-id: 7"];
    assert_eq!(lines, [&expected[..], &DEFAULTS].concat());
}

#[test]
fn what_is_not_allowed_stays_and_framing_cannot_be_lost() {
    for first in [RequestTransform::Copy(Copying::Nothing), RequestTransform::Allowed(vec!["x-b".to_owned()])] {
        let is_allowed = matches!(first, RequestTransform::Allowed(_));
        let plan = with(vec![Transform::Request(first), value("x-n", "1", Mode::Set)]);
        let changes = RequestChanges { plan: Some(&plan), ..NOTHING };
        let fields = "X-A: 1\r\nX-B: 2\r\nX-Forwarded-Proto: https\r\n";
        let lines = sent(fields, "192.0.2.1", Trust::Trusted, &changes);
        let mut expected = vec!["POST /a?b HTTP/1.1", "Host: d1", "Content-Length: 2", "X-Forwarded-Proto: https"];
        expected.extend(is_allowed.then_some("X-B: 2"));
        expected.extend(["x-n: 1", DEFAULTS[0], DEFAULTS[2]]);
        assert_eq!(lines, expected);
    }
}

#[test]
fn another_target_goes_on_with_the_bodys_framing() {
    let target = NewTarget { method: "PUT", path: "/new", query: None };
    let changes = RequestChanges { target: Some(target), id: Some(("x-request-id", "1f")), ..NOTHING };
    let lines = sent("X-Request-Id: theirs\r\nX-A: 1\r\n", "192.0.2.1", Trust::Untrusted, &changes);
    let expected = ["PUT /new HTTP/1.1", "Host: d1", "Content-Length: 2", "X-A: 1", "x-request-id: 1f"];
    assert_eq!(lines, [&expected[..], &DEFAULTS].concat());
}

#[test]
fn x_forwarded_follows_its_actions_and_only_a_trusted_proxy_is_heard() {
    use ForwardAction::{Append, Off, Remove, Set};
    let fields =
        "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Prefix: /p\r\nForwarded: for=x\r\n";
    let ask = |actions: [ForwardAction; 4], trust| {
        let [address, proto, host, prefix] = actions;
        let header_prefix = "X-Forwarded-".to_owned();
        let plan = with(vec![Transform::XForwarded(XForwarded { address, proto, host, prefix, header_prefix })]);
        sent(fields, "192.0.2.1", trust, &RequestChanges { plan: Some(&plan), ..NOTHING })[3..].to_vec()
    };
    for (actions, trusted, untrusted) in [
        ([Set; 4], &DEFAULTS[..], &DEFAULTS[..]),
        (
            [Append; 4],
            &[
                "X-Forwarded-For: 6.6.6.6, 192.0.2.1",
                "X-Forwarded-Proto: https, http",
                DEFAULTS[2],
                "X-Forwarded-Prefix: /p",
            ],
            &DEFAULTS,
        ),
        ([Remove; 4], &[], &[]),
        ([Off; 4], &["X-Forwarded-For: 6.6.6.6", "X-Forwarded-Proto: https", "X-Forwarded-Prefix: /p"], &[]),
        ([Set, Remove, Off, Off], &["X-Forwarded-For: 192.0.2.1", "X-Forwarded-Prefix: /p"], &DEFAULTS[..1]),
    ] {
        assert_eq!(ask(actions, Trust::Trusted), trusted, "{actions:?}");
        assert_eq!(ask(actions, Trust::Untrusted), untrusted, "{actions:?}");
    }
}

#[test]
fn forwarded_names_nodes_as_rfc_7239_has_it() {
    let ends = Ends { peer_port: Some(4711), local: Some("[2001:db8::2]:443".parse().unwrap()), random: 7 };
    let ask = |parts: &[ForwardedPart], action, peer: &str, trust| {
        let plan = with(vec![Transform::Forwarded(Forwarded { parts: parts.to_vec(), action })]);
        let changes = RequestChanges { plan: Some(&plan), ends, ..NOTHING };
        let fields = "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nForwarded: for=9.9.9.9\r\n";
        sent(fields, peer, trust, &changes)[3..].join("|")
    };
    let node = |name, port| NodeFormat { name, port };
    let (ip, with_port) = (node(NodeName::Ip, NodePort::None), node(NodeName::Ip, NodePort::Port));
    use ForwardedPart::{By, For, Host, Proto};
    for (parts, peer, expected) in [
        (&[For(ip)][..], "192.0.2.1", "Forwarded: for=192.0.2.1"),
        (&[For(with_port)], "192.0.2.1", "Forwarded: for=\"192.0.2.1:4711\""),
        (&[For(ip)], "2001:db8::1", "Forwarded: for=\"[2001:db8::1]\""),
        (&[For(with_port)], "::1", "Forwarded: for=\"[::1]:4711\""),
        (&[For(with_port)], "::ffff:192.0.2.1", "Forwarded: for=\"192.0.2.1:4711\""),
        (
            &[For(ip), Host, Proto, By(with_port)],
            "192.0.2.1",
            "Forwarded: for=192.0.2.1;host=\"h:80\";proto=http;by=\"[2001:db8::2]:443\"",
        ),
        (&[For(node(NodeName::Unknown, NodePort::None))], "192.0.2.1", "Forwarded: for=unknown"),
    ] {
        assert_eq!(ask(parts, ForwardAction::Set, peer, Trust::Untrusted), expected);
    }
    assert_eq!(ask(&[For(ip)], ForwardAction::Append, "::1", Trust::Trusted), "Forwarded: for=9.9.9.9, for=\"[::1]\"");
    assert_eq!(ask(&[For(ip)], ForwardAction::Append, "::1", Trust::Untrusted), "Forwarded: for=\"[::1]\"");
    assert_eq!(ask(&[For(ip)], ForwardAction::Remove, "::1", Trust::Trusted), "");
    let random = node(NodeName::Random, NodePort::Random);
    let drawn = ask(&[For(random), By(random)], ForwardAction::Set, "192.0.2.1", Trust::Untrusted);
    let mut names: Vec<_> = drawn.split(['"', ':', ' ', '=']).filter(|part| part.starts_with('_')).collect();
    names.dedup();
    assert_eq!(names.len(), 4, "{drawn}");
    assert!(names.iter().all(|name| name.len() == 10 && !drawn.contains("192")), "{drawn}");
}

#[test]
fn a_client_cannot_have_its_address_removed() {
    let plan = with(vec![value("x-a", "1", Mode::Set)]);
    let changes = RequestChanges { plan: Some(&plan), ..NOTHING };
    let lines =
        sent("Connection: X-Forwarded-For\r\nX-Forwarded-For: 1.1.1.1\r\n", "192.0.2.1", Trust::Trusted, &changes);
    assert!(lines.contains(&"X-Forwarded-For: 192.0.2.1".to_owned()), "{lines:?}");
}

#[test]
fn responses_change_by_their_status() {
    let set = |name: &str, mode, when| {
        Transform::Response(ResponseTransform::Value { name: name.to_owned(), value: "1".to_owned(), mode, when })
    };
    let plan = with(vec![
        set("x-ok", Mode::Set, When::Success),
        set("x-bad", Mode::Set, When::Failure),
        set("x-any", Mode::Append, When::Always),
        Transform::Response(ResponseTransform::Remove { name: "server".to_owned(), when: When::Always }),
    ]);
    let allowed = with(vec![Transform::Response(ResponseTransform::Allowed(vec!["x-any".to_owned()]))]);
    let answered = |status: u16, plan: &Plan| {
        let text = format!("HTTP/1.1 {status} X\r\nServer: s\r\nX-Any: 0\r\nDate: then\r\nContent-Length: 0\r\n\r\n");
        let mut head = ResponseHead::default();
        let parsed = head.parse(text.as_bytes(), &HeadLimits::RESPONSE, RequestKind::Other);
        assert_eq!(parsed, Ok(Parsed::Complete));
        let changes = ResponseChanges { plan: Some(plan), id: Some(("x-request-id", "1f")) };
        let rewrite = ResponseRewrite {
            version: Version::Http11,
            persistence: Persistence::KeepAlive,
            cookies: &[],
            date: "now",
            changes: Some(&changes),
        };
        let mut out = Vec::new();
        forward::response(&mut out, &head.view(text.as_bytes()), &rewrite);
        String::from_utf8(out).unwrap().trim_end().lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let tail = ["x-any: 1", "x-request-id: 1f", "Content-Length: 0"];
    assert_eq!(answered(200, &plan), [&["X-Any: 0", "Date: then", "x-ok: 1"][..], &tail].concat());
    assert_eq!(answered(404, &plan), [&["X-Any: 0", "Date: then", "x-bad: 1"][..], &tail].concat());
    let few = ["X-Any: 0", "x-request-id: 1f", "Date: now", "Content-Length: 0"];
    assert_eq!(answered(200, &allowed), few, "a response is dated all the same");
}

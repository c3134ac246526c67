//! Properties: nothing panics, cuts make no difference, what is written parses back, and httparse agrees on what is
//! accepted.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use http1::body::Body;
use http1::connection::{Persistence, Version};
use http1::error::RequestError;
use http1::forward::{self, Expectation, RequestRewrite, ResponseRewrite, Trust};
use http1::framing::{RequestFraming, ResponseFraming};
use http1::limits::HeadLimits;
use http1::request::{Parsed, RequestHead};
use http1::response::{RequestKind, ResponseHead};
use proptest::prelude::*;

const LIMITS: HeadLimits = HeadLimits { line: 400, bytes: 2000, fields: 12 };

/// Bytes that look like a head often enough to get deep into the parser.
fn almost_head() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just("GET / HTTP/1.1\r\n".to_owned()),
        Just("POST http://b.test/x?y HTTP/1.1\r\n".to_owned()),
        Just("HTTP/1.1 200 OK\r\n".to_owned()),
        Just("Host: a.test\r\n".to_owned()),
        Just("Content-Length: 5\r\n".to_owned()),
        Just("Transfer-Encoding: chunked\r\n".to_owned()),
        Just("Connection: close, x-y\r\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("\n".to_owned()),
        Just("\r".to_owned()),
        Just(" ".to_owned()),
        Just(":".to_owned()),
        "[a-zA-Z-]{1,12}: [ -~\t]{0,20}\r\n",
        "[ -~]{0,8}",
        any::<char>().prop_map(|c| c.to_string()),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat().into_bytes())
}

fn good_request() -> impl Strategy<Value = String> {
    let field = "[a-z][a-z0-9-]{0,10}: ([!-~]([ -~]{0,16}[!-~])?)?\r\n".prop_filter("no meaning of its own", |line| {
        let name = line.split(':').next().unwrap();
        http1::fields::Known::of(name.as_bytes()) == http1::fields::Known::Other
    });
    let target = prop_oneof!["/[a-z0-9/%._-]{0,20}", "/[a-z]{0,5}\\?[a-z=&]{0,9}", Just("http://b.test/x".to_owned())];
    let framing = prop_oneof![
        Just(""),
        Just("Content-Length: 7\r\n"),
        Just("Transfer-Encoding: chunked\r\n"),
        Just("Connection: close\r\n"),
    ];
    (
        prop_oneof![Just("GET"), Just("POST"), Just("DELETE"), Just("BREW")],
        target,
        prop::collection::vec(field, 0..6),
        framing,
    )
        .prop_map(|(method, target, fields, framing)| {
            format!("{method} {target} HTTP/1.1\r\nHost: a.test\r\n{framing}{}\r\n", fields.concat())
        })
}

/// The same for responses, which `almost_head` seldom makes whole.
fn almost_response() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof!["HTTP/1\\.[01] [1-5][0-9]{2} [ -~]{0,8}\r\n", "HTTP/1\\.1 [0-9]{1,4}\r\n"];
    let field = prop_oneof![
        Just("Content-Length: 5\r\n".to_owned()),
        Just("Transfer-Encoding: chunked\r\n".to_owned()),
        "[a-zA-Z-]{1,12}:[ -~\t]{0,20}\r\n",
        "[ -~]{0,8}\r\n",
    ];
    (line, prop::collection::vec(field, 0..5))
        .prop_map(|(line, fields)| format!("{line}{}\r\n", fields.concat()).into())
}

/// Parts of chunked bodies, mostly good ones.
fn chunked_piece() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => (1usize..20).prop_map(|length| format!("{length:x}\r\n{}\r\n", "x".repeat(length))),
        1 => Just("0\r\n\r\n".to_owned()),
        1 => Just("0\r\nx-t: 1\r\n\r\n".to_owned()),
        1 => "[0-9a-fA-F]{1,3}(;[a-z]{1,4}=[a-z]{1,4})?\r\n",
        1 => "[ -~\r\n]{1,4}",
    ];
    piece.prop_map(String::into_bytes)
}

/// Feeds ever longer prefixes, as a connection does.
fn parse_in_cuts(bytes: &[u8]) -> Result<Option<usize>, RequestError> {
    let mut head = RequestHead::default();
    for end in 0..=bytes.len() {
        if head.parse(&bytes[..end], &LIMITS)? == Parsed::Complete {
            return Ok(Some(head.len()));
        }
    }
    Ok(None)
}

proptest! {
    #[test]
    fn no_input_panics(bytes in prop_oneof![almost_head(), prop::collection::vec(any::<u8>(), 0..300)]) {
        let _ = RequestHead::default().parse(&bytes, &LIMITS);
        let _ = ResponseHead::default().parse(&bytes, &LIMITS, RequestKind::Other);
        let mut body = Body::of_response(ResponseFraming::Chunked);
        let _ = body.advance(&bytes);
        let _ = body.end_of_input();
    }

    #[test]
    fn a_request_cut_anywhere_is_the_same_request(bytes in prop_oneof![almost_head(), good_request().prop_map(String::into_bytes)]) {
        let mut head = RequestHead::default();
        let whole = head.parse(&bytes, &LIMITS);
        match (whole, parse_in_cuts(&bytes)) {
            (Ok(Parsed::Complete), cut) => prop_assert_eq!(cut, Ok(Some(head.len()))),
            (Ok(Parsed::Partial), cut) => prop_assert_eq!(cut, Ok(None)),
            // A limit may be noticed earlier than another fault, but a fault stays a fault.
            (Err(_), cut) => prop_assert!(cut.is_err()),
        }
    }

    #[test]
    fn a_response_cut_anywhere_is_the_same_response(bytes in prop_oneof![almost_head(), almost_response()]) {
        let mut head = ResponseHead::default();
        let whole = head.parse(&bytes, &LIMITS, RequestKind::Other);
        let mut again = ResponseHead::default();
        let mut cuts = (0..=bytes.len()).map(|end| again.parse(&bytes[..end], &LIMITS, RequestKind::Other));
        let cut = cuts.find(|verdict| *verdict != Ok(Parsed::Partial)).unwrap_or(Ok(Parsed::Partial));
        match (whole, cut) {
            (Ok(Parsed::Complete), cut) => {
                prop_assert_eq!(cut, Ok(Parsed::Complete));
                prop_assert_eq!((head.len(), head.status(), head.framing()), (again.len(), again.status(), again.framing()));
            }
            (Ok(Parsed::Partial), cut) => prop_assert_eq!(cut, Ok(Parsed::Partial)),
            // A limit may be noticed earlier than another fault, but a fault stays a fault.
            (Err(_), cut) => prop_assert!(cut.is_err()),
        }
    }

    #[test]
    fn a_chunked_body_good_or_bad_cut_anywhere_gets_the_same_verdict(
        pieces in prop::collection::vec(chunked_piece(), 0..12),
        cuts in prop::collection::vec(1usize..9, 1..20),
    ) {
        let bytes = pieces.concat();
        let run = |steps: &[usize]| {
            let mut body = Body::of_response(ResponseFraming::Chunked);
            let (mut at, mut content, mut steps) = (0, 0, steps.iter().cycle());
            while at < bytes.len() && !body.is_done() {
                let until = at.saturating_add(*steps.next().unwrap()).min(bytes.len());
                let Ok(advance) = body.advance(&bytes[at..until]) else { return None };
                at += advance.taken;
                content += advance.content;
            }
            Some((body.is_done(), at, content))
        };
        prop_assert_eq!(run(&[usize::MAX]), run(&cuts));
    }

    #[test]
    fn what_is_forwarded_parses_back_to_the_same_request(text in good_request()) {
        let mut head = RequestHead::default();
        prop_assert_eq!(head.parse(text.as_bytes(), &LIMITS), Ok(Parsed::Complete));
        let before = head.view(text.as_bytes());
        let rewrite = RequestRewrite {
            prefix: "/", host: "d1", peer: [192, 0, 2, 7].into(), client: [192, 0, 2, 7].into(), proto: "http", trust: Trust::Untrusted, expectation: Expectation::Drop, attempt: None, time_left: None, changes: None,
        };
        let mut out = Vec::new();
        forward::request(&mut out, &before, &rewrite);
        let mut again = RequestHead::default();
        let wide = HeadLimits { line: 9000, bytes: 9000, fields: 99 };
        prop_assert_eq!(again.parse(&out, &wide), Ok(Parsed::Complete));
        prop_assert_eq!(again.len(), out.len());
        let after = again.view(&out);
        prop_assert_eq!(before.method_name(), after.method_name());
        prop_assert_eq!(before.path(), after.path());
        prop_assert_eq!(before.query(), after.query());
        prop_assert_eq!(before.framing(), after.framing());
        prop_assert_eq!(after.host(), "d1");
        let other = |request: http1::request::Request<'_>| request.fields()
            .filter(|(field, _, _)| field.known == http1::fields::Known::Other)
            .map(|(_, name, value)| (name.to_vec(), value.to_vec())).collect::<Vec<_>>();
        prop_assert_eq!(other(before), other(after));
    }

    #[test]
    fn what_is_accepted_is_read_by_httparse_in_the_same_way(bytes in prop_oneof![almost_head(), good_request().prop_map(String::into_bytes)]) {
        let mut head = RequestHead::default();
        if head.parse(&bytes, &LIMITS) == Ok(Parsed::Complete) {
            let mut fields = [httparse::EMPTY_HEADER; 32];
            let mut peer = httparse::Request::new(&mut fields);
            prop_assert_eq!(peer.parse(&bytes), Ok(httparse::Status::Complete(head.len())));
            let view = head.view(&bytes);
            prop_assert_eq!(peer.method, Some(view.method_name()));
            let ours: Vec<_> = view.fields().map(|(_, name, value)| (name.to_vec(), value.to_vec())).collect();
            let theirs: Vec<_> = peer.headers.iter().map(|h| (h.name.as_bytes().to_vec(), h.value.to_vec())).collect();
            prop_assert_eq!(ours, theirs);
        }
    }

    #[test]
    fn a_written_response_parses_back(status in 200u16..600, length in any::<u32>(), name in "[a-z]{3}", value in "[!-~]{1,9}") {
        prop_assume!(status != 204 && status != 304);
        let text = format!("HTTP/1.1 {status} x\r\n{name}: {value}\r\nContent-Length: {length}\r\n\r\n");
        let mut head = ResponseHead::default();
        prop_assert_eq!(head.parse(text.as_bytes(), &LIMITS, RequestKind::Other), Ok(Parsed::Complete));
        let mut out = Vec::new();
        let rewrite = ResponseRewrite { version: Version::Http11, persistence: Persistence::Close, cookies: &["a=b".to_owned()], date: "now", changes: None };
        forward::response(&mut out, &head.view(text.as_bytes()), &rewrite);
        let mut again = ResponseHead::default();
        prop_assert_eq!(again.parse(&out, &LIMITS, RequestKind::Other), Ok(Parsed::Complete));
        prop_assert_eq!((again.status(), again.framing()), (status, ResponseFraming::Length(u64::from(length))));
        prop_assert_eq!(again.persistence(), Persistence::Close);
    }

    #[test]
    fn chunks_cut_anywhere_carry_the_same_content(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6),
        cuts in prop::collection::vec(1usize..9, 1..200),
    ) {
        let mut text = Vec::new();
        for chunk in &chunks {
            text.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            text.extend_from_slice(chunk);
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(b"0\r\nx-t: 1\r\n\r\n");
        let end = text.len();
        text.extend_from_slice(b"GET ");
        let mut body = Body::of_request(RequestFraming::Chunked);
        let (mut at, mut content, mut cuts) = (0, 0, cuts.iter().cycle());
        while !body.is_done() {
            let until = (at + cuts.next().unwrap()).min(text.len());
            let advance = body.advance(&text[at..until]).unwrap();
            at += advance.taken;
            content += advance.content;
        }
        prop_assert_eq!(at, end);
        prop_assert_eq!(content, chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>());
    }
}

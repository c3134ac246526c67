//! For any request that HTTP/2 can carry: the text is refused or read back as the same request, field by field.
#![allow(clippy::unwrap_used)]

use http::uri::Scheme;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use http1::connection::{Persistence, Version};
use http1::forward::ResponseRewrite;
use http1::limits::HeadLimits;
use http1::request::{Parsed, RequestHead};
use http1::response::{RequestKind, ResponseHead};
use http2::request::{Rest, read, write};
use http2::{response, trailers};
use proptest::prelude::*;

const WIDE: HeadLimits = HeadLimits { line: 1 << 20, bytes: 1 << 20, fields: 1000 };

fn name() -> impl Strategy<Value = HeaderName> {
    let known =
        prop::sample::select(vec!["cookie", "te", "host", "content-length", "expect", "x-forwarded-for", "upgrade"]);
    let known = known.prop_map(HeaderName::from_static);
    let any = "[!#$%&'*+.^_`|~0-9a-z-]{1,12}".prop_map(|name| HeaderName::from_bytes(name.as_bytes()).unwrap());
    prop_oneof![1 => known, 3 => any]
}

fn value() -> impl Strategy<Value = HeaderValue> {
    let byte = prop_oneof![Just(b'\t'), 0x20u8..0x7f, 0x80u8..=0xff];
    let any = prop::collection::vec(byte, 0..24).prop_map(|bytes| HeaderValue::from_bytes(&bytes).unwrap());
    let known = prop::sample::select(vec!["trailers", "0", "5", "a.test", "100-continue", "a=1"]);
    prop_oneof![3 => any, 1 => known.prop_map(HeaderValue::from_static)]
}

fn fields() -> impl Strategy<Value = HeaderMap> {
    prop::collection::vec((name(), value()), 0..12).prop_map(|fields| {
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            map.append(name, value);
        }
        map
    })
}

fn rest() -> impl Strategy<Value = Rest> {
    prop::sample::select(vec![Rest::Nothing, Rest::Follows])
}

fn response_line() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "Connection: X-One, date\r\n",
        "connection: close\r\n",
        "Content-Length: 7\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Date: Mon, 07 Nov 1994 08:49:37 GMT\r\n",
        "Keep-Alive: timeout=5\r\n",
        "Upgrade: h2c\r\n",
        "Alt-Svc: h3=\":443\"\r\n",
        "TE: trailers\r\n",
        "X-One: 1\r\n",
        "Set-Cookie: a=1\r\n",
        "Retry-After: 3\r\n",
    ]);
    prop_oneof![known.prop_map(str::to_owned), "[A-Za-z-]{1,9}: [ -~]{0,9}\r\n"]
}

proptest! {
    #[test]
    fn text_has_the_lines_of_the_fields_and_no_other(
        method in prop::sample::select(vec!["GET", "POST", "HEAD", "OPTIONS", "PURGE"]),
        path in "/[a-zA-Z0-9/._~%!$&'()*+,;=:@?-]{0,20}",
        fields in fields(),
        rest in rest(),
    ) {
        let mut request = Request::new(());
        *request.method_mut() = Method::from_bytes(method.as_bytes()).unwrap();
        *request.uri_mut() = format!("http://a.test{path}").parse().unwrap();
        *request.headers_mut() = fields.clone();
        let parts = request.into_parts().0;
        let mut text = Vec::new();
        if write(&mut text, &parts, rest).is_err() {
            return Ok(());
        }
        let mut head = RequestHead::default();
        match head.parse(&text, &WIDE) {
            Ok(Parsed::Complete) => {}
            Ok(Parsed::Partial) => return Err(TestCaseError::fail("the text is not complete")),
            // Rules of http1, such as on Expect.
            Err(_) => return Ok(()),
        }
        prop_assert_eq!(head.len(), text.len());
        let view = head.view(&text);
        prop_assert_eq!(view.method_name(), method);
        prop_assert_eq!(view.authority(), "a.test");
        let written = match view.query() {
            Some(query) => format!("{}?{query}", view.path()),
            None => view.path().to_owned(),
        };
        prop_assert_eq!(Some(written.as_str()), parts.uri.path_and_query().map(|target| target.as_str()));
        for name in fields.keys().filter(|name| !["host", "cookie", "content-length"].contains(&name.as_str())) {
            let sent: Vec<_> = fields.get_all(name).iter().map(HeaderValue::as_bytes).collect();
            let found: Vec<_> =
                view.fields().filter(|(_, found, _)| *found == name.as_str().as_bytes()).map(|(_, _, v)| v).collect();
            prop_assert_eq!(sent, found, "{}", name);
        }
        let own = ["Host", "Content-Length", "Transfer-Encoding", "cookie"];
        let lines = view.fields().filter(|(_, name, _)| !own.iter().any(|own| own.as_bytes() == *name)).count();
        let sent = fields.iter().filter(|(name, _)| !["host", "cookie", "content-length"].contains(&name.as_str()));
        prop_assert_eq!(lines, sent.count());
        // And back: the same for an HTTP/2 destination.
        let again = read(&text, &mut RequestHead::default(), Scheme::HTTP).unwrap();
        prop_assert_eq!(again.method(), &parts.method);
        prop_assert_eq!(again.uri(), &parts.uri);
    }

    #[test]
    fn a_response_is_the_same_straight_and_by_way_of_text(
        status in prop::sample::select(vec![103u16, 200, 204, 304, 404, 426, 500]),
        kind in prop::sample::select(vec![RequestKind::Head, RequestKind::Other]),
        lines in prop::collection::vec(response_line(), 0..10),
        cookies in prop::collection::vec("[a-z]{1,4}=[a-z0-9]{0,4}", 0..2),
    ) {
        let text = format!("HTTP/1.1 {status} Fine\r\n{}\r\n", lines.concat());
        let mut head = ResponseHead::default();
        if head.parse(text.as_bytes(), &WIDE, kind) != Ok(Parsed::Complete) {
            return Ok(());
        }
        let view = head.view(text.as_bytes());
        let rewrite = ResponseRewrite {
            version: Version::Http11,
            persistence: Persistence::KeepAlive,
            cookies: &cookies,
            date: "Sun, 06 Nov 1994 08:49:37 GMT",
            changes: None,
        };
        let mut written = Vec::new();
        http1::forward::response(&mut written, &view, &rewrite);
        let by_text = response::read(&written, &mut ResponseHead::default(), kind).unwrap();
        let straight = response::forward(&view, &rewrite).unwrap();
        prop_assert_eq!(straight.status(), by_text.status());
        prop_assert_eq!(straight.version(), by_text.version());
        prop_assert_eq!(straight.headers(), by_text.headers());
    }

    #[test]
    fn trailers_that_pass_are_read_back(fields in fields()) {
        if trailers::judge(&fields).is_ok() {
            let mut section = Vec::new();
            trailers::write(&mut section, &fields);
            section.extend_from_slice(b"\r\n");
            prop_assert_eq!(trailers::read(&section).unwrap(), fields);
        }
    }
}

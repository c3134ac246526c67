//! A request head: no panic, the same at every cut, read by httparse in the same way, and the same again once written.
#![no_main]

use http1::forward::{self, Expectation, RequestRewrite, Trust};
use http1::limits::HeadLimits;
use http1::request::{Parsed, RequestHead};
use libfuzzer_sys::fuzz_target;

const LIMITS: HeadLimits = HeadLimits { line: 8192, bytes: 32768, fields: 100 };

fuzz_target!(|bytes: &[u8]| {
    let mut head = RequestHead::default();
    if head.parse(bytes, &LIMITS) != Ok(Parsed::Complete) {
        return;
    }
    let mut fields = [httparse::EMPTY_HEADER; 128];
    let mut peer = httparse::Request::new(&mut fields);
    assert_eq!(peer.parse(bytes), Ok(httparse::Status::Complete(head.len())));
    let view = head.view(bytes);
    assert_eq!(peer.method, Some(view.method_name()));
    assert_eq!(peer.headers.len(), view.fields().count());
    for (theirs, (_, name, value)) in peer.headers.iter().zip(view.fields()) {
        assert_eq!((theirs.name.as_bytes(), theirs.value), (name, value));
    }
    // Cut one byte before its end it is no request yet.
    let mut cut = RequestHead::default();
    assert_eq!(cut.parse(&bytes[..head.len() - 1], &LIMITS), Ok(Parsed::Partial));
    let rewrite = RequestRewrite {
        prefix: "/",
        host: "d",
        peer: [192, 0, 2, 1].into(),
        client: [192, 0, 2, 1].into(),
        proto: "http",
        trust: Trust::Untrusted,
        expectation: Expectation::Drop,
        attempt: None,
        time_left: None,
        changes: None,
    };
    let mut out = Vec::new();
    forward::request(&mut out, &view, &rewrite);
    let wide = HeadLimits { line: 9000, bytes: 70_000, fields: 200 };
    let mut again = RequestHead::default();
    assert_eq!(again.parse(&out, &wide), Ok(Parsed::Complete));
    let after = again.view(&out);
    assert_eq!((view.path(), view.query(), view.framing()), (after.path(), after.query(), after.framing()));
});

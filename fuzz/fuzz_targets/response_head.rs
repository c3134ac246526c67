//! A response head: no panic, and the same status and framing once it was written and read again.
#![no_main]

use http1::connection::{Persistence, Version};
use http1::forward::{self, ResponseRewrite};
use http1::limits::HeadLimits;
use http1::request::Parsed;
use http1::response::{RequestKind, ResponseHead};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut head = ResponseHead::default();
    if head.parse(bytes, &HeadLimits::RESPONSE, RequestKind::Other) != Ok(Parsed::Complete) {
        return;
    }
    let rewrite = ResponseRewrite { version: Version::Http11, persistence: Persistence::KeepAlive, cookies: &[], date: "", changes: None };
    let mut out = Vec::new();
    forward::response(&mut out, &head.view(bytes), &rewrite);
    let wide = HeadLimits { line: 9000, bytes: 140_000, fields: 300 };
    let mut again = ResponseHead::default();
    assert_eq!(again.parse(&out, &wide, RequestKind::Other), Ok(Parsed::Complete));
    assert_eq!((head.status(), head.framing()), (again.status(), again.framing()));
});

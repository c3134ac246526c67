//! A PROXY header: no panic, bounded, and the same verdict however the bytes arrive.
#![no_main]

use http1::proxy_header::{MAX_BYTES, ProxyHeader, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let whole = parse(bytes);
    let first = (0..=bytes.len()).map(|end| parse(&bytes[..end])).find(|one| *one != Ok(ProxyHeader::Partial));
    assert_eq!(first.unwrap_or(Ok(ProxyHeader::Partial)), whole);
    match whole {
        Ok(ProxyHeader::Complete { length, .. }) => assert!(length <= bytes.len() && length <= MAX_BYTES),
        Ok(ProxyHeader::Partial) => assert!(bytes.len() < MAX_BYTES),
        Err(_) => {}
    }
});

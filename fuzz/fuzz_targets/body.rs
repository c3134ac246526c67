//! A chunked body: no panic, and cut into pieces it ends where it ends as a whole.
#![no_main]

use http1::body::Body;
use http1::framing::ResponseFraming;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, Vec<u8>)| {
    let (size, bytes) = input;
    let run = |step: usize| {
        let mut body = Body::of_response(ResponseFraming::Chunked);
        let mut at = 0;
        while at < bytes.len() && !body.is_done() {
            match body.advance(&bytes[at..bytes.len().min(at.saturating_add(step))]) {
                Ok(advance) => at += advance.taken,
                Err(_) => return (None, at),
            }
        }
        (Some(body.is_done()), at)
    };
    let (whole, pieces) = (run(usize::MAX), run(usize::from(size).max(1)));
    assert_eq!(whole.0, pieces.0);
    if whole.0.is_some() {
        assert_eq!(whole.1, pieces.1);
    }
});

//! Tables of RFC 9112 rules for bodies: chunks, trailers and ends.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use http1::body::{Advance, Body, BodyError, Piece};
use http1::framing::{RequestFraming, ResponseFraming};

fn chunked() -> Body {
    Body::of_request(RequestFraming::Chunked)
}

/// Takes all it can; the number of bytes, or the fault.
fn take(body: &mut Body, bytes: &[u8]) -> Result<usize, BodyError> {
    let mut taken = 0;
    while taken < bytes.len() && !body.is_done() {
        taken += body.advance(&bytes[taken..])?.taken;
    }
    Ok(taken)
}

#[test]
fn clean_chunked_bodies_end_at_their_last_byte() {
    for text in [
        "0\r\n\r\n",
        "5\r\nhello\r\n0\r\n\r\n",
        "5;a=b;c=\"d e\"\r\nhello\r\n000\r\n\r\n",
        "A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n",
        "1\r\nx\r\n0\r\nX-Sum: abc\r\nExpires: never\r\n\r\n",
        "0\r\nX-Empty:\r\n\r\n",
    ] {
        let mut body = chunked();
        let followed = format!("{text}GET /");
        assert_eq!(take(&mut body, followed.as_bytes()), Ok(text.len()), "{text:?}");
        assert!(body.is_done());
        // Byte by byte it is the same.
        let mut body = chunked();
        for (at, byte) in text.bytes().enumerate() {
            assert!(!body.is_done(), "{text:?} at {at}");
            assert_eq!(body.advance(&[byte]).map(|advance| advance.taken), Ok(1));
        }
        assert!(body.is_done());
    }
}

#[test]
fn malformed_chunks_and_trailers_are_refused() {
    for (text, error) in [
        ("\r\n", BodyError::Chunk),
        ("x\r\n", BodyError::Chunk),
        ("-1\r\n", BodyError::Chunk),
        ("+1\r\nx\r\n", BodyError::Chunk),
        ("0x1\r\nx\r\n", BodyError::Chunk),
        (" 1\r\nx\r\n", BodyError::Chunk),
        ("1 \r\nx\r\n", BodyError::Chunk),
        (";a\r\n", BodyError::Chunk),
        ("1\nx\r\n0\r\n\r\n", BodyError::Chunk),
        ("1\r\nx\n0\r\n\r\n", BodyError::Chunk),
        ("1\r\nxy\r\n0\r\n\r\n", BodyError::Chunk),
        ("1;a\nx\r\n", BodyError::Chunk),
        ("1;a\rb\r\nx\r\n", BodyError::Chunk),
        ("1;\0\r\nx\r\n", BodyError::Chunk),
        ("11111111111111111\r\n", BodyError::Chunk),
        ("00000000000000001\r\n", BodyError::Chunk),
        ("0\r\nfoo\r\n\r\n", BodyError::Trailer),
        ("0\r\nfoo : x\r\n\r\n", BodyError::Trailer),
        ("0\r\n:path: x\r\n\r\n", BodyError::Trailer),
        ("0\r\n x: y\r\n\r\n", BodyError::Trailer),
        ("0\r\nx: y\n\r\n", BodyError::Trailer),
        ("0\r\nx: y\r\n\n", BodyError::Trailer),
        ("0\r\nx: \0\r\n\r\n", BodyError::Trailer),
        ("0\r\nContent-Length: 1\r\n\r\n", BodyError::ForbiddenTrailer),
        ("0\r\ntransfer-encoding: chunked\r\n\r\n", BodyError::ForbiddenTrailer),
        ("0\r\nHOST: x\r\n\r\n", BodyError::ForbiddenTrailer),
        ("0\r\nAuthorization: x\r\n\r\n", BodyError::ForbiddenTrailer),
        ("0\r\nX-Forwarded-For: x\r\n\r\n", BodyError::ForbiddenTrailer),
        ("0\r\nProxy-Authentication-Info: x\r\n\r\n", BodyError::ForbiddenTrailer),
    ] {
        let mut body = chunked();
        assert_eq!(take(&mut body, text.as_bytes()), Err(error), "{text:?}");
        assert!(!body.is_done());
        // And stays refused.
        assert_eq!(body.advance(b"0\r\n\r\n"), Err(error));
    }
}

#[test]
fn extensions_and_trailers_are_bounded() {
    assert_eq!(take(&mut chunked(), format!("1;{}", "a".repeat(10_000)).as_bytes()), Err(BodyError::TooLong));
    let trailers = "x: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n".repeat(2000);
    assert_eq!(take(&mut chunked(), format!("0\r\n{trailers}").as_bytes()), Err(BodyError::TooLong));
    let long_name = format!("0\r\n{}: x\r\n\r\n", "n".repeat(100));
    assert!(take(&mut chunked(), long_name.as_bytes()).is_ok());
}

#[test]
fn good_bytes_before_a_fault_are_taken_first() {
    let mut body = chunked();
    assert_eq!(body.advance(b"5\r\nhelloXX"), Ok(Advance { taken: 8, content: 5 }));
    assert_eq!(body.advance(b"XX"), Err(BodyError::Chunk));
}

#[test]
fn content_comes_out_piece_by_piece() {
    let mut body = chunked();
    let text = b"5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n";
    let (mut at, mut content) = (0, Vec::new());
    while !body.is_done() {
        match body.piece(&text[at..]).unwrap() {
            Piece::Content(run) => {
                content.extend_from_slice(&text[at..at + run]);
                at += run;
            }
            Piece::Framing(run) => at += run,
        }
    }
    assert_eq!(content, b"hello!");
    assert_eq!(at, text.len());
}

#[test]
fn the_end_of_the_connection_is_an_end_or_a_cut() {
    for (framing, bytes, end) in [
        (ResponseFraming::Length(5), "hell", Err(BodyError::Cut)),
        (ResponseFraming::Length(5), "hello", Ok(())),
        (ResponseFraming::Close, "hello", Ok(())),
        (ResponseFraming::None, "", Ok(())),
        (ResponseFraming::Chunked, "", Err(BodyError::Cut)),
        (ResponseFraming::Chunked, "5\r\nhel", Err(BodyError::Cut)),
        (ResponseFraming::Chunked, "5\r\nhello\r\n", Err(BodyError::Cut)),
        (ResponseFraming::Chunked, "5\r\nhello\r\n0\r\n", Err(BodyError::Cut)),
        (ResponseFraming::Chunked, "5\r\nhello\r\n0\r\n\r\n", Ok(())),
    ] {
        let mut body = Body::of_response(framing);
        body.advance(bytes.as_bytes()).unwrap();
        assert_eq!(body.end_of_input(), end, "{framing:?} {bytes:?}");
    }
}

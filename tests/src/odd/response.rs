//! Odd responses of a destination.

use model::random::Random;

use super::{Oddities, draw};

/// What a destination answers.
pub struct Answer {
    /// All its bytes.
    pub bytes: Vec<u8>,
    /// The method that it answers.
    pub method: &'static str,
    /// What is odd about it.
    pub oddities: Oddities,
}

/// The answer of this number.
pub fn answer(number: usize) -> Answer {
    let mut random = Random::new(number as u64 ^ 0xa45);
    let mut oddities = Oddities::new();
    let mut odd = |name: &'static str| {
        if !name.is_empty() {
            oddities.insert(name);
        }
    };
    let method = *draw(&mut random, 0.8, &["GET", "HEAD", "POST"]);
    let (line, name) = draw(
        &mut random,
        0.7,
        &[
            ("HTTP/1.1 200 OK\r\n", ""),
            ("HTTP/1.1 204 No Content\r\n", "204"),
            ("HTTP/1.1 304 Not Modified\r\n", "304"),
            ("HTTP/1.0 200 OK\r\n", "HTTP/1.0"),
            ("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n", "103 first"),
            ("HTTP/1.1 200\r\n", "no reason"),
            ("HTTP/1.1 404 Not Found\r\n", ""),
        ],
    );
    odd(name);
    let mut bytes = line.as_bytes().to_vec();
    for _ in 0..random.below(3) {
        let (field, name) = draw(&mut random, 0.5, FIELDS);
        odd(name);
        bytes.extend_from_slice(field.as_bytes());
    }
    let content = b"the answer\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad";
    let n = content.len();
    let te = "Transfer-Encoding: chunked\r\n\r\n";
    let chunked = |size: String, trailers: &str| {
        [te.as_bytes(), format!("{size}\r\n").as_bytes(), content, b"\r\n0\r\n", trailers.as_bytes(), b"\r\n"].concat()
    };
    let with = |fields: String| [fields.as_bytes(), b"\r\n", content].concat();
    let (rest, name) = match random.below(14) {
        0..=2 => (with(format!("Content-Length: {n}\r\n")), ""),
        3 | 4 => (chunked(format!("{n:x}"), ""), ""),
        5 => (with("Connection: close\r\n".to_owned()), "no length"),
        6 => (with(format!("Content-Length: {n}\r\nContent-Length: {n}\r\n")), "length twice"),
        7 => (with(format!("Content-Length: {n}\r\nContent-Length: 2\r\n")), "two lengths"),
        8 => (chunked(format!("{n:x};a=b"), ""), "chunk extension"),
        9 => (chunked(format!("{n:X}"), "X-Trailer: v\r\n"), "trailer"),
        10 => (with(format!("Content-Length: {}\r\n", n - 3)), "surplus bytes"),
        11 => (with(format!("Content-Length: {}\r\n", n + 3)), "cut short"),
        12 => (b"Content-Length: 0\r\n\r\n".to_vec(), ""),
        _ => (
            [format!("Content-Length: {n}\r\n").as_bytes(), &chunked(format!("{n:x}"), "")].concat(),
            "chunked and length",
        ),
    };
    odd(name);
    bytes.extend_from_slice(&rest);
    Answer { bytes, method, oddities }
}

const FIELDS: &[(&str, &str)] = &[
    ("Content-Type: text/plain\r\n", ""),
    ("X-Empty:\r\n", ""),
    ("Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n", ""),
    ("X-Octets: caf\u{e9}\r\n", "raw octets in value"),
    ("X_Under: 1\r\n", "underscore in name"),
    ("X-Space : 1\r\n", "blank before colon"),
    ("X-Lf: a\n", "lone line feed"),
    ("X-Fold: a\r\n b\r\n", "folded line"),
    ("X-Nul: a\0b\r\n", "control character in value"),
    ("No colon at all\r\n", "line without colon"),
];

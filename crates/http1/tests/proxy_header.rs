//! PROXY headers: what is one, what is none, and that neither depends on how the bytes arrive.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::SocketAddr;

use http1::proxy_header::{MAX_BYTES, OnBehalf, ProxyHeader, ProxyHeaderError, parse, write};
use proptest::prelude::*;

fn v2(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap().to_be_bytes();
    [b"\r\n\r\n\0\r\nQUIT\n".as_slice(), &[command, family], &length, body].concat()
}

fn complete(bytes: &[u8]) -> (usize, Option<SocketAddr>) {
    match parse(bytes) {
        Ok(ProxyHeader::Complete { length, client, server }) => {
            assert_eq!(client.is_some(), server.is_some(), "{bytes:?}");
            (length, client)
        }
        other => panic!("{other:?} for {bytes:?}"),
    }
}

/// Addresses of a client at 192.0.2.7:1025 (2001:db8::7), as version 2 writes them.
fn v4_body() -> Vec<u8> {
    vec![192, 0, 2, 7, 10, 0, 0, 1, 4, 1, 1, 187]
}

fn v6_body() -> Vec<u8> {
    let address = |last: u8| [&[0x20, 0x01, 0x0d, 0xb8], [0; 11].as_slice(), &[last]].concat();
    [address(7), address(1), vec![4, 1, 1, 187]].concat()
}

fn good() -> Vec<(Vec<u8>, Option<&'static str>)> {
    vec![
        (b"PROXY TCP4 192.0.2.7 10.0.0.1 1025 443\r\n".to_vec(), Some("192.0.2.7:1025")),
        (b"PROXY TCP6 2001:db8::7 2001:db8::1 1025 443\r\n".to_vec(), Some("[2001:db8::7]:1025")),
        (b"PROXY UNKNOWN\r\n".to_vec(), None),
        (b"PROXY UNKNOWN what ever it says 1 2 3\r\n".to_vec(), None),
        (v2(0x21, 0x11, &v4_body()), Some("192.0.2.7:1025")),
        (v2(0x21, 0x21, &v6_body()), Some("[2001:db8::7]:1025")),
        // Extensions follow the addresses.
        (v2(0x21, 0x11, &[v4_body(), vec![0x04, 0, 2, 1, 2]].concat()), Some("192.0.2.7:1025")),
        (v2(0x20, 0x00, &[]), None),
        (v2(0x20, 0x11, &v4_body()), None),
        (v2(0x21, 0x00, &[1, 2, 3]), None),
        (v2(0x21, 0x31, &[0; 216]), None),
    ]
}

#[test]
fn headers_of_both_versions_name_the_client() {
    for (bytes, client) in good() {
        let with_more = [bytes.clone(), b"GET / HTTP/1.1\r\n\r\n".to_vec()].concat();
        assert_eq!(complete(&with_more), (bytes.len(), client.map(|text| text.parse().unwrap())), "{bytes:?}");
    }
}

#[test]
fn what_is_not_exactly_a_header_is_refused() {
    let malformed: Vec<Vec<u8>> = vec![
        b"PROXY TCP4 192.0.2.7 10.0.0.1 1025\r\n".to_vec(),
        b"PROXY TCP4 192.0.2.7 10.0.0.1 1025 443 \r\n".to_vec(),
        b"PROXY TCP4  192.0.2.7 10.0.0.1 1025 443\r\n".to_vec(),
        b"PROXY TCP4 192.0.2.7 10.0.0.1 01025 443\r\n".to_vec(),
        b"PROXY TCP4 192.0.2.7 10.0.0.1 +1025 443\r\n".to_vec(),
        b"PROXY TCP4 192.0.2.7 10.0.0.1 65536 443\r\n".to_vec(),
        b"PROXY TCP4 2001:db8::7 2001:db8::1 1025 443\r\n".to_vec(),
        b"PROXY TCP6 192.0.2.7 10.0.0.1 1025 443\r\n".to_vec(),
        b"PROXY UDP4 192.0.2.7 10.0.0.1 1025 443\r\n".to_vec(),
        b"PROXY \r\n".to_vec(),
        b"PROXY TCP4 \xff 10.0.0.1 1 2\r\n".to_vec(),
        v2(0x11, 0x11, &v4_body()),
        v2(0x22, 0x11, &v4_body()),
        v2(0x21, 0x12, &v4_body()),
        v2(0x21, 0x11, &v4_body()[..11]),
        v2(0x21, 0x21, &v4_body()),
    ];
    for bytes in malformed {
        assert_eq!(parse(&bytes), Err(ProxyHeaderError::Malformed), "{bytes:?}");
    }
    for bytes in [b"GET / HTTP/1.1\r\n\r\n".as_slice(), b"PROXX", b"\r\n\r\nX", b"\x16\x03\x01"] {
        assert_eq!(parse(bytes), Err(ProxyHeaderError::Absent), "{bytes:?}");
    }
}

#[test]
fn a_header_is_bounded() {
    let endless = [b"PROXY UNKNOWN ".as_slice(), &[b'x'; 200]].concat();
    assert_eq!(parse(&endless[..106]), Ok(ProxyHeader::Partial));
    assert_eq!(parse(&endless[..107]), Err(ProxyHeaderError::TooLong));
    let longest = v2(0x20, 0, &[0; MAX_BYTES - 16]);
    assert_eq!(complete(&longest).0, MAX_BYTES);
    // The length alone is enough to refuse it.
    assert_eq!(parse(&v2(0x20, 0, &[0; MAX_BYTES - 15])[..16]), Err(ProxyHeaderError::TooLong));
}

#[test]
fn nothing_is_decided_before_the_last_byte_and_nothing_after_it_counts() {
    for (bytes, client) in good() {
        for end in 0..bytes.len() {
            assert_eq!(parse(&bytes[..end]), Ok(ProxyHeader::Partial), "{end} of {bytes:?}");
        }
        assert_eq!(complete(&bytes).1, client.map(|text| text.parse().unwrap()));
    }
}

fn address() -> impl Strategy<Value = SocketAddr> {
    (any::<std::net::IpAddr>(), any::<u16>()).prop_map(SocketAddr::from)
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[test]
fn our_own_connections_are_local_ones() {
    assert_eq!(write(OnBehalf::Ourselves), v2(0x20, 0x00, &[]));
}

#[test]
fn clients_are_written_as_the_specification_has_them() {
    let who = |client: &str, server: &str| OnBehalf::Client {
        client: client.parse().unwrap(),
        server: server.parse().unwrap(),
    };
    assert_eq!(write(who("192.0.2.7:1025", "10.0.0.1:443")), v2(0x21, 0x11, &v4_body()));
    assert_eq!(write(who("[2001:db8::7]:1025", "[2001:db8::1]:443")), v2(0x21, 0x21, &v6_body()));
    assert_eq!(write(who("[::ffff:192.0.2.7]:1025", "10.0.0.1:443")), v2(0x21, 0x11, &v4_body()));
}

proptest! {
    /// What is written is read back, whatever the families.
    #[test]
    fn what_is_written_is_read_back(client in address(), server in address(), tail in any::<Vec<u8>>()) {
        let header = write(OnBehalf::Client { client, server });
        let bytes = [header.clone(), tail].concat();
        let Ok(ProxyHeader::Complete { length, client: Some(read), server: Some(reached) }) = parse(&bytes) else {
            panic!("{bytes:?}");
        };
        prop_assert_eq!(length, header.len());
        prop_assert_eq!((canonical(read), canonical(reached)), (canonical(client), canonical(server)));
        prop_assert_eq!(read.is_ipv4(), reached.is_ipv4());
    }

    /// However the bytes are cut, the first verdict that is not "more" is the same one.
    #[test]
    fn any_split_gives_the_same_verdict(
        start in prop_oneof![
            Just(b"PROXY TCP4 192.0.2.7 10.0.0.1 1 2\r\n".to_vec()),
            Just(v2(0x21, 0x11, &v4_body())),
            Just(b"PROXY ".to_vec()),
            Just(b"\r\n\r\n\0\r\nQUIT\n".to_vec()),
        ],
        change in proptest::option::of((0_usize..40, any::<u8>())),
        tail in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        let mut bytes = [start, tail].concat();
        if let Some((at, byte)) = change {
            let at = at.min(bytes.len() - 1);
            bytes[at] = byte;
        }
        let whole = parse(&bytes);
        let first = (0..=bytes.len()).map(|end| parse(&bytes[..end])).find(|one| *one != Ok(ProxyHeader::Partial));
        prop_assert_eq!(first.unwrap_or(Ok(ProxyHeader::Partial)), whole);
    }
}

//! Refused connections are seen, each once, and those that came about are not.
#![allow(clippy::unwrap_used)]

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};

use twins::refusals::{Watch, socket};

#[test]
fn each_refused_connection_is_seen_once_and_a_reset_one_is_not() {
    let raw = match socket() {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            testkit::skip("each_refused_connection_is_seen_once_and_a_reset_one_is_not", "CAP_NET_RAW");
            return;
        }
        raw => raw.unwrap(),
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let watch = Watch::start(raw, [addr.port()]);
    let client = TcpStream::connect(addr).unwrap();
    let (server, _) = listener.accept().unwrap();
    socket2::SockRef::from(&server).set_linger(Some(std::time::Duration::ZERO)).unwrap();
    drop((server, listener));
    for _ in 0..3 {
        assert!(TcpStream::connect(addr).is_err());
        assert!(TcpStream::connect(other).is_err());
    }
    drop(client);
    let seen = watch.end().unwrap();
    assert_eq!(seen.iter().map(|(port, times)| (*port, times.len())).collect::<Vec<_>>(), [(addr.port(), 3)]);
    let times = seen.into_values().next().unwrap();
    assert!(times.is_sorted());
}

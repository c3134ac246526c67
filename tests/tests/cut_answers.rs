//! An answer that a destination or a limit cut off never looks whole, whatever both sides speak; what came before is passed
//! on, and nothing is repeated. (h2o/h2o #1031, #2070; envoyproxy/envoy #17186; RFC 9112 8, RFC 9113 8.1, RFC 8446 6.1)

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use end_to_end::clients::http2;
use end_to_end::process::Lazaret;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use testkit::certificates::Authority;
use testkit::client::{Client, End};
use testkit::destination::{Act, Destination, Moment};
use testkit::frames::{Frames, OK};
use testkit::message::Expect;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Goodbye {
    Said,
    Omitted,
}

/// Answers over TLS with a body that ends with the connection.
fn over_tls(config: Arc<ServerConfig>, goodbye: Goodbye) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("a bound listener has an address");
    // Ends with the test's process.
    std::thread::spawn(move || {
        for tcp in listener.incoming().map_while(Result::ok) {
            let tls = ServerConnection::new(Arc::clone(&config)).expect("a configuration");
            let mut stream = StreamOwned::new(tls, tcp);
            let mut head = [0; 4096];
            if stream.read(&mut head).is_ok_and(|n| n > 0) {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nto the end");
                if goodbye == Goodbye::Said {
                    stream.conn.send_close_notify();
                }
                let _ = stream.flush();
                // A FIN, and not the RST of a close over unread bytes.
                let _ = stream.sock.shutdown(std::net::Shutdown::Write);
                let _ = stream.sock.read(&mut head);
            }
        }
    });
    address
}

/// BODY-03
#[test]
fn an_answer_that_is_cut_off_is_seen_as_such_by_clients_of_every_version() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().expect("a folder"));
    let ca = authority.write(folder.path());
    let server = authority.issue(&["localhost"]).server_config();
    let (said, omitted) = (over_tls(Arc::clone(&server), Goodbye::Said), over_tls(server, Goodbye::Omitted));
    let streams = Frames::start(|mut connection| {
        connection.greet(&[]);
        while let Some(request) = connection.request() {
            connection.headers(request.stream, OK, &[], false);
            connection.data(request.stream, b"to the end", false);
            connection.reset(request.stream, 2);
        }
    });
    let stuck = Destination::start(|moment| match moment {
        Moment::Accepted => Vec::new(),
        Moment::Request(_) => {
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n".to_vec();
            vec![Act::Send([head, vec![b'x'; 1 << 20]].concat()), Act::Stall]
        }
    });
    let tls = |name: &str, address: SocketAddr| {
        format!(
            "  {name}:\n    tls: {{ca: \"{}\"}}\n    destinations: {{one: {{address: \"https://localhost:{}/\"}}}}\n",
            ca.display(),
            address.port()
        )
    };
    let clusters = [
        tls("said", said),
        tls("omitted", omitted),
        format!(
            "  streams:\n    http: \"2\"\n    destinations: {{one: {{address: \"http://{}/\"}}}}\n",
            streams.address
        ),
        format!(
            "  stuck:\n    timeouts: {{idle: 500ms}}\n    destinations: {{one: {{address: \"{}\"}}}}\n",
            stuck.url()
        ),
    ];
    let names = ["said", "omitted", "streams", "stuck"];
    let routes = names.map(|name| format!("  {name}: {{match: {{path: \"/{name}/{{**rest}}\"}}, cluster: {name}}}\n"));
    let lazaret = Lazaret::start(&format!("routes:\n{}clusters:\n{}", routes.concat(), clusters.concat()));
    for (name, length) in [("said", 10), ("omitted", 10), ("streams", 10), ("stuck", 1 << 20)] {
        let is_whole = name == "said";
        let path = |version: &str| format!("/{name}/{version}");

        let mut client = Client::connect(lazaret.proxy);
        client.send(format!("GET {} HTTP/1.1\r\nHost: a.test\r\n\r\n", path("1.1")));
        let (message, result) = client.try_response(Expect::Response);
        assert_eq!((message.status(), message.body.len()), (200, length), "{name}: all that came is passed on");
        // Without a length only the connection's end tells, and a RST is none in order.
        assert_eq!(result.is_ok(), is_whole, "{name}: {result:?}");

        let mut client = Client::connect(lazaret.proxy);
        client.send(format!("GET {} HTTP/1.0\r\n\r\n", path("1.0")));
        let (bytes, end) = client.rest();
        // With a length the missing rest tells, else the connection's end alone can.
        let announced = String::from_utf8_lossy(&bytes).contains("Content-Length: ");
        assert!(announced || (end == End::Closed) == is_whole, "{name}: {end:?}");

        let found = http2::run(async {
            let client = http2::connect(lazaret.proxy).await;
            http2::get(&client.requests, &path("2"), &[]).await.expect("a head comes")
        });
        assert_eq!(
            (found.status, found.body.len(), found.reset.is_none()),
            (200, length, is_whole),
            "{name}: {found:?}"
        );

        for version in ["1.1", "1.0", "2"] {
            let line = lazaret.log_line(&path(version));
            let reason = match name {
                "said" => "",
                "stuck" => "body-timeout",
                _ => "body-cut",
            };
            assert_eq!((&line["status"], &line["reason"]), (&200.into(), &reason.into()), "{line}");
            assert_eq!(line["attempts"].as_array().map(Vec::len), Some(1), "{line}");
        }
        let cluster = format!("cluster=\"{name}\"");
        let cuts = lazaret.metric("lazaret_attempts_total", &[&cluster, "outcome=\"cut\""])
            + lazaret.metric("lazaret_attempts_total", &[&cluster, "outcome=\"timeout\""]);
        assert_eq!(cuts, if is_whole { 0.0 } else { 3.0 }, "{name}");
    }
}

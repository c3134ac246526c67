//! A crowd of clients that takes every descriptor it can get locks nobody else out: the control API answers, probes go
//! on, clients that were let in are served, nobody is blamed, and nothing turns in circles.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use end_to_end::probed::Probed;
use end_to_end::process::{Lazaret, get};

#[test]
fn clients_that_take_all_descriptors_lock_nobody_out() {
    let destination = Probed::start("one");
    // One worker lets clients in by their order: the first ones are in.
    let lazaret = Lazaret::start_with_descriptors(
        LIMIT,
        &format!(
            "workers: 1\nroutes:\n  all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}\nclusters:\n  app:\n    health_check:\n      \
             active: {{interval: 200ms, timeout: 1s, path: /health}}\n      passive: {{}}\n    destinations:\n      \
             one: {{address: \"{}\"}}\n",
            destination.url()
        ),
    );
    lazaret.wait_ready();
    let crowd: Vec<TcpStream> = (0..2 * LIMIT).map(|_| TcpStream::connect(lazaret.proxy).expect("queued")).collect();
    lazaret.wait_until("it accepts no more", || lazaret.process.output().contains("all the descriptors"));

    let before = destination.probes().len();
    lazaret.wait_until("probes go on", || destination.probes().len() > before + 5);
    let checked = || get(lazaret.control, "/v1/healthcheck").expect("the control API answers");
    assert_eq!(checked().status, 200, "a crowd is load: the site is not withdrawn for it");
    assert!(lazaret.health("app", "one").starts_with("healthy/"));
    let mut served = 0;
    for mut client in crowd.iter().take(20) {
        client.set_read_timeout(Some(Duration::from_secs(5))).expect("a time above zero");
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("it was let in");
        let mut text = String::new();
        client.read_to_string(&mut text).expect("an answer");
        served += usize::from(text.starts_with("HTTP/1.1 200"));
    }
    assert_eq!(served, 20);

    drop(crowd);
    lazaret.wait_until("a new client is served", || get(lazaret.proxy, "/").is_some_and(|answer| answer.status == 200));
    assert_eq!(checked().status, 200);
    let blamed = lazaret.transitions("one").into_iter().filter(|event| event.to_string().contains("\"unhealthy\""));
    assert_eq!(blamed.count(), 0);
}

const LIMIT: usize = 256;

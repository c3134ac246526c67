//! Failures on which nginx 1.22.1 was measured, and what Lazaret makes of them: a stale connection ejects a healthy server
//! (E10), the time for all tries does not end the one that runs (E11), clients that give up revive one that hangs (E12,
//! E23), and bodies (E20). What `compat: nginx` keeps of it is in `crates/exchange/tests/nginx.rs`. Each test states nginx's
//! in its head.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use end_to_end::control::attempts;
use end_to_end::process::Lazaret;
use testkit::client::Client;
use testkit::destination::{Act, Destination, Moment, answer, refusing};
use testkit::message::Message;

/// E10: with `max_fails=1` one kept connection that the server had closed took it out for 10 s, and the request went to the
/// other one. E10b: the only server got the request again. E10c: a POST was a 502, with one hit.
#[test]
fn a_kept_connection_that_ended_is_no_failure_of_its_destination() {
    // The second request on each connection finds it closed, without an answer.
    let closing = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) if request.number_on_connection == 1 => answer(200, "a"),
        Moment::Request(_) => vec![Act::Close],
    });
    let other = Destination::answering(200, "b");
    let lazaret =
        start(&[("a", closing.addr()), ("b", other.addr())], "", "policies: [{name: MaxFails, max_fails: 1}]");
    for number in 0..10 {
        let response = Client::connect(lazaret.proxy).get(&format!("/{number}"));
        assert_eq!((response.status(), response.text().as_str()), (200, "a"), "request {number}");
    }
    assert_eq!(other.requests().len(), 0);
    // Requests 2, 4, … found the connection of the one before; every other one was fresh.
    assert!(lazaret.metric("lazaret_stale_connections_total", &["destination=\"a\""]) >= 5.0);
    let before = closing.requests().len();
    let answers = [post(&lazaret, "/post", "hello"), post(&lazaret, "/post", "hello")].map(|answer| answer.status());
    assert!(answers.contains(&502), "one of two POSTs meets the closed connection: {answers:?}");
    assert_eq!(closing.requests().len(), before + 2, "no POST was sent twice");
    assert_eq!(lazaret.transitions("a").iter().filter(|one| one["to"] == "unhealthy").count(), 0);
}

/// E11: three servers that hang, a read timeout of 1 s. With `proxy_next_upstream_timeout 1500ms` the client waits for 2.00 s,
/// for the limit is looked at only between two tries; without it 3.01 s.
#[test]
fn the_total_time_ends_the_attempt_that_runs() {
    let hang = || {
        Destination::start(|moment| match moment {
            Moment::Accepted => vec![],
            Moment::Request(_) => vec![Act::Stall],
        })
    };
    let all = [hang(), hang(), hang()];
    let destinations = [("a", all[0].addr()), ("b", all[1].addr()), ("c", all[2].addr())];
    let retry = "per_try_timeout: 1s, client_timeout: 1500ms, network_margin: 0%";
    let lazaret = start(&destinations, retry, "");
    let sent = Instant::now();
    let response = Client::connect(lazaret.proxy).get("/e11");
    let took = sent.elapsed();
    assert_eq!(response.status(), 504);
    assert!((Duration::from_millis(1490)..Duration::from_millis(1900)).contains(&took), "{took:?} (nginx: 2.00 s)");
    let line = lazaret.log_line("/e11");
    assert_eq!(line["reason"], "deadline");
    // Half a second of the one that a try may have: that is held against nobody.
    assert_eq!(attempts(&line), ["a:per_try_timeout", "b:short_deadline"]);
    assert_eq!(all[2].requests().len(), 0);
}

/// E12, E23: a server that hangs and whose clients give up before the read timeout is never ejected; one that was ejected is
/// taken back, since each client that leaves counts as a pass.
#[test]
fn a_destination_that_hangs_is_found_though_every_client_gives_up_first() {
    let hanging = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => vec![Act::Stall],
    });
    let good = Destination::answering(200, "b");
    let lazaret = start(&[("a", hanging.addr()), ("b", good.addr())], "", "policies: [Stall]");
    // 12 clients of which each gives up after 600 ms: up to 12 wait at a time.
    let until = Instant::now() + Duration::from_secs(5);
    let clients: Vec<_> = (0..12)
        .map(|_| {
            let proxy = lazaret.proxy;
            std::thread::spawn(move || {
                while Instant::now() < until {
                    let mut client = Client::connect(proxy);
                    client.within(Duration::from_millis(600));
                    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
                    let (_, answered) = client.try_response(testkit::message::Expect::Response);
                    if answered.is_ok() {
                        std::thread::sleep(Duration::from_millis(50));
                    }
                }
            })
        })
        .collect();
    for client in clients {
        client.join().expect("a client ends");
    }
    let events = lazaret.document("/api/journal");
    let list = events["events"].as_array().expect("the journal is a list");
    let suspected = list.iter().any(|one| one["event"] == "share" && one["by"] == "Stall" && one["destination"] == "a");
    assert!(suspected, "{events}");
    let (hung, served) = (hanging.requests().len(), good.requests().len());
    for one in list.iter().filter(|one| one["event"] == "share") {
        println!("{} {} {}", one["at"], one["destination"], one["share"]);
    }
    println!("{hung} requests hung, {served} were served");
    assert!(hung < 60 && served > hung, "{hung} requests hung, {served} were served");
}

/// E20: a body of 10 bytes was sent again; one of 400 kB that had begun to stream was not, after a 500; it was after a
/// refused connection.
#[test]
fn a_body_is_sent_again_as_long_as_all_of_it_is_kept_and_whatever_its_length_when_none_of_it_left() {
    let resetting = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => vec![Act::ReadBody, Act::Reset],
    });
    let good = Destination::answering(200, "b");
    let large = "x".repeat(400_000);
    let lazaret = start(&[("a", resetting.addr()), ("b", good.addr())], "", "");
    assert_eq!(send(&lazaret, "PUT", "/small", "0123456789").status(), 200);
    assert_eq!(attempts(&lazaret.log_line("/small")), ["a:reset", "b:ok"]);
    assert_eq!(send(&lazaret, "PUT", "/large", &large).status(), 502);
    let line = lazaret.log_line("/large");
    assert_eq!((attempts(&line), &line["retry_denied"]), (vec!["a:reset".to_owned()], &serde_json::json!("body")));

    let dead = start(&[("a", refusing()), ("b", good.addr())], "", "");
    assert_eq!(send(&dead, "POST", "/unsent", &large).status(), 200);
    assert_eq!(good.requests_to("/unsent")[0].message.text(), large);
}

/// `a` is always the first.
fn start(destinations: &[(&str, SocketAddr)], retry: &str, passive: &str) -> Lazaret {
    let list: Vec<_> =
        destinations.iter().map(|(id, address)| format!("{id}: {{address: \"http://{address}/\"}}")).collect();
    let balancing = if passive.contains("Stall") { "RoundRobin" } else { "FirstAlphabetical" };
    let checks = if passive.is_empty() { String::new() } else { format!("passive: {{{passive}}}") };
    Lazaret::start(&format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    load_balancing: \
         {balancing}\n    retry: {{{retry}}}\n    health_check: {{{checks}}}\n    destinations: {{{}}}\n",
        list.join(", ")
    ))
}

fn send(lazaret: &Lazaret, method: &str, path: &str, body: &str) -> Message {
    let mut client = Client::connect(lazaret.proxy);
    let head = format!("{method} {path} HTTP/1.1\r\nHost: a.test\r\nContent-Length: {}\r\n\r\n", body.len());
    client.send(head);
    let _ = client.try_send(body);
    client.response()
}

fn post(lazaret: &Lazaret, path: &str, body: &str) -> Message {
    send(lazaret, "POST", path, body)
}

//! What each kind of answer to a probe comes to.

use std::time::Duration;

use io::sim::Sim;
use model::active::ActiveCheck;
use model::health::Health;
use model::outcome::FailureKind;

use crate::destination::{Answer, Destination, status};
use crate::world::{check, cluster, config, millis, run, secs};

/// Asserts the verdict after 20 intervals, that probes were evenly spaced and that none overlapped or was left open.
async fn assert_verdict(
    check: ActiveCheck,
    name: &str,
    answer: Answer,
    failure: Option<FailureKind>,
    code: Option<u16>,
) {
    let io = Sim::new();
    let destination = Destination::start(&io, "10.0.0.1:80", answer);
    let config = config(vec![cluster("a", Some(check), &[("one", "http://10.0.0.1/")])]);
    run(io, config, async |world| {
        world.pass(millis(20_700)).await;
        let expected = if failure.is_some() { Health::Unhealthy } else { Health::Healthy };
        let health = world.health("a", "one");
        assert_eq!(
            (health.health.active, health.probe_failure, health.probe_status),
            (expected, failure, code),
            "{name}"
        );
        let n = destination.asked_at().len();
        assert!((20..=22).contains(&n), "{name}: {n} probes");
        assert_eq!(destination.open().1, 1, "{name}");
        // One transition: the verdict never wavers.
        let transitions = world.events().into_iter().filter(|e| matches!(e, model::event::EventKind::Transition(_)));
        assert_eq!(transitions.count(), 1, "{name}");
    })
    .await;
}

/// HEALTH-13
#[tokio::test(start_paused = true)]
async fn odd_answers_are_judged_by_their_head_and_garbage_has_a_reason() {
    let close = |text: &str| Answer::Close(text.to_owned());
    let endless = |head: &str, chunk: &str| Answer::Endless(head.to_owned(), chunk.to_owned(), millis(50));
    let large = format!("HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n{}", "x".repeat(10_000_000));
    let unending_head = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(200_000));
    for (name, answer, failure, status) in [
        ("200", status(200), None, Some(200)),
        ("204", close("HTTP/1.1 204 No Content\r\n\r\n"), None, Some(204)),
        ("200 with 10 MB", Answer::Close(large), None, Some(200)),
        ("200 and closed", close("HTTP/1.1 200 OK\r\n\r\nhalf"), None, Some(200)),
        ("200 and kept", Answer::Keep("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_owned()), None, Some(200)),
        (
            "endless chunks",
            endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"),
            None,
            Some(200),
        ),
        (
            "1xx then 200",
            close("HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
            None,
            Some(200),
        ),
        (
            "301 to a login",
            close("HTTP/1.1 301 Moved\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n"),
            Some(FailureKind::Status),
            Some(301),
        ),
        ("500", status(500), Some(FailureKind::Status), Some(500)),
        (
            "101",
            Answer::Keep("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n".to_owned()),
            Some(FailureKind::Status),
            Some(101),
        ),
        ("bad status line", close("HTTP/1.1 2x0 OK\r\n\r\n"), Some(FailureKind::Protocol), None),
        ("HTTP/0.9", close("<html>fine</html>"), Some(FailureKind::Protocol), None),
        ("half a head", close("HTTP/1.1 200 OK\r\nContent-"), Some(FailureKind::Protocol), None),
        ("unending interims", endless("", "HTTP/1.1 102 Processing\r\n\r\n"), Some(FailureKind::HeadTimeout), None),
        (
            "flood of interims",
            Answer::Close("HTTP/1.1 102 Processing\r\n\r\n".repeat(100)),
            Some(FailureKind::Protocol),
            None,
        ),
        ("unending head", Answer::Keep(unending_head), Some(FailureKind::HeadTooLarge), None),
        ("closed without a word", close(""), Some(FailureKind::Closed), None),
        ("reset", Answer::Reset, Some(FailureKind::Reset), None),
        ("slow head", endless("HTTP/1.1 200 OK\r\n", "x: y\r\n"), Some(FailureKind::HeadTimeout), None),
    ] {
        assert_verdict(check(), name, answer, failure, status).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_redirect_counts_where_it_is_expected() {
    let mut check = check();
    check.request.expect_statuses = vec![model::active::StatusRange { low: 301, high: 301 }];
    let answer = Answer::Close("HTTP/1.1 301 Moved\r\nLocation: /login\r\n\r\n".to_owned());
    assert_verdict(check.clone(), "301", answer, None, Some(301)).await;
    assert_verdict(check, "200", status(200), Some(FailureKind::Status), Some(200)).await;
}

#[tokio::test(start_paused = true)]
async fn an_expected_text_must_stand_within_the_first_64_kib_of_the_body() {
    let mut check = check();
    check.request.expect_body = Some("all is well".to_owned());
    let body = |before: usize| {
        Answer::Close(format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}all is well", " ".repeat(before)))
    };
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\nall is \r\n4\r\nwell\r\n0\r\n\r\n";
    let endless = Answer::Endless(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
        "1\r\nx\r\n".to_owned(),
        Duration::from_millis(50),
    );
    let cut = Answer::Close("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nall is".to_owned());
    let broken = Answer::Close("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_owned());
    for (name, answer, failure) in [
        ("at once", body(0), None),
        ("just within", body(65_536 - 11), None),
        ("in two chunks", Answer::Close(chunked.to_owned()), None),
        ("one byte too far", body(65_536 - 10), Some(FailureKind::Body)),
        ("not at all", status(200), Some(FailureKind::Body)),
        ("without end", endless, Some(FailureKind::BodyTimeout)),
        ("broken off", cut, Some(FailureKind::BodyCut)),
        ("no chunks", broken, Some(FailureKind::Protocol)),
    ] {
        assert_verdict(check.clone(), name, answer, failure, Some(200)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_says_where_it_goes_and_who_asks() {
    let io = Sim::new();
    let plain = Destination::start(&io, "10.0.0.1:80", status(200));
    let named = Destination::start(&io, "10.0.0.2:8081", status(200));
    let mut check = check();
    check.request.query = Some("?deep=1".to_owned());
    check.request.headers = vec![("X-Probe".to_owned(), "yes".to_owned())];
    let mut cluster = cluster("a", Some(check), &[("plain", "http://10.0.0.1/"), ("named", "http://10.0.0.9/")]);
    cluster.destinations[1].health = Some(model::address::Url::parse("http://10.0.0.2:8081/base/?lost").unwrap());
    cluster.destinations[1].host = Some("svc.local".to_owned());
    run(io, config(vec![cluster]), async |world| {
        world.pass(secs(1)).await;
        let version = env!("CARGO_PKG_VERSION");
        let agent =
            format!("User-Agent: lazaret/{version} (health probe)\r\nX-Probe: yes\r\nConnection: close\r\n\r\n");
        assert_eq!(plain.heads()[0], format!("GET /health?deep=1 HTTP/1.1\r\nHost: 10.0.0.1\r\n{agent}"));
        assert_eq!(named.heads()[0], format!("GET /base/health?deep=1 HTTP/1.1\r\nHost: svc.local\r\n{agent}"));
    })
    .await;
}

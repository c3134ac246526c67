//! Each behaviour as a client sees it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use patients::{Behaviour, End as Finish, Patient, Task, Work};
use testkit::client::{Client, End};
use testkit::eventually;
use testkit::message::Expect;

const BOUND: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(200);

/// Runs blocking client code beside a patient.
async fn blocking<T: Send + 'static>(client: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(client).await.unwrap()
}

#[tokio::test]
async fn a_healthy_patient_answers_and_counts_probes_apart() {
    let patient = Patient::start("red").await.unwrap();
    let addr = patient.addr();
    let (first, probe) = blocking(move || {
        let mut client = Client::connect(addr);
        client.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
        (client.response(), client.get("/health"))
    })
    .await;
    assert_eq!(
        (first.status(), first.text().as_str(), first.value("x-patient").as_deref()),
        (200, "red\n", Some("red"))
    );
    assert_eq!(probe.status(), 200);
    let counts = patient.counts();
    assert_eq!((counts.connections, counts.requests, counts.probes), (1, 1, 1));
}

#[tokio::test]
async fn health_can_behave_otherwise_than_traffic() {
    let patient = Patient::start("red").await.unwrap();
    patient.set_health(Some(Behaviour::Fail(503)));
    let addr = patient.addr();
    let statuses = blocking(move || {
        let mut client = Client::connect(addr);
        (client.get("/health").status(), client.get("/").status())
    });
    assert_eq!(statuses.await, (503, 200));
}

#[tokio::test]
async fn a_dead_patient_resets_refuses_and_comes_back_at_its_address() {
    let patient = Patient::start("red").await.unwrap();
    let addr = patient.addr();
    let mut client = blocking(move || {
        let mut client = Client::connect(addr);
        assert_eq!(client.get("/").status(), 200);
        client
    })
    .await;
    patient.set(Behaviour::Die);
    assert_eq!(blocking(move || client.rest().1).await, End::Reset);
    blocking(move || eventually("it refuses", BOUND, || std::net::TcpStream::connect(addr).is_err().then_some(())))
        .await;
    patient.set(Behaviour::default());
    let status = blocking(move || {
        eventually("it listens again", BOUND, || std::net::TcpStream::connect(addr).is_ok().then_some(()));
        Client::connect(addr).get("/").status()
    });
    assert_eq!(status.await, 200);
}

#[tokio::test]
async fn a_hang_is_for_ever_and_a_pause_is_not() {
    let patient = Patient::start("red").await.unwrap();
    let addr = patient.addr();
    let silent = move || {
        let mut client = Client::connect(addr);
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.within(SHORT).rest().1, End::Open);
        client
    };
    patient.set(Behaviour::Hang);
    let mut hung = blocking(silent).await;
    patient.set(Behaviour::Pause);
    let mut paused = blocking(silent).await;
    patient.set(Behaviour::Serve(Duration::from_millis(1)));
    let status = blocking(move || {
        assert_eq!(hung.rest().1, End::Open);
        paused.within(BOUND).response().status()
    });
    assert_eq!(status.await, 200);
}

#[tokio::test]
async fn bodies_come_slowly_or_are_cut_and_garbage_is_no_http() {
    let patient = Patient::start("red").await.unwrap();
    let addr = patient.addr();
    patient.set(Behaviour::SlowBody(Duration::from_millis(1)));
    assert_eq!(blocking(move || Client::connect(addr).get("/").body.len()).await, 100);
    patient.set(Behaviour::CutBody);
    let (message, result) = blocking(move || {
        let mut client = Client::connect(addr);
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        client.try_response(Expect::Response)
    })
    .await;
    assert_eq!(message.status(), 200);
    assert!(result.is_err());
    patient.set(Behaviour::Garbage);
    let bytes = blocking(move || {
        let mut client = Client::connect(addr);
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        client.rest().0
    });
    assert!(bytes.await.starts_with(b"\x00\x01"));
}

#[tokio::test(start_paused = true)]
async fn a_script_changes_the_behaviour_at_its_times() {
    let patient = Patient::start("red").await.unwrap();
    patient.play("0s serve 5ms; 10s die; 25s fail 500".parse().unwrap());
    let mut seen = Vec::new();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(9_500)).await;
        seen.push(patient.behaviour().to_string());
    }
    assert_eq!(seen, ["serve 5ms", "die", "fail 500"]);
}

#[tokio::test]
async fn one_that_refuses_finishes_its_work_and_closes_what_is_idle() {
    let task = Task { takes: SHORT, end: Finish::Answer(200) };
    let work = Work { concurrency: 4, backlog: 0, on_full: 503, task: Arc::new(move |_| task) };
    let patient = Patient::work("red", work).await.unwrap();
    let addr = patient.addr();
    let (mut idle, mut busy) = blocking(move || {
        let (mut idle, mut busy) = (Client::connect(addr), Client::connect(addr));
        assert_eq!(idle.get("/").status(), 200);
        busy.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        (idle, busy)
    })
    .await;
    while patient.counts().requests < 2 {
        tokio::task::yield_now().await;
    }
    patient.set(Behaviour::Refuse);
    let (response, ends) = blocking(move || (busy.response(), [busy.rest().1, idle.rest().1])).await;
    assert_eq!((response.status(), response.value("connection").as_deref()), (200, Some("close")));
    assert_eq!(ends, [End::Closed, End::Closed]);
    blocking(move || eventually("it refuses", BOUND, || std::net::TcpStream::connect(addr).is_err().then_some(())))
        .await;
}

#[tokio::test]
async fn work_has_so_many_places_a_queue_and_an_end_for_each_request() {
    let work = Work {
        concurrency: 1,
        backlog: 1,
        on_full: 503,
        task: Arc::new(|path| match path {
            "/long" => Task { takes: Duration::from_secs(3600), end: Finish::Answer(200) },
            "/reset" => Task { takes: Duration::ZERO, end: Finish::Reset },
            "/cut" => Task { takes: Duration::ZERO, end: Finish::Cut },
            _ => Task { takes: Duration::ZERO, end: Finish::Answer(404) },
        }),
    };
    let patient = Patient::work("red", work).await.unwrap();
    let addr = patient.addr();
    let ask = move |path: &'static str| {
        let mut client = Client::connect(addr);
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        client
    };
    let (status, reset, cut) = blocking(move || {
        let status = ask("/x").response().status();
        (status, ask("/reset").rest(), ask("/cut").try_response(Expect::Response))
    })
    .await;
    assert_eq!((status, reset), (404, (Vec::new(), End::Reset)));
    assert!(cut.0.status() == 200 && cut.1.is_err());

    // One is served, one waits, one is too many, and so is a probe.
    let _served = blocking(move || ask("/long")).await;
    while patient.counts().requests < 4 {
        tokio::task::yield_now().await;
    }
    let mut waiting = blocking(move || ask("/x")).await;
    while patient.counts().requests < 5 {
        tokio::task::yield_now().await;
    }
    let (full, probe) = blocking(move || (ask("/x").response().status(), ask("/health").response().status())).await;
    assert_eq!((full, probe), (503, 503));

    // What hangs is lost for ever, also for those that wait.
    patient.set(Behaviour::Hang);
    assert_eq!(blocking(move || waiting.within(SHORT).rest()).await, (Vec::new(), End::Open));
    patient.set(Behaviour::default());
    let (status, probe) = blocking(move || (ask("/x").response().status(), ask("/health").response().status())).await;
    assert_eq!((status, probe), (404, 200), "its places are free again");

    // Told to pass, a probe passes where nothing else does.
    patient.set_health(Some(Behaviour::default()));
    for stuck in [Behaviour::Hang, Behaviour::Pause] {
        patient.set(stuck);
        assert_eq!(blocking(move || ask("/health").response().status()).await, 200, "{stuck}");
    }
}

#[tokio::test]
async fn a_pause_shifts_what_is_being_served_by_its_length() {
    let task = Task { takes: SHORT, end: Finish::Answer(200) };
    let work = Work { concurrency: 4, backlog: 0, on_full: 503, task: Arc::new(move |_| task) };
    let patient = Patient::work("red", work).await.unwrap();
    let addr = patient.addr();
    let mut client = blocking(move || {
        let mut client = Client::connect(addr);
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        client
    })
    .await;
    while patient.counts().requests < 1 {
        tokio::task::yield_now().await;
    }
    patient.set(Behaviour::Pause);
    let mut client = blocking(move || {
        assert_eq!(client.within(SHORT * 3).rest(), (Vec::new(), End::Open));
        client
    })
    .await;
    patient.set(Behaviour::default());
    assert_eq!(blocking(move || client.within(BOUND).response().status()).await, 200);
}

#[tokio::test]
async fn one_that_works_can_be_probed_at_a_second_port_that_lives_and_dies_with_the_first() {
    let task = Task { takes: Duration::ZERO, end: Finish::Answer(200) };
    let work = Work { concurrency: 4, backlog: 0, on_full: 503, task: Arc::new(move |_| task) };
    let patient = Patient::work("red", work).await.unwrap();
    let (addr, probed_at) = (patient.addr(), patient.probed_at());
    assert_ne!(addr, probed_at);
    assert_eq!(blocking(move || Client::connect(probed_at).get("/health").status()).await, 200);
    assert_eq!((patient.counts().requests, patient.counts().probes), (0, 1));
    let are = move |what: &'static str, is_open: bool| {
        let is_so = move |addr| std::net::TcpStream::connect(addr).is_ok() == is_open;
        blocking(move || eventually(what, BOUND, || (is_so(addr) && is_so(probed_at)).then_some(())))
    };
    patient.set(Behaviour::Die);
    are("both refuse", false).await;
    patient.set(Behaviour::default());
    are("both listen", true).await;
}

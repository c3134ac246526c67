//! SIGUSR2: a new process takes over with the same sockets and the same knowledge, and nobody notices.
//!
//! `LAZARET_LONG=1` makes 20 upgrades in place of 3.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use end_to_end::control::is_long;
use end_to_end::generations::Generations;
use end_to_end::load::{Load, run};
use end_to_end::probed::Probed;
use end_to_end::process::get;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::destination::{Act, Destination, Moment, answer};

const PROBES: Duration = Duration::from_millis(500);

/// A cluster that is probed and whose traffic is judged.
fn config(workers: usize, destinations: &[(&str, &Probed)]) -> String {
    let list: Vec<_> = destinations.iter().map(|(id, one)| format!("{id}: {{address: \"{}\"}}", one.url())).collect();
    format!(
        "workers: {workers}\nroutes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    \
         health_check:\n      active: {{interval: 500ms, timeout: 400ms, path: /health}}\n      passive: {{policies: \
         [{{name: MaxFails, max_fails: 1, fail_timeout: 10m}}]}}\n    destinations: {{{}}}\n",
        list.join(", ")
    )
}

#[test]
fn upgrades_under_load_fail_no_request_and_reach_no_ejected_destination() {
    let upgrades = if is_long() { 20 } else { 3 };
    let pause = Duration::from_millis(700);
    let (a, b, sick) = (Probed::start("a"), Probed::start("b"), Probed::start("sick"));
    sick.turn_content(503);
    let generations = Generations::start(&config(2, &[("a", &a), ("b", &b), ("sick", &sick)]));
    let lazaret = &generations.lazaret;
    lazaret.wait_ready();
    lazaret.wait_until("traffic ejects the sick one", || {
        get(lazaret.proxy, "/");
        lazaret.health("app", "sick") == "healthy/unhealthy"
    });
    let served = sick.served();

    // One crowd keeps its connections, another one makes a new one for each request.
    let is_over = Arc::new(AtomicBool::new(false));
    let duration = (pause + Duration::from_secs(2)) * upgrades;
    let load = Load { to: lazaret.proxy, clients: 8, rate: 400, duration, post_every: 5, path: "/" };
    let keeping = std::thread::spawn(move || run(&load));
    let (sent, failed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let coming: Vec<_> = (0..4)
        .map(|_| {
            let (is_over, sent, failed) = (Arc::clone(&is_over), Arc::clone(&sent), Arc::clone(&failed));
            let to = lazaret.proxy;
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    sent.fetch_add(1, Ordering::Relaxed);
                    let is_good = get(to, "/").is_some_and(|answer| answer.status == 200);
                    failed.fetch_add(usize::from(!is_good), Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(5));
                }
            })
        })
        .collect();

    let from = Instant::now();
    let mut serving = i32::try_from(lazaret.process.id()).expect("a pid fits");
    for number in 1..=upgrades {
        serving = generations.upgrade(serving);
        assert!(generations.pids().len() <= 3, "upgrade {number}: {:?}", generations.pids());
        assert_eq!(lazaret.health("app", "sick"), "healthy/unhealthy", "upgrade {number}");
        assert_eq!(get(lazaret.control, "/readyz").map(|answer| answer.status), Some(200), "upgrade {number}");
        std::thread::sleep(pause);
    }
    let until = from.elapsed();
    let probes = [&a, &b, &sick].map(|one| one.probes_since(from).len());
    let outcome = keeping.join().expect("the load ends");
    is_over.store(true, Ordering::Relaxed);
    coming.into_iter().for_each(|thread| thread.join().expect("it ends"));

    assert!(outcome.sent > 400, "{} requests were sent", outcome.sent);
    assert_eq!(outcome.ok, outcome.sent, "{:?}", outcome.failures);
    assert_eq!(failed.load(Ordering::Relaxed), 0, "of {}", sent.load(Ordering::Relaxed));
    assert_eq!(sick.served(), served, "requests reached the ejected one");
    let due = until.as_secs_f64() / PROBES.as_secs_f64();
    for count in probes {
        // Each upgrade may cut one off and repeat it.
        let most = due * 1.1 + 2.0 + f64::from(upgrades);
        assert!((count as f64) < most && count as f64 > due * 0.6, "{count} probes, about {due} are due");
    }
    generations.wait_for(1);
}

#[test]
fn a_new_process_that_does_not_come_up_leaves_the_old_one_serving() {
    let a = Probed::start("a");
    let mut generations = Generations::start(&config(1, &[("a", &a)]));
    generations.lazaret.wait_ready();
    let instance = generations.instance();
    let good = std::fs::read(generations.lazaret.config_file()).expect("it is there");
    let failures = |generations: &Generations| generations.lazaret.process.output().matches("no upgrade").count();
    // Refused by the reader; and one that comes further: a listener whose address somebody else has.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let other = taken.local_addr().expect("it is bound");
    let bad = format!("listeners: {{web: {{address: \"$PROXY\"}}, more: {{address: \"{other}\"}}}}\n");
    for (number, body) in ["nonsense: 1\n".to_owned(), bad + &config(1, &[("a", &a)])].iter().enumerate() {
        generations.lazaret.write(body);
        generations.lazaret.process.signal(Signal::SIGUSR2);
        generations.lazaret.wait_until("the failure is told", || failures(&generations) == number + 1);
        assert_eq!(generations.instance(), instance);
        assert_eq!(get(generations.lazaret.proxy, "/").map(|answer| answer.status), Some(200));
        assert_eq!(generations.pids().len(), 1);
        let socket = generations.lazaret.folder.path().join("control.sock");
        assert!(std::os::unix::net::UnixStream::connect(socket).is_ok(), "the control socket is still there");
    }
    let from = Instant::now();
    generations.lazaret.wait_until("it probes again", || a.probes_since(from).len() >= 2);
    // And it can still be upgraded.
    std::fs::write(generations.lazaret.config_file(), good).expect("the folder is ours");
    let first = i32::try_from(generations.lazaret.process.id()).expect("a pid fits");
    generations.upgrade(first);
    assert_eq!(generations.lazaret.process.wait(Duration::from_secs(20)).code(), Some(0));
    assert_eq!(get(generations.lazaret.proxy, "/").map(|answer| answer.status), Some(200));
}

#[test]
fn a_hang_up_in_an_upgrade_or_after_it_is_for_the_process_that_serves() {
    let (a, held) = (
        Probed::start("a"),
        Destination::start(|moment| match moment {
            Moment::Accepted => Vec::new(),
            Moment::Request(_) => vec![Act::Stall],
        }),
    );
    let body = |status: u16| {
        format!(
            "routes: {{held: {{match: {{path: /held}}, cluster: held}}, all: {{respond: {{status: {status}}}}}}}\nclusters:\n  \
             held: {{destinations: {{h: {{address: \"{}\"}}}}}}\n  app: {{destinations: {{a: {{address: \"{}\"}}}}}}\n",
            held.url(),
            a.url()
        )
    };
    let generations = Generations::start(&body(201));
    let lazaret = &generations.lazaret;
    let answers = |status| get(lazaret.proxy, "/").is_some_and(|answer| answer.status == status);
    assert!(answers(201));
    // What is in flight keeps the first process alive.
    let mut client = TcpStream::connect(lazaret.proxy).expect("it accepts");
    client.write_all(b"GET /held HTTP/1.1\r\nHost: h\r\n\r\n").expect("it reads");
    lazaret.wait_until("it is in flight", || !held.requests().is_empty());

    let before = generations.instance();
    lazaret.process.signal(Signal::SIGUSR2);
    lazaret.wait_until("the upgrade is under way", || lazaret.process.output().contains("is to take over"));
    lazaret.write(&body(202));
    lazaret.hang_up();
    lazaret.wait_until("another process serves", || generations.instance().is_some_and(|now| Some(now) != before));
    lazaret.wait_until("it has read what was there at the signal", || answers(202));
    lazaret.write(&body(203));
    lazaret.hang_up();
    lazaret.wait_until("the old one passes it on", || answers(203));
    assert!(!lazaret.process.output().contains("refused"), "{}", lazaret.process.output());
}

#[test]
fn another_number_of_workers_serves_every_inherited_socket() {
    let a = Probed::start("a");
    let generations = Generations::start(&config(3, &[("a", &a)]));
    generations.lazaret.wait_ready();
    let mut serving = i32::try_from(generations.lazaret.process.id()).expect("a pid fits");
    for workers in [1, 4, 2] {
        generations.lazaret.write(&config(workers, &[("a", &a)]));
        serving = generations.upgrade(serving);
        generations.wait_for(1);
        // The kernel spreads them over all sockets.
        for number in 0..60 {
            let answer = get(generations.lazaret.proxy, "/");
            assert_eq!(answer.map(|answer| answer.status), Some(200), "{workers} workers, connection {number}");
        }
    }
}

#[test]
fn a_listener_that_an_upgrade_removes_serves_who_waits_and_a_new_one_is_bound() {
    let a = Probed::start("a");
    let more = end_to_end::process::free_address();
    let body = config(2, &[("a", &a)]);
    let with_more = format!("listeners: {{web: {{address: \"$PROXY\"}}, more: {{address: \"{more}\"}}}}\n{body}");
    let generations = Generations::start(&with_more);
    generations.lazaret.wait_ready();
    assert_eq!(get(more, "/").map(|answer| answer.status), Some(200));
    generations.lazaret.write(&body);
    let first = i32::try_from(generations.lazaret.process.id()).expect("a pid fits");
    let second = generations.upgrade(first);
    generations.wait_for(1);
    assert!(TcpStream::connect(more).is_err(), "nobody holds the socket any more");
    generations.lazaret.write(&with_more);
    generations.upgrade(second);
    assert_eq!(get(more, "/").map(|answer| answer.status), Some(200));
}

#[test]
fn a_third_upgrade_ends_the_oldest_process_and_a_stop_ends_the_serving_one() {
    let slow = Destination::start(|moment| match moment {
        Moment::Accepted => Vec::new(),
        Moment::Request(request) if request.message.target() == "/slow" => vec![Act::Stall],
        Moment::Request(_) => answer(200, "ok"),
    });
    let body = format!(
        "workers: 1\nroutes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters: {{app: {{destinations: \
         {{a: {{address: \"{}\"}}}}}}}}\n",
        slow.url()
    );
    let generations = Generations::start(&body);
    let mut serving = i32::try_from(generations.lazaret.process.id()).expect("a pid fits");
    let mut held = Vec::new();
    for number in 1..=4 {
        // Keeps the process that serves now alive.
        let mut stream = TcpStream::connect(generations.lazaret.proxy).expect("it serves");
        stream.write_all(b"GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n").expect("it reads");
        let is_there = || slow.requests().iter().filter(|one| one.message.target() == "/slow").count() == number;
        generations.lazaret.wait_until("the request is in flight", is_there);
        held.push(stream);
        serving = generations.upgrade(serving);
        // Two old ones at most, and the one that serves.
        generations.wait_for(if number == 1 { 2 } else { 3 });
    }
    let mut cut = held.remove(0);
    cut.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket takes a timeout");
    let is_cut = !matches!(cut.read(&mut [0; 64]), Ok(n) if n > 0);
    assert!(is_cut, "the oldest process has ended");
    kill(Pid::from_raw(serving), Signal::SIGTERM).expect("the process is ours");
    generations.wait_for(2);
    assert!(TcpStream::connect(generations.lazaret.proxy).is_err(), "nobody serves any more");
}

//! Places at destinations and the queue before them, on which HAProxy 2.6.12 (H8) and nginx 1.22.1 (E19) were measured, over
//! loopback, each with two servers that take one request at a time. Each test states theirs in its head.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use end_to_end::process::Lazaret;
use testkit::client::Client;
use testkit::destination::{Act, Destination, Moment, answer};
use testkit::wait::eventually;

/// A request takes so long.
const SERVICE: Duration = Duration::from_millis(550);

/// H8: `maxconn 1` on each, six at once of 0.5 s: they end after 0.5, 1.0 and 1.5 s, all 200.
#[test]
fn six_at_once_at_two_places_are_served_two_by_two() {
    let (a, b) = (slow(), slow());
    let lazaret = Lazaret::start(&config(&a, &b, "queue: {busy_timeout: 2s}", 1));
    let all = at_once(lazaret.proxy, 6);
    println!("{all:?} (HAProxy: 0.5, 0.5, 1.0, 1.0, 1.5, 1.5 s)");
    for ((status, took), round) in all.iter().zip([1u32, 1, 2, 2, 3, 3]) {
        assert_eq!(*status, 200);
        assert!((SERVICE * round..SERVICE * (round + 1)).contains(took), "{all:?}");
    }
    assert_eq!((a.requests().len(), b.requests().len()), (3, 3), "who is free takes the next");
}

/// H8b: fourteen at once, `timeout queue 2s`: eight served, six 503. Ours say in how many seconds to come again, and what is
/// too many for the queue is told at once instead of after the wait.
#[test]
fn of_fourteen_at_once_eight_are_served_and_six_told_to_come_again() {
    let (a, b) = (slow(), slow());
    let lazaret = Lazaret::start(&config(&a, &b, "queue: {busy_timeout: 2s}", 1));
    let all = at_once(lazaret.proxy, 14);
    println!("{all:?} (HAProxy: 8 served, 6 x 503)");
    assert_eq!(all.iter().filter(|(status, _)| *status == 200).count(), 8, "{all:?}");
    for (_, took) in all.iter().filter(|(status, _)| *status == 503) {
        assert!((Duration::from_secs(2)..Duration::from_secs(3)).contains(took), "{all:?}");
    }
    assert_eq!(lazaret.metric("lazaret_queued_total", &["result=\"queue-timeout\""]), 6.0);
    assert_eq!(lazaret.metric("lazaret_queued_total", &["result=\"served\""]), 6.0);

    let short = Lazaret::start(&config(&a, &b, "queue: {busy_timeout: 2s, length: 2}", 1));
    let all = at_once(short.proxy, 6);
    let at_once = |(status, took): &&(u16, Duration)| *status == 503 && *took < SERVICE;
    assert_eq!(all.iter().filter(at_once).count(), 2, "{all:?}");
    assert_eq!(all.iter().filter(|(status, _)| *status == 200).count(), 4, "{all:?}");
}

/// E19: `max_conns=1` on each, five at once: two are 200, three 502, at once: it has no queue.
#[test]
fn five_at_once_at_two_places_are_all_served_and_as_in_nginx_where_that_is_asked_for() {
    let (a, b) = (slow(), slow());
    let lazaret = Lazaret::start(&config(&a, &b, "queue: {busy_timeout: 2s}", 1));
    let all = at_once(lazaret.proxy, 5);
    println!("{all:?} (nginx: 2 x 200, 3 x 502)");
    assert!(all.iter().all(|(status, _)| *status == 200), "{all:?}");

    let nginx = Lazaret::start(&config(&a, &b, "compat: nginx", 1));
    let all = at_once(nginx.proxy, 5);
    assert_eq!(all.iter().map(|(status, _)| *status).collect::<Vec<_>>(), [502, 502, 502, 200, 200]);
    assert!(all.iter().take(3).all(|(_, took)| *took < SERVICE), "{all:?}");
}

/// A reload gives those that wait more places, in order; nobody is lost.
#[test]
fn a_reload_that_allows_more_serves_those_that_wait() {
    let (a, b) = (slow(), slow());
    let lazaret = Lazaret::start(&config(&a, &b, "queue: {busy_timeout: 20s}", 1));
    let proxy = lazaret.proxy;
    let clients = std::thread::spawn(move || at_once(proxy, 8));
    eventually("six wait", Duration::from_secs(5), || {
        (lazaret.metric("lazaret_queue_waiting", &[]) >= 6.0).then_some(())
    });
    lazaret.write(&config(&a, &b, "queue: {busy_timeout: 20s}", 4));
    lazaret.hang_up();
    let all = clients.join().expect("the clients end");
    assert!(all.iter().all(|(status, _)| *status == 200), "{all:?}");
    let last = all.last().expect("eight of them").1;
    assert!(last < SERVICE * 3, "with one place at each it takes four rounds: {all:?}");
}

/// Status and time of each, in the order in which they ended.
fn at_once(proxy: SocketAddr, n: usize) -> Vec<(u16, Duration)> {
    let clients: Vec<Client> = (0..n).map(|_| Client::connect(proxy)).collect();
    let start = Instant::now();
    let ask = move |mut client: Client| {
        client.within(Duration::from_secs(20));
        let status = client.get("/").status();
        (status, start.elapsed())
    };
    let threads: Vec<_> = clients.into_iter().map(|client| std::thread::spawn(move || ask(client))).collect();
    let mut all: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("a client ends")).collect();
    all.sort_by_key(|(_, took)| *took);
    all
}

/// Answers after its time.
fn slow() -> Destination {
    Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => [vec![Act::Pause(SERVICE)], answer(200, "here")].concat(),
    })
}

fn config(a: &Destination, b: &Destination, cluster: &str, most: u32) -> String {
    let place = |destination: &Destination| format!("{{address: \"{}\", max_connections: {most}}}", destination.url());
    format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    load_balancing: \
         RoundRobin\n    {cluster}\n    destinations: {{a: {}, b: {}}}\n",
        place(a),
        place(b)
    )
}

//! Half of a destination is dead: it hangs its probes and four of five requests, answers the fifth at once, and every client gives
//! up before any limit of ours. Nothing that its requests come to speaks against it, and its answers must not speak for it either:
//! a probe that waits where requests do not was in no queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use end_to_end::process::Lazaret;
use testkit::client::Client;
use testkit::destination::{Act, Destination, Moment, answer};
use testkit::message::Expect;

#[test]
fn a_destination_that_hangs_its_probes_and_most_requests_is_out_though_it_answers_some() {
    let is_hung = Arc::new(AtomicBool::new(false));
    let hung = Arc::clone(&is_hung);
    let half = Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) => {
            let is_in_vain = request.message.target() == "/health" || request.number % 5 != 0;
            if is_in_vain && hung.load(Ordering::SeqCst) { vec![Act::Stall] } else { answer(200, "a") }
        }
    });
    let others = [Destination::answering(200, "b"), Destination::answering(200, "c")];
    let lazaret = Lazaret::start(&format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    load_balancing: \
         RoundRobin\n    health_check: {{active: {{path: /health, interval: 500ms, timeout: 1s, confirm_interval: 100ms}}, \
         passive: {{}}}}\n    destinations: {{a: {{address: \"{}\"}}, b: {{address: \"{}\"}}, c: {{address: \"{}\"}}}}\n",
        half.url(),
        others[0].url(),
        others[1].url()
    ));
    lazaret.wait_ready();
    let is_over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..12)
        .map(|_| {
            let (proxy, is_over) = (lazaret.proxy, Arc::clone(&is_over));
            thread::spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    let mut client = Client::connect(proxy);
                    client.within(Duration::from_millis(300));
                    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
                    let (_, answered) = client.try_response(Expect::Response);
                    if answered.is_ok() {
                        thread::sleep(Duration::from_millis(20));
                    }
                }
            })
        })
        .collect();
    lazaret.wait_until("it is used", || half.requests_to("/").len() > 20);
    is_hung.store(true, Ordering::SeqCst);
    lazaret.wait_until("it is out by its probes", || lazaret.health("app", "a").starts_with("unhealthy/"));
    is_over.store(true, Ordering::SeqCst);
    clients.into_iter().for_each(|client| client.join().expect("a client ends"));
}

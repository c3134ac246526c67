//! How far ejections by traffic may go, and that probes know no such bound: a cap holds back what the passive side finds, a
//! destination that fails its probes gets nothing whatever the cap (envoyproxy/envoy #12076, #31037; istio/istio #20135),
//! and the last one of a cluster stays although it failed (nginx-proxy/nginx-proxy #1495, aptible/docker-nginx #131).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use end_to_end::load::{Load, Outcome, run};
use end_to_end::process::Lazaret;
use testkit::client::Client;
use testkit::destination::{Act, Destination, Moment, answer, refusing};

/// A destination whose probes and whose traffic fail when they are told to.
struct Switched {
    destination: Destination,
    fails_probes: Arc<AtomicBool>,
    fails_traffic: Arc<AtomicBool>,
}

impl Switched {
    fn start() -> Self {
        let (fails_probes, fails_traffic) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (probes, traffic) = (Arc::clone(&fails_probes), Arc::clone(&fails_traffic));
        let status = |fails: &AtomicBool| if fails.load(Ordering::SeqCst) { 503 } else { 200 };
        let destination = Destination::start(move |moment| match moment {
            Moment::Accepted => vec![],
            Moment::Request(request) if request.message.target() == "/health" => answer(status(&probes), ""),
            Moment::Request(_) => answer(status(&traffic), ""),
        });
        Self { destination, fails_probes, fails_traffic }
    }

    fn served(&self) -> usize {
        self.destination.requests_to("/").len()
    }
}

#[test]
fn a_cap_on_ejections_holds_back_those_by_traffic_and_no_verdict_of_a_probe() {
    let all: Vec<_> = (0..3).map(|_| Switched::start()).collect();
    let [a, b, c] = &all[..] else { panic!("three destinations") };
    let list: Vec<_> = ["a", "b", "c"]
        .iter()
        .zip(&all)
        .map(|(id, one)| format!("{id}: {{address: \"http://{}/\"}}", one.destination.addr()))
        .collect();
    let lazaret = Lazaret::start(&format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    load_balancing: \
         RoundRobin\n    retry: {{attempts: 1}}\n    health_check:\n      active: {{path: /health, interval: 500ms, \
         confirm_interval: 100ms}}\n      passive: {{policies: [ConsecutiveErrors], reactivation_period: 60s}}\n      \
         guards: {{max_ejected: 0.34, spacing: 1ms}}\n    destinations: {{{}}}\n",
        list.join(", ")
    ));
    lazaret.wait_ready();

    c.fails_probes.store(true, Ordering::SeqCst);
    lazaret.wait_until("c is out by its probes", || lazaret.health("app", "c").starts_with("unhealthy/"));
    let before = c.served();
    load(&lazaret, 1);
    assert_eq!(c.served(), before, "one that fails its probes gets nothing");
    // The cap is asked of those that traffic speaks against, and has room for one of three.
    b.fails_traffic.store(true, Ordering::SeqCst);
    load(&lazaret, 1);
    lazaret.wait_until("b is out by its traffic", || lazaret.destination("app", "b")["available"] == false);
    assert_eq!(lazaret.health("app", "b"), "healthy/unhealthy");
    a.fails_traffic.store(true, Ordering::SeqCst);
    load(&lazaret, 1);
    lazaret.wait_until("a is judged", || lazaret.health("app", "a") == "healthy/unhealthy");
    let served = [a, b, c].map(Switched::served);
    load(&lazaret, 1);
    let shown = lazaret.destination("app", "a");
    assert!(a.served() > served[0], "the cap keeps a in service: {shown}");
    assert_eq!((&shown["available"], &shown["because"]), (&true.into(), &"cap".into()), "{shown}");
    assert_eq!(b.served(), served[1]);
    assert_eq!(c.served(), served[2], "one that fails its probes gets nothing, whatever the others do");
    assert_eq!(lazaret.health("app", "c").split('/').next(), Some("unhealthy"), "both verdicts stand apart");
}

#[test]
fn the_last_destination_that_would_serve_stays_though_it_failed_once() {
    for others in ["", "b: {address: \"http://OTHER/\", weight: 0}"] {
        let other = refusing().to_string();
        // Fine, then one reset, then fine.
        let once = Destination::start(|moment| match moment {
            Moment::Accepted => vec![],
            Moment::Request(request) if request.number == 20 => vec![Act::Send(b"HTTP/1.1 200 O".to_vec()), Act::Reset],
            Moment::Request(_) => answer(200, "a"),
        });
        let lazaret = Lazaret::start(&format!(
            "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    health_check:\n      \
             passive: {{policies: [{{name: ConsecutiveErrors, threshold: 1}}], reactivation_period: 10s}}\n      guards: \
             true\n    destinations: {{a: {{address: \"http://{}/\"}}, {}}}\n",
            once.addr(),
            others.replace("OTHER", &other)
        ));
        let outcome = load(&lazaret, 2);
        assert!(outcome.sent > 100, "the load was not carried: {} requests", outcome.sent);
        assert!(outcome.get_failed_before_head <= 1, "{:?}", outcome.failures);
        let shown = lazaret.destination("app", "a");
        assert_eq!((&shown["passive"], &shown["available"]), (&"unhealthy".into(), &true.into()), "{shown}");
        assert_eq!(shown["because"], "guard", "{shown}");
        assert_eq!(lazaret.metric("lazaret_destination_kept", &["because=\"guard\""]), 1.0);
    }
}

fn load(lazaret: &Lazaret, seconds: u64) -> Outcome {
    let duration = Duration::from_secs(seconds);
    let outcome = run(&Load { to: lazaret.proxy, clients: 3, rate: 90, duration, post_every: 0, path: "/" });
    // The connections' ends are nobody's failure.
    assert!(Client::connect(lazaret.proxy).get("/").status() > 0);
    outcome
}

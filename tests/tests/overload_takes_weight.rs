//! A destination that answers 429 while the other serves gets less, is well for everybody who looks, and `explain` tells why.

use std::process::Command;

use end_to_end::binaries;
use end_to_end::process::Lazaret;
use testkit::client::Client;
use testkit::destination::{Destination, Moment, answer};

#[test]
fn one_that_asks_for_less_gets_less_and_stays_in_service() {
    let [full, free] = [429, 200].map(|status| {
        Destination::start(move |moment| match moment {
            Moment::Accepted => vec![],
            Moment::Request(_) => answer(status, "x"),
        })
    });
    let lazaret = Lazaret::start(&format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    health_check: {{passive: \
         {{policies: [Overload]}}}}\n    destinations: {{a: {{address: \"http://{}/\"}}, b: {{address: \
         \"http://{}/\"}}}}\n",
        full.addr(),
        free.addr()
    ));
    let mut client = Client::connect(lazaret.proxy);
    let mut refused = |n: usize| (0..n).filter(|_| client.get("/").status() == 429).count();
    let at_first = refused(100);
    assert!((25..=75).contains(&at_first), "{at_first}");
    // From then on only requests bring it on: it looks each two seconds.
    lazaret.wait_until("a keeps a tenth", || {
        refused(20);
        lazaret.destination("app", "a")["share"] == 0.1
    });
    let later = refused(200);
    assert!(later < 60, "{later} of 200");

    let document = lazaret.destination("app", "a");
    assert_ne!(document["passive"], "unhealthy", "{document}");
    assert_eq!((&document["available"], &document["because"]), (&true.into(), &"health".into()), "{document}");
    assert_eq!(lazaret.destination("app", "b")["share"], 1.0);
    assert_eq!(lazaret.transitions("a").iter().filter(|one| one["to"] == "unhealthy").count(), 0);

    let explained = Command::new(binaries::path("lazaret"))
        .args(["explain", "app", "--control", &lazaret.control.to_string()])
        .output()
        .expect("the program runs");
    let text = String::from_utf8_lossy(&explained.stdout);
    assert!(text.contains("takes 10 % of its weight: suspect by Overload"), "{text}");
}

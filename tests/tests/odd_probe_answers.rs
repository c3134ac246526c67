//! Whatever a health endpoint answers, the probe judges its status and is done: it follows no redirect, drowns in no body,
//! waits for none that never ends, and calls what is not HTTP by its name. (Osmantic/ODS #4883, alibaba/tengine #320)
//!
//! Each answer is probed 8 times; `LAZARET_LONG=1`: 20 times.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use end_to_end::control::is_long;
use end_to_end::process::Lazaret;
use testkit::destination::{Act, Destination, Moment};

const INTERVAL: Duration = Duration::from_millis(300);
const TIMEOUT: Duration = Duration::from_millis(1200);

#[test]
fn every_answer_is_judged_by_its_status_without_following_or_waiting() {
    let rounds = if is_long() { 20 } else { 8 };
    let answers = answers();
    let destinations: BTreeMap<_, _> = answers.iter().map(|(id, answer)| (*id, answer.start())).collect();
    let list: Vec<_> =
        destinations.iter().map(|(id, one)| format!("      {id}: {{address: \"{}\"}}\n", one.url())).collect();
    let lazaret = Lazaret::start(&format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    health_check: {{active: \
         {{interval: {}ms, timeout: {}ms, threshold: 2, confirm_interval: 300ms, path: /health}}}}\n    destinations:\n{}",
        INTERVAL.as_millis(),
        TIMEOUT.as_millis(),
        list.concat()
    ));
    let started = Instant::now();
    let count = |id: &str| destinations[id].requests_to("/health").len();
    lazaret.wait_until("all were probed often enough", || answers.iter().all(|(id, _)| count(id) > rounds));
    let most = (started.elapsed().as_secs_f64() / INTERVAL.as_secs_f64() * 1.3) as usize + 2;

    for (id, answer) in &answers {
        let document = lazaret.destination("app", id);
        let health = lazaret.health("app", id);
        let (expected, reason) = answer.judged;
        assert_eq!(health, format!("{expected}/unknown"), "{id}: {document}");
        assert_eq!(document["last_probe"]["failure"].as_str(), reason, "{id}: {document}");
        // One verdict at the first or second probe, and no other ever after.
        assert_eq!(lazaret.transitions(id).len(), 1, "{id}: {:?}", lazaret.transitions(id));
        assert!(count(id) <= most, "{id} was probed {} times, {most} would be many", count(id));
        assert_eq!(destinations[id].requests_to("/login").len(), 0, "{id}: the redirect was followed");
    }
    // Nothing is kept of them: connections end with their probes.
    assert!(lazaret.descriptors() < 100, "{} descriptors are open", lazaret.descriptors());
    assert!(lazaret.resident() < 200 << 20, "{} bytes are resident", lazaret.resident());
}

struct Answer {
    acts: Vec<Act>,
    judged: (&'static str, Option<&'static str>),
}

impl Answer {
    fn start(&self) -> Destination {
        let acts = self.acts.clone();
        Destination::start(move |moment| match moment {
            Moment::Accepted => Vec::new(),
            Moment::Request(request) if request.message.target() == "/login" => {
                testkit::destination::answer(200, "please log in")
            }
            Moment::Request(_) => acts.clone(),
        })
    }
}

fn answers() -> Vec<(&'static str, Answer)> {
    let healthy = ("healthy", None);
    let send = |text: &str| Act::Send(text.as_bytes().to_vec());
    let one = |text: &str, judged| Answer { acts: vec![send(text)], judged };
    let mut huge = b"HTTP/1.1 200 OK\r\nContent-Length: 10485760\r\n\r\n".to_vec();
    huge.resize(huge.len() + (10 << 20), b'x');
    let mut endless = vec![send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")];
    for _ in 0..1000 {
        endless.extend([send("5\r\nhello\r\n"), Act::Pause(Duration::from_millis(20))]);
    }
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    vec![
        (
            "redirect",
            one("HTTP/1.1 301 Moved\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n", ("unhealthy", Some("status"))),
        ),
        ("huge", Answer { acts: vec![Act::Send(huge)], judged: healthy }),
        ("endless", Answer { acts: endless, judged: healthy }),
        ("empty", one("HTTP/1.1 204 No Content\r\n\r\n", healthy)),
        ("closing", Answer { acts: vec![send(ok), Act::Close], judged: healthy }),
        (
            "switching",
            one(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: foo\r\n\r\n",
                ("unhealthy", Some("status")),
            ),
        ),
        ("interim", one(&format!("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n{ok}"), healthy)),
        ("no_status", one("HTTP/1.1 abc OK\r\nContent-Length: 2\r\n\r\nok", ("unhealthy", Some("protocol")))),
        ("old", Answer { acts: vec![send("ok\r\n\r\n"), Act::Close], judged: ("unhealthy", Some("protocol")) }),
        // A server that ends an idle connection after a second, about when the next probe is due.
        ("idle_end", Answer { acts: vec![send(ok), Act::Pause(INTERVAL), Act::Close], judged: healthy }),
    ]
}

//! Probes on time, whatever the others do.

use io::Io;
use io::sim::{Behaviour, Sim};
use model::active::{ActiveCheck, ActivePolicy};
use model::event::EventKind;
use model::health::Health;
use model::outcome::FailureKind;
use model::time::Timestamp;

use crate::destination::{Answer, Destination, silence, status};
use crate::world::{check, cluster, config, millis, run, secs};

const GOOD: &str = "10.0.0.1:80";

/// Start to start within the jitter of 5 % (and so within 10 % of the interval).
fn assert_even(destination: &Destination, interval: std::time::Duration) {
    for gap in destination.gaps() {
        let share = gap.as_secs_f64() / interval.as_secs_f64();
        assert!((0.94..=1.06).contains(&share), "{gap:?}");
    }
}

/// HEALTH-03
#[tokio::test(start_paused = true)]
async fn each_way_to_be_unreachable_has_its_own_reason_and_the_good_one_keeps_its_pace() {
    let io = Sim::new();
    let good = Destination::start(&io, GOOD, status(200));
    io.set_behaviour("10.0.0.3:80".parse().unwrap(), Behaviour::Hang);
    let destinations = [
        ("good", "http://10.0.0.1/"),
        ("closed", "http://10.0.0.2/"),
        ("blackholed", "http://10.0.0.3/"),
        ("nameless", "http://nowhere.invalid/"),
    ];
    let config = config(vec![cluster("a", Some(check()), &destinations)]);
    run(io, config, async |world| {
        // Threshold x interval + timeout, and the jitter.
        world.pass(millis(2 * 1050 + 500 + 200)).await;
        assert_eq!(world.active("a", "closed"), (Health::Unhealthy, Some(FailureKind::Refused)));
        assert_eq!(world.active("a", "blackholed"), (Health::Unhealthy, Some(FailureKind::ConnectTimeout)));
        assert_eq!(world.active("a", "nameless"), (Health::Unhealthy, Some(FailureKind::Dns)));
        assert_eq!(world.active("a", "good"), (Health::Healthy, None));
        assert_eq!(world.available("a"), ["good"]);
        world.pass(secs(60)).await;
        assert!(good.asked_at().len() >= 59);
        assert_even(&good, secs(1));
    })
    .await;
}

fn patient() -> ActiveCheck {
    ActiveCheck { timeout: secs(5), policy: ActivePolicy::ConsecutiveFailures { threshold: 3 }, ..check() }
}

/// HEALTH-07
#[tokio::test(start_paused = true)]
async fn a_probe_longer_than_the_interval_never_meets_another_one() {
    let io = Sim::new();
    let slow = Destination::start(&io, GOOD, silence());
    run(io, config(vec![cluster("a", Some(patient()), &[("slow", "http://10.0.0.1/")])]), async |world| {
        world.pass(millis(14_900)).await;
        assert_eq!(world.health("a", "slow").health.active, Health::Unknown);
        world.pass(secs(15)).await;
        assert_eq!(world.active("a", "slow"), (Health::Unhealthy, Some(FailureKind::HeadTimeout)));
        let at = world.became("slow", Health::Unhealthy).unwrap();
        assert!((Timestamp::from_secs(15)..Timestamp::from_millis(15_100)).contains(&at), "{at}");
        assert_eq!(slow.open().1, 1);

        slow.set(Answer::After(millis(2500), "HTTP/1.1 200 OK\r\n\r\n".to_owned()));
        world.pass(secs(30)).await;
        assert_eq!(world.active("a", "slow"), (Health::Healthy, None));
        let (open, most) = slow.open();
        assert!(open <= 1 && most == 1, "{open} {most}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn fifty_that_hang_delay_neither_probes_nor_verdicts_of_one_that_answers() {
    let io = Sim::new();
    let good = Destination::start(&io, GOOD, status(200));
    let mut destinations = vec![("good".to_owned(), "http://10.0.0.1/".to_owned())];
    for n in 0..50 {
        let host = format!("10.1.{}.{}", n / 250, n % 250);
        io.set_behaviour(format!("{host}:80").parse().unwrap(), Behaviour::Hang);
        destinations.push((format!("hangs{n}"), format!("http://{host}/")));
    }
    let destinations: Vec<(&str, &str)> = destinations.iter().map(|(id, url)| (id.as_str(), url.as_str())).collect();
    let check = ActiveCheck { interval: secs(5), timeout: secs(4), ..check() };
    run(io, config(vec![cluster("a", Some(check), &destinations)]), async |world| {
        world.pass(secs(40)).await;
        assert_eq!(world.active("a", "good"), (Health::Healthy, None));
        assert_even(&good, secs(5));
        for n in [0, 25, 49] {
            assert_eq!(world.health("a", &format!("hangs{n}")).health.active, Health::Unhealthy);
        }
        good.set(status(500));
        let before = world.now();
        world.pass(secs(11)).await;
        let at = world.became("good", Health::Unhealthy).unwrap();
        // Two probes, the second at most two jittered intervals after the change.
        assert!(at.since(before) <= millis(2 * 5250), "{at}");
        assert_eq!(world.active("a", "good"), (Health::Unhealthy, Some(FailureKind::Status)));
        let now = world.io.now();
        assert!(now > at);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_tcp_probe_asks_for_a_connection_and_nothing_more() {
    let io = Sim::new();
    let good = Destination::start(&io, GOOD, status(500));
    let check = ActiveCheck { kind: model::active::ProbeKind::Tcp, ..check() };
    let destinations = [("good", "http://10.0.0.1/"), ("closed", "http://10.0.0.2/")];
    run(io, config(vec![cluster("a", Some(check), &destinations)]), async |world| {
        world.pass(secs(3)).await;
        assert_eq!(world.active("a", "good"), (Health::Healthy, None));
        assert_eq!(world.active("a", "closed"), (Health::Unhealthy, Some(FailureKind::Refused)));
        assert!(good.heads().is_empty() && good.asked_at().len() >= 2);
    })
    .await;
}

/// Each verdict alone would be a publication, and each publication a pass over the cluster.
#[tokio::test(start_paused = true)]
async fn destinations_that_fall_one_by_one_by_the_thousand_are_published_together() {
    const N: u64 = 1000;
    let ids: Vec<String> = (0..N).map(|n| format!("d{n}")).collect();
    let urls: Vec<String> = (0..N).map(|n| format!("http://10.1.{}.{}/", n / 250, n % 250 + 1)).collect();
    let destinations: Vec<(&str, &str)> = ids.iter().map(String::as_str).zip(urls.iter().map(String::as_str)).collect();
    let check = ActiveCheck { policy: ActivePolicy::ConsecutiveFailures { threshold: 1 }, ..check() };
    run(Sim::new(), config(vec![cluster("a", Some(check), &destinations)]), async |world| {
        let first = world.board.load().revision.0;
        world.pass(millis(1500)).await;
        let snapshot = world.board.load();
        let fallen =
            snapshot.health.clusters[0].destinations.iter().filter(|one| one.health.active == Health::Unhealthy);
        assert_eq!(fallen.count() as u64, N, "all of them have fallen");
        let published = snapshot.revision.0 - first;
        // 5 ms apart at least, beside those of the ticks.
        assert!(published <= 1500 / 5 + 1500 / 100 + 2, "{published} publications for {N} verdicts");
        let verdicts = world.events().iter().filter(|event| matches!(event, EventKind::Transition(_))).count();
        assert_eq!(verdicts as u64, N, "and each of them is told");
    })
    .await;
}

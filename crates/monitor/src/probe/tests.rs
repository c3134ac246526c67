//! Hanging probes are counted apart, and a probe that was given up is gone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use ::io::sim::{Behaviour, Sim};
use ::io::{Listener, Share};
use model::active::{ProbeRequest, StatusRange};
use model::address::Url;
use model::time::Timestamp;
use tokio::task::LocalSet;
use upstream::Tls;
use upstream::resolve::TableResolver;

use super::*;

const GOOD: &str = "10.0.0.1:80";
const HANGS: &str = "10.0.0.2:80";

fn order(ticket: u64, address: &str) -> ProbeOrder {
    ProbeOrder {
        ticket: Ticket(ticket),
        slot: Slot(ticket as u32),
        destination: DestinationKey::new("a", address),
        at: Timestamp::ZERO,
        kind: ProbeKind::Tcp,
        http: Default::default(),
        base: Url::parse(&format!("http://{address}/")).unwrap(),
        host: None,
        timeout: Duration::from_secs(60),
        request: Arc::new(ProbeRequest {
            method: "GET".to_owned(),
            path: None,
            query: None,
            host: None,
            headers: Vec::new(),
            expect_statuses: vec![StatusRange::SUCCESS],
            expect_body: None,
            http: None,
            service: None,
            healthy_threshold: 1,
        }),
        tls: Arc::default(),
        outbound: Arc::default(),
    }
}

async fn with_probes(hanging: usize, test: impl AsyncFnOnce(Sim, Probes<Sim, TableResolver>)) {
    let io = Sim::new();
    io.set_behaviour(HANGS.parse().unwrap(), Behaviour::Hang);
    let listener = io.bind(GOOD.parse().unwrap(), Share::First).unwrap();
    tokio::spawn(async move { while listener.accept().await.is_ok() {} });
    let connector = Connector::new(io.clone(), TableResolver::default(), Tls::new());
    let probes = Probes::with_limits(connector, None, None, 2, hanging);
    LocalSet::new().run_until(test(io, probes)).await;
}

#[tokio::test(start_paused = true)]
async fn those_that_hang_give_their_turn_to_others_and_keep_their_time() {
    with_probes(4, async |io, mut probes| {
        (1..=4).for_each(|ticket| probes.start(order(ticket, HANGS)));
        probes.start(order(5, GOOD));
        let Ended { probed, .. } = probes.next().await;
        assert_eq!((probed.ticket, probed.failure), (Ticket(5), None));
        // Two at a time, a second each.
        assert_eq!(io.now(), Timestamp::from_secs(2));
        for (ticket, ends_at) in [(1, 60), (2, 60), (3, 61), (4, 61)] {
            let Ended { probed, .. } = probes.next().await;
            assert_eq!((probed.ticket, probed.failure), (Ticket(ticket), Some(FailureKind::ConnectTimeout)));
            assert_eq!(io.now(), Timestamp::from_secs(ends_at));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn when_too_many_hang_the_others_wait() {
    with_probes(1, async |io, mut probes| {
        (1..=3).for_each(|ticket| probes.start(order(ticket, HANGS)));
        probes.start(order(4, GOOD));
        // One of three hangs apart, two keep the turns until their time is over.
        let Ended { probed, .. } = probes.next().await;
        assert_ne!(probed.ticket, Ticket(4));
        assert_eq!(io.now(), Timestamp::from_secs(60));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_was_given_up_is_never_told() {
    with_probes(4, async |io, mut probes| {
        probes.start(order(1, HANGS));
        probes.cancel(Ticket(1));
        // Its destination may be probed again at once.
        probes.start(ProbeOrder { slot: Slot(1), ..order(2, GOOD) });
        let Ended { probed, .. } = probes.next().await;
        assert_eq!((probed.ticket, io.now()), (Ticket(2), Timestamp::ZERO));
        assert!(probes.try_next().is_none() && probes.tasks.is_empty() && probes.orders.is_empty());
    })
    .await;
}

//! Parts written by others take the place of built-in ones.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use health::ProbeOrder;
use io::sim::Sim;
use model::health::Health;
use model::outcome::FailureKind;
use monitor::{Extensions, ProbeBuilder, ProbeEnd, ProbeMessage, ProbeSender};

use crate::destination::{Destination, status};
use crate::world::{check, cluster, config, run_with, secs};

struct Signed;

impl ProbeBuilder for Signed {
    fn build(&self, order: &ProbeOrder) -> ProbeMessage {
        ProbeMessage {
            method: "OPTIONS".to_owned(),
            target: format!("/signed/{}", order.destination.destination),
            host: "signed.test".to_owned(),
            headers: Vec::new(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_builder_makes_the_request() {
    let io = Sim::new();
    let server = Destination::start(&io, "10.0.0.1:80", status(200));
    let extensions = Extensions { probe_builder: Some(Arc::new(Signed)), ..Extensions::default() };
    let config = config(vec![cluster("a", Some(check()), &[("one", "http://10.0.0.1/")])]);
    run_with(io, config, extensions, async |world| {
        world.pass(secs(1)).await;
        assert!(server.heads()[0].starts_with("OPTIONS /signed/one HTTP/1.1\r\nHost: signed.test\r\n"));
        assert_eq!(world.health("a", "one").health.active, Health::Healthy);
    })
    .await;
}

/// Passes, fails, hangs and panics, by the destination's id.
struct Moody;

impl ProbeSender for Moody {
    fn send(&self, order: &ProbeOrder, message: ProbeMessage) -> Pin<Box<dyn Future<Output = ProbeEnd>>> {
        assert_eq!(message.target, "/health");
        let mood = order.destination.destination.to_string();
        Box::pin(async move {
            match mood.as_str() {
                "passes" => ProbeEnd::passed(Some(200)),
                "fails" => ProbeEnd::failed(FailureKind::Body, Some(200)),
                "panics" => panic!("a sender's mistake"),
                _ => std::future::pending().await,
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_sender_judges_is_cut_off_in_time_and_cannot_stop_the_monitor() {
    let extensions = Extensions { probe_sender: Some(Arc::new(Moody)), ..Extensions::default() };
    let ids = ["passes", "fails", "hangs", "panics"].map(|id| (id, "http://10.0.0.1/"));
    run_with(Sim::new(), config(vec![cluster("a", Some(check()), &ids)]), extensions, async |world| {
        world.pass(secs(4)).await;
        assert_eq!(world.active("a", "passes"), (Health::Healthy, None));
        assert_eq!(world.active("a", "fails"), (Health::Unhealthy, Some(FailureKind::Body)));
        assert_eq!(world.active("a", "hangs"), (Health::Unhealthy, Some(FailureKind::HeadTimeout)));
        assert_eq!(world.health("a", "panics").health.active, Health::Unknown);
    })
    .await;
}

//! Long polls over a real board: their silence is none that a policy may suspect.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use board::{Board, InFlight};
use bridge::{Budgets, Publisher, Pulses, Reach, feed};
use config::{FileKind, PolicyNames};
use health::{Core, Input, Output, Probed};
use model::event::EventKind;
use model::id::{Slot, WorkerId};
use model::random::Random;
use model::time::Timestamp;

const TICK: Duration = Duration::from_millis(100);
const CLIENTS: usize = 24;

/// What ten minutes of 24 clients came to whose polls are held for 6 to 30 s, at three destinations.
struct Seen {
    shares: usize,
    probes: usize,
}

fn ten_minutes(seed: u64, active: &str) -> Seen {
    let text = format!(
        "listeners: {{web: {{address: \"127.0.0.1:1\"}}}}\nroutes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: \
         c}}}}\nclusters: {{c: {{health_check: {{{active}passive: {{}}}}, destinations: {{a: {{address: \
         \"http://10.0.0.1/\"}}, b: {{address: \"http://10.0.0.2/\"}}, c: {{address: \"http://10.0.0.3/\"}}}}}}}}\n"
    );
    let loaded = config::load("test", text.as_bytes(), FileKind::Native, &PolicyNames::default(), None).unwrap();
    let mut publisher = Publisher::new(balance::Policies::default(), Arc::new(loaded.config));
    let mut core = Core::new(seed);
    core.handle(Timestamp::ZERO, Input::Configured { clusters: publisher.clusters(), summary: String::new() });
    let board = Board::new(1, Arc::new(publisher.snapshot(&mut core, &mut Budgets::default())));
    let (mut reader, worker) = (board.reader().unwrap(), board.worker(WorkerId(0)).unwrap());
    let (mut pulses, mut random, mut now) = (Pulses::default(), Random::new(seed), Timestamp::ZERO);
    let mut held: Vec<(Timestamp, Timestamp, InFlight)> = Vec::new();
    let mut seen = Seen { shares: 0, probes: 0 };
    while now < Timestamp::from_secs(600) {
        now = now + TICK;
        held.retain(|(began, until, flight)| {
            let is_over = *until <= now;
            if is_over {
                flight.answered(now, now.since(*began));
                worker.succeeded(flight.slot());
            }
            !is_over
        });
        while held.len() < CLIENTS {
            let until = now + Duration::from_millis(6_000 + random.below(24_000) as u64);
            held.push((now, until, worker.start(Slot(random.below(3) as u32))));
        }
        let taken = feed::take(&mut reader, |slot| slot.0 < 3, Reach::All, now, now);
        pulses.stir(&taken.stirred);
        taken.into_inputs().for_each(|input| core.handle(now, input));
        if let Some(input) = pulses.take(&board, &core, now) {
            core.handle(now, input);
        }
        core.handle(now, Input::TimerDue);
        while let Some(output) = core.poll_output() {
            match output {
                Output::Probe(order) => {
                    seen.probes += 1;
                    let passed = Probed { ticket: order.ticket, failure: None, status: Some(200) };
                    core.handle(now, Input::Probed(passed));
                }
                Output::Event(event) => seen.shares += usize::from(matches!(event.kind, EventKind::Share { .. })),
                Output::CancelProbe(_) | Output::Publish | Output::FreeSlot(_) => {}
            }
        }
    }
    seen
}

#[test]
fn long_polls_alone_are_no_stall() {
    for seed in 1..=2 {
        assert_eq!(ten_minutes(seed, "").shares, 0, "seed {seed}, without probes");
        let probed = ten_minutes(seed, "active: {path: /health}, ");
        assert_eq!(probed.shares, 0, "seed {seed}");
        // Three of them, each 5 s with a jitter of 5 %.
        assert!(probed.probes < 400, "seed {seed}: {} probes, of which 360 are regular", probed.probes);
    }
}

//! Two cores over boards that see the same: one is told of every destination in each tick, the other only where something
//! happens. They must decide alike.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use board::{Board, Ended, InFlight, Reader};
use bridge::{Budgets, Publisher, Pulses, Reach, feed};
use config::{FileKind, PolicyNames};
use exchange::snapshot::Snapshot;
use health::{Core, Input, Output, Pulse};
use model::event::Event;
use model::id::{Slot, WorkerId};
use model::outcome::{FailureKind, Outcome, OutcomeClass, Try};
use model::random::Random;
use model::time::Timestamp;

/// A core, and what stands between it and its board.
struct Side {
    core: Core,
    pulses: Pulses,
    board: Arc<Board<Snapshot>>,
    reader: Reader,
    events: Vec<Event>,
    /// The last pulse of each destination.
    last: BTreeMap<Slot, Pulse>,
    told: usize,
}

/// Whether the core hears of destinations where nothing happens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    All,
    Stirred,
}

fn side() -> Side {
    let list: Vec<String> =
        (0..DESTINATIONS).map(|n| format!("d{n}: {{address: \"http://10.0.0.{}/\"}}", n + 1)).collect();
    let text = format!(
        "listeners: {{web: {{address: \"127.0.0.1:1\"}}}}\nroutes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: \
         c}}}}\nclusters: {{c: {{health_check: {{passive: {{}}}}, destinations: {{{}}}}}}}\n",
        list.join(", ")
    );
    let loaded = config::load("test", text.as_bytes(), FileKind::Native, &PolicyNames::default(), None).unwrap();
    let mut publisher = Publisher::new(balance::Policies::default(), Arc::new(loaded.config));
    let mut core = Core::new(1);
    core.handle(Timestamp::ZERO, Input::Configured { clusters: publisher.clusters(), summary: String::new() });
    let board = Board::new(1, Arc::new(publisher.snapshot(&mut core, &mut Budgets::default())));
    let reader = board.reader().unwrap();
    Side { core, pulses: Pulses::default(), board, reader, events: Vec::new(), last: BTreeMap::new(), told: 0 }
}

impl Side {
    fn tick(&mut self, now: Timestamp, told: Told) {
        let taken = feed::take(&mut self.reader, |slot| slot.0 < DESTINATIONS, Reach::All, now, now);
        self.pulses.stir(&taken.stirred);
        taken.into_inputs().for_each(|input| self.core.handle(now, input));
        let news = match self.pulses.take(&self.board, &self.core, now) {
            Some(Input::PulsesTaken { pulses }) => Some(pulses),
            _ => None,
        };
        self.last.extend(news.iter().flatten().map(|pulse| (pulse.slot, *pulse)));
        let pulses = match told {
            Told::All => Some(self.last.values().copied().collect()),
            Told::Stirred => news,
        };
        if let Some(pulses) = pulses {
            self.told += pulses.len();
            self.core.handle(now, Input::PulsesTaken { pulses });
        }
        self.core.handle(now, Input::TimerDue);
        while let Some(output) = self.core.poll_output() {
            if let Output::Event(event) = output {
                self.events.push(event);
            }
        }
    }
}

fn cut(now: Timestamp) -> Ended {
    let failure = Some(FailureKind::Reset);
    let outcome = Outcome { class: OutcomeClass::Cut, failure, status: None, retryable: true, client_gone: false };
    Ended { picked_at: now, ended_at: now, which: Try::First, outcome }
}

#[test]
fn a_core_that_hears_only_where_something_happens_decides_as_one_that_hears_of_all() {
    let mut kinds = BTreeSet::new();
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let mut below = |n: u64| (random.unit() * n as f64) as u64;
        let mut sides = [side(), side()];
        let workers = sides.each_ref().map(|side| side.board.worker(WorkerId(0)).unwrap());
        let mut flights: Vec<(Slot, [InFlight; 2])> = Vec::new();
        let mut now = Timestamp::ZERO;
        // Spells of a minute: each has its four destinations with traffic, some of them slow, hanging or failing.
        for tick in 0..1800_u64 {
            now = now + Duration::from_millis(100);
            let spell = tick / 600;
            for _ in 0..4 {
                let slot = Slot(((below(4) + 3 * spell) % u64::from(DESTINATIONS)) as u32);
                let mood = (u64::from(slot.0) + spell + seed) % 7;
                let pair = workers.each_ref().map(|worker| worker.start(slot));
                if mood == 1 {
                    flights.push((slot, pair));
                    continue;
                }
                let took = Duration::from_millis(if mood == 2 { 400 } else { 5 + below(10) });
                for (worker, flight) in workers.iter().zip(pair) {
                    if mood == 3 && tick % 3 > 0 {
                        worker.report(slot, cut(now));
                    } else {
                        flight.answered(now, took);
                        worker.count(slot, OutcomeClass::Ok, Try::First);
                    }
                }
            }
            // Those that hang are answered, or given up, some time.
            if tick % 97 == 0 {
                let ended = flights.drain(..).filter(|_| tick % 194 == 0);
                ended.for_each(|(_, pair)| pair.iter().for_each(|one| one.answered(now, Duration::from_secs(5))));
            }
            let [all, stirred] = &mut sides;
            all.tick(now, Told::All);
            stirred.tick(now, Told::Stirred);
            assert_eq!(all.events, stirred.events, "seed {seed}, tick {tick}");
        }
        let [all, stirred] = &sides;
        assert!(stirred.told * 3 < all.told * 2, "{} of {}", stirred.told, all.told);
        kinds.extend(all.events.iter().map(|event| format!("{:?}", event.kind)));
    }
    // Else it would show nothing.
    for policy in ["Stall", "Latency", "Burst"] {
        assert!(kinds.iter().any(|kind| kind.contains(policy)), "{policy}");
    }
}

const DESTINATIONS: u32 = 12;

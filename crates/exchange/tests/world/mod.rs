//! The machine together with the health core in virtual time, before servers that follow a script.

mod servers;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use exchange::step::Content;
use exchange::{Admission, Exchange, Input, Replay, Step, Worker};
use health::{Core, OutcomeEvent, Output, Probed, Sum};
use model::active::{ActiveCheck, ActivePolicy, ProbeKind, ProbeRequest, ProbeRound, ProbeStart, StatusRange};
use model::balancing::LoadBalancing;
use model::cluster::{Cluster, Compat};
use model::outcome::{AttemptEnd, FailureKind, OutcomeClass, Progress};
use model::passive::{MaxFails, PassiveCheck, PassivePolicy};
use model::retry::{RetryConditions, RetryRules};
use model::time::Timestamp;

use crate::support::{Board, Request, came, cluster, failed, of_health, route, snapshot};

use servers::{Act, Server, When};

/// One cluster, its servers, and all that decides about them.
pub struct World {
    cluster: Arc<Cluster>,
    core: Core,
    board: Board,
    worker: Worker,
    servers: Vec<Server>,
    probes: Vec<(Timestamp, Probed)>,
    read: Duration,
    now: Timestamp,
}

/// nginx's clock shows seconds since 1970, so nothing has ever happened within fail_timeout of its start.
const START: Timestamp = Timestamp::from_secs(1000);

impl World {
    /// From the words behind `cluster`.
    pub fn new(options: &str) -> Self {
        let (compat, options) = options.split_once(' ').unwrap();
        let compat = match compat {
            "nginx" => Compat::Nginx,
            "none" => Compat::None,
            other => panic!("{other}?"),
        };
        let option = |name: &str| options.split(' ').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let servers: Vec<&str> = option("servers").unwrap().split(',').collect();
        let mut cluster = cluster(compat, &servers);
        cluster.load_balancing = LoadBalancing::RoundRobin;
        let max_fails = MaxFails {
            max_fails: option("max_fails").unwrap().parse().unwrap(),
            fail_timeout: duration(option("fail_timeout").unwrap()),
        };
        cluster.health_check.passive = Some(PassiveCheck::of(vec![PassivePolicy::MaxFails(max_fails)]));
        cluster.health_check.active = option("probe").map(|interval| active(duration(interval)));
        let on: Vec<&str> = option("on").unwrap_or("").split(',').collect();
        cluster.retry = RetryRules {
            attempts: option("attempts").unwrap().parse().unwrap(),
            conditions: RetryConditions {
                error: on.contains(&"error"),
                timeout: on.contains(&"timeout"),
                invalid_header: false,
                statuses: on.iter().filter_map(|word| word.strip_prefix("http_")?.parse().ok()).collect(),
            },
            ..RetryRules::native()
        };
        let cluster = Arc::new(cluster);
        let mut core = Core::new(1);
        core.handle(START, health::Input::Configured { clusters: vec![cluster.clone()], summary: String::new() });
        let good = || Server { act: Act::Status(200), when: When::Always, seen: 0, hits: vec![] };
        let mut world = Self {
            servers: servers.iter().map(|_| good()).collect(),
            cluster,
            core,
            board: Board::default(),
            worker: Worker::new(1),
            probes: vec![],
            read: option("read").map_or(Duration::from_secs(60), duration),
            now: START,
        };
        world.drain();
        world
    }

    /// One command, and what it prints.
    pub fn run(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["wait", time] => {
                self.pass(duration(time));
                String::new()
            }
            ["health"] => self.health(),
            ["send", n, method] => self.send(n.parse().unwrap(), method, Duration::ZERO, None),
            ["send", n, method, "every", gap] => self.send(n.parse().unwrap(), method, duration(gap), None),
            ["send", n, method, "every", gap, "patience", patience] => {
                self.send(n.parse().unwrap(), method, duration(gap), Some(duration(patience)))
            }
            [name, act] => self.set(name, act, When::Always),
            [name, act, "times", n] => self.set(name, act, When::Times(n.parse().unwrap())),
            [name, act, "each", n] => self.set(name, act, When::Each(n.parse().unwrap())),
            _ => panic!("{line}?"),
        }
    }

    fn set(&mut self, name: &str, act: &str, when: When) -> String {
        let at = self.cluster.destinations.iter().position(|d| d.id.as_str() == name).expect("a server of this name");
        let act = match act {
            "refused" => Act::Refused,
            "reset" => Act::Reset,
            "hang" => Act::Hang,
            "cut" => Act::Cut,
            status => Act::Status(status.parse().unwrap()),
        };
        let server = &mut self.servers[at];
        (server.act, server.when, server.seen) = (act, when, 0);
        String::new()
    }

    fn health(&mut self) -> String {
        let view = self.core.view();
        let mut text = String::new();
        for d in &view.clusters[0].destinations {
            let gate = if d.is_gated && d.is_available { ", gated" } else { "" };
            let state = if d.is_available { "in" } else { "out" };
            writeln!(text, "{}: {} ({}{gate})", d.id, state, d.health.passive).unwrap();
        }
        text
    }

    fn send(&mut self, n: u32, method: &str, gap: Duration, patience: Option<Duration>) -> String {
        self.servers.iter_mut().for_each(|server| server.hits.clear());
        let start = self.now;
        let mut answers: Vec<(u32, String)> = vec![];
        for at in 0..n {
            let due = start + gap * at;
            self.pass(due.since(self.now));
            let answer = self.exchange(method, patience);
            match answers.last_mut() {
                Some((n, last)) if *last == answer => *n += 1,
                Some(_) | None => answers.push((1, answer)),
            }
        }
        let mut text = "answers".to_owned();
        if answers.len() > MOST_RUNS {
            let mut sums = std::collections::BTreeMap::<String, u32>::new();
            answers.into_iter().for_each(|(n, answer)| *sums.entry(answer).or_default() += n);
            answers = sums.into_iter().map(|(answer, n)| (n, answer)).collect();
            text.push_str(" in turn");
        }
        answers.iter().for_each(|(n, answer)| write!(text, " {n}x{answer}").unwrap());
        text.push('\n');
        let second = |at: &Timestamp| format!("{:.2}", at.since(START).as_secs_f64());
        for (server, d) in self.servers.iter().zip(&self.cluster.destinations) {
            let hits = &server.hits;
            write!(text, "{} {} hits", d.id, hits.len()).unwrap();
            if hits.len() > MOST_HITS {
                write!(text, " from {} to {}", second(&hits[0]), second(&hits[hits.len() - 1])).unwrap();
            } else {
                hits.iter().for_each(|at| write!(text, " {}", second(at)).unwrap());
            }
            text.push('\n');
        }
        text
    }

    /// One request from its head to its end; what the client got.
    fn exchange(&mut self, method: &str, patience: Option<Duration>) -> String {
        let patience = patience.map(|patience| self.now + patience);
        let view = self.core.view();
        let snapshot = snapshot(of_health(&self.cluster, &view.clusters[0]), &[route(None)]);
        let request = Request::method(method);
        let (mut exchange, mut step) =
            Exchange::begin(self.now, &request.facts(), &snapshot, &mut self.worker, &self.board);
        let mut answer = String::new();
        let mut last = AttemptEnd { progress: Progress::Forwarded, ..came(0) };
        loop {
            let input = match step {
                Step::Gather => Input::Gathered,
                Step::Wait { .. } => Input::WaitOver,
                Step::Connect(attempt) | Step::HoldThenConnect(attempt) => {
                    let act = self.servers[attempt.destination.index()].next(self.now);
                    let cost = if act == Act::Hang { self.read } else { Duration::from_micros(1) };
                    let end = self.now + cost;
                    if let Some(gone) = patience.filter(|gone| *gone < end) {
                        self.pass(gone.since(self.now));
                        Input::ClientGone
                    } else {
                        self.pass(cost);
                        let ended = |progress, failure| Input::AttemptEnded {
                            end: failed(progress, failure),
                            body_replayable: Replay::Possible,
                        };
                        let head = |status| Input::ResponseHead {
                            status,
                            retry_after: false,
                            body_replayable: Replay::Possible,
                            content: Content::Message,
                        };
                        match act {
                            Act::Refused => ended(Progress::NotSent, FailureKind::Refused),
                            Act::Reset => ended(Progress::Sent, FailureKind::Reset),
                            Act::Hang => ended(Progress::Sent, FailureKind::HeadTimeout),
                            Act::Cut => {
                                last = AttemptEnd { failure: Some(FailureKind::BodyCut), ..came(200) };
                                head(200)
                            }
                            Act::Status(status) => {
                                last = came(status);
                                head(status)
                            }
                        }
                    }
                }
                Step::Forward => {
                    let cut = if last.failure.is_some() { " cut" } else { "" };
                    answer = format!("{}{cut}", last.status.unwrap());
                    Input::ResponseEnded { end: last }
                }
                Step::AnswerHeld => return "held".to_owned(),
                Step::Answer(answer) => {
                    return if answer.status == 499 { "gone".to_owned() } else { answer.status.to_string() };
                }
                Step::Done => return answer,
            };
            step = exchange.handle(self.now, input, &snapshot, &mut self.worker, &self.board);
            if let Some(report) = exchange.report() {
                let slot = view.clusters[0].destinations[report.destination.index()].slot;
                if report.admission == Admission::Gate {
                    self.board.taken.borrow_mut().remove(&slot.0);
                }
                self.tell(slot, &report);
            }
        }
    }

    /// As the board and its reader do it: successes as sums unless a policy wants every outcome.
    fn tell(&mut self, slot: model::id::Slot, report: &exchange::Report) {
        let needs = self.core.needs(&self.cluster.id);
        let input = if report.outcome.class == OutcomeClass::Ok && needs != health::Needs::EveryOutcome {
            health::Input::SumsTaken { sums: vec![Sum { slot, ok: 1, repeats: 0 }] }
        } else {
            health::Input::OutcomeSeen(OutcomeEvent {
                slot,
                picked_at: report.picked_at,
                at: self.now,
                which: report.which,
                outcome: report.outcome,
            })
        };
        self.core.handle(self.now, input);
        self.drain();
    }

    /// Lets time pass, timers and probes included.
    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            self.probes.sort_by_key(|(at, _)| *at);
            let probe = self.probes.first().map(|(at, _)| *at);
            let next = probe.into_iter().chain(self.core.poll_timeout()).min().filter(|at| *at <= end);
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            if probe == Some(next) {
                let (_, probed) = self.probes.remove(0);
                self.core.handle(self.now, health::Input::Probed(probed));
            } else {
                self.core.handle(self.now, health::Input::TimerDue);
            }
            self.drain();
        }
        self.now = end;
    }

    fn drain(&mut self) {
        while let Some(output) = self.core.poll_output() {
            let Output::Probe(order) = output else { continue };
            let at = self.cluster.destinations.iter().position(|d| d.id == order.destination.destination).unwrap();
            let (failure, status, cost) = match self.servers[at].act_now() {
                Act::Status(status) => (None, Some(status), Duration::ZERO),
                Act::Refused => (Some(FailureKind::Refused), None, Duration::ZERO),
                Act::Reset => (Some(FailureKind::Reset), None, Duration::ZERO),
                Act::Cut => (Some(FailureKind::BodyCut), Some(200), Duration::ZERO),
                Act::Hang => (Some(FailureKind::HeadTimeout), None, order.timeout),
            };
            let end = self.now.max(order.at) + cost;
            self.probes.push((end, Probed { ticket: order.ticket, failure, status }));
        }
    }
}

fn active(interval: Duration) -> ActiveCheck {
    ActiveCheck {
        kind: ProbeKind::Http,
        interval,
        unhealthy_interval: interval,
        timeout: interval / 2,
        policy: ActivePolicy::ConsecutiveFailures { threshold: 2 },
        confirm_interval: interval,
        start: ProbeStart::Eligible,
        round: ProbeRound::Destination,
        request: ProbeRequest {
            method: "GET".to_owned(),
            path: None,
            query: None,
            host: None,
            headers: vec![],
            expect_statuses: vec![StatusRange::SUCCESS],
            expect_body: None,
            http: None,
            service: None,
            healthy_threshold: 1,
        },
    }
}

fn duration(text: &str) -> Duration {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap();
    let (number, unit) = text.split_at(split);
    let number = number.parse().unwrap();
    match unit {
        "us" => Duration::from_micros(number),
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        other => panic!("{other}?"),
    }
}

/// Answers are printed in their order up to so many changes.
const MOST_RUNS: usize = 8;
/// Hits are printed one by one up to so many.
const MOST_HITS: usize = 12;

//! The loop of the control thread: whatever happens becomes an input of the health core, whatever the core wants done
//! is done.
//!
//! All waiting is in one `select`, whose branches are cancel safe: the command channel, the next ended probe, the
//! board's waker (after a breath, see `BREATH`), the next ended lookup, and one sleep up to the next tick or the core's
//! next timer. Time is looked at after each of them, so that no branch can starve the timers.

mod commands;
mod recording;
mod takeover;

use std::sync::Arc;
use std::time::Duration;

use ::io::Io;
use board::{Board, Reader, Trend};
use bridge::{Budgets, Gates, Publisher, Pulses, Reach, feed};
use exchange::snapshot::Snapshot;
use health::{Core, Input, Output, Probed, SavedHealth, Ticket};
use model::config::Config;
use model::outcome::FailureKind;
use model::time::Timestamp;
use recorder::RecordedCore;
use retry::Trends;
use telemetry::journal::Journal;
use telemetry::metrics::Metrics;
use tokio::sync::{Notify, mpsc};
use tokio::task::LocalSet;
use upstream::{Resolve, Tls};

use crate::context::Context;
use crate::handle::{self, Command, ConfigureError, Handle, Pulse};
use crate::names::Names;
use crate::prepare::prepare;
use crate::probe::{Ended, Probes};
use crate::quiet::QuietSlots;
use crate::spool::Spool;
use crate::summary;
use takeover::Parked;

/// The monitor. Made before the workers, for it makes the board; [`Self::run`] is the control thread's task.
pub struct Monitor<I, R> {
    io: I,
    tls: Tls,
    core: RecordedCore,
    names: Names,
    /// The configuration in force, with names as they were written.
    written: Arc<Config>,
    /// The one that waits for the first answers to its names.
    parked: Option<Parked>,
    publisher: Publisher,
    budgets: Budgets,
    gates: Gates,
    pulses: Pulses,
    quiet: QuietSlots,
    trends: Trends,
    board: Arc<Board<Snapshot>>,
    reader: Reader,
    probes: Probes<I, R>,
    probing: Probing,
    journal: Arc<Journal>,
    metrics: Arc<Metrics>,
    commands: mpsc::Receiver<Command>,
    wake: Arc<Notify>,
    pulse: Pulse,
    handle: Option<Handle>,
    next_tick: Timestamp,
    drained_at: Timestamp,
    /// No drain for failures before.
    rested_at: Timestamp,
    /// What comes before is taken together: see [`pace`].
    calm_at: Timestamp,
    /// Pulses say something from here on: before, nobody was there to feel them.
    felt_from: Timestamp,
    /// When sums of what is gone are dropped next.
    forget_at: Timestamp,
    /// How the recording stood when it was last looked at.
    recording: recorder::Standing,
    /// Where it is written to as well.
    spool: Option<Spool>,
}

/// Whether probes are sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Probing {
    On,
    /// Another process sends them.
    Suspended,
}

/// Whether the loop goes on.
#[derive(PartialEq, Eq)]
enum Turn {
    On,
    Over,
}

impl<I: Io, R: Resolve> Monitor<I, R> {
    /// Takes the first configuration over and makes the board with its snapshot. No probe runs before [`Self::run`].
    pub fn new(context: Context<I, R>, config: Arc<Config>) -> Result<Self, ConfigureError> {
        let Context { connector, journal, metrics, workers, seed, mut names, spool, extensions } = context;
        let (io, tls) = (connector.io().clone(), connector.tls().clone());
        prepare(&tls, &config)?;
        let now = io.now();
        let mut core = RecordedCore::new(Core::with_registry(seed, extensions.health.clone()), now);
        core.spool(spool.as_ref().map(|spool| spool.author().clone()));
        core.limit(recording::limits(&config));
        names.configured(now, &config, None);
        let _ = names.take_change();
        let mut publisher = Publisher::new(extensions.balancing.clone(), names.expand(&config));
        core.handle(now, Input::Configured { clusters: publisher.clusters(), summary: summary::first(&config) });
        let mut budgets = Budgets::default();
        let snapshot = Arc::new(publisher.snapshot(core.core_for_view(), &mut budgets));
        let board = Board::new(workers, Arc::clone(&snapshot));
        budgets.open(&board, now);
        let reader = board.reader().ok_or(handle::Gone)?;
        let wake = Arc::new(Notify::new());
        let waker = Arc::clone(&wake);
        board.set_waker(Box::new(move || waker.notify_one()));
        let (handle, commands, pulse) = handle::channel();
        let mut quiet = QuietSlots::default();
        quiet.published(&snapshot);
        let mut gates = Gates::default();
        // All gates of a new board are open.
        let _ = gates.published(&snapshot.health);
        Ok(Self {
            probes: Probes::new(connector, extensions.probe_builder, extensions.probe_sender),
            probing: Probing::On,
            io,
            tls,
            core,
            names,
            written: config,
            parked: None,
            publisher,
            budgets,
            gates,
            pulses: Pulses::default(),
            quiet,
            trends: Trends::default(),
            board,
            reader,
            journal,
            metrics,
            commands,
            wake,
            pulse,
            handle: Some(handle),
            next_tick: now,
            drained_at: now,
            rested_at: now,
            calm_at: now,
            felt_from: now,
            forget_at: now + FORGET_EVERY,
            recording: recorder::Standing::Off,
            spool,
        })
    }

    /// Goes on from what another process knew. Before [`Self::run`], and before the board has any other reader.
    pub fn restore(&mut self, saved: SavedHealth) {
        self.core.handle(self.io.now(), Input::HealthRestored(Box::new(saved)));
        self.publish();
    }

    /// What workers share with it.
    pub fn board(&self) -> Arc<Board<Snapshot>> {
        Arc::clone(&self.board)
    }

    /// The way to ask something of it. The monitor holds one handle itself until it runs, so take one before.
    pub fn handle(&self) -> Option<Handle> {
        self.handle.clone()
    }

    /// Runs until [`Handle::shutdown`], or until the last handle is gone. Needs tokio's time, on one thread; the
    /// future is not `Send`.
    pub async fn run(mut self) {
        self.handle = None;
        LocalSet::new().run_until(self.turn()).await;
    }

    async fn turn(&mut self) {
        loop {
            let now = self.io.now();
            self.pulse.beat(now);
            if now >= self.next_tick {
                self.tick(now);
            }
            if self.calm_at <= now && self.core.poll_timeout().is_some_and(|due| due <= now) {
                self.core.handle(now, Input::TimerDue);
            }
            self.names.start_due(now);
            self.unpark(now);
            self.carry_out();
            let due = self.core.poll_timeout().map_or(Timestamp::MAX, |due| due.max(self.calm_at));
            let until = due.min(self.next_tick);
            let until = until.min(self.names.poll_timeout().unwrap_or(Timestamp::MAX));
            let asleep = self.io.sleep_until(until);
            let woken = async {
                self.io.sleep_until(self.rested_at.max(self.calm_at)).await;
                self.wake.notified().await;
            };
            let probed = async {
                self.io.sleep_until(self.calm_at).await;
                self.probes.next().await
            };
            tokio::select! {
                biased;
                command = self.commands.recv() => {
                    if self.obey(command) == Turn::Over {
                        return;
                    }
                }
                ended = probed => self.probed(ended),
                ended = self.names.next() => self.names.ended(self.io.now(), &self.metrics, ended),
                () = woken => {
                    self.drain(Reach::Failed);
                    self.rested_at = self.io.now() + BREATH;
                }
                () = asleep => {}
            }
        }
    }

    fn tick(&mut self, now: Timestamp) {
        if now.since(self.next_tick) > AWAY {
            self.felt_from = now + AWAY;
        }
        // A tick that came late is not made up for.
        self.next_tick = (self.next_tick + TICK).max(now);
        let quiet = self.quiet.take(|slot| self.board.in_flight(slot));
        self.drain(Reach::All);
        if now >= self.felt_from
            && let Some(pulses) = self.pulses.take(&self.board, self.core.core(), now)
        {
            self.core.handle(now, pulses);
        }
        self.budgets.advance(&self.board, now);
        self.trends.changes(now).into_iter().for_each(|(slot, trend)| self.board.set_trend(slot, trend));
        for slot in quiet {
            self.trends.forget(slot);
            self.board.set_trend(slot, Trend::Steady);
            self.core.handle(now, Input::SlotQuiet { slot });
        }
        if self.names.take_change() {
            self.readdress(now);
        }
        self.watch_recording(now);
        if now >= self.forget_at {
            self.forget_at = now + FORGET_EVERY;
            self.metrics.forget_gone(&self.board.load().health);
        }
    }

    /// One probe ended, and maybe others by now: what they change is published once.
    fn probed(&mut self, ended: Ended) {
        let mut next = Some(ended);
        while let Some(Ended { destination, probed }) = next {
            self.metrics.probe(&destination, probed.failure);
            self.core.handle(self.io.now(), Input::Probed(probed));
            next = self.probes.try_next();
        }
    }

    fn drain(&mut self, reach: Reach) {
        let now = self.io.now();
        let owners = self.publisher.owners();
        let taken = feed::take(&mut self.reader, |slot| owners.contains_key(&slot), reach, self.drained_at, now);
        self.drained_at = now;
        self.pulses.stir(&taken.stirred);
        self.budgets.earn(taken.successes(), owners, now);
        taken.count(&mut self.trends, now);
        for input in taken.into_inputs() {
            self.gates.heard(&input);
            self.core.handle(now, input);
        }
    }

    /// Does what the core wants done. Events are told after the snapshot that they are part of is published: who hears
    /// of an event finds its effect.
    fn carry_out(&mut self) {
        let mut events = Vec::new();
        while let Some(output) = self.core.poll_output() {
            match output {
                Output::Probe(order) => match self.probing {
                    Probing::On => self.probes.start(order),
                    Probing::Suspended => self.core.handle(self.io.now(), not_sent(order.ticket)),
                },
                Output::CancelProbe(ticket) => self.probes.cancel(ticket),
                Output::Event(event) => events.push(event),
                Output::Publish => self.publish(),
                Output::FreeSlot(slot) => self.quiet.free(slot),
            }
        }
        self.gates.settled().into_iter().for_each(|slot| self.board.reopen(slot));
        if !events.is_empty() {
            let health = Arc::clone(&self.board.load().health);
            events.into_iter().for_each(|event| self.journal.append(event, &health));
        }
        self.spool_pieces();
    }

    fn publish(&mut self) {
        let snapshot = Arc::new(self.publisher.snapshot(self.core.core_for_view(), &mut self.budgets));
        self.calm_at = self.io.now() + pace(self.publisher.owners().len());
        self.budgets.open(&self.board, self.io.now());
        self.quiet.published(&snapshot);
        self.gates.published(&snapshot.health).into_iter().for_each(|slot| self.board.reopen(slot));
        self.board.publish(snapshot);
    }
}

/// How long after a publication what happens is gathered for the next one. A publication is a pass over the cluster that
/// has changed; with thousands of destinations that fall one by one, one for each would leave no time for anything else.
/// The first change after a calm moment is published at once, and of a few destinations every one.
fn pace(destinations: usize) -> Duration {
    if destinations < FEW {
        return Duration::ZERO;
    }
    (PER_DESTINATION * u32::try_from(destinations).unwrap_or(u32::MAX)).min(LONGEST_PACE)
}

/// The end of a probe that nothing came of: it says nothing, the next one comes at its regular time.
fn not_sent(ticket: Ticket) -> Input {
    Input::Probed(Probed { ticket, failure: Some(FailureKind::Cancelled), status: None })
}

/// Between two drains for failures: a storm of them must not keep the thread from its probes, nor the CPU from traffic.
/// The first failure after a quiet moment is taken at once.
const BREATH: Duration = Duration::from_millis(1);
/// So many destinations cost next to nothing.
const FEW: usize = 200;
/// Some times what a publication takes.
const PER_DESTINATION: Duration = Duration::from_micros(5);
const LONGEST_PACE: Duration = Duration::from_millis(50);
/// How often sums are taken, and other addresses taken over.
const TICK: Duration = Duration::from_millis(100);
/// A tick that is so late was kept from coming: the process stood still. What destinations said meanwhile is heard within
/// as long again.
const AWAY: Duration = Duration::from_secs(1);
/// Where nobody scrapes, sums of destinations that are gone stay for so long.
const FORGET_EVERY: Duration = Duration::from_secs(600);

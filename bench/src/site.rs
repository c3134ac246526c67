//! The health core over its board with nobody in front: clusters, and what turns them, as the monitor does.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use board::{Board, Reader};
use bridge::{Budgets, Publisher, Pulses, Reach, feed};
use config::{FileKind, PolicyNames};
use exchange::snapshot::Snapshot;
use health::{Core, Input, Output};
use model::time::Timestamp;
use nix::time::{ClockId, clock_gettime};
use retry::Trends;

/// The core, its board, and what lies between.
pub(crate) struct Site {
    core: Core,
    publisher: Publisher,
    budgets: Budgets,
    pulses: Pulses,
    trends: Trends,
    pub(crate) board: Arc<Board<Snapshot>>,
    pub(crate) reader: Reader,
    drained_at: Timestamp,
}

/// What looks at the destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checks {
    /// The default passive policies.
    Passive,
    /// Nothing.
    None,
}

impl Site {
    /// One cluster of all.
    pub(crate) fn new(destinations: u32, workers: usize, checks: Checks) -> Result<Self> {
        Self::of(1, destinations, workers, checks)
    }

    /// So many clusters, each of so many destinations.
    pub(crate) fn of(clusters: u32, destinations: u32, workers: usize, checks: Checks) -> Result<Self> {
        let check = match checks {
            Checks::Passive => "health_check: {passive: {}}, ",
            Checks::None => "",
        };
        let cluster = |cluster: u32| {
            let list: Vec<String> = (0..destinations)
                .map(|n| format!("d{n}: {{address: \"http://10.{cluster}.{}.{}/\"}}", n / 250, n % 250 + 1))
                .collect();
            format!("c{cluster}: {{{check}destinations: {{{}}}}}", list.join(", "))
        };
        let clusters: Vec<String> = (0..clusters).map(cluster).collect();
        let text = format!(
            "listeners: {{web: {{address: \"127.0.0.1:1\"}}}}\nroutes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: \
             c0}}}}\nclusters: {{{}}}\n",
            clusters.join(", ")
        );
        let loaded = config::load("bench", text.as_bytes(), FileKind::Native, &PolicyNames::default(), None);
        let loaded = loaded.map_err(|report| anyhow::anyhow!("{:?}", report.errors().next()))?;
        let config = Arc::new(loaded.config);
        let mut core = Core::new(1);
        let mut publisher = Publisher::new(balance::Policies::default(), config);
        core.handle(Timestamp::ZERO, Input::Configured { clusters: publisher.clusters(), summary: String::new() });
        let mut budgets = Budgets::default();
        let board = Board::new(workers, Arc::new(publisher.snapshot(&mut core, &mut budgets)));
        budgets.open(&board, Timestamp::ZERO);
        let reader = board.reader().context("the board's reader")?;
        Ok(Self {
            core,
            publisher,
            budgets,
            pulses: Pulses::default(),
            trends: Trends::default(),
            board,
            reader,
            drained_at: Timestamp::ZERO,
        })
    }

    /// As the monitor does at each of its ticks.
    pub(crate) fn tick(&mut self, now: Timestamp) {
        let owners = self.publisher.owners();
        let taken = feed::take(&mut self.reader, |slot| owners.contains_key(&slot), Reach::All, self.drained_at, now);
        self.drained_at = now;
        self.pulses.stir(&taken.stirred);
        self.budgets.earn(taken.successes(), owners, now);
        taken.count(&mut self.trends, now);
        taken.into_inputs().for_each(|input| self.core.handle(now, input));
        if let Some(pulses) = self.pulses.take(&self.board, &self.core, now) {
            self.core.handle(now, pulses);
        }
        self.budgets.advance(&self.board, now);
        self.trends.changes(now).into_iter().for_each(|(slot, trend)| self.board.set_trend(slot, trend));
        if self.core.poll_timeout().is_some_and(|due| due <= now) {
            self.core.handle(now, Input::TimerDue);
        }
        let mut is_news = false;
        while let Some(output) = self.core.poll_output() {
            is_news |= matches!(output, Output::Publish);
        }
        if is_news {
            let snapshot = self.publisher.snapshot(&mut self.core, &mut self.budgets);
            self.board.publish(Arc::new(snapshot));
        }
    }
}

/// Time of this thread on the CPU.
pub(crate) fn cpu() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}

/// Of the monitor.
pub(crate) const TICK: Duration = Duration::from_millis(100);

//! A health core whose inputs are kept: the very calls of a core, with a ring behind them.

use std::sync::Arc;

use health::{Checkpoint, Core, Input, Output};
use model::cluster::Cluster;
use model::id::ClusterId;
use model::time::Timestamp;

use crate::file;
use crate::records::Asked;
use crate::redact::Redactor;
use crate::ring::{Limits, Ring, Start, TooLarge};
use crate::spool::{Author, Piece, Spool};

/// The core, and what is kept of it.
#[derive(Debug)]
pub struct RecordedCore {
    core: Core,
    limits: Option<Limits>,
    ring: Option<Ring>,
    spool: Option<Spool>,
    /// Told by spools before this one: numbers are not given twice.
    segments: u64,
    redactor: Redactor,
    /// The configuration in force, and its number.
    clusters: Vec<Arc<Cluster>>,
    number: u64,
    at: Timestamp,
    progress: Progress,
    /// The configuration does not fit in; tried again with the next one.
    is_too_large: bool,
}

/// How far the core was asked since it was last told something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Until nothing was left.
    Drained,
    /// Not at all.
    Told,
    /// For its view, and so many outputs.
    Asked(u64),
}

/// How the recording stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing is to be kept.
    Off,
    /// It goes on.
    On {
        /// The oldest input may be from then.
        since: Timestamp,
        /// Held in memory.
        bytes: usize,
    },
    /// The state of this configuration's destinations alone is a large part of the limit: nothing is kept.
    TooLarge,
}

impl RecordedCore {
    /// Keeps nothing until [`Self::limit`] says how much, and then what comes from `now` on: the clock may be one that
    /// another process began.
    pub fn new(core: Core, now: Timestamp) -> Self {
        Self {
            core,
            limits: None,
            ring: None,
            spool: None,
            segments: 0,
            redactor: Redactor::default(),
            clusters: Vec::new(),
            number: 0,
            at: now,
            progress: Progress::Drained,
            is_too_large: false,
        }
    }

    /// So much is kept from here on; `None`: nothing. Other limits begin anew. Before the first configuration: keeping
    /// begins with it.
    pub fn limit(&mut self, limits: Option<Limits>) {
        if self.limits == limits {
            return;
        }
        (self.limits, self.is_too_large) = (limits, false);
        self.give_up();
        self.begin();
    }

    /// What is kept is also told in pieces from here on, as this author's; `None`: it is not. The ring begins anew.
    pub fn spool(&mut self, author: Option<Author>) {
        let before = self.spool.take().map_or(self.segments, |spool| spool.segments());
        self.segments = before;
        self.spool = author.map(|author| Spool::new(author, before));
        self.give_up();
        self.begin();
    }

    /// Whether [`Self::pieces`] has any.
    pub fn has_pieces(&self) -> bool {
        self.spool.as_ref().is_some_and(Spool::is_waiting)
    }

    /// The pieces that were cut since it was last asked. To be asked whenever there was nothing left to be done: they wait
    /// in memory. `now` and the milliseconds since 1970 are of the same moment.
    pub fn pieces(&mut self, now: Timestamp, unix_ms: u64) -> Vec<Piece> {
        self.spool.as_mut().map(|spool| spool.take(now, unix_ms)).unwrap_or_default()
    }

    /// A piece found no place: no more of them come until a segment begins.
    pub fn piece_lost(&mut self) {
        self.spool.iter_mut().for_each(Spool::abandon);
    }

    /// Cuts a piece of what was not told yet, before the end. While outputs wait there is none.
    pub fn cut(&mut self) {
        if self.progress == Progress::Drained
            && let (Some(spool), Some(ring)) = (&mut self.spool, &mut self.ring)
        {
            spool.cut(self.at, ring);
        }
    }

    /// Reads of the core that change nothing.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// The core, for its view: whoever takes it also chooses who is available.
    pub fn core_for_view(&mut self) -> &mut Core {
        if self.progress == Progress::Told {
            self.progress = Progress::Asked(0);
        }
        &mut self.core
    }

    /// [`Core::handle`].
    pub fn handle(&mut self, now: Timestamp, input: Input) {
        self.at = self.at.max(now);
        let now = self.at;
        self.note_progress();
        self.progress = Progress::Told;
        if let Input::Configured { clusters, .. } = &input {
            self.configured(clusters);
        }
        self.keep(now, &input);
        self.core.handle(now, input);
    }

    /// [`Core::poll_output`].
    pub fn poll_output(&mut self) -> Option<Output> {
        let output = self.core.poll_output();
        let Some(output) = output else {
            self.drained();
            return None;
        };
        self.progress = match self.progress {
            Progress::Asked(outputs) => Progress::Asked(outputs + 1),
            Progress::Told | Progress::Drained => Progress::Asked(1),
        };
        if let (Output::Event(event), Some(ring)) = (&output, &mut self.ring) {
            ring.open.event(event);
            self.spool.iter_mut().for_each(Spool::told);
        }
        Some(output)
    }

    /// [`Core::poll_timeout`].
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.core.poll_timeout()
    }

    /// How the recording stands.
    pub fn standing(&self) -> Standing {
        match (&self.ring, self.limits) {
            (Some(ring), _) => Standing::On { since: ring.since(), bytes: ring.len() },
            (None, Some(_)) if self.is_too_large => Standing::TooLarge,
            (None, _) => Standing::Off,
        }
    }

    /// What is kept, as a file; `None`: nothing is.
    pub fn save(&mut self, header: &file::Header) -> Option<Vec<u8>> {
        self.note_progress();
        self.ring.as_mut().map(|ring| file::write(header, ring))
    }

    /// What the cluster's passive policies want to hear of.
    pub fn needs(&self, cluster: &ClusterId) -> health::Needs {
        self.core.needs(cluster)
    }

    fn keep(&mut self, now: Timestamp, input: &Input) {
        let Some(ring) = &mut self.ring else { return };
        match input {
            Input::HealthRestored(saved) => {
                let mut saved = saved.clone();
                let clusters = saved.clusters.iter_mut();
                clusters
                    .flat_map(|cluster| &mut cluster.destinations)
                    .for_each(|one| self.redactor.url(&mut one.address));
                ring.open.input(now, &Input::HealthRestored(saved), self.number);
            }
            Input::Configured { .. }
            | Input::ConfigRefused { .. }
            | Input::TimerDue
            | Input::Probed(_)
            | Input::OutcomeSeen(_)
            | Input::SumsTaken { .. }
            | Input::PulsesTaken { .. }
            | Input::HealthSet(_)
            | Input::DrainStarted
            | Input::SlotQuiet { .. } => ring.open.input(now, input, self.number),
        }
        if ring.is_full() {
            ring.forget();
            // A storm between two turns, or a configuration that is too large: it begins anew, where it can.
            if ring.is_full() {
                self.give_up();
            }
        }
    }

    fn configured(&mut self, clusters: &[Arc<Cluster>]) {
        self.number += 1;
        self.clusters = clusters.to_vec();
        self.is_too_large = false;
        let json = self.ring.is_some().then(|| self.shown());
        if let (Some(ring), Some(json)) = (&mut self.ring, json) {
            self.spool.iter_mut().for_each(|spool| spool.configuration(self.number, &json));
            ring.configuration(self.number, json);
        }
    }

    /// The configuration in force as a recording shows it.
    fn shown(&mut self) -> Arc<[u8]> {
        serde_json::to_vec(&self.redactor.clusters(&self.clusters)).unwrap_or_default().into()
    }

    /// Writes down how far the core was asked before whatever comes now.
    fn note_progress(&mut self) {
        if let (Progress::Asked(outputs), Some(ring)) = (self.progress, &mut self.ring) {
            ring.open.asked(Asked::Some(outputs));
            self.progress = Progress::Told;
        }
    }

    /// Nothing is left to be done.
    fn drained(&mut self) {
        let before = std::mem::replace(&mut self.progress, Progress::Drained);
        match &mut self.ring {
            Some(ring) => {
                if before != Progress::Drained {
                    ring.open.asked(Asked::All);
                }
                if ring.is_due(self.at) {
                    self.turn();
                } else {
                    self.spool.iter_mut().for_each(|spool| spool.rest(self.at, ring));
                }
            }
            None => self.begin(),
        }
    }

    /// Begins a ring where one is wanted and none is there.
    fn begin(&mut self) {
        let Some(limits) = self.limits.filter(|_| self.ring.is_none() && !self.is_too_large) else { return };
        let Some(start) = self.start() else { return };
        match Ring::new(limits, start, self.shown()) {
            Ok(ring) => {
                let (start, configuration) = ring.begun();
                self.spool.iter_mut().for_each(|spool| spool.begin(start, configuration));
                self.ring = Some(ring);
            }
            Err(TooLarge) => self.is_too_large = true,
        }
    }

    fn turn(&mut self) {
        let Some(start) = self.start() else { return };
        let Some(ring) = &mut self.ring else { return };
        self.spool.iter_mut().for_each(|spool| spool.end(self.at, ring));
        match ring.turn(start) {
            Ok(()) => {
                let (start, configuration) = ring.begun();
                self.spool.iter_mut().for_each(|spool| spool.begin(start, configuration));
            }
            Err(TooLarge) => {
                self.give_up();
                self.is_too_large = true;
            }
        }
    }

    fn give_up(&mut self) {
        self.ring = None;
        self.spool.iter_mut().for_each(Spool::abandon);
    }

    /// The state between two inputs; `None` while outputs wait.
    fn start(&mut self) -> Option<Start> {
        let mut checkpoint: Checkpoint = self.core.checkpoint()?;
        checkpoint.addresses_mut().for_each(|address| self.redactor.url(address));
        // A core that was told nothing yet has the time of no input.
        let at = checkpoint.at().max(self.at);
        let checkpoint = serde_json::to_vec(&checkpoint).ok()?;
        Some(Start { at, configuration: self.number, checkpoint })
    }
}

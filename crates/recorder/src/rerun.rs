//! A recording's inputs, once more into the very same core: what it tells must be what was told then, to the byte.
//!
//! The state is compared as well, at each segment's beginning: so a difference is found even where no event shows it.

use std::fmt;
use std::sync::Arc;

use health::{Core, Output, Registry, ResumeError};
use model::cluster::Cluster;
use model::event::Event;
use model::time::Timestamp;

use crate::file::{ReadError, Recording, Segment};
use crate::records::{Asked, Decoder, Record};

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Rerun {
    /// Time of the state that it began with.
    pub begins_at: Timestamp,
    /// Time of the last input.
    pub ends_at: Timestamp,
    /// Inputs.
    pub inputs: u64,
    /// What the core told now.
    pub events: Vec<Event>,
    /// Where it first was not what the recording holds.
    pub difference: Option<Difference>,
}

/// The first place where a replay is not what was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// An event, as JSON on both sides; `None`: there is none.
    Event {
        /// Time of the input before it.
        at: Timestamp,
        /// Then.
        recorded: Option<String>,
        /// Now.
        replayed: Option<String>,
    },
    /// The state at the beginning of a segment, as JSON from where it differs.
    State {
        /// When that was.
        at: Timestamp,
        /// Then.
        recorded: String,
        /// Now.
        replayed: String,
    },
}

/// Why a recording cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// The file is at fault.
    Read(ReadError),
    /// No core can go on from its state.
    Resume(ResumeError),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Resume(error) => write!(f, "the recording cannot be replayed: {error}"),
        }
    }
}

impl std::error::Error for ReplayError {}

impl Recording {
    /// The core at the recording's beginning.
    pub fn core(&self, registry: Registry) -> Result<Core, ReplayError> {
        let first = self.segments.first().ok_or_else(|| ReplayError::Read(senseless("there is no segment")))?;
        let clusters = self.configurations.get(&first.configuration).map(Vec::as_slice).unwrap_or_default();
        let checkpoint = self.checkpoint(first).map_err(ReplayError::Read)?;
        Core::resume(checkpoint, clusters, registry).map_err(ReplayError::Resume)
    }

    /// The clusters that were configured at its beginning.
    pub fn clusters(&self) -> Vec<Arc<Cluster>> {
        let first = self.segments.first().and_then(|segment| self.configurations.get(&segment.configuration));
        first.cloned().unwrap_or_default()
    }

    /// Shows every record in order.
    pub fn each(&self, mut show: impl FnMut(Record)) -> Result<(), ReadError> {
        self.segments.iter().try_for_each(|segment| self.each_of(segment, &mut show))
    }

    fn each_of(&self, segment: &Segment, mut show: impl FnMut(Record)) -> Result<(), ReadError> {
        let mut decoder = Decoder::new(&segment.records, segment.at, &self.configurations);
        let garbled = |_| senseless(&format!("the records after {}", segment.at));
        while let Some(record) = decoder.next().map_err(garbled)? {
            show(record);
        }
        Ok(())
    }

    /// Runs it once more.
    pub fn rerun(&self, registry: Registry) -> Result<Rerun, ReplayError> {
        let mut run = Run::new(self.core(registry)?, self.begins_at());
        for segment in &self.segments {
            run.compare_state(segment);
            self.each_of(segment, |record| run.take(record)).map_err(ReplayError::Read)?;
        }
        run.compare_rest();
        Ok(run.done)
    }
}

struct Run {
    core: Core,
    /// Told then and now, not compared yet.
    recorded: Vec<Vec<u8>>,
    replayed: Vec<Vec<u8>>,
    done: Rerun,
}

impl Run {
    fn new(core: Core, at: Timestamp) -> Self {
        let done = Rerun { begins_at: at, ends_at: at, inputs: 0, events: Vec::new(), difference: None };
        Self { core, recorded: Vec::new(), replayed: Vec::new(), done }
    }

    fn take(&mut self, record: Record) {
        match record {
            Record::Input(now, input) => {
                self.compare_events();
                self.done.ends_at = now;
                self.done.inputs += 1;
                self.core.handle(now, input);
            }
            Record::Asked(asked) => {
                let mut left = match asked {
                    Asked::Some(outputs) => outputs,
                    Asked::All => u64::MAX,
                };
                // Who is available is chosen also where only the view was asked for.
                let _ = self.core.view();
                while left > 0
                    && let Some(output) = self.core.poll_output()
                {
                    left -= 1;
                    if let Output::Event(event) = output {
                        self.replayed.push(serde_json::to_vec(&event).unwrap_or_default());
                        self.done.events.push(event);
                    }
                }
            }
            Record::Event(json) => self.recorded.push(json),
        }
    }

    /// Compares what was told since the last input.
    fn compare_events(&mut self) {
        let n = self.recorded.len().min(self.replayed.len());
        let mut pairs = self.recorded.drain(..n).zip(self.replayed.drain(..n));
        let differing = pairs.find(|(then, now)| then != now);
        drop(pairs);
        if let (Some((then, now)), None) = (differing, &self.done.difference) {
            let text = |json: Vec<u8>| Some(String::from_utf8_lossy(&json).into_owned());
            self.done.difference =
                Some(Difference::Event { at: self.done.ends_at, recorded: text(then), replayed: text(now) });
        }
    }

    /// Nothing is left over here: whatever was told on one side alone is the difference.
    fn compare_rest(&mut self) {
        self.compare_events();
        let text = |events: &mut Vec<Vec<u8>>| {
            let first = events.first().map(|json| String::from_utf8_lossy(json).into_owned());
            events.clear();
            first
        };
        let (recorded, replayed) = (text(&mut self.recorded), text(&mut self.replayed));
        if (&recorded, &replayed) != (&None, &None) && self.done.difference.is_none() {
            self.done.difference = Some(Difference::Event { at: self.done.ends_at, recorded, replayed });
        }
    }

    fn compare_state(&mut self, segment: &Segment) {
        self.compare_rest();
        let state = self.core.checkpoint().and_then(|state| serde_json::to_vec(&state).ok()).unwrap_or_default();
        if state != segment.checkpoint && self.done.difference.is_none() {
            let place = state.iter().zip(&segment.checkpoint).take_while(|(now, then)| now == then).count();
            let part = |json: &[u8]| {
                let part = json.iter().skip(place.saturating_sub(SHOWN)).take(2 * SHOWN).copied().collect::<Vec<u8>>();
                String::from_utf8_lossy(&part).into_owned()
            };
            let (recorded, replayed) = (part(&segment.checkpoint), part(&state));
            self.done.difference = Some(Difference::State { at: segment.at, recorded, replayed });
        }
    }
}

/// Bytes shown around a difference in the state.
const SHOWN: usize = 60;

fn senseless(why: &str) -> ReadError {
    ReadError::Senseless(why.to_owned())
}

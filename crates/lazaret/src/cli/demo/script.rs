//! The destinations of the demo and what they are made to do, round after round.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use patients::{Behaviour, Patient};
use tokio::runtime::Runtime;

/// One round: second, who, what. Each fault is over before the next begins, so that its effects can be told apart.
const ROUND: &[(u64, &str, Behaviour)] = &[
    (2, "app1", Behaviour::Die),
    (5, "app1", Behaviour::Serve(Duration::ZERO)),
    (7, "app2", Behaviour::Hang),
    (10, "app2", Behaviour::Serve(Duration::ZERO)),
    (12, "app3", Behaviour::Fail(500)),
    (15, "app3", Behaviour::Serve(Duration::ZERO)),
    (17, "app1", Behaviour::Pause),
    (18, "app1", Behaviour::Serve(Duration::ZERO)),
];
const ROUND_LENGTH: Duration = Duration::from_secs(20);
const IDS: [&str; 3] = ["app1", "app2", "app3"];

/// A change of a destination's behaviour.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// Since the play began.
    pub(super) at: Duration,
    /// Who.
    pub(super) id: &'static str,
    /// What it does from then on.
    pub(super) does: String,
    /// It serves again.
    pub(super) is_recovery: bool,
}

/// The destinations, on a thread of their own.
pub(super) struct Ward {
    patients: BTreeMap<&'static str, Arc<Patient>>,
    changes: Arc<Mutex<Vec<Change>>>,
    began: Mutex<Option<Instant>>,
    runtime: Runtime,
}

impl Ward {
    /// Starts them all, serving.
    pub(super) fn open() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let mut patients = BTreeMap::new();
        for id in IDS {
            patients.insert(id, Arc::new(runtime.block_on(Patient::start(id))?));
        }
        Ok(Self { patients, changes: Arc::default(), began: Mutex::default(), runtime })
    }

    /// Each with its id.
    pub(super) fn patients(&self) -> impl Iterator<Item = (&'static str, &Patient)> {
        self.patients.iter().map(|(id, patient)| (*id, &**patient))
    }

    /// Begins the script.
    pub(super) fn play(&self) {
        *lock(&self.began) = Some(Instant::now());
        let (patients, changes) = (self.patients.clone(), Arc::clone(&self.changes));
        self.runtime.spawn(async move {
            let start = tokio::time::Instant::now();
            for round in 0u32.. {
                for (second, id, behaviour) in ROUND {
                    let at = ROUND_LENGTH * round + Duration::from_secs(*second);
                    tokio::time::sleep_until(start + at).await;
                    if let Some(patient) = patients.get(id) {
                        patient.set(*behaviour);
                    }
                    let is_recovery = matches!(behaviour, Behaviour::Serve(_));
                    let does = words(*behaviour);
                    lock(&changes).push(Change { at: start.elapsed(), id, does, is_recovery });
                }
            }
        });
    }

    /// When the script began.
    pub(super) fn began(&self) -> Option<Instant> {
        *lock(&self.began)
    }

    /// What a destination does now.
    pub(super) fn does(&self, id: &str) -> String {
        self.patients.get(id).map(|patient| words(patient.behaviour())).unwrap_or_default()
    }

    /// Everything that the script did so far, in order.
    pub(super) fn changes(&self) -> Vec<Change> {
        lock(&self.changes).clone()
    }
}

fn words(behaviour: Behaviour) -> String {
    match behaviour {
        Behaviour::Serve(_) => "serves".to_owned(),
        Behaviour::Die => "is dead".to_owned(),
        Behaviour::Refuse => "refuses connections".to_owned(),
        Behaviour::Hang => "hangs".to_owned(),
        Behaviour::Fail(status) => format!("answers {status}"),
        Behaviour::Pause => "pauses".to_owned(),
        Behaviour::SlowBody(_) | Behaviour::CutBody | Behaviour::Garbage => behaviour.to_string(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

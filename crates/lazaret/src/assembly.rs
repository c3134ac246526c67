//! Who is wired to whom: the control thread with its three parts, and the traffic threads.
//!
//! ```text
//!   start() ── spawns ──> control thread ─┬─ Monitor::run        health, probes, publishing ──┐
//!      │                                  ├─ control::serve      control API                  │ board, journal
//!      │                                  └─ Supervisor::run     orders, reloads, the stop    │
//!      └── waits for Started              workers 0..N           traffic <───────────────────-┘
//! ```
//!
//! Everything that can fail at the start is done before the first request is accepted: TLS settings, log files, both
//! control sockets, every listener.

mod process;
mod reload;
mod spooling;
mod supervisor;
mod upgrade;

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use tokio::sync::mpsc;

use crate::builder::Lazaret;
use crate::error::Error;
use crate::inheritance::Inheritance;
use crate::running::{Facts, Running};

/// Starts the control thread and waits until it serves, or says why not.
pub(crate) fn start(lazaret: Lazaret, inheritance: Inheritance) -> Result<Running, Error> {
    let (orders, receiver) = mpsc::unbounded_channel();
    let (started, outcome) = sync_channel::<Result<Facts, Error>>(1);
    let thread = std::thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || supervisor::thread(lazaret, inheritance, receiver, &started))
        .map_err(|source| Error::start("the control thread", source))?;
    let ended = || Error::start("the control thread", std::io::Error::other("it ended before it served"));
    let facts = outcome.recv().map_err(|_| ended())??;
    Ok(Running { orders, thread: Some(thread), facts })
}

/// Traffic threads: as many as configured, else one per CPU.
pub(crate) fn workers(config: &model::config::Config) -> usize {
    let cpus = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    config.workers.map_or_else(cpus, |workers| usize::from(workers.get()))
}

/// The configuration behind an `Arc`, as monitor and proxy share it.
pub(crate) fn shared(lazaret: &Lazaret) -> Arc<model::config::Config> {
    Arc::new(lazaret.loaded.config.clone())
}

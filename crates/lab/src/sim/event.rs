//! What can happen in the simulated world, arrivals apart.

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A fault begins, or ends.
    Fault {
        /// Its place in the scenario.
        fault: u32,
        /// Which of its times.
        window: u32,
        /// Which end of it.
        edge: Edge,
    },
    /// A destination is done with a job.
    Completed {
        /// Which.
        destination: u32,
        /// The job's place there.
        job: u32,
        /// Of which life of the destination.
        life: u32,
    },
    /// The first of a kind of deadlines may be over.
    Deadline(u32),
    /// A proxy takes its sums.
    Tick(u32),
    /// A proxy looks at what has failed.
    Wake(u32),
    /// A timer of a proxy's health core is due.
    CoreTimer(u32),
    /// A timer of a model is due.
    ModelTimer(u32),
    /// A probe of a proxy is over.
    ProbeEnd {
        /// Whose.
        proxy: u32,
        /// Its number there.
        probe: u32,
        /// How.
        end: ProbeEnd,
    },
    /// A client of a closed loop asks.
    Ask {
        /// Which stream of traffic.
        source: u32,
        /// Which client.
        client: u32,
    },
}

/// Which end of a fault's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edge {
    /// It is over. Before the next one begins.
    End,
    /// It begins.
    Begin,
}

/// How a probe ends that no job of the destination answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProbeEnd {
    /// Its time is over.
    Timeout,
    /// The connection was refused.
    Refused,
    /// An answer that was there at once: it passed.
    Passed,
    /// An answer that was there at once: it did not pass.
    Failed,
}
